"""The local rule of projected gradient descent: fill one's row in, map it, and again."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

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
    missing_parts,
    own_arrays,
)


@dataclass(frozen=True, eq=False)
class FillingRule(PublishedRule):
    """Replays Algorithm 5's rounds on one's own ratings.

    From Y = 0, in each round Y <- Y + rate P(y - Y), scaled down to that round's `norms`, then
    Y <- Y V diag(Z/Lambda) V^T. The published `vectors` V and `shrinkage` Z/Lambda of all rounds
    stand side by side, `ranks` of them for each. Scores are offsets + own mean + Y.

    *Paper:* Algorithm 5.
    """

    kind: ClassVar[str] = "filling"

    vectors: Floats
    shrinkage: Floats
    rates: Floats
    norms: Floats
    offsets: Floats
    row_norm: float
    max_ratings: int | None
    centre: bool
    ranks: tuple[int, ...]

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.filled import descend

        people = own.indptr.size - 1
        most = math.inf if self.max_ratings is None else float(self.max_ratings)
        rows = own_arrays(own, self.offsets, (self.centre, 0.0, self.row_norm, most))
        shape = (people, self.offsets.size)
        filled: NDArray[np.float32] = np.zeros(shape, dtype=np.float32)  # as in the fit
        for rate, norm, (vectors, shrinkage) in zip(
            self.rates, self.norms, self._maps(), strict=True
        ):
            descend(rows, filled, rate, norm, 0, people)
            filled = (filled @ (vectors * shrinkage)) @ vectors.T
        return np.asarray(filled + rows.means[:, None] + self.offsets)

    def _maps(self) -> Iterator[tuple[NDArray[np.float32], NDArray[np.float32]]]:
        """Yield each round's vectors and shrinkage, in single precision."""
        ends = np.cumsum(self.ranks)
        for end, rank in zip(ends, self.ranks, strict=True):
            own = slice(end - rank, end)
            yield self.vectors[:, own].astype(np.float32), self.shrinkage[own].astype(np.float32)

    def similarities(self, item: int) -> Floats:
        """Return the cosines of the items' rows of the last round's vectors, by their shrinkage."""
        last = slice(sum(self.ranks[:-1]), None)
        return cosines(self.vectors[:, last] * np.sqrt(np.abs(self.shrinkage[last])), item)

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> Self:
        """Read back what `parts` gave, also as version 0.1.0 gave it."""
        old = "maps" in arrays
        return super().from_parts(
            *(_from_whole_maps(arrays, settings) if old else (arrays, settings))
        )

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        rounds, items, rank = len(self.ranks), self.offsets.size, sum(self.ranks)
        shapes: dict[str, tuple[int, ...]] = {"vectors": (items, rank), "shrinkage": (rank,)}
        check_shapes(self, **shapes, rates=(rounds,), norms=(rounds,))
        possible = all(0 <= rank <= items for rank in self.ranks) and (self.norms > 0).all()
        if not (possible and self.row_norm > 0):
            raise ModelFileError("the settings of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Each map comes from a covariance."""
        return missing_parts(releases, self.offsets, (ReleaseKind.COVARIANCE,), self.rates.size)


def _from_whole_maps(
    arrays: Mapping[str, Floats], settings: Mapping[str, Any]
) -> tuple[Mapping[str, Floats], Mapping[str, Any]]:
    """Read a file of version 0.1.0, which has each map as an n x n matrix and one norm."""
    maps, rates = arrays["maps"], arrays["rates"]
    items = arrays["offsets"].size
    if maps.shape != (rates.size, items, items) or not np.isfinite(maps).all():
        raise ModelFileError("the arrays of the local rule do not fit together")
    pairs = [np.linalg.eigh(matrix) for matrix in maps]
    factors = {
        "vectors": np.concatenate([vectors for _, vectors in pairs], axis=1),
        "shrinkage": np.concatenate([values for values, _ in pairs]),
        "norms": np.full(rates.size, float(settings["row_norm"])),
    }
    return {**arrays, **factors}, {**settings, "ranks": [items] * rates.size}
