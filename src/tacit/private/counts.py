"""Counts and sums by item: small statistics, each with the proof of its sensitivity."""

import math
from dataclasses import dataclass, field

import numpy as np

from tacit.budget import Sensitivity
from tacit.kernels.items import row_sums, weighted_counts, weighted_sums
from tacit.private.quantise import whole_below
from tacit.private.rows import EachRange, RowBounds, Rows
from tacit.private.statistics import Units, sum_parts

__all__ = ["ItemCounts", "ItemSums", "RatingCount", "RowSums", "UserCount"]


@dataclass(frozen=True, eq=False)
class ItemSums:
    """For every item, the weighted sum of its ratings and the weighted number of them.

    User i, with d ratings y mapped to [-1, 1], adds y/sqrt(d) and 1/sqrt(d) to her items.

    *Paper:* none; it pays for the item means that Section 4 takes off without privacy.
    *Guarantee:* L2 norm of the pair (x, c). Her counts have norm <= 1 and |x_j| <= c_j, so
    add_remove is sqrt2. For replace, item by item,
    (x - x')^2 + (c - c')^2 <= (c + c')^2 + (c - c')^2 = 2 c^2 + 2 c'^2, which adds up to at
    most 4: the bound is 2, reached when all ratings turn from one end of the range to the other.
    """

    bounds: RowBounds
    rating_range: tuple[float, float]
    sensitivity: Sensitivity = field(
        default=Sensitivity(add_remove=math.sqrt(2.0), replace=2.0), init=False
    )
    peak: float = field(default=1.0, init=False)
    term_bits: int = field(default=50, init=False)
    symmetric: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Sums and counts, by items."""
        return (2, self.bounds.offsets.size)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Sum the users' weighted ratings and weights."""
        arrays = rows.bounded(self.bounds, each)
        middle, half = sum(self.rating_range) / 2, (self.rating_range[1] - self.rating_range[0]) / 2
        radius = whole_below(1.0 / unit)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            weighted_sums(arrays, middle, half, radius, lo, hi, total)
            return total

        return sum_parts(each(part))


@dataclass(frozen=True, eq=False)
class ItemCounts:
    """How often every item was rated, each person's list counting for one in all.

    User i, with d ratings, adds 1/sqrt(d) to each of her d items; in the row of the class that d is
    in, if `edges` tell at which d a new class begins.

    *Paper:* none; Section 4 picks the most rated items by looking.
    *Guarantee:* L2 norm. Her term is a vector c >= 0 of norm sqrt(d (1/sqrt d)^2) = 1, or zero if
    she rated nothing, so add_remove is 1. For replace, ||c - c'||^2 = ||c||^2 + ||c'||^2 - 2 c.c'
    <= 2, since no entry is negative: sqrt2, reached by two lists that have no item in common.
    All of her entries are in one class, so classes change nothing of this.
    Weights are two units below 1/sqrt(d) in integers, so rounding cannot pass the bound.
    """

    n_items: int
    edges: tuple[int, ...] = ()
    sensitivity: Sensitivity = field(
        default=Sensitivity(add_remove=1.0, replace=math.sqrt(2.0)), init=False
    )
    peak: float = field(default=1.0, init=False)
    term_bits: int = field(default=50, init=False)
    symmetric: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each item; classes by items if there are edges."""
        return (len(self.edges) + 1, self.n_items) if self.edges else (self.n_items,)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Sum the users' weights; all of their ratings count."""
        bounds = RowBounds(None, np.zeros(self.n_items), False, np.inf)
        arrays = rows.bounded(bounds, each)
        radius = whole_below(1.0 / unit)

        edges = np.array(self.edges, dtype=np.int64)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros((edges.size + 1, self.n_items), dtype=np.int64)
            weighted_counts(arrays, edges, radius, lo, hi, total)
            return total.reshape(self.shape)

        return sum_parts(each(part))


@dataclass(frozen=True, eq=False)
class RowSums:
    """The sum of the users' bounded rows: one number for each item.

    *Paper:* none.
    *Guarantee:* L2 norm. A user's row is scaled to a norm of at most B = bounds.norm, and its
    entries are cut towards zero in integers, so add_remove is B. For replace two rows differ by at
    most 2 B, reached when every rating of a row turns to the other side. The scale is computed in
    floating point; a part in 10^9 that is taken off covers its rounding, for rows of up to 2^23
    ratings.
    """

    bounds: RowBounds
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=50, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """B, and 2 B when a row is replaced."""
        return Sensitivity(add_remove=self.bounds.norm, replace=2 * self.bounds.norm)

    @property
    def peak(self) -> float:
        """No entry exceeds the norm."""
        return self.bounds.norm

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each item."""
        return (self.bounds.offsets.size,)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Sum the users' rows."""
        arrays = rows.bounded(self.bounds, each)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            row_sums(arrays, unit, lo, hi, total)
            return total

        return sum_parts(each(part))


@dataclass(frozen=True, eq=False)
class UserCount:
    """How many users there are, for `add_remove`, where that number is not public.

    *Guarantee:* one user changes it by at most 1 (add_remove) or not at all (replace).
    """

    sensitivity: Sensitivity = field(default=Sensitivity(add_remove=1.0, replace=1.0), init=False)
    peak: float = field(default=1.0, init=False)
    term_bits: int = field(default=50, init=False)
    shape: tuple[int, ...] = field(default=(1,), init=False)
    symmetric: bool = field(default=False, init=False)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:  # noqa: ARG002
        """Count users, each as the largest number of units that is at most one."""
        one = whole_below(1.0 / unit)
        return np.array([rows.n_users * one], dtype=np.int64)


@dataclass(frozen=True, eq=False)
class RatingCount:
    """|Omega|, the number of ratings that count.

    *Paper:* Algorithm 4 takes it as known.
    *Guarantee:* a user has between 0 and `most` ratings, so either relation changes the sum by at
    most `most`.
    """

    bounds: RowBounds
    most: int
    shape: tuple[int, ...] = field(default=(1,), init=False)
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=50, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """The most ratings that a user may have, for either relation."""
        return Sensitivity(add_remove=float(self.most), replace=float(self.most))

    @property
    def peak(self) -> float:
        """The whole term."""
        return float(self.most)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Count ratings, each as the largest number of units that is at most one."""
        arrays = rows.bounded(self.bounds, each)
        counted = np.minimum(np.diff(arrays.indptr), self.most).sum()
        return np.array([int(counted) * whole_below(1.0 / unit)], dtype=np.int64)
