"""The sum of rows."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Statistic, any_vector


@dataclass(frozen=True, eq=False)
class RowSums(Statistic):
    r"""The sum of the users' bounded rows: one number for each item.

    *Paper:* none.
    *Guarantee:* L2 norm. A user's row is scaled to a norm of at most $B$ = bounds.norm, and its
    entries are cut towards zero in integers, so add_remove is $B$. For replace two rows differ by
    at most $2 B$, reached when every rating of a row turns to the other side. The scale is computed
    in floating point; a part in $10^9$ that is taken off covers its rounding, for rows of up to
    $2^{23}$ ratings.
    """

    bounds: RowBounds

    @property
    def sensitivity(self) -> Sensitivity:
        """$B$, and $2 B$ when a row is replaced."""
        return any_vector(self.bounds.norm)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each item."""
        return (self.bounds.offsets.size,)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Add the users' rows."""
        return partial(loops.row_sums, *local, unit)
