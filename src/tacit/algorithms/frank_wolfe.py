"""Private Frank-Wolfe: Algorithm 1 of the paper."""

import math
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.algorithms.base import Facts, check_field
from tacit.algorithms.eigen import top_eigenpair
from tacit.algorithms.item_means import item_means
from tacit.budget import Sensitivity
from tacit.ledger import Ledger
from tacit.models.rules import ReplayRule
from tacit.private.mechanism import Mechanism
from tacit.private.rows import RankOneStep, RowBounds
from tacit.private.statistics import ItemSums, ResidualCovariance, UserCount

__all__ = ["FrankWolfe"]

_COUNT_SHARE = 0.02


@dataclass(frozen=True, kw_only=True)
class FrankWolfe:
    """Private Frank-Wolfe for min ||P(Y - Y*)||_F^2 over the nuclear-norm ball of radius k.

    Each round releases a noisy covariance of the users' residuals A = P(Y - Y*),

        W^(t) = sum_i A_i^T A_i + noise,     (v, lambda^2) = its top eigenpair,

    and each user moves, by herself,

        Y_i <- project((1 - 1/T) Y_i - (k/T) (A_i . v / lambda') v),    lambda' = lambda + shift.

    The first covariance is that of the ratings (Y = 0) and in round T nothing is released, so
    T rounds are T - 1 releases and T - 1 moves.

    *Paper:* Algorithm 1. Its noise is made symmetric (post-processing), and lambda^2 is kept at
    or above the noise sd, because the top eigenvalue of a noisy matrix can be negative.
    *Guarantee:* each release is a ResidualCovariance with rows of norm at most residual_clip L;
    joint differential privacy for what users do with it.
    """

    name: ClassVar[str] = "frank-wolfe"

    rounds: int = 10
    """T: one release a round but the last."""
    nuclear_norm: float | None = None
    """k; None: (hi - lo)/4 sqrt(users items), from public or paid numbers."""
    row_norm: float | None = None
    """L, the norm that a user's row is scaled down to; None: (hi - lo)/4 sqrt(max_ratings)."""
    residual_clip: float = 2.0
    """Residuals are clipped to this many times L before they are summed; 2 never bites."""
    max_ratings: int | None = 80
    """At most this many ratings of a user count; None: all."""
    centre: bool = True
    """Whether users take their own mean off their ratings."""
    shift: bool = True
    """Whether lambda' = lambda + sqrt(sigma ln(n/beta)) n^(1/4), or just lambda."""
    beta: float = 0.05
    """The failure probability in that shift."""
    schedule: float | tuple[float, ...] = 0.0
    """Shares of the budget by round: a power of t, or the T - 1 shares in proportion."""
    item_means: float = 0.0
    """Share of the budget for item means, taken off before all else; 0: none, as in the paper."""
    sampling_seed: int = 0
    """Of the choice of at most max_ratings ratings of a user."""

    def __post_init__(self) -> None:
        """Check every setting."""
        _check(self)

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve the covariances, and the user count and item means where they are needed."""
        count, means = self._side_shares(facts)
        if count:
            ledger.reserve("user count", UserCount().sensitivity, count)
        if means:
            bound = ItemSums(self._bounds(facts, _zeros(facts)), facts.rating_range).sensitivity
            ledger.reserve("item sums", bound, means)
        for name, share in self._covariance_shares(facts, 1.0 - count - means):
            ledger.reserve(name, self._covariance_sensitivity(facts), share)

    def run(self, mechanism: Mechanism, facts: Facts) -> ReplayRule:
        """Make the releases; the published rule replays them on one's own ratings."""
        radius = self._radius(mechanism, facts)
        bounds = self._bounds(facts, self._offsets(mechanism, facts))
        steps: list[RankOneStep] = []
        for name, _ in self._covariance_shares(facts, 1.0):
            statistic = ResidualCovariance(bounds, tuple(steps), self._residual_bound(facts))
            noisy = mechanism.release(name, statistic)
            steps.append(self._step(noisy, mechanism.noise_sd(name), radius, bounds.norm))
        return ReplayRule(
            directions=np.array([step.direction for step in steps]),
            gains=np.array([step.gain for step in steps]),
            offsets=bounds.offsets,
            keep=1.0 - 1.0 / self.rounds,
            row_norm=bounds.norm,
            max_ratings=self.max_ratings,
            centre=self.centre,
        )

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        used["row_norm"] = self._norm(facts)
        if self.nuclear_norm is None:
            used["nuclear_norm"] = "by rule from the number of users and items"
        return {f"{self.name} {name}": str(value) for name, value in used.items()}

    def _step(
        self, noisy: NDArray[np.float64], noise_sd: float, radius: float, norm: float
    ) -> RankOneStep:
        """Turn a noisy covariance into the direction and gain of the next move."""
        direction, eigenvalue = top_eigenpair(noisy)
        singular = math.sqrt(max(eigenvalue, noise_sd))
        if self.shift:
            items = noisy.shape[0]
            singular += math.sqrt(noise_sd * math.log(items / self.beta)) * items**0.25
        gain = radius / (self.rounds * singular) if singular > 0 else 0.0
        return RankOneStep(direction, gain, 1.0 - 1.0 / self.rounds, norm)

    def _radius(self, mechanism: Mechanism, facts: Facts) -> float:
        """Return k, paying for the number of users where it is needed and protected."""
        if self.nuclear_norm is not None:
            return self.nuclear_norm
        users = facts.n_users
        if users is None:
            users = max(1, round(float(mechanism.release("user count", UserCount())[0])))
        return default_nuclear_norm(users, facts.n_items, facts.rating_range)

    def _offsets(self, mechanism: Mechanism, facts: Facts) -> NDArray[np.float64]:
        """Return what is taken off each item: its released mean, or the middle of the range."""
        if not self.item_means:
            return np.full(facts.n_items, sum(facts.rating_range) / 2)
        sums = ItemSums(self._bounds(facts, _zeros(facts)), facts.rating_range)
        noisy = mechanism.release("item sums", sums)
        return item_means(noisy, mechanism.noise_sd("item sums"), facts.rating_range)

    def _bounds(self, facts: Facts, offsets: NDArray[np.float64]) -> RowBounds:
        norm = self._norm(facts)
        return RowBounds(self.max_ratings, offsets, self.centre, norm, self.sampling_seed)

    def _norm(self, facts: Facts) -> float:
        if self.row_norm is not None:
            return self.row_norm
        lo, hi = facts.rating_range
        return (hi - lo) / 4 * math.sqrt(min(self.max_ratings or facts.n_items, facts.n_items))

    def _residual_bound(self, facts: Facts) -> float:
        return self.residual_clip * self._norm(facts)

    def _covariance_sensitivity(self, facts: Facts) -> Sensitivity:
        bounds = self._bounds(facts, _zeros(facts))
        return ResidualCovariance(bounds, (), self._residual_bound(facts)).sensitivity

    def _side_shares(self, facts: Facts) -> tuple[float, float]:
        """Return the shares of the user count and of the item means."""
        counted = self.nuclear_norm is None and facts.n_users is None
        return (_COUNT_SHARE if counted else 0.0), self.item_means

    def _covariance_shares(self, facts: Facts, whole: float) -> list[tuple[str, float]]:
        """Return the releases by name with their shares, which add up to `whole`.

        The paper's sigma counts T rounds although T - 1 are released.
        """
        if isinstance(self.schedule, tuple):
            weights = np.array(self.schedule)
        else:
            weights = np.arange(1.0, self.rounds) ** self.schedule
        if facts.paper_accounting:
            whole *= (self.rounds - 1) / self.rounds
        shares = whole * weights / weights.sum()
        return [(f"covariance {t}", float(share)) for t, share in enumerate(shares, start=1)]


