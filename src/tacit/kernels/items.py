"""Loops that add up ratings, or count them, item by item."""

import numpy as np
from numba import njit

from tacit.kernels.rows import clipped


@njit(cache=True, nogil=True)
def weighted_sums(rows, middle, half, radius, lo, hi, total):
    """Add each user's (rating, count) vector, of weight radius/sqrt(d), in integers.

    total[0] gets the ratings mapped to [-1, 1] times the weight, total[1] the weight. The
    weight is two units below radius/sqrt(d), more than rounding can add for a radius up to 2^52,
    so d weight^2 <= radius^2 whatever floating point does.
    """
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        if stop == start:
            continue
        weight = max(np.int64(radius / np.sqrt(stop - start)) - 2, 0)
        for p in range(start, stop):
            place = (rows.values[p] - middle) / half
            place = min(1.0, max(-1.0, place))
            item = rows.items[p]
            total[0, item] += np.int64(place * weight)
            total[1, item] += weight


@njit(cache=True, nogil=True)
def weighted_counts(rows, edges, radius, lo, hi, total):
    """Add each user's counts, of weight radius/sqrt(d), in integers (as in weighted_sums).

    They go to one row of total: that of the class of d.
    """
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        if stop == start:
            continue
        weight = max(np.int64(radius / np.sqrt(stop - start)) - 2, 0)
        group = np.searchsorted(edges, stop - start, side="right")
        for p in range(start, stop):
            total[group, rows.items[p]] += weight


@njit(cache=True, nogil=True)
def row_sums(rows, unit, lo, hi, total):
    """Add the users' bounded rows, item by item, in integers.

    Entries are cut towards zero, which only shortens a row; a part in 10^9 is taken off first,
    more than the rounding of scales can have added.
    """
    for i in range(lo, hi):
        factor = rows.scales[i] * (1.0 - 1e-9) / unit
        for p in range(rows.indptr[i], rows.indptr[i + 1]):
            total[rows.items[p]] += np.int64(clipped(rows, p, rows.means[i]) * factor)
