"""The local rule for interactions: what a person touched in, a score of every item out."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError
from tacit.models.rules import (
    Floats,
    OwnRows,
    PublishedRule,
    check_shapes,
    cosines,
    kinds_paid,
)

_LARGEST = 1e9  # of a factor; beyond it arithmetic would fail


@dataclass(frozen=True, eq=False)
class InteractionRule(PublishedRule):
    """Weighted ridge regression of who touched what on item factors, and popularity.

    Someone who touched d items, e_j = 1 for those and 0 for all others, is taken to touch item j
    with mean d p_j (1 + f_j . u) and a variance of d p_j, where p (`offsets`, sums to 1) is how the
    interactions of all people are shared among items, f_j (`factors`) is what item j is like, and
    u ~ N(0, I) is her taste. Her taste is the minimum of

        sum over ALL items j of (e_j - d p_j (1 + f_j . u))^2 / (d p_j)  +  |u|^2,

    so every item counts with the weight 1/(d p_j): touching what few people touch says much, and
    not touching what everybody touches says something too. As sum_j p_j = 1, it is

        u = (I + d K)^-1 (sum over her items of f_j  -  d sum_j p_j f_j),   K = sum_j p_j f_j f_j^T.

    The score of item j, p_j (1 + f_j . u), is the share of her further interactions that it is
    expected to have. With no factors, or for someone who touched nothing, it is p_j: popularity.
    Values are not looked at: to be there is to be touched.
    """

    kind: ClassVar[str] = "interactions"

    factors: Floats
    offsets: Floats

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's score of every item, people by items."""
        from scipy.sparse import csr_array

        turned, strengths, middle = self._turned
        lengths = np.diff(own.indptr)
        shape = (lengths.size, self.offsets.size)
        there = csr_array((np.ones(own.items.size), own.items.astype(np.int32), own.indptr), shape)
        counts = lengths[:, None].astype(np.float64)
        tastes = (np.asarray(there @ turned) - counts * middle) / (1.0 + counts * strengths)
        lifts = np.asarray(tastes @ turned.T)
        lifts += 1.0
        lifts *= self.offsets
        return lifts

    def similarities(self, item: int) -> Floats:
        """Return the cosines of the items' factors."""
        return cosines(self.factors, item)

    def contributions(self, own: OwnRows, items: NDArray[np.int64]) -> tuple[Floats, Floats]:
        r"""Return the score without what her items are, and what each of them adds.

        The first is $p_j (1 - d f_j (I + d K)^{-1} \sum_k p_k f_k)$; item k adds
        $p_j f_j (I + d K)^{-1} f_k^T$.
        """
        turned, strengths, middle = self._turned
        count = own.items.size
        near = self.offsets[items, None] * turned[items] / (1.0 + count * strengths)
        return self.offsets[items] - count * (near @ middle), near @ turned[own.items].T

    def check(self) -> None:
        """Refuse arrays that do not fit together."""
        check_shapes(self, factors=(self.offsets.size, self.factors.shape[-1]))
        shares = np.all(self.offsets >= 0) and abs(float(self.offsets.sum()) - 1.0) < 1e-6
        if not shares or np.any(np.abs(self.factors) > _LARGEST):
            raise ModelFileError("the arrays of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Popularity comes from item weights; factors from at least one release of pairs."""
        paid = kinds_paid(releases)
        missing = []
        if np.ptp(self.offsets) > 0 and not paid[ReleaseKind.ITEM_WEIGHTS]:
            missing.append("it has the popularity of items, and no release of item weights")
        pairs = paid[ReleaseKind.CO_OCCURRENCES] + paid[ReleaseKind.CO_OCCURRENCE_PRODUCT]
        if self.factors.size and not pairs:
            missing.append("it has more parts than releases named 'co-occurrence'")
        return missing

    @cached_property
    def _turned(self) -> tuple[Floats, Floats, Floats]:
        """Return factors turned so that K is diagonal, that diagonal, and sum_j p_j f_j."""
        heavy = self.factors * self.offsets[:, None]
        strengths, axes = np.linalg.eigh(heavy.T @ self.factors)
        turned = self.factors @ axes
        return turned, np.maximum(strengths, 0.0), self.offsets @ turned
