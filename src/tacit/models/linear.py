"""Local rules that are linear algebra on one's own ratings: projection and ridge regression."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.errors import ModelFileError
from tacit.models.rules import (
    Floats,
    OwnRows,
    centred,
    check_shapes,
    own_arrays,
    parts_of,
    unpaid_parts,
    whole_or_none,
)

__all__ = ["ProjectionRule", "RidgeRule"]


@dataclass(frozen=True, eq=False)
class ProjectionRule:
    """Projects one's own row on a published subspace, Y = scale P(y) V V^T.

    y is the row without offsets and own mean. With more than `max_ratings` ratings, they count
    for max_ratings.

    *Paper:* Algorithm 4, local computation; scale = m n / |Omega|.
    """

    kind: ClassVar[str] = "projection"

    basis: Floats
    offsets: Floats
    scale: float
    max_ratings: int | None
    centre: bool

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from scipy.sparse import csr_array

        values, means = centred(own, self.offsets, self.centre)
        lengths = np.diff(own.indptr)
        if self.max_ratings is not None:
            values *= np.repeat(np.minimum(1.0, self.max_ratings / np.maximum(lengths, 1)), lengths)
        shape = (lengths.size, self.offsets.size)
        rows = csr_array((values, own.items.astype(np.int32), own.indptr), shape=shape)
        filled = self.scale * (rows @ self.basis) @ self.basis.T
        return np.asarray(filled + means[:, None] + self.offsets)

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        return parts_of(self, ("scale", "max_ratings", "centre"))

    @classmethod
    def from_parts(
        cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]
    ) -> "ProjectionRule":
        """Read back what `parts` gave, trusting none of it."""
        rule = cls(
            basis=arrays["basis"],
            offsets=arrays["offsets"],
            scale=float(settings["scale"]),
            max_ratings=whole_or_none(settings["max_ratings"]),
            centre=bool(settings["centre"]),
        )
        check_shapes(rule, basis=(rule.offsets.size, rule.basis.shape[-1]))
        if not 0 < rule.scale < np.inf:
            raise ModelFileError("the settings of the local rule are impossible")
        return rule

    def unpaid(self, releases: Iterable[str]) -> list[str]:
        """The subspace comes from at least one covariance or product."""
        names = [name.replace("product ", "covariance ") for name in releases]
        return unpaid_parts(names, self.offsets, "covariance ", 1)


@dataclass(frozen=True, eq=False)
class RidgeRule:
    """Ridge regression of one's own ratings on published item factors.

    u = (F_o^T F_o + ridge I)^-1 F_o^T y_o on the rated items o; scores are offsets + own mean +
    F u. Post-processing, and free: it uses all of a person's ratings.
    """

    kind: ClassVar[str] = "ridge"

    factors: Floats
    offsets: Floats
    ridge: float
    centre: bool
    shrink: float
    source: str

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.factors import solve_factors

        people = own.indptr.size - 1
        rows = own_arrays(own, self.offsets, (self.centre, self.shrink, np.inf, np.inf))
        solved = np.zeros((people, self.factors.shape[1]))
        if solved.size:
            solve_factors(rows, self.factors, self.ridge, solved, 0, people)
        return np.asarray(solved @ self.factors.T + rows.means[:, None] + self.offsets)

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        return parts_of(self, ("ridge", "centre", "shrink", "source"))

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> "RidgeRule":
        """Read back what `parts` gave, trusting none of it."""
        rule = cls(
            factors=np.ascontiguousarray(arrays["factors"]),
            offsets=arrays["offsets"],
            ridge=float(settings["ridge"]),
            centre=bool(settings["centre"]),
            shrink=float(settings["shrink"]),
            source=str(settings["source"]),
        )
        check_shapes(rule, factors=(rule.offsets.size, rule.factors.shape[-1]))
        if not (0 < rule.ridge < np.inf and 0 <= rule.shrink < np.inf):
            raise ModelFileError("the settings of the local rule are impossible")
        return rule

    def unpaid(self, releases: Iterable[str]) -> list[str]:
        """Factors come from at least one release of the kind named as their source."""
        wanted = 1 if self.factors.size else 0
        return unpaid_parts(releases, self.offsets, f"{self.source} ", wanted)
