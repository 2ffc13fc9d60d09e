"""How long rows are, over public bins."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Statistic, nonnegative_vector


@dataclass(frozen=True, eq=False)
class RowNorms(Statistic):
    r"""How many users' rows have a norm in each bin, after centring and before any scaling.

    Bin $k$ holds norms up to edges[k] and above the edge before it; the last one all that are
    longer. Zero rows fit any bound and are not counted.

    *Paper:* none; it takes $L$ as known.
    *Guarantee:* L2 norm. A user's term has a single one, or none: add_remove is 1, and replace
    $\sqrt2$ (nonnegative_vector), reached by rows of different bins. Her norm is a function of her
    own row and the published offsets.
    """

    bounds: RowBounds
    edges: NDArray[np.float64]

    @property
    def sensitivity(self) -> Sensitivity:
        r"""1 and $\sqrt2$."""
        return nonnegative_vector(1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each bin."""
        return self.edges.shape

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Count users, each as the largest number of units that is at most one."""
        return partial(loops.count_norms, *local, self.edges, whole_below(1.0 / unit))
