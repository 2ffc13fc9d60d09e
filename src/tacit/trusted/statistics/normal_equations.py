"""The normal equations of item factors."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.loops import Loops
from tacit.kernels.normal_equations import EquationQuanta
from tacit.trusted.quantise import below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Integers, Statistic


@dataclass(frozen=True, eq=False)
class NormalEquations(Statistic):
    r"""$G_j = \sum_i w_{ij} u_i u_i^T$ and $b_j = \sum_i w_{ij} y_{ij} u_i$ of each item.

    User i solves u_i on her own ratings: the posterior mean for u ~ N(0, I) and ratings
    y_ij = u . v_j + N(0, noise_j), as in RidgeRule. u_i is divided by `reach` and clipped to norm
    1; y_ij, clipped to [-B, B] (B = bounds.clip), is divided by B; her weights are those of her
    items, made one vector of norm 1 (`weights`; zero for an item that is left out). So item j gets

        w_ij u_i (u_i, rho y_ij)^T,   an r x (r+1) block,   |u_i| <= 1, |y_ij| <= 1, |w_i| <= 1,

    with rho = `ratio` the scale of b beside G.

    *Paper:* none; DPALS (Chien et al., ICML 2021), which has two releases, of G and of b; weights
    count_j^-alpha as in Krichene et al., ICML 2023. The bound holds for any public weights.
    *Guarantee:* Frobenius norm of all blocks. A user's term has the squared norm
    sum_j w_j^2 |u|^2 (|u|^2 + rho^2 y_j^2) <= 1 + rho^2, so add_remove is sqrt(1 + rho^2).

    For replace, let x = u . u'. Blocks of item j have the inner product
    w_j w'_j (x^2 + rho^2 y_j y'_j x) >= w_j w'_j (x^2 - rho^2 |x|), and w_j w'_j >= 0 adds up to at
    most |w| |w'| <= 1. So the squared distance is at most
    2 (1 + rho^2) + 2 max_{0 <= |x| <= 1} (rho^2 |x| - x^2). The maximum is at |x| = rho^2/2, or at
    1 if that is less:

        rho^2 <= 2:  2 + 2 rho^2 + rho^4/2 = 2 (1 + rho^2/2)^2;     rho^2 >= 2:  4 rho^2.

    Both are reached: by the same items and opposite targets, with u and u' at that angle (items
    of next to no weight turn u). G alone would cost sqrt2 and b alone 2 rho, hence two releases a
    squared distance of 2 + 4 rho^2: in one they cost less, because what is worst for b (u = u')
    leaves G where it is. At rho = sqrt2, where this statement bends, G comes free.

    A full r x r block gets (N + N^T)/2 as its noise, once averaged with its transpose. Packing the
    triangle, off-diagonals times sqrt2, would give noise of the same law from half the numbers;
    but sqrt2 times an integer is none. Here every factor of the product is a vector of integers
    whose norm is checked in integers, and the bound needs no margin for rounding.
    """

    bounds: RowBounds
    factors: NDArray[np.float64]
    noise: NDArray[np.float64]
    weights: NDArray[np.float64]
    reach: float
    ratio: float
    term_bits = 51

    @property
    def sensitivity(self) -> Sensitivity:
        """It depends on rho alone."""
        return equations_sensitivity(self.ratio)

    @property
    def max_entry(self) -> float:
        """The most that w u_k u_l or rho w u_k y can be."""
        return max(1.0, self.ratio)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Items by factors by factors and one."""
        items, rank = self.factors.shape
        return (items, rank, rank + 1)

    @property
    def loop_shape(self) -> tuple[int, int]:
        """Items by the upper half of G_j, and then b_j."""
        items, rank = self.factors.shape
        return (items, rank * (rank + 3) // 2)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone solve for her factors and add what she has for her items."""
        _check(self)
        quanta = _quanta(unit, self.reach, self.ratio, self.bounds.clip)
        model = (np.ascontiguousarray(self.factors), 1.0 / np.sqrt(self.noise), self.weights)
        return partial(loops.normal_equations, *local, model, quanta)

    def finish(self, total: Integers) -> Integers:
        """Return full blocks (G_j, b_j)."""
        above, beside = np.triu_indices(self.factors.shape[1])
        blocks = np.empty(self.shape, dtype=np.int64)
        blocks[:, above, beside] = total[:, : above.size]
        blocks[:, beside, above] = total[:, : above.size]
        blocks[:, :, -1] = total[:, above.size :]
        return blocks


def equations_sensitivity(ratio: float) -> Sensitivity:
    """Return the sensitivity of NormalEquations (proved there)."""
    replaced = math.sqrt(2.0) * (1 + ratio**2 / 2) if ratio**2 <= 2 else 2 * ratio
    return Sensitivity(add_remove=math.hypot(1.0, ratio), replace=replaced)


def _quanta(unit: float, reach: float, ratio: float, clip: float) -> EquationQuanta:
    """Return how a term becomes a product of three integers: each takes a third of the bits."""
    steps = below(unit ** (-1 / 3))
    return EquationQuanta(
        factor=steps / reach,
        target=ratio * steps / clip,
        most_squared=math.floor(steps**2),
        most=math.floor(ratio * steps),
    )


def _check(statistic: NormalEquations) -> None:
    """Refuse public numbers that the bound does not hold for."""
    weights = statistic.weights
    fine = np.isfinite(weights).all() and np.all(weights >= 0)
    scales = (statistic.reach, statistic.ratio, statistic.bounds.clip)
    if not (fine and all(0 < scale < math.inf for scale in scales)):
        raise PrivacyError(
            "normal equations need finite weights of at least 0, and a finite reach, ratio and "
            "clip of targets; nothing was summed"
        )
