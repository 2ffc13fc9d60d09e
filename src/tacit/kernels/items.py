"""Loops that add up ratings item by item."""

import numpy as np
from numba import njit

__all__ = ["weighted_sums"]


@njit(cache=True, nogil=True)
def weighted_sums(rows, middle, half, radius, lo, hi, total):
    """Add each user's (rating, count) vector, of weight radius/sqrt(d), in integers.

    total[0] gets the ratings mapped to [-1, 1] times the weight, total[1] the weight. The
    weight w is the largest integer with d w^2 <= radius^2, found in integers.
    """
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        length = np.int64(stop - start)
        if length == 0:
            continue
        weight = np.int64(radius / np.sqrt(length))
        while length * weight * weight > radius * radius:
            weight -= 1
        for p in range(start, stop):
            place = (rows.values[p] - middle) / half
            place = min(1.0, max(-1.0, place))
            item = rows.items[p]
            total[0, item] += np.int64(place * weight)
            total[1, item] += weight
