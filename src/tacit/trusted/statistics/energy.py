"""The energy of residuals along a direction."""

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
from tacit.trusted.statistic import Adder, nonnegative_number
from tacit.trusted.statistics.residual import ResidualStatistic, check_orthonormal


@dataclass(frozen=True, eq=False)
class ResidualEnergy(ResidualStatistic):
    r"""$\|A v\|^2 = \sum_i (A_i \cdot v)^2$ for a unit vector $v$: its eigenvalue.

    *Paper:* Algorithm 2, its last line; there it is not paid for.
    *Guarantee:* a user's term lies in $[0, B^2]$ (clipped there in integers), so either relation
    changes the sum by at most $B^2$.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    direction: NDArray[np.float64]
    term_bits = 52

    @property
    def sensitivity(self) -> Sensitivity:
        """$B^2$ for either relation."""
        return nonnegative_number(self.bound**2)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Take the newest step and add the energies, in one pass over the ratings."""
        check_orthonormal(self.direction[:, None])
        limits = (self.bound, unit, whole_below(self.bound**2 / unit))
        return partial(loops.energy, *local, self.direction, limits)
