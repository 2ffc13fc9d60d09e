"""Small worlds that the auditor makes up: everyone's ratings in them are public."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.assembly import stored_range
from tacit.audit.subjects import Subject
from tacit.catalogue import Catalogue
from tacit.ratings import Ratings

__all__ = ["Row", "World", "made_up_world"]

Row = NDArray[np.float64]
"""One person's ratings, an entry for each item; NaN where she rated nothing."""

USERS, ITEMS = 30, 8


@dataclass(frozen=True, eq=False)
class World:
    """Everyone but one person, whose row is the auditor's to choose.

    Attributes:
        others: the other people's rows, people by items; NaN where nothing was rated.
        rating_range: the lowest and the highest rating.
        implicit: whether there are no ratings, only who touched what.
    """

    others: NDArray[np.float64]
    rating_range: tuple[float, float]
    implicit: bool = False

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.others.shape[1])

    @cached_property
    def catalogue(self) -> Catalogue:
        """The public list of items."""
        return Catalogue(pl.Series("item", np.arange(self.n_items)), public=True)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value that can be stored."""
        low, high = stored_range(*self.rating_range)
        return (1.0, 1.0) if self.implicit else (float(low), float(high))

    def ratings(self, row: Row | None) -> Ratings:
        """Return the world with her row, the last one; None: she is not there at all."""
        rows = self.others if row is None else np.vstack([self.others, row])
        rated = ~np.isnan(rows)
        indptr = np.concatenate([[0], np.cumsum(rated.sum(axis=1))])
        return Ratings(
            self.rating_range,
            self.catalogue,
            self._ids[: len(rows)],
            indptr.astype(np.int64),
            np.nonzero(rated)[1].astype(np.uint16),
            np.clip(rows[rated], *self.ends).astype(np.float32),
            self.implicit,
        )

    @cached_property
    def _ids(self) -> pl.Series:
        return pl.Series("user", np.arange(len(self.others) + 1))


def made_up_world(subject: Subject, seed: int, users: int = USERS, items: int = ITEMS) -> World:
    """Make up people of two tastes, each of whom rated about half of the items."""
    rng = np.random.default_rng(seed)
    low, high = subject.rating_range
    tastes = rng.standard_normal((users, 2)) @ rng.standard_normal((2, items))
    rows = np.clip((low + high) / 2 + (high - low) / 5 * tastes, low, high)
    if subject.implicit:
        rows = np.ones_like(rows)
    rows[rng.random(rows.shape) < 0.5] = np.nan
    return World(rows, (0.0, 1.0) if subject.implicit else (low, high), subject.implicit)