def default_nuclear_norm(users: int, items: int, rating_range: tuple[float, float]) -> float:
    """Return a nuclear-norm bound from public numbers only.

    A quarter of (hi - lo) sqrt(users items): a rank-one matrix with entries uniform over the
    range has two thirds of that. With a k that is too large, late rounds fit noise.
    """
    return 0.25 * (rating_range[1] - rating_range[0]) * math.sqrt(users * items)


def _zeros(facts: Facts) -> NDArray[np.float64]:
    return np.zeros(facts.n_items)


def _check(config: FrankWolfe) -> None:
    whole = isinstance(config.rounds, int) and not isinstance(config.rounds, bool)
    check_field("rounds", config.rounds, whole and 2 <= config.rounds <= 10_000, "2 to 10000")
    clip = config.residual_clip
    check_field("residual_clip", clip, _is_number(clip) and 0 < clip <= 2, "a number in (0, 2]")
    for name in ("nuclear_norm", "row_norm"):
        value = getattr(config, name)
        fine = value is None or (_is_number(value) and 0 < value < math.inf)
        check_field(name, value, fine, "a positive number, or None")
    most = config.max_ratings
    fine = most is None or (isinstance(most, int) and not isinstance(most, bool) and most >= 1)
    check_field("max_ratings", most, fine, "a whole number of at least 1, or None for all")
    check_field("beta", config.beta, _is_number(config.beta) and 0 < config.beta < 1, "in (0, 1)")
    share = config.item_means
    check_field("item_means", share, _is_number(share) and 0 <= share < 0.9, "a share in [0, 0.9)")
    _check_schedule(config)


def _check_schedule(config: FrankWolfe) -> None:
    schedule = config.schedule
    if isinstance(schedule, tuple):
        fine = len(schedule) == config.rounds - 1 and all(
            _is_number(weight) and 0 < weight < math.inf for weight in schedule
        )
        check_field("schedule", schedule, fine, f"{config.rounds - 1} positive numbers (T - 1)")
    else:
        fine = _is_number(schedule) and -10 <= schedule <= 10
        check_field("schedule", schedule, fine, "a power of t from -10 to 10, or a tuple")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
