"""The gradient of the expected log-likelihood of item factors, and of the prior from choice."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import norm_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, any_vector
from tacit.trusted.statistics.posterior import LatentModel, PosteriorStatistic


@dataclass(frozen=True, eq=False)
class ExpectedGradient(PosteriorStatistic):
    r"""$\sum_i$ of a user's gradient for all parameters of the model, clipped as one vector.

    At the items $j$ that she rated, and for all choice factors $k$, her term has the rows

    $$\tfrac{1}{\sqrt{d_i}} \left( e_{ij} \hat u_i^T - F_j S_i,\; e_{ij} \right), \qquad
    w\, c_{ik} \left( (\hat u_i - P^T c_i)^T,\; 0 \right),$$

    $e_{ij} = y_{ij} - m_j - F_j \hat u_i$ and $w$ = `choice_weight`. The first are the gradient of
    $E[\log p(y_i \mid u_i)]$ over her posterior for $F_j$ and $m_j$, times $D_j/\sqrt{d_i}$, the
    others that of $E[\log p(u_i \mid c_i)]$ for $P$, times $w$.

    *Paper:* none.
    *Guarantee:* Frobenius norm. A user's term has norm at most $C$ (`clip`), by the quantiser:
    add_remove $C$, replace $2 C$ (any_vector), reached by two people with the same items, the same
    posterior mean and opposite residuals: where $F = 0$, by the two ends of the range.
    """

    bounds: RowBounds
    model: LatentModel
    clip: float
    choice_weight: float
    term_bits = 26

    @property
    def sensitivity(self) -> Sensitivity:
        """$C$, and $2 C$ when a row is replaced."""
        return any_vector(self.clip)

    @property
    def shape(self) -> tuple[int, int]:
        """Items and choice factors, by factors and one more for the mean."""
        choices, rank = self.model.prior.shape
        return (len(self.model.factors) + choices, rank + 1)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone compute her posterior and add the clipped gradients."""
        if not 0 <= self.choice_weight < math.inf:
            raise PrivacyError("the weight of choice factors must be finite; nothing was summed")
        parts, quanta = self.parts(local, self.clip), norm_quanta(self.clip, unit)
        return partial(loops.expected_gradient, *parts, self.choice_weight, quanta)
