"""Loops over rows that are filled in over all items (Algorithm 5)."""

import numpy as np
from numba import njit

from tacit.kernels.quantise import quantise
from tacit.kernels.rows import clipped
from tacit.kernels.solving import put
from tacit.kernels.tiles import BROAD, TALL, multiply


@njit(cache=True, nogil=True)
def descend(rows, filled, rate, norm, lo, hi):
    """Take the gradient step on Omega, Y <- Y + rate P(Y* - Y), and scale rows down to `norm`."""
    for i in range(lo, hi):
        row = filled[i]
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            item = rows.items[p]
            target = clipped(rows, p, rows.means[i]) * rows.scales[i]
            row[item] += rate * (target - row[item])
        total = 0.0
        for item in range(row.size):
            total += row[item] * row[item]
        if not total <= norm * norm:
            factor = norm / np.sqrt(total) if total < np.inf else 0.0
            for item in range(row.size):
                row[item] = factor * row[item] if factor > 0 else 0.0


@njit(cache=True, nogil=True)
def map_rows(filled, vectors, back, lo, hi):
    """Replace each row by (row @ V) @ B; the columns of V and of B come in panels (`panels_of`).

    Rows stand side by side as columns here, and each is summed in the same order whatever stands
    beside it (`tacit.kernels.tiles`): a product of BLAS would round a row differently with other
    rows around it.
    """
    items, rank = filled.shape[1], back.shape[1]
    columns = np.zeros((items, BROAD), dtype=np.float32)
    inner = np.empty((TALL * len(vectors), BROAD), dtype=np.float32)
    mapped = np.empty((TALL * len(back), BROAD), dtype=np.float32)
    for start in range(lo, hi, BROAD):
        rows = filled[start : min(start + BROAD, hi)]
        for i in range(len(rows)):
            put(rows[i], columns[:, i])
        multiply(vectors, columns, inner)
        multiply(back, inner[:rank], mapped)
        for i in range(len(rows)):
            put(mapped[:items, i], rows[i])


@njit(cache=True, nogil=True)
def quantise_rows(filled, quanta, lo, hi, units):
    """Write rows lo ... hi, which `descend` clipped, as integers in floating point."""
    for i in range(lo, hi):
        quantise(filled[i], 1.0 / quanta.quantum, quanta.most_squared, units[i - lo])
