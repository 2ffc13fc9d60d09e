"""Local rules: own ratings in, own scores out. Deterministic, and made of published arrays only."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ModelFileError

__all__ = ["LocalRule", "OwnRows", "ReplayRule", "rule_of_kind"]

Floats = NDArray[np.float64]


class OwnRows(NamedTuple):
    """Some people's own ratings, in CSR form; items are positions in the catalogue."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    values: NDArray[np.float32]


class LocalRule(Protocol):
    """What a published model does with a person's own ratings."""

    kind: ClassVar[str]

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        ...

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        ...

    def unpaid(self, releases: Iterable[str]) -> list[str]:
        """Say what the rule is made of that is not among these releases."""
        ...


@dataclass(frozen=True, eq=False)
class ReplayRule:
    """Replays Algorithm 1's rounds on one's own ratings.

    A person starts at Y = 0 and, for each published direction v with gain g, moves by
    Y <- project(keep Y - g (A . v) v), A = P(Y - y) her residual on what she rated; y is her
    centred row. Her scores are offsets + her mean + Y.

    With more than `max_ratings` ratings, sums over them count for max_ratings, so that the
    steps keep the size they had in the fit.

    *Paper:* Algorithm 1, local update.
    """

    kind: ClassVar[str] = "replay"

    directions: Floats
    gains: Floats
    offsets: Floats
    keep: float
    row_norm: float
    max_ratings: int | None
    centre: bool

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.residuals import replay
        from tacit.kernels.rows import RowArrays, row_means_and_scales

        people = own.indptr.size - 1
        most = math.inf if self.max_ratings is None else float(self.max_ratings)
        rows = RowArrays(
            *own, self.offsets, np.zeros(people), np.ones(people), np.zeros(0, np.float32)
        )
        row_means_and_scales(rows, (self.centre, self.row_norm, most), 0, people)
        coefficients = np.zeros((people, self.gains.size))
        steps = (self.directions, self.gains, self.keep, self.row_norm, most)
        replay(rows, steps, coefficients, 0, people)
        return np.asarray(coefficients @ self.directions + rows.means[:, None] + self.offsets)

    def parts(self) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Return the arrays and the settings that a model file holds."""
        arrays = {"directions": self.directions, "gains": self.gains, "offsets": self.offsets}
        names = ("keep", "row_norm", "max_ratings", "centre")
        return arrays, {name: getattr(self, name) for name in names}

    @classmethod
    def from_parts(cls, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> "ReplayRule":
        """Read back what `parts` gave, trusting none of it."""
        most = settings["max_ratings"]
        rule = cls(
            directions=arrays["directions"],
            gains=arrays["gains"],
            offsets=arrays["offsets"],
            keep=float(settings["keep"]),
            row_norm=float(settings["row_norm"]),
            max_ratings=None if most is None else int(most),
            centre=bool(settings["centre"]),
        )
        rule._check()
        return rule

    def unpaid(self, releases: Iterable[str]) -> list[str]:
        """Each direction comes from a covariance; offsets that differ come from item sums."""
        names = list(releases)
        missing = []
        if sum(name.startswith("covariance ") for name in names) < self.gains.size:
            missing.append("it has more directions than released covariances")
        if np.ptp(self.offsets) > 0 and "item sums" not in names:
            missing.append("it has item means, and no release of item sums")
        return missing

    def _check(self) -> None:
        shapes = (self.gains.size, self.offsets.size)
        sound = (
            self.directions.shape == shapes
            and all(np.isfinite(a).all() for a in (self.directions, self.gains, self.offsets))
            and 0 <= self.keep <= 1
            and self.row_norm > 0
            and (self.max_ratings is None or self.max_ratings >= 1)
        )
        if not sound:
            raise ModelFileError("the arrays of the local rule do not fit together")


def rule_of_kind(kind: str, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> LocalRule:
    """Return the rule that a model file holds."""
    if kind != ReplayRule.kind:
        raise ModelFileError(f"unknown kind of local rule {kind[:40]!r}; a newer tacit may read it")
    return ReplayRule.from_parts(arrays, settings)
