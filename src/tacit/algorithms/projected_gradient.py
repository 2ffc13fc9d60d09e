"""Private projected gradient descent: Algorithm 5 of the paper, corrected."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from tacit._validate import Positive, Range
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import Preparation
from tacit.algorithms.schedule import Schedule, check_schedule, shares_of_rounds
from tacit.models.filling import FillingRule
from tacit.trusted.local_state import LinearStep
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.statistic import outer_product
from tacit.trusted.statistics import FilledCovariance


@dataclass(frozen=True, kw_only=True)
class ProjectedGradient(Preparation):
    """Private PGD for min ||P(Y - Y*)||_F^2 over the nuclear-norm ball of radius k.

    In each round users take a gradient step on what they rated,

        Y_i <- Y_i + eta_t P(Y*_i - Y_i),   scaled down to ||Y_i|| <= B_t,

    W = sum_i Y_i^T Y_i + noise = V Lambda^2 V^T is released, the singular values Lambda are
    projected on {sum Z <= k}, and users map their rows, Y_i <- Y_i V diag(Z/Lambda) V^T.

    L bounds what a user has rated; her filled row is longer. B_t is `filled_norm`, or how long a
    filled row can be at all in round t (`longest_filled_rows`), whichever is less. Without a budget
    it is the latter: nothing is cut.

    *Paper:* Algorithm 5 (Appendix E), whose gradient step has the wrong sign and index and whose
    rows are not clipped although its noise needs it. Negative eigenvalues of the noisy W count
    as zero.
    *Guarantee:* a FilledCovariance a round with rows of norm at most B_t.
    """

    name: ClassVar[str] = "pgd"

    rounds: Annotated[int, Range(1, 1000)] = 5
    """T: one release a round."""
    nuclear_norm: Positive | None = None
    """k; None: (hi - lo)/4 sqrt(users items), from public or paid numbers."""
    rate: Annotated[float, Range(0, 1, "(]")] | Literal["t^-1/2", "t^-1"] = 0.5
    """eta_t: a constant, or falling with the round."""
    filled_norm: Positive | None = None
    """The norm that a filled row is scaled down to; None: L sqrt(items / max_ratings)."""
    schedule: Schedule = 0.0
    """Shares of the budget by round: a power of t, the T shares in proportion, or "completed":
    noise of sd in proportion to sqrt(t)."""

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        check_schedule(self.schedule, self.rounds)

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve a covariance a round."""
        left = self._reserve_preparation(ledger, facts, users=self.nuclear_norm is None)
        shares = shares_of_rounds(self.schedule, self.rounds, left)
        norms = self._norms(facts, self._norm(facts))
        for turn, (norm, share) in enumerate(zip(norms, shares, strict=True), start=1):
            release, bound = Release(ReleaseKind.COVARIANCE, (turn,)), outer_product(norm)
            ledger.reserve(release, bound, share, scaled=self._norm_is_paid)

    def run(self, mechanism: Mechanism, facts: Facts) -> FillingRule:
        """Make the releases; users replay the rounds on their own rows."""
        radius = self._radius(self.nuclear_norm, mechanism, facts)
        bounds = self._prepared(mechanism, facts)
        rates, norms = self._rates(), self._norms(facts, bounds.norm)
        steps: list[LinearStep] = []
        for turn in range(1, self.rounds + 1):
            statistic = FilledCovariance(bounds, tuple(steps), rates, norms)
            noisy = mechanism.release(Release(ReleaseKind.COVARIANCE, (turn,)), statistic)
            steps.append(_ball_map(noisy, radius))
        return FillingRule(
            vectors=np.concatenate([step.vectors for step in steps], axis=1),
            shrinkage=np.concatenate([step.shrinkage for step in steps]),
            ranks=tuple(step.shrinkage.size for step in steps),
            rates=np.array(rates),
            norms=np.array(norms),
            offsets=bounds.offsets,
            row_norm=bounds.norm,
            max_ratings=self.max_ratings,
            centre=self.centre,
        )

    def _norms(self, facts: Facts, row_norm: float) -> tuple[float, ...]:
        """Return B_t for every round, from L and public numbers."""
        longest = longest_filled_rows(row_norm, self._rates())
        if facts.budget is None:
            return longest
        most = self.filled_norm or row_norm * math.sqrt(facts.n_items / self._most(facts))
        return tuple(min(most, norm) for norm in longest)

    def _rates(self) -> tuple[float, ...]:
        powers = {"t^-1/2": -0.5, "t^-1": -1.0}
        turns = range(1, self.rounds + 1)
        if isinstance(self.rate, str):
            return tuple(turn ** powers[self.rate] for turn in turns)
        return tuple(float(self.rate) for _ in turns)


def longest_filled_rows(row_norm: float, rates: Iterable[float]) -> tuple[float, ...]:
    """Return how long a filled row can be in each round before it is mapped.

    Maps lengthen no row (Z <= Lambda). Let c bound the row before the step, a be the norm of its
    part on Omega, and r the rate. After the step the part on Omega is at most (1 - r) a + r L long
    and the rest is as it was, so the square of the norm is at most

        ((1 - r) a + r L)^2 + c^2 - a^2,

    a parabola in a with its top at a = L (1 - r)/(2 - r), or at c if that is less.

    >>> [round(norm, 3) for norm in longest_filled_rows(1.0, (1.0, 1.0, 1.0))]
    [1.0, 1.414, 1.732]
    >>> [round(norm, 3) for norm in longest_filled_rows(1.0, (0.5, 0.5))]
    [0.5, 0.764]
    """
    longest, norm = [], 0.0
    for rate in rates:
        seen = min(norm, row_norm * (1 - rate) / (2 - rate))
        norm = math.sqrt(((1 - rate) * seen + rate * row_norm) ** 2 + norm**2 - seen**2)
        longest.append(norm)
    return tuple(longest)


def project_on_ball(singular: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return max(0, singular - tau) with the tau that brings the sum down to `radius`.

    >>> project_on_ball(np.array([3.0, 1.0]), 3.0).tolist()
    [2.5, 0.5]
    """
    if singular.sum() <= radius:
        return singular
    falling = np.sort(singular)[::-1]
    excess = (np.cumsum(falling) - radius) / np.arange(1, falling.size + 1)
    kept = max(1, int(np.sum(falling > excess)))
    return np.asarray(np.maximum(0.0, singular - excess[kept - 1]))


def _ball_map(noisy: NDArray[np.float64], radius: float) -> LinearStep:
    """Return V diag(Z/Lambda) V^T, the published map of rows, without what it maps to zero."""
    values, vectors = eigh(noisy)
    singular = np.sqrt(np.maximum(values, 0.0))
    kept = project_on_ball(singular, radius)
    used = kept > 0
    return LinearStep(np.ascontiguousarray(vectors[:, used]), kept[used] / singular[used])
