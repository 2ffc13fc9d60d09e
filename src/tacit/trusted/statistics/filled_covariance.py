"""The covariance of rows filled in over all items."""

from dataclasses import dataclass
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.kernels.tiles import add_whole_products, panels_of, room_for_whole
from tacit.trusted.local_state import FilledRows, LinearStep
from tacit.trusted.quantise import product_quanta
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistic import Adder, Integers, Statistic, outer_product

_BLOCK = 1024  # users at a time: 2^10 terms of 42 bits stay exact in a double's 53


@dataclass(frozen=True, eq=False)
class FilledCovariance(Statistic):
    r"""$W = \sum_i Y_i^T Y_i$ after the published linear steps and one more gradient step.

    In round $t$, with all earlier maps taken, $Y_i \leftarrow Y_i + \eta_t P(Y^*_i - Y_i)$ with
    $\eta$ = `rates`, and the whole row is scaled down to $\|Y_i\| \le B_t$ with $B$ = `norms`.

    *Paper:* Algorithm 5, $W^{(t)}$, with the gradient's sign and index put right, and rows clipped,
    which its noise needs and it does not do.
    *Guarantee:* $B^2$, and $\sqrt2 B^2$ for replace, in the Frobenius norm (outer_product). A
    user's row is brought up to date by itself: its rounding does not depend on who else is there.
    Rows are integers of at most 21 bits held in doubles; blocks of 1024 of them multiply exactly.
    """

    bounds: RowBounds
    steps: tuple[LinearStep, ...]
    rates: tuple[float, ...]
    norms: tuple[float, ...]
    symmetric = True
    term_bits = 42

    @property
    def bound(self) -> float:
        """The norm that rows have when they are summed."""
        return self.norms[len(self.steps)]

    @property
    def sensitivity(self) -> Sensitivity:
        """That of outer products."""
        return outer_product(self.bound)

    @property
    def shape(self) -> tuple[int, int]:
        """Items by items."""
        return (self.bounds.offsets.size, self.bounds.offsets.size)

    def local(self, rows: Rows, run: Run) -> tuple[Any, ...]:
        """Return rows, the filled rows, whether these begin at zero, and the steps they miss."""
        arrays = rows.bounded(self.bounds, run)
        state = rows.state(FilledRows, self.bounds, run)
        fresh, missing = state.missing(self.steps)
        if fresh:
            state.matrix[:] = 0.0
        return arrays, state.matrix, fresh, missing

    def integer_sum(self, rows: Rows, unit: float, run: Run) -> Integers:
        """Sum the users' terms; afterwards local state includes all steps."""
        total = super().integer_sum(rows, unit, run)
        rows.state(FilledRows, self.bounds, run).done(self.steps)
        return total

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Bring everyone's row up to date and add the outer products."""
        arrays, matrix, fresh, missing = local
        first = len(self.steps) - len(missing)
        maps = [tuple(map(panels_of, step.factors())) for step in missing]
        quanta = product_quanta(self.bound, unit)

        def add(lo: int, hi: int, total: Integers) -> None:
            if fresh:
                loops.descend(arrays, matrix, self.rates[0], self.norms[0], lo, hi)
            for turn, (vectors, back) in enumerate(maps, start=first + 1):
                loops.map_rows(matrix, vectors, back, lo, hi)
                loops.descend(arrays, matrix, self.rates[turn], self.norms[turn], lo, hi)
            block = room_for_whole(_BLOCK, len(total))
            for start in range(lo, hi, _BLOCK):
                stop = min(start + _BLOCK, hi)
                loops.quantise_rows(matrix, quanta, start, stop, block)
                add_whole_products(block, stop - start, total)

        return add
