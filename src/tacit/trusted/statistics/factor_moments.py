"""The second moment of users' choice factors and posterior means."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import product_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, outer_product
from tacit.trusted.statistics.posterior import LatentModel, PosteriorStatistic


@dataclass(frozen=True, eq=False)
class FactorMoments(PosteriorStatistic):
    r"""$\sum_i v_i v_i^T$ with $v_i = (c_i, \hat u_i, \rho_i)$ clipped to $\|v_i\| \le B$.

    $c_i$ are a user's choice factors, $\hat u_i$ her posterior mean, and $\rho_i^2$ is the mean
    over her ratings of $E[(y_{ij} - m_j - F_j u_i)^2] / D_j$ (posterior.LatentModel). The blocks
    tell how latent factors follow from choice, and whether $D$ is as large as it should be.

    *Paper:* none.
    *Guarantee:* Frobenius norm; $B^2$ (`bound`), and $\sqrt2 B^2$ for replace (outer_product). The
    clip is made by the quantiser: $v_i$ becomes integers of squared norm at most $B^2/u$, $u$ the
    unit, whatever the row and the arithmetic. A user without ratings adds nothing.
    """

    bounds: RowBounds
    model: LatentModel
    bound: float
    symmetric = True
    term_bits = 52

    @property
    def sensitivity(self) -> Sensitivity:
        """That of outer products."""
        return outer_product(self.bound)

    @property
    def shape(self) -> tuple[int, int]:
        """Choice factors, factors and one more, twice."""
        size = sum(self.model.prior.shape) + 1
        return (size, size)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone compute her posterior and add the outer products."""
        parts = self.parts(local, self.bound)
        return partial(loops.factor_moments, *parts, product_quanta(self.bound, unit))
