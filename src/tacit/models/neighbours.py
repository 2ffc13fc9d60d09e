"""The local rule of nearest neighbours: an item is predicted from the most similar rated ones."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError
from tacit.models.rules import (
    Floats,
    OwnRows,
    PublishedRule,
    centred,
    check_shapes,
    missing_parts,
)


@dataclass(frozen=True, eq=False)
class NeighbourRule(PublishedRule):
    """Predicts item j by the weighted mean of the `nearest` rated items most similar to it.

    Similarity is the correlation in the published covariance C; with z the centred ratings,
    Y_j = sum_k s_jk z_k / (sum_k |s_jk| + damping) over the nearest k, scaled from item k's spread
    to item j's. Scores are offsets + own mean + Y.
    """

    kind: ClassVar[str] = "neighbours"

    covariance: Floats
    offsets: Floats
    nearest: int
    damping: float
    shrink: float

    def similarities(self, item: int) -> Floats:
        """Return the correlations with an item in the published covariance."""
        spread = self._sds()
        return np.asarray(np.clip(self.covariance[item] / (spread * spread[item]), -1.0, 1.0))

    def _sds(self) -> Floats:
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 1e-12)))

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        values, means = centred(own, self.offsets, True, self.shrink)
        spread = self._sds()
        similarity = np.clip(self.covariance / np.outer(spread, spread), -1.0, 1.0)
        filled = np.zeros((means.size, self.offsets.size))
        for person, (lo, hi) in enumerate(zip(own.indptr[:-1], own.indptr[1:], strict=True)):
            rated = own.items[lo:hi]
            near = similarity[:, rated]
            if rated.size > self.nearest:
                edge = np.partition(np.abs(near), -self.nearest, axis=1)[:, -self.nearest]
                near = np.where(np.abs(near) >= edge[:, None], near, 0.0)
            weight = np.abs(near).sum(axis=1) + self.damping
            filled[person] = spread * (near @ (values[lo:hi] / spread[rated])) / weight
        return np.asarray(filled + means[:, None] + self.offsets)

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        check_shapes(self, covariance=(self.offsets.size, self.offsets.size))
        if not (self.nearest >= 1 and 0 < self.damping < np.inf and 0 <= self.shrink < np.inf):
            raise ModelFileError("the settings of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """The covariance is a release."""
        return missing_parts(releases, self.offsets, (ReleaseKind.COVARIANCE,), 1)
