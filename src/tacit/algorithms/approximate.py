"""Approximate Frank-Wolfe without privacy: Algorithm 3 of the paper, the baseline of Section 4."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Count, Positive, Range
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.frank_wolfe import replay_rule
from tacit.algorithms.preparation import BudgetShare, Preparation
from tacit.errors import ConfigError
from tacit.estimation.eigen import top_eigenpair
from tacit.models.replay import ReplayRule
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.statistics import DescentMoments, RatingCount, ResidualCovariance

_COUNT = Release(ReleaseKind.RATING_COUNT)


@dataclass(frozen=True, kw_only=True)
class ApproximateFrankWolfe(Preparation):
    """Frank-Wolfe for min F(Y) = ||P(Y - Y*)||_F^2 / (2 |Omega|) over the ball of radius k.

    Round t moves Y <- (1 - eta_t) Y + eta_t Z with Z = -k u v^T, an extreme point of the ball
    whose inner product with the gradient A/|Omega| is within gamma of the least. The duality gap
    <Y - Z, A>/|Omega| bounds how far F(Y) is from the minimum, up to gamma.

    *Paper:* Algorithm 3 (Appendix A), as approximate in the sense of its Line 4; Section 4 runs 400
    rounds with per-user and per-item means taken off.
    *Guarantee:* none: it is NOT PRIVATE and refuses a budget; `FrankWolfe` is the private form.
    """

    name: ClassVar[str] = "approximate-frank-wolfe"

    rounds: Annotated[int, Range(1, 100_000)] = 400
    """T."""
    nuclear_norm: Positive | None = None
    """k; None: (hi - lo)/4 sqrt(users items)."""
    slack: Annotated[float, Range(0, math.inf, "[)")] = 0.0
    """gamma, in units of F: how far from the best extreme point the oracle may be."""
    step: Literal["1/T", "2/(t+2)", "line-search"] = "line-search"
    """eta_t: Algorithm 3's, the usual one, or the best."""
    gap: Annotated[float, Range(0, math.inf, "[)")] = 0.0
    """Stop when the duality gap is at most this."""
    item_means: BudgetShare = 0.1
    """Anything above 0: item means are taken off before all else, as in Section 4."""
    max_ratings: Count | None = None
    """At most this many ratings of a user count; None: all."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Refuse a budget; there is nothing to pay with."""
        if ledger.private:
            raise ConfigError(
                f"algorithm={self.name}: it is not private; use frank-wolfe (FrankWolfe), or ask "
                "for no privacy with budget=None (on the command line: --no-privacy)"
            )
        self._reserve_preparation(ledger, facts, users=False)
        bounds = self._bounds(facts)
        count = RatingCount(bounds, self._most(facts)).sensitivity
        covariance = ResidualCovariance(bounds, (), 2 * bounds.norm).sensitivity
        moments = DescentMoments(bounds, (), np.zeros(facts.n_items)).sensitivity
        ledger.reserve(_COUNT, count, 1.0)
        scaled = self._norm_is_paid
        for turn in range(1, self.rounds + 1):
            ledger.reserve(Release(ReleaseKind.COVARIANCE, (turn,)), covariance, 1.0, scaled=scaled)
            ledger.reserve(Release(ReleaseKind.MOMENTS, (turn,)), moments, 1.0, scaled=scaled)

    def run(self, mechanism: Mechanism, facts: Facts) -> ReplayRule:
        """Take the rounds; what comes out replays on anyone's ratings."""
        bounds = self._prepared(mechanism, facts)
        radius = self._radius(self.nuclear_norm, mechanism, facts)
        counted = mechanism.release(_COUNT, RatingCount(bounds, self._most(facts)))
        ratings = max(float(counted[0]), 1.0)
        steps: list[RankOneStep] = []
        trace: list[tuple[float, float]] = []
        for turn in range(1, self.rounds + 1):
            residuals = ResidualCovariance(bounds, tuple(steps), 2 * bounds.norm)
            matrix = mechanism.release(Release(ReleaseKind.COVARIANCE, (turn,)), residuals)
            room = self.slack * ratings / radius
            direction, singular = approximate_eigenpair(matrix, room)
            statistic = DescentMoments(bounds, tuple(steps), direction)
            moments = mechanism.release(Release(ReleaseKind.MOMENTS, (turn,)), statistic)
            gap = (float(moments[1]) + radius * singular) / ratings
            trace.append((float(moments[0]) / (2 * ratings), gap))
            if gap <= self.gap or singular <= 0:
                break
            eta = self._eta(turn, gap * ratings, moments, radius / singular)
            steps.append(RankOneStep(direction, eta * radius / singular, 1 - eta, bounds.norm))
        return replay_rule(self, steps, bounds, trace)

    def _eta(self, turn: int, descent: float, moments: NDArray[np.float64], factor: float) -> float:
        """Return the step size.

        With D = Z - Y = -factor w - Y on Omega, the best eta is -<A, D> / ||D||^2, and -<A, D> is
        the duality gap times |Omega|.
        """
        if self.step == "1/T":
            return 1.0 / self.rounds
        if self.step == "2/(t+2)":
            return 2.0 / (turn + 1)  # there t counts from 0
        _, _, fitted, cross, along = moments.tolist()
        length = factor**2 * along + 2 * factor * cross + fitted
        return min(1.0, max(0.0, descent / length)) if length > 0 else 0.0

    def _norm(self, facts: Facts) -> float:
        """Return a norm far beyond any row unless one is given: Alg. 3 has no projection."""
        if isinstance(self.row_norm, int | float):
            return self.row_norm
        lo, hi = facts.rating_range
        return 4 * (hi - lo) * math.sqrt(facts.n_items)


def approximate_eigenpair(
    matrix: NDArray[np.float64], room: float
) -> tuple[NDArray[np.float64], float]:
    """Return v and ||A v|| for A^T A = matrix, at most `room` below the largest singular value.

    Power iterations, as few as the room allows; with no room the eigenvector itself. It shows
    what slack in the oracle costs, not how to save time.
    """
    vector, value = top_eigenpair(matrix)
    largest = math.sqrt(max(value, 0.0))
    if room <= 0:
        return vector, largest
    rough = np.full(matrix.shape[0], 1 / math.sqrt(matrix.shape[0]))
    for _ in range(10_000):
        moved = matrix @ rough
        singular = math.sqrt(max(float(rough @ moved), 0.0))
        if singular >= largest - room:
            return rough, singular
        rough = moved / np.linalg.norm(moved)
    return vector, largest
