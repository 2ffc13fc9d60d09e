"""Private Frank-Wolfe: Algorithm 1 of the paper, with its own eigenvectors or Algorithm 2's."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Positive, Range, Seed
from tacit.accounting.budget import Sensitivity
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import (
    Preparation,
    default_nuclear_norm,
    default_ridge,
)
from tacit.algorithms.schedule import Schedule, check_schedule, shares_of_rounds
from tacit.estimation.eigen import OjaRate, OjaSteps, oja, start_block, top_eigenpair
from tacit.models.linear import RidgeRule
from tacit.models.replay import ReplayRule
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    ResidualCovariance,
    ResidualEnergy,
    ResidualProduct,
    product_sensitivity,
)

_ENERGY_SHARE = 0.1  # of a round's share, for the eigenvalue when it is a release of its own


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(Preparation):
    """Private Frank-Wolfe for min ||P(Y - Y*)||_F^2 over the nuclear-norm ball of radius k.

    Each round releases the top eigenpair of a noisy covariance of the users' residuals
    A = P(Y - Y*),

        W^(t) = sum_i A_i^T A_i + noise,     (v, lambda^2) = its top eigenpair,

    and each user moves, by herself,

        Y_i <- project((1 - eta) Y_i - eta k (A_i . v / lambda') v),   lambda' = lambda + shift,

    with eta = 1/T, or another schedule fixed in advance.

    The first covariance is that of the ratings (Y = 0) and in round T nothing is released, so
    T rounds are T - 1 releases and T - 1 moves. With eigen="oja" nothing items-by-items exists:
    v comes from noisy products with W^(t), and lambda^2 is one more release.

    *Paper:* Algorithm 1 and Algorithm 2. Noise on a covariance is made symmetric
    (post-processing), and lambda^2 is kept at or above the noise sd, because the top eigenvalue of
    a noisy matrix can be negative.
    *Guarantee:* each release is a ResidualCovariance, a ResidualProduct or a ResidualEnergy with
    rows of norm at most residual_clip L; joint differential privacy for what users do with it.
    """

    name: ClassVar[str] = "frank-wolfe"

    rounds: Annotated[int, Range(2, 10_000)] = 10
    """T: one release a round but the last."""
    nuclear_norm: Positive | None = None
    """k; None: (hi - lo)/4 sqrt(users items), from public or paid numbers."""
    residual_clip: Annotated[float, Range(0, 2, "(]")] = 2.0
    """Residuals are clipped to this many times L before they are summed; 2 never bites."""
    shift: bool = True
    """Whether lambda' = lambda + sqrt(sigma ln(n/beta)) n^(1/4), or just lambda."""
    beta: Annotated[float, Range(0, 1, "()")] = 0.05
    """The failure probability in that shift."""
    step: Literal["1/T", "2/(t+2)"] = "1/T"
    """eta_t, fixed in advance: the paper's, or the usual one, whose first step is whole."""
    schedule: Schedule = 0.0
    """Shares of the budget by round: a power of t, the T - 1 shares in proportion, or
    "completed": noise of sd in proportion to sqrt(t)."""
    eigen: Literal["exact", "oja"] = "exact"
    """The eigenpair of a released covariance, or Algorithm 2."""
    oja_steps: OjaSteps = 5
    """Gamma: noisy products a round."""
    oja_rate: OjaRate = "theory"
    """eta: "paper", "theory", "power" (infinite) or a number."""
    start_seed: Seed = 0
    """The random seed of the public vector that Algorithm 2 begins with."""
    local: Literal["replay", "ridge"] = "replay"
    """What users do: replay the rounds, as in the paper, or ridge regression on the directions."""

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        check_schedule(self.schedule, self.rounds - 1)

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve every round, and the user count and item means where they are needed."""
        left = self._reserve_preparation(ledger, facts, users=self._needs_users)
        for turn, share in self._round_shares(facts, left):
            if self.eigen == "exact":
                bound = self._covariance_sensitivity(facts)
                ledger.reserve(_covariance(turn), bound, share, scaled=self._norm_is_paid)
            else:
                self._reserve_oja(ledger, facts, turn, share)

    def run(self, mechanism: Mechanism, facts: Facts) -> ReplayRule | RidgeRule:
        """Make the releases; the published rule is what users do with them."""
        users = self._users(mechanism, facts) if self._needs_users else 0
        radius = self.nuclear_norm
        if radius is None:
            radius = default_nuclear_norm(users, facts.n_items, facts.rating_range)
        bounds = self._prepared(mechanism, facts)
        steps: list[RankOneStep] = []
        energies = []
        for turn, _ in self._round_shares(facts, 1.0):
            residuals = (bounds, tuple(steps), self.residual_clip * bounds.norm)
            direction, energy, noise_sd = self._eigenpair(mechanism, turn, residuals)
            gain = self._gain(energy, noise_sd, facts.n_items) * radius
            eta = 1.0 / self.rounds if self.step == "1/T" else 2.0 / (turn + 1)
            steps.append(RankOneStep(direction, eta * gain, 1.0 - eta, bounds.norm))
            energies.append(energy)
        if self.local == "ridge":
            return self._ridge_rule(steps, np.array(energies), users, facts, bounds)
        return replay_rule(self, steps, bounds, [])

    @property
    def _needs_users(self) -> bool:
        return self.nuclear_norm is None or self.local == "ridge"

    def _eigenpair(
        self,
        mechanism: Mechanism,
        turn: int,
        residuals: tuple[RowBounds, tuple[RankOneStep, ...], float],
    ) -> tuple[NDArray[np.float64], float, float]:
        """Return the direction, its eigenvalue, and the noise sd that blurs them."""
        if self.eigen == "exact":
            statistic = ResidualCovariance(*residuals)
            noisy = mechanism.release(_covariance(turn), statistic)
            noise_sd = mechanism.noise_sd(_covariance(turn), statistic.sensitivity)
            return *top_eigenpair(noisy), noise_sd

        def noisy_product(block: NDArray[np.float64], step: int) -> NDArray[np.float64]:
            return mechanism.release(_product(turn, step), ResidualProduct(*residuals, block))

        start = start_block(residuals[0].offsets.size, 1, self.start_seed + turn)
        bound = product_sensitivity(residuals[2], 1)
        noise_sd = mechanism.noise_sd(_product(turn, 1), bound)
        found = oja(noisy_product, start, self.oja_steps, self.oja_rate, noise_sd)[:, 0]
        direction = found * np.sign(found[np.argmax(np.abs(found))])
        energy = mechanism.release(_energy(turn), ResidualEnergy(*residuals, direction))
        return direction, float(energy[0]), noise_sd

    def _gain(self, energy: float, noise_sd: float, items: int) -> float:
        """Return 1/lambda', the gain of a step per unit of k."""
        singular = math.sqrt(max(energy, noise_sd))
        if self.shift:
            singular += math.sqrt(noise_sd * math.log(items / self.beta)) * items**0.25
        return 1.0 / singular if singular > 0 else 0.0

    def _ridge_rule(
        self,
        steps: list[RankOneStep],
        energies: NDArray[np.float64],
        users: int,
        facts: Facts,
        bounds: RowBounds,
    ) -> RidgeRule:
        """Let users solve on the span of the directions, each with the spread its energy shows.

        A user's coefficient of v has the variance lambda^2 / (m p^2), p = ratings a user / n.
        Directions come again and again, so they are made orthogonal in their order.
        """
        density = self._most(facts) / facts.n_items
        spreads = np.sqrt(np.maximum(energies, 0.0) / users) / density
        basis, weights = np.linalg.qr(np.array([step.direction for step in steps]).T)
        factors = basis * (np.abs(np.diag(weights)) * spreads[: basis.shape[1]])
        return RidgeRule(
            factors=np.ascontiguousarray(factors),
            offsets=bounds.offsets,
            noise=np.full(facts.n_items, default_ridge(facts.rating_range)),
            centre=self.centre,
            shrink=0.0,
            source=ReleaseKind.COVARIANCE if self.eigen == "exact" else ReleaseKind.PRODUCT,
        )

    def _residual_bound(self, facts: Facts) -> float:
        return self.residual_clip * self._norm(facts)

    def _covariance_sensitivity(self, facts: Facts) -> Sensitivity:
        return ResidualCovariance(self._bounds(facts), (), self._residual_bound(facts)).sensitivity

    def _reserve_oja(self, ledger: Ledger, facts: Facts, turn: int, share: float) -> None:
        """Split a round's share: most of it evenly over Gamma products, the rest for lambda^2."""
        bound, scaled = self._residual_bound(facts), self._norm_is_paid
        product = product_sensitivity(bound, 1)
        for step in range(1, self.oja_steps + 1):
            part = (1 - _ENERGY_SHARE) * share / self.oja_steps
            ledger.reserve(_product(turn, step), product, part, scaled=scaled)
        energy = ResidualEnergy(self._bounds(facts), (), bound, np.zeros(facts.n_items)).sensitivity
        ledger.reserve(_energy(turn), energy, _ENERGY_SHARE * share, scaled=scaled)

    def _round_shares(self, facts: Facts, whole: float) -> Iterator[tuple[int, float]]:
        """Yield rounds 1 ... T - 1 with their shares, which add up to `whole`.

        The paper's sigma counts T rounds although T - 1 are released.
        """
        if facts.paper_accounting:
            whole *= (self.rounds - 1) / self.rounds
        yield from enumerate(shares_of_rounds(self.schedule, self.rounds - 1, whole), start=1)


def _covariance(turn: int) -> Release:
    return Release(ReleaseKind.COVARIANCE, (turn,))


def _product(turn: int, step: int) -> Release:
    return Release(ReleaseKind.PRODUCT, (turn, step))


def _energy(turn: int) -> Release:
    return Release(ReleaseKind.ENERGY, (turn,))


def replay_rule(
    config: Preparation,
    steps: list[RankOneStep],
    bounds: RowBounds,
    trace: list[tuple[float, float]],
) -> ReplayRule:
    """Publish steps for anyone to replay; the trace is of fits without privacy only."""
    shape = (len(steps), bounds.offsets.size)
    return ReplayRule(
        directions=np.array([step.direction for step in steps]).reshape(shape),
        gains=np.array([step.gain for step in steps]),
        keeps=np.array([step.keep for step in steps]),
        offsets=bounds.offsets,
        trace=np.array(trace).reshape(len(trace), 2),
        row_norm=bounds.norm,
        max_ratings=config.max_ratings,
        centre=config.centre,
    )
