"""The gradient of item factors, with the proof of its sensitivity."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from tacit.budget import Sensitivity
from tacit.kernels.factors import factor_gradient
from tacit.private.quantise import norm_quanta
from tacit.private.rows import EachRange, RowBounds, Rows
from tacit.private.statistics import Units, sum_parts

__all__ = ["FactorGradient"]


@dataclass(frozen=True, eq=False)
class FactorGradient:
    """sum_i of user i's gradient with respect to all item factors V, clipped as one vector.

    She solves u_i = argmin sum_j (y_ij - u . v_j)^2 + ridge |u|^2 on her own ratings, and her
    gradient has rows (u_i . v_j - y_ij) u_i at the items she rated.

    *Paper:* none; [liu2015fast] in a form with a guarantee.
    *Guarantee:* Frobenius norm. A user's term has norm at most C, clipped and checked in
    integers: add_remove C, replace 2 C (two opposite terms come
    as close to it as the ridge allows).
    """

    bounds: RowBounds
    factors: NDArray[np.float64]
    ridge: float
    clip: float
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=26, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """C, and 2 C when a row is replaced."""
        return Sensitivity(add_remove=self.clip, replace=2 * self.clip)

    @property
    def peak(self) -> float:
        """No entry exceeds the norm."""
        return self.clip

    @property
    def shape(self) -> tuple[int, ...]:
        """Items by factors."""
        return self.factors.shape

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Let everyone solve for her factors and sum the clipped gradients."""
        arrays = rows.bounded(self.bounds, each)
        quanta = norm_quanta(self.clip, unit)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            factor_gradient(arrays, self.factors, self.ridge, quanta, lo, hi, total)
            return total

        return sum_parts(each(part))
