"""Moments of residuals and fitted rows, for a line search without privacy."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, any_vector
from tacit.trusted.statistics.residual import ResidualStatistic


@dataclass(frozen=True, eq=False)
class DescentMoments(ResidualStatistic):
    r"""Five sums over users that a line search and a duality gap need.

    With $A_i$ the residual, $Y_i$ the fitted row and $w_i = (A_i \cdot v) v$, all on $\Omega$: the
    sums of $A \cdot A$, $A \cdot Y$, $Y \cdot Y$, $Y \cdot w$ and $w \cdot w$. Residuals as in
    ResidualCovariance, whose steps keep $\|Y_i\| \le L$; so $\|A_i\| \le 2 L$.

    *Paper:* Algorithm 3 and Equation (duality gap) in its proof.
    *Guarantee:* each of a user's five terms lies in $[-4 L^2, 4 L^2]$ (clipped there), so
    add_remove is $4 \sqrt5 L^2$, and replace twice that.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    direction: NDArray[np.float64]

    @property
    def sensitivity(self) -> Sensitivity:
        """The norm of five terms of at most $4 L^2$; twice that when a row is replaced."""
        return any_vector(math.sqrt(5.0) * self.max_entry)

    @property
    def max_entry(self) -> float:
        """The most that one term can be."""
        return 4 * self.bounds.norm**2

    @property
    def shape(self) -> tuple[int, ...]:
        """Five numbers."""
        return (5,)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Take the newest step and add the moments, in one pass over the ratings."""
        limits = (self.max_entry, whole_below(self.max_entry / unit))
        return partial(loops.moments, *local, self.direction, limits)
