"""The gradient of the expected log-likelihood of item factors."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import norm_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, any_vector
from tacit.trusted.statistics.posterior import LatentModel, PosteriorStatistic

__all__ = ["ExpectedGradient"]


@dataclass(frozen=True, eq=False)
class ExpectedGradient(PosteriorStatistic):
    r"""$\sum_i$ of a user's gradient for all item factors and means, clipped as one vector.

    At the items $j$ that she rated her term has the rows

    $$\tfrac{1}{\sqrt{d_i}} \left( e_{ij} \hat u_i^T - F_j S_i,\; e_{ij} \right), \qquad
    e_{ij} = y_{ij} - m_j - F_j \hat u_i,$$

    the gradient of $E[\log p(y_i \mid u_i)]$ over her posterior, times $D_j/\sqrt{d_i}$.

    *Paper:* none.
    *Guarantee:* Frobenius norm. A user's term has norm at most $C$ (`clip`), by the quantiser:
    add_remove $C$, replace $2 C$ (any_vector), reached by two people with the same items, the same
    posterior mean and opposite residuals: where $F = 0$, by the two ends of the range.
    """

    bounds: RowBounds
    model: LatentModel
    clip: float
    term_bits = 26

    @property
    def sensitivity(self) -> Sensitivity:
        """$C$, and $2 C$ when a row is replaced."""
        return any_vector(self.clip)

    @property
    def shape(self) -> tuple[int, int]:
        """Items by factors, and one more for the mean."""
        items, rank = self.model.factors.shape
        return (items, rank + 1)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone compute her posterior and add the clipped gradients."""
        parts = self.parts(local, self.clip)
        return partial(loops.expected_gradient, *parts, norm_quanta(self.clip, unit))
