"""How long people's rows are, over public bins, with the proof of its sensitivity."""

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.budget import Sensitivity
from tacit.kernels.norms import count_norms
from tacit.private.quantise import whole_below
from tacit.private.rows import EachRange, RowBounds, Rows
from tacit.private.statistics import Units, sum_parts

__all__ = ["RowNorms"]


@dataclass(frozen=True, eq=False)
class RowNorms:
    """How many users' rows have a norm in each bin, after centring and before any scaling.

    Bin k holds norms up to edges[k] and above the edge before it; the last one all that are
    longer. Users whose row is empty, or zero once it is centred, are in none: their norm is as
    good as any.

    *Paper:* none; it takes L as known.
    *Guarantee:* L2 norm. A user's term has a single one, or none: add_remove is 1. For replace two
    such vectors differ by at most sqrt2, reached by rows of different bins. Her norm is a function
    of her own row and the published offsets.
    """

    bounds: RowBounds
    edges: NDArray[np.float64]
    sensitivity: Sensitivity = field(
        default=Sensitivity(add_remove=1.0, replace=math.sqrt(2.0)), init=False
    )
    peak: float = field(default=1.0, init=False)
    term_bits: int = field(default=50, init=False)
    symmetric: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each bin."""
        return self.edges.shape

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Count users, each as the largest number of units that is at most one."""
        arrays = rows.bounded(self.bounds, each)
        one = whole_below(1.0 / unit)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            count_norms(arrays, self.edges, one, lo, hi, total)
            return total

        return sum_parts(each(part))
