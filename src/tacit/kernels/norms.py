"""Loops that sort users by the length of their rows."""

import numpy as np
from numba import njit

from tacit.kernels.rows import clipped


@njit(cache=True, nogil=True)
def count_norms(rows, edges, one, lo, hi, total):
    """Add `one` to the bin of each user's norm; a row of norm zero, or no number, is in none.

    Bin k holds norms up to edges[k] and above the edge before it; the last one all that are longer.
    """
    for i in range(lo, hi):
        squared = 0.0
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            squared += clipped(rows, p, rows.means[i]) ** 2
        norm = np.sqrt(squared)
        if norm > 0.0:
            total[min(np.searchsorted(edges, norm), edges.size - 1)] += one
