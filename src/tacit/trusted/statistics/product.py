"""The covariance of residuals times a block of directions."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.errors import EngineError
from tacit.kernels.loops import Loops
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder
from tacit.trusted.statistics.residual import ResidualStatistic, check_orthonormal


@dataclass(frozen=True, eq=False)
class ResidualProduct(ResidualStatistic):
    r"""$(\sum_i A_i^T A_i) V$ for a block $V$ of orthonormal columns: no items-by-items matrix.

    Residuals as in ResidualCovariance.

    *Paper:* Algorithm 2, $A^T A v$, and its block form.
    *Guarantee:* Frobenius norm. A user's term $a (a^T V)$ has norm at most $\|a\|^2 \le B^2$, so
    add_remove is $B^2$. For one column under replace, $(a a^T - b b^T) v$ is at most the largest
    eigenvalue in size of $a a^T - b b^T$, which has one of either sign, neither beyond $B^2$:
    $B^2$. For several columns it is at most $\|a a^T - b b^T\|_F \le \sqrt2 B^2$. Entries are
    rounded to the grid, which moves a term by less than $2^{-22} B^2$ (checked); floating point
    before that, for rows of up to $2^{28}$ ratings, and columns that are orthonormal to $10^{-9}$
    (checked) add less than twice as much. The bounds are enlarged by $2^{-20}$ for all of it.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    block: NDArray[np.float64]
    term_bits = 52

    @property
    def sensitivity(self) -> Sensitivity:
        r"""$B^2$, and $\sqrt2 B^2$ for several columns under replace; a little enlarged."""
        return product_sensitivity(self.bound, self.block.shape[1])

    @property
    def max_entry(self) -> float:
        r"""No entry of $a (a^T V)$ exceeds $\|a\|^2$."""
        return self.bound**2

    @property
    def shape(self) -> tuple[int, ...]:
        """Items by columns."""
        return self.block.shape

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Take the newest step and add the products, in one pass over the ratings."""
        check_orthonormal(self.block)
        _check_rounding(unit, self.block.size, self.bound)
        return partial(loops.product, *local, self.block, (self.bound, unit))


def product_sensitivity(bound: float, columns: int) -> Sensitivity:
    """Return the sensitivity of a ResidualProduct (proved there)."""
    term = bound**2 * (1 + 2.0**-20)
    return Sensitivity(add_remove=term, replace=term if columns == 1 else math.sqrt(2.0) * term)


def _check_rounding(unit: float, entries: int, bound: float) -> None:
    """Refuse a grid on which rounding could move a user's term by more than 2^-22 B^2."""
    if math.sqrt(entries) * unit > 2.0**-22 * bound**2:
        raise EngineError("the grid is too coarse for so many items, columns and users; use fewer")
