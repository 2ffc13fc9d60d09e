"""Private matrix completion by a singular subspace: Algorithm 4 of the paper."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from tacit._validate import Count, Seed, refuse
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import BudgetShare, Preparation
from tacit.estimation.eigen import OjaRate, OjaSteps, oja, start_block
from tacit.models.linear import ProjectionRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    RatingCount,
    ResidualCovariance,
    ResidualProduct,
    product_sensitivity,
)

_COUNT, _COVARIANCE = Release(ReleaseKind.RATING_COUNT), Release(ReleaseKind.COVARIANCE, (1,))


@dataclass(frozen=True, kw_only=True)
class SVD(Preparation):
    """Private SVD: release the top-r right singular subspace of P(Y*), then project locally.

        W = sum_i P(Y*_i)^T P(Y*_i) + noise,   V_r = its top r eigenvectors,
        Y_i = (m n / |Omega|) P(Y*_i) V_r V_r^T.

    eigen="exact" is Analyze Gauss [dwork2014analyze]; "power" the noisy power method [HR13];
    "oja" the block form of Algorithm 2. The last two never form an items-by-items matrix.

    *Paper:* Algorithm 4 (Appendix B); Table 2 for the other subspace methods.
    *Guarantee:* one ResidualCovariance, or a ResidualProduct a step, with rows of norm at most
    L; and |Omega| by a RatingCount, or its public bound m max_ratings.
    """

    name: ClassVar[str] = "svd"

    rank: Count = 5
    """r: columns of the subspace."""
    eigen: Literal["exact", "power", "oja"] = "exact"
    """How the subspace is found."""
    oja_steps: OjaSteps = 5
    """Noisy products, for "power" and "oja"."""
    oja_rate: OjaRate = "theory"
    """eta, for "oja"."""
    start_seed: Seed = 0
    """The random seed of the public block that "power" and "oja" begin with."""
    count_share: BudgetShare = 0.05
    """Share of the budget for |Omega|; 0: take the public bound, users times max_ratings."""

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        if self.count_share + self.item_means >= 0.95:
            refuse("count_share", self.count_share, "a share that leaves some, with item_means")

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve |Omega|, and the covariance or its products."""
        left = self._reserve_preparation(ledger, facts, users=self.count_share > 0)
        bounds = self._bounds(facts)
        if self.count_share:
            count = RatingCount(bounds, self._most(facts))
            ledger.reserve(_COUNT, count.sensitivity, self.count_share)
            left -= self.count_share
        if self.eigen == "exact":
            bound = ResidualCovariance(bounds, (), bounds.norm).sensitivity
            ledger.reserve(_COVARIANCE, bound, left, scaled=self._norm_is_paid)
            return
        bound = product_sensitivity(bounds.norm, self._columns(facts))
        part, scaled = left / self.oja_steps, self._norm_is_paid
        for step in range(1, self.oja_steps + 1):
            ledger.reserve(_product(step), bound, part, scaled=scaled)

    def run(self, mechanism: Mechanism, facts: Facts) -> ProjectionRule:
        """Release the subspace; users project on it."""
        scale = facts.n_items / self._most(facts)
        users = self._users(mechanism, facts) if self.count_share else 0
        bounds = self._prepared(mechanism, facts)
        if self.count_share:
            count = mechanism.release(_COUNT, RatingCount(bounds, self._most(facts)))
            scale = max(scale, facts.n_items / max(float(count[0]) / users, 1.0))
        return ProjectionRule(
            basis=self._subspace(mechanism, bounds, facts),
            offsets=bounds.offsets,
            scale=scale,
            max_ratings=self.max_ratings,
            centre=self.centre,
        )

    def _columns(self, facts: Facts) -> int:
        return min(self.rank, facts.n_items)

    def _subspace(
        self, mechanism: Mechanism, bounds: RowBounds, facts: Facts
    ) -> NDArray[np.float64]:
        """Return V_r."""
        columns = self._columns(facts)
        if self.eigen == "exact":
            noisy = mechanism.release(_COVARIANCE, ResidualCovariance(bounds, (), bounds.norm))
            first = facts.n_items - columns
            _, vectors = eigh(noisy, subset_by_index=[first, facts.n_items - 1])
            return np.ascontiguousarray(vectors[:, ::-1])

        def noisy_product(block: NDArray[np.float64], step: int) -> NDArray[np.float64]:
            statistic = ResidualProduct(bounds, (), bounds.norm, block)
            return mechanism.release(_product(step), statistic)

        start = start_block(facts.n_items, columns, self.start_seed)
        rate: OjaRate = "power" if self.eigen == "power" else self.oja_rate
        bound = product_sensitivity(bounds.norm, columns)
        noise_sd = mechanism.noise_sd(_product(1), bound)
        return oja(noisy_product, start, self.oja_steps, rate, noise_sd)


def _product(step: int) -> Release:
    return Release(ReleaseKind.PRODUCT, (step,))
