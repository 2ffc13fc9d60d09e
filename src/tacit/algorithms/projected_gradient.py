"""Private projected gradient descent: Algorithm 5 of the paper, put right."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from tacit.algorithms.base import Facts, check_field
from tacit.algorithms.preparation import Preparation, check_scale_or_none, is_number, is_whole
from tacit.ledger import Ledger
from tacit.models.filling import FillingRule
from tacit.private.filled import FilledCovariance
from tacit.private.local import LinearStep
from tacit.private.mechanism import Mechanism
from tacit.release import Release, ReleaseKind

__all__ = ["ProjectedGradient", "project_on_ball"]


@dataclass(frozen=True, kw_only=True)
class ProjectedGradient(Preparation):
    """Private PGD for min ||P(Y - Y*)||_F^2 over the nuclear-norm ball of radius k.

    In each round users take a gradient step on what they rated,

        Y_i <- Y_i + eta_t P(Y*_i - Y_i),   scaled down to ||Y_i|| <= L,

    W = sum_i Y_i^T Y_i + noise = V Lambda^2 V^T is released, the singular values Lambda are
    projected on {sum Z <= k}, and users map their rows, Y_i <- Y_i V diag(Z/Lambda) V^T.

    *Paper:* Algorithm 5 (Appendix E), whose gradient step has the wrong sign and index and whose
    rows are not clipped although its noise needs it. Negative eigenvalues of the noisy W count
    as zero.
    *Guarantee:* a FilledCovariance a round with rows of norm at most L.
    """

    name: ClassVar[str] = "pgd"

    rounds: int = 5
    """T: one release a round."""
    nuclear_norm: float | None = None
    """k; None: (hi - lo)/4 sqrt(users items), from public or paid numbers."""
    rate: float | Literal["t^-1/2", "t^-1"] = 0.5
    """eta_t: a constant, or falling with the round."""

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        rounds, norm, rate = self.rounds, self.nuclear_norm, self.rate
        check_field("rounds", rounds, is_whole(rounds) and 1 <= rounds <= 1000, "1 to 1000")
        check_scale_or_none("nuclear_norm", norm)
        fine = rate in ("t^-1/2", "t^-1") or (is_number(rate) and 0 < rate <= 1)  # type: ignore[operator]
        check_field("rate", rate, fine, "'t^-1/2', 't^-1' or a number in (0, 1]")

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve a covariance a round."""
        left = self._reserve_preparation(ledger, facts, users=self.nuclear_norm is None)
        bounds = self._bounds(facts)
        bound = FilledCovariance(bounds, (), self._rates(), bounds.norm).sensitivity
        part, scaled = left / self.rounds, self._norm_is_paid
        for turn in range(1, self.rounds + 1):
            ledger.reserve(Release(ReleaseKind.COVARIANCE, (turn,)), bound, part, scaled=scaled)

    def run(self, mechanism: Mechanism, facts: Facts) -> FillingRule:
        """Make the releases; users replay the rounds on their own rows."""
        radius = self._radius(self.nuclear_norm, mechanism, facts)
        bounds = self._prepared(mechanism, facts)
        steps: list[LinearStep] = []
        for turn in range(1, self.rounds + 1):
            statistic = FilledCovariance(bounds, tuple(steps), self._rates(), bounds.norm)
            noisy = mechanism.release(Release(ReleaseKind.COVARIANCE, (turn,)), statistic)
            steps.append(LinearStep(_ball_map(noisy, radius)))
        return FillingRule(
            maps=np.array([step.matrix for step in steps]),
            rates=np.array(self._rates()),
            offsets=bounds.offsets,
            row_norm=bounds.norm,
            max_ratings=self.max_ratings,
            centre=self.centre,
        )

    def _rates(self) -> tuple[float, ...]:
        powers = {"t^-1/2": -0.5, "t^-1": -1.0}
        turns = range(1, self.rounds + 1)
        if isinstance(self.rate, str):
            return tuple(turn ** powers[self.rate] for turn in turns)
        return tuple(float(self.rate) for _ in turns)


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


def _ball_map(noisy: NDArray[np.float64], radius: float) -> NDArray[np.float64]:
    """Return V diag(Z/Lambda) V^T, the published map of rows."""
    values, vectors = eigh(noisy)
    singular = np.sqrt(np.maximum(values, 0.0))
    kept = project_on_ball(singular, radius)
    ratio = np.divide(kept, singular, out=np.zeros_like(kept), where=singular > 0)
    return np.asarray((vectors * ratio) @ vectors.T)
