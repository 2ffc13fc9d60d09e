"""The covariance of rows filled in over all items, with the proof of its sensitivity."""

from dataclasses import dataclass, field

import numpy as np

from tacit.kernels.filled import descend, map_rows, quantise_rows
from tacit.kernels.quantise import Quanta
from tacit.private.local import FilledRows, LinearStep
from tacit.private.quantise import product_quanta
from tacit.private.rows import EachRange, RowBounds, Rows
from tacit.private.statistics import OuterProducts, Units, sum_parts

__all__ = ["FilledCovariance"]

_BLOCK = 1024  # users at a time: 2^10 terms of 42 bits stay exact in a double's 53


@dataclass(frozen=True, eq=False)
class FilledCovariance(OuterProducts):
    """W = sum_i Y_i^T Y_i after the published linear steps and one more gradient step.

    In round t, with all earlier maps M taken, Y_i <- Y_i + rates[t] P(Y*_i - Y_i), and the whole
    row is scaled down to ||Y_i|| <= norms[t]; `bound` is that of the newest round.

    *Paper:* Algorithm 5, W^(t), with the gradient's sign and index put right, and rows clipped,
    which its noise needs and it does not do.
    *Guarantee:* that of OuterProducts. A user's row is brought up to date by itself, so that
    rounding does not depend on who else is there. Rows are integers of at most 21 bits held in
    doubles; blocks of 1024 of them multiply exactly.
    """

    bounds: RowBounds
    steps: tuple[LinearStep, ...]
    rates: tuple[float, ...]
    norms: tuple[float, ...]
    symmetric: bool = field(default=True, init=False)
    term_bits: int = field(default=42, init=False)

    @property
    def bound(self) -> float:  # type: ignore[override]
        """The norm that rows have when they are summed."""
        return self.norms[len(self.steps)]

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Bring everyone's row up to date and sum the outer products."""
        arrays = rows.bounded(self.bounds, each)
        state = rows.state(FilledRows, self.bounds, each)
        fresh, missing = state.missing(self.steps)
        if fresh:
            state.matrix[:] = 0.0
        quanta = product_quanta(self.bound, unit)
        first = len(self.steps) - len(missing)
        maps = [step.factors() for step in missing]

        def part(lo: int, hi: int) -> Units:
            if fresh:
                descend(arrays, state.matrix, self.rates[0], self.norms[0], lo, hi)
            for turn, (vectors, back) in enumerate(maps, start=first + 1):
                map_rows(state.matrix, vectors, back, lo, hi)
                descend(arrays, state.matrix, self.rates[turn], self.norms[turn], lo, hi)
            return _outer_products(state.matrix, quanta, lo, hi)

        total = sum_parts(each(part))
        state.done(self.steps)
        return total


def _outer_products(
    matrix: "np.ndarray[tuple[int, int], np.dtype[np.float32]]", quanta: Quanta, lo: int, hi: int
) -> Units:
    """Sum the users' outer products exactly: integers in doubles, a block at a time."""
    items = matrix.shape[1]
    total = np.zeros((items, items), dtype=np.int64)
    units = np.empty((_BLOCK, items))
    for start in range(lo, hi, _BLOCK):
        stop = min(start + _BLOCK, hi)
        block = units[: stop - start]
        quantise_rows(matrix, quanta, start, stop, block)
        total += (block.T @ block).astype(np.int64)
    return total
