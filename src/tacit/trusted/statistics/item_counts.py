"""How often items are rated."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds, all_ratings
from tacit.trusted.statistic import Adder, Statistic, nonnegative_vector


@dataclass(frozen=True, eq=False)
class ItemCounts(Statistic):
    r"""How often every item was rated, each person's list counting for one in all.

    User $i$, with $d$ ratings, adds $1/\sqrt d$ to each of her $d$ items; in the row of the class
    that $d$ is in, if `edges` tell at which $d$ a new class begins. All of her ratings count.

    *Paper:* none; Section 4 picks the most rated items by looking.
    *Guarantee:* L2 norm. Her term is a vector $c \ge 0$ of norm $\sqrt{d (1/\sqrt d)^2} = 1$, or
    zero if she rated nothing, so add_remove is 1 and replace $\sqrt2$ (nonnegative_vector), reached
    by two lists that have no item in common. All of her entries are in one class, so classes change
    nothing of this. Weights are two units below $1/\sqrt d$ in integers, so rounding cannot pass
    the bound.
    """

    n_items: int
    edges: tuple[int, ...] = ()

    @property
    def bounds(self) -> RowBounds:  # type: ignore[override]
        """All ratings, as they are."""
        return all_ratings(self.n_items)

    @property
    def sensitivity(self) -> Sensitivity:
        r"""1 and $\sqrt2$."""
        return nonnegative_vector(1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each item; classes by items if there are edges."""
        return self.loop_shape if self.edges else (self.n_items,)

    @property
    def loop_shape(self) -> tuple[int, ...]:
        """Classes by items."""
        return (len(self.edges) + 1, self.n_items)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Add the users' weights."""
        edges = np.array(self.edges, dtype=np.int64)
        return partial(loops.weighted_counts, *local, edges, whole_below(1.0 / unit))
