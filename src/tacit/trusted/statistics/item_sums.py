"""Sums and counts of ratings by item."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Statistic


@dataclass(frozen=True, eq=False)
class ItemSums(Statistic):
    r"""For every item, the weighted sum of its ratings and the weighted number of them.

    User $i$, with $d$ ratings $y$ mapped to $[-1, 1]$, adds $y/\sqrt d$, $1/\sqrt d$ to her items.

    *Paper:* none; it pays for the item means that Section 4 takes off without privacy.
    *Guarantee:* L2 norm of the pair $(x, c)$. Her counts have norm at most 1 and $|x_j| \le c_j$,
    so add_remove is $\sqrt2$. For replace, item by item,
    $(x - x')^2 + (c - c')^2 \le (c + c')^2 + (c - c')^2 = 2 c^2 + 2 c'^2$, which adds up to at
    most 4: the bound is 2, reached when all ratings turn from one end of the range to the other.
    """

    bounds: RowBounds
    rating_range: tuple[float, float]

    @property
    def sensitivity(self) -> Sensitivity:
        r"""$\sqrt2$ and 2."""
        return Sensitivity(add_remove=math.sqrt(2.0), replace=2.0)

    @property
    def max_entry(self) -> float:
        """A single rating at the end of the range."""
        return 1.0

    @property
    def shape(self) -> tuple[int, int]:
        """Sums and counts, by items."""
        return (2, self.bounds.offsets.size)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Add the users' weighted ratings and weights."""
        low, high = self.rating_range
        middle, half = sum(self.rating_range) / 2, (high - low) / 2
        return partial(loops.weighted_sums, *local, middle, half, whole_below(1.0 / unit))
