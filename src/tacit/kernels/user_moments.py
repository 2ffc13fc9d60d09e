"""The loop that adds up the moments of the users' own means and variances."""

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
def user_moments(rows, scale, one, lo, hi, total):
    """Add every user's four numbers, in units: each is 0 to `one`.

    They are (1 + level/half)/2, (level/half)^2 and variance/cap, each cut off at 1, and a 1.
    The level is the mean of value - offset and the variance is about it, divided by d - 1; with
    one rating it is the usual one. `scale` is (half, cap, usual).
    """
    half, cap, usual = scale
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        rated = stop - start
        if rated == 0:
            continue
        level = 0.0
        for p in range(start, stop):
            level += rows.values[p] - rows.offsets[rows.items[p]]
        level /= rated
        squares = 0.0
        for p in range(start, stop):
            squares += (rows.values[p] - rows.offsets[rows.items[p]] - level) ** 2
        variance = squares / (rated - 1) if rated > 1 else usual
        place = min(1.0, max(-1.0, level / half))
        total[0] += np.int64((1.0 + place) / 2.0 * one)
        total[1] += np.int64(place * place * one)
        total[2] += np.int64(min(1.0, variance / cap) * one)
        total[3] += one
