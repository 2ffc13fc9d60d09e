"""The local rule of projected gradient descent: fill one's row in, map it, and again."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tacit.errors import ModelFileError
from tacit.models.rules import (
    Floats,
    OwnRows,
    check_shapes,
    own_arrays,
    parts_of,
    unpaid_parts,
    whole_or_none,
)
from tacit.release import Release, ReleaseKind

__all__ = ["FillingRule"]


@dataclass(frozen=True, eq=False)
class FillingRule:
    """Replays Algorithm 5's rounds on one's own ratings.

    From Y = 0, in each round Y <- Y + rate P(y - Y), scaled down to `row_norm`, then Y <- Y M with
    the published map M = V diag(Z/Lambda) V^T. Scores are offsets + own mean + Y.

    *Paper:* Algorithm 5.
    """

    kind: ClassVar[str] = "filling"

    maps: Floats
    rates: Floats
    offsets: Floats
    row_norm: float
    max_ratings: int | None
    centre: bool

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.filled import descend

        people = own.indptr.size - 1
        most = math.inf if self.max_ratings is None else float(self.max_ratings)
        rows = own_arrays(own, self.offsets, (self.centre, 0.0, self.row_norm, most))
        filled = np.zeros((people, self.offsets.size), dtype=np.float32)  # as in the fit
        for rate, matrix in zip(self.rates, self.maps.astype(np.float32), strict=True):
            descend(rows, filled, rate, self.row_norm, 0, people)
            filled = filled @ matrix
        return np.asarray(filled + rows.means[:, None] + self.offsets)

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        return parts_of(self, ("row_norm", "max_ratings", "centre"))

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> "FillingRule":
        """Read back what `parts` gave, trusting none of it."""
        rule = cls(
            maps=arrays["maps"],
            rates=arrays["rates"],
            offsets=arrays["offsets"],
            row_norm=float(settings["row_norm"]),
            max_ratings=whole_or_none(settings["max_ratings"]),
            centre=bool(settings["centre"]),
        )
        rounds, items = rule.rates.size, rule.offsets.size
        check_shapes(rule, maps=(rounds, items, items), rates=(rounds,))
        if not rule.row_norm > 0:
            raise ModelFileError("the settings of the local rule are impossible")
        return rule

    def unpaid(self, releases: Iterable[Release]) -> list[str]:
        """Each map comes from a covariance."""
        return unpaid_parts(releases, self.offsets, (ReleaseKind.COVARIANCE,), self.rates.size)
