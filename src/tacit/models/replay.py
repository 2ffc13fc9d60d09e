"""The local rule of Frank-Wolfe: replay the rounds on one's own ratings."""

import math
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
    check_shapes,
    cosines,
    missing_parts,
    own_arrays,
)


@dataclass(frozen=True, eq=False)
class ReplayRule(PublishedRule):
    """Replays Algorithm 1's rounds on one's own ratings.

    A person starts at Y = 0 and, for each published direction v with its gain and keep, moves by
    Y <- project(keep Y - gain (A . v) v), A = P(Y - y) her residual on what she rated; y is her
    centred row. Her scores are offsets + her mean + Y.

    With more than `max_ratings` ratings, sums over them count for max_ratings, so that the
    steps keep the size they had in the fit. `trace` is empty, but for fits with no privacy, where
    it holds the empirical risk and the duality gap of every round.

    *Paper:* Algorithm 1, local update.
    """

    kind: ClassVar[str] = "replay"

    directions: Floats
    gains: Floats
    keeps: Floats
    offsets: Floats
    trace: Floats
    row_norm: float
    max_ratings: int | None
    centre: bool

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.residuals import replay

        people = own.indptr.size - 1
        most = math.inf if self.max_ratings is None else float(self.max_ratings)
        rows = own_arrays(own, self.offsets, (self.centre, 0.0, self.row_norm, most))
        coefficients = np.zeros((people, self.gains.size))
        steps = (self.directions, self.gains, self.keeps, self.row_norm, most)
        replay(rows, steps, coefficients, 0, people)
        return np.asarray(coefficients @ self.directions + rows.means[:, None] + self.offsets)

    def similarities(self, item: int) -> Floats:
        """Return the cosines of the items' entries of all directions, weighted by their gains."""
        return cosines((self.directions * np.sqrt(np.abs(self.gains))[:, None]).T, item)

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        steps, items = self.gains.size, self.offsets.size
        check_shapes(self, directions=(steps, items), gains=(steps,), keeps=(steps,))
        check_shapes(self, trace=(*self.trace.shape[:1], 2))
        if not (self.row_norm > 0 and np.all((self.keeps >= 0) & (self.keeps <= 1))):
            raise ModelFileError("the settings of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Each direction comes from a covariance; offsets that differ come from item sums."""
        kinds = (ReleaseKind.COVARIANCE, ReleaseKind.ENERGY)
        return missing_parts(releases, self.offsets, kinds, self.gains.size)
