"""Loops over rows that are filled in over all items (Algorithm 5)."""

import numpy as np
from numba import njit

from tacit.kernels.quantise import quantise
from tacit.kernels.rows import clipped
from tacit.kernels.solving import put

__all__ = ["descend", "map_rows", "quantise_rows"]

_TOGETHER = 16  # rows that share what is fetched of a matrix


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
    """Replace each row by (row @ vectors) @ back, in an order of its own.

    A product of blocks would round a row differently with other rows around it. Here a few rows
    share what is fetched of the factors, and nothing else.
    """
    inner = np.empty((_TOGETHER, back.shape[0]), dtype=np.float32)
    mapped = np.empty((_TOGETHER, back.shape[1]), dtype=np.float32)
    for start in range(lo, hi, _TOGETHER):
        rows = filled[start : min(start + _TOGETHER, hi)]
        count = len(rows)
        _multiply(rows, vectors, inner[:count])
        _multiply(inner[:count], back, mapped[:count])
        for i in range(count):
            put(mapped[i], rows[i])


@njit(cache=True, nogil=True)
def _multiply(rows, matrix, out):
    """Write rows @ matrix, each row summed in the same order whatever stands beside it."""
    size = len(matrix)
    whole = size - size % 4
    out[:] = 0.0
    for j in range(0, whole, 4):
        for i in range(len(rows)):
            _add_four(matrix, rows[i], j, out[i])
    for j in range(whole, size):
        for i in range(len(rows)):
            for k in range(out.shape[1]):
                out[i, k] += rows[i, j] * matrix[j, k]


@njit(cache=True, nogil=True)
def _add_four(matrix, row, j, mapped):
    """Add row[j] ... row[j + 3] times those rows of the matrix."""
    first, second, third, fourth = row[j], row[j + 1], row[j + 2], row[j + 3]
    a, b, c, d = matrix[j], matrix[j + 1], matrix[j + 2], matrix[j + 3]
    for k in range(mapped.size):
        mapped[k] += first * a[k] + second * b[k] + third * c[k] + fourth * d[k]


@njit(cache=True, nogil=True)
def quantise_rows(filled, quanta, lo, hi, units):
    """Write rows lo ... hi, which `descend` clipped, as integers in floating point."""
    for i in range(lo, hi):
        quantise(filled[i], 1.0 / quanta.quantum, quanta.most_squared, units[i - lo])
