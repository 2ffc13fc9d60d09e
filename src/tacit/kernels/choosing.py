"""Scores of choice, and lists of what people choose times how likely they like it.

A row of scores is looked at once, while it is in a processor's first cache. Logarithms and
exponentials are polynomials, since compilers make no vector code of calls of functions.
"""

import math

import numpy as np
from numba import njit

from tacit.kernels.lists import keep_sorted

_LOWEST = -708.0  # exp of less has not all digits
_SHIFT = 1.5 * 2.0**52  # added to a number, it leaves the nearest whole number in the last bits
_BITS = np.int64(np.float64(_SHIFT).view(np.int64)) - 1023
_PER_TWO, _TWO_HIGH, _TWO_LOW = 1 / math.log(2.0), 0.693145751953125, 1.4286068203094173e-06
_ROOT_HALF = math.sqrt(0.5)


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def share_sums(indptr, items, table, sums):
    """Write, for each row, the sum of a table's rows at its items over the root of their number."""
    for i in range(len(sums)):
        start, stop, row = indptr[i], indptr[i + 1], sums[i]
        whole = stop - (stop - start) % 4
        row[:] = 0.0
        for p in range(start, whole, 4):
            a, b, c, d = (
                table[items[p]],
                table[items[p + 1]],
                table[items[p + 2]],
                table[items[p + 3]],
            )
            for l in range(row.size):
                row[l] += (a[l] + b[l]) + (c[l] + d[l])
        for p in range(whole, stop):
            a = table[items[p]]
            for l in range(row.size):
                row[l] += a[l]
        share = 1.0 / math.sqrt(max(stop - start, 1))
        for l in range(row.size):
            row[l] *= share


@njit(cache=True, nogil=True, fastmath={"contract"}, error_model="numpy")
def _softplus_row(numbers, powers, whole):
    """Turn a row x into log(1 + exp(x)), in place; the others are room, `whole` as integers.

    With y = exp(-|x|), of n ln 2 + r in x, it is max(x, 0) + 2 artanh(y / (2 + y)).
    """
    scales = whole.view(np.int64)
    for k in range(numbers.size):
        less = -abs(numbers[k])
        less = less if less > _LOWEST else _LOWEST
        shifted = less * _PER_TWO + _SHIFT
        turns = shifted - _SHIFT
        r = (less - turns * _TWO_HIGH) - turns * _TWO_LOW
        p = 1.0 / 39916800.0 + r * (1.0 / 479001600.0 + r * (1.0 / 6227020800.0))
        p = 1.0 / 362880.0 + r * (1.0 / 3628800.0 + r * p)
        p = 1.0 / 5040.0 + r * (1.0 / 40320.0 + r * p)
        p = 1.0 / 120.0 + r * (1.0 / 720.0 + r * p)
        p = 1.0 / 6.0 + r * (1.0 / 24.0 + r * p)
        powers[k] = 1.0 + r * (1.0 + r * (0.5 + r * p))
        whole[k] = shifted
    for k in range(numbers.size):
        scales[k] = (scales[k] - _BITS) << 52
    for k in range(numbers.size):
        y = powers[k] * whole[k]
        s = y / (2.0 + y)
        q = s * s
        p = 1.0 / 27.0 + q * (1.0 / 29.0 + q * (1.0 / 31.0 + q * (1.0 / 33.0)))
        p = 1.0 / 19.0 + q * (1.0 / 21.0 + q * (1.0 / 23.0 + q * (1.0 / 25.0 + q * p)))
        p = 1.0 / 11.0 + q * (1.0 / 13.0 + q * (1.0 / 15.0 + q * (1.0 / 17.0 + q * p)))
        p = 1.0 / 3.0 + q * (1.0 / 5.0 + q * (1.0 / 7.0 + q * (1.0 / 9.0 + q * p)))
        x = numbers[k]
        numbers[k] = (0.0 if x <= 0.0 else x) + 2.0 * (s + s * (q * p))


@njit(cache=True, nogil=True)
def softplus(scores):
    """Turn all numbers x into log(1 + exp(x)), in place."""
    powers, whole = np.empty(scores.shape[1]), np.empty(scores.shape[1])
    for i in range(len(scores)):
        _softplus_row(scores[i], powers, whole)


@njit(cache=True, nogil=True, inline="always")
def _chance(score, liked, root, power):
    """Return a power of the probability that a rating is above `liked`."""
    chance = 0.5 * math.erfc((liked - score) * root * _ROOT_HALF)
    return math.sqrt(chance) if power == 0.5 else chance**power


@njit(cache=True, nogil=True)
def best_chosen(scores, choice, liking, allowed, rated, found):
    """Write positions of each row's best items, -1 where none is left, their scores and shares.

    `scores` are predicted ratings without offsets, `choice` what `softplus` makes scores of choice
    of, up to a factor; both are changed. `liking` are (offsets, roots, liked, power): a list is
    ordered by choice times the power of the chance to be liked, which is at most one, so that the
    chance is computed only where choice alone is more than what the list has already. `rated` are
    (indptr, items) of what may not be in a list, `found` (lists, scores, shares). A share is of all
    that may be in the list.
    """
    (offsets, roots, liked, power), (indptr, items), (lists, ratings, shares) = liking, rated, found
    size, count = scores.shape[1], lists.shape[1]
    best, powers, whole = np.empty(count), np.empty(size), np.empty(size)
    for i in range(len(lists)):
        chosen, own = choice[i], scores[i]
        _softplus_row(chosen, powers, whole)
        for k in range(size):
            if not allowed[k]:
                chosen[k] = np.nan
        for p in range(indptr[i], indptr[i + 1]):
            chosen[items[p]] = np.nan
        held, last, total = 0, -np.inf, 0.0
        for k in range(size):
            much = chosen[k]
            if not much >= 0.0:
                continue
            total += much
            if not much > last:
                continue
            value = much * _chance(own[k] + offsets[k], liked, roots[k], power)
            if not value > last:
                continue
            held = keep_sorted(best, lists[i], held, value, k)
            if held == count:
                last = best[count - 1]
        for at in range(held):
            k = lists[i, at]
            ratings[i, at], shares[i, at] = own[k] + offsets[k], chosen[k] / max(total, 1e-300)
        for at in range(held, count):
            lists[i, at], ratings[i, at], shares[i, at] = -1, 0.0, 0.0
