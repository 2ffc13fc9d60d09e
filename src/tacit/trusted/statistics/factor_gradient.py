"""The gradient of item factors."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import norm_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Statistic, any_vector


@dataclass(frozen=True, eq=False)
class FactorGradient(Statistic):
    r"""$\sum_i$ of user $i$'s gradient with respect to all item factors $V$, clipped as one vector.

    She solves $u_i = \arg\min_u \sum_j (y_{ij} - u \cdot v_j)^2 + \text{ridge}\,\|u\|^2$ on her own
    ratings, and her gradient has rows $(u_i \cdot v_j - y_{ij}) u_i$ at the items she rated.

    *Paper:* none; [liu2015fast] in a form with a guarantee.
    *Guarantee:* Frobenius norm. A user's term has norm at most $C$ (`clip`), by the quantiser:
    add_remove $C$, replace $2 C$ (two opposite terms come as close to it as the ridge allows).
    """

    bounds: RowBounds
    factors: NDArray[np.float64]
    ridge: float
    clip: float
    term_bits = 26

    @property
    def sensitivity(self) -> Sensitivity:
        """$C$, and $2 C$ when a row is replaced."""
        return any_vector(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """Items by factors."""
        return self.factors.shape

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone solve for her factors and add the clipped gradients."""
        quanta = norm_quanta(self.clip, unit)
        return partial(loops.factor_gradient, *local, self.factors, self.ridge, quanta)
