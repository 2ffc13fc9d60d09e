"""The covariance of residuals."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.loops import Loops
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.quantise import product_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, outer_product
from tacit.trusted.statistics.residual import ResidualStatistic


@dataclass(frozen=True, eq=False)
class ResidualCovariance(ResidualStatistic):
    r"""$W = \sum_i A_i^T A_i$, the second moment of the users' residuals on $\Omega$.

    $A_i = P_\Omega(Y_i - Y^*_i)$ after the published `steps`, clipped to $\|A_i\| \le B$ (`bound`).
    Where `items` are given, published ones in increasing order, $W$ has rows and columns for these.

    *Paper:* Algorithm 1, $W^{(t)}$; with no steps Algorithm 4, $W$.
    *Guarantee:* $B^2$, and $\sqrt2 B^2$ for replace, in the Frobenius norm (outer_product). The
    clip is made by the quantiser, on all of her residual; a part of it is no longer than the whole.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    items: NDArray[np.int64] | None = None
    symmetric = True
    term_bits = 52

    @property
    def sensitivity(self) -> Sensitivity:
        """That of outer products."""
        return outer_product(self.bound)

    @property
    def shape(self) -> tuple[int, int]:
        """Items by items, of those that are asked for."""
        size = self.bounds.offsets.size if self.items is None else self.items.size
        return (size, size)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Take the newest step and add outer products, in one pass over the ratings.

        Both loops give the same integers; one is quicker for rows of what was rated, not how.
        """
        loop = loops.co_occurrences if self.bounds.binarise else loops.covariance
        return partial(loop, *local, product_quanta(self.bound, unit), self._places())

    def _places(self) -> NDArray[np.int32]:
        """Return where each item is in the matrix, -1 where it is not."""
        n_items = self.bounds.offsets.size
        places = np.full(n_items, -1, dtype=np.int32)
        chosen = np.arange(n_items) if self.items is None else self.items
        if np.any(np.diff(chosen) <= 0) or np.any(chosen < 0) or np.any(chosen >= n_items):
            raise PrivacyError("the items of a matrix must rise, each once; nothing was summed")
        places[chosen] = np.arange(chosen.size)
        return places
