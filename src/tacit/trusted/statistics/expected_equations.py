"""The least-squares equations of item factors, in expectation over users' posteriors."""

from dataclasses import dataclass
from functools import partial
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import norm_quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, any_vector
from tacit.trusted.statistics.posterior import LatentModel, PosteriorStatistic


@dataclass(frozen=True, eq=False)
class ExpectedEquations(PosteriorStatistic):
    r"""For each item $j$, $\sum_i w_i E[t t^T]$ over its raters, $t = (u_i, 1, y_{ij} - m_j)$.

    The expectation is over a user's posterior: $E[u u^T] = \hat u \hat u^T + S$. These are the
    sufficient statistics of the M-step: $F_j$, a correction of $m_j$, and $D_j$ follow from them.
    $w_i$ is 1, or $1/\sqrt{d_i}$ with `by_sqrt_count`. For each item the upper half of
    $E[(u, 1)(u, 1)^T]$ is kept, then $(y - m) \hat u$, $y - m$ and $(y - m)^2$.

    *Paper:* none; the M-step of factor analysis, as in DPALS with the posterior covariance.
    *Guarantee:* L2 norm of all numbers that are kept. A user's term, all of her items together, has
    norm at most $C$ (`clip`), by the quantiser: add_remove $C$, replace $2 C$ (any_vector). The
    second is not reached: no two terms point against each other (docs/privacy/proofs.md), so that
    they are about $\sqrt2 C$ apart at most. What rounding adds to that is not bounded here.
    """

    bounds: RowBounds
    model: LatentModel
    clip: float
    by_sqrt_count: bool
    term_bits = 26

    @property
    def sensitivity(self) -> Sensitivity:
        """$C$, and $2 C$ when a row is replaced."""
        return any_vector(self.clip)

    @property
    def shape(self) -> tuple[int, int]:
        """Items by upper halves, products with the rating, and its square."""
        items, rank = self.model.factors.shape
        return (items, (rank + 1) * (rank + 2) // 2 + rank + 2)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Let everyone compute her posterior and add what her items need."""
        parts = self.parts(local, self.clip)
        quanta = norm_quanta(self.clip, unit)
        return partial(loops.expected_equations, *parts, self.by_sqrt_count, quanta)
