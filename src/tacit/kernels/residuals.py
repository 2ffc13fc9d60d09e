"""Loops over residuals: the local step of Frank-Wolfe, fused with the covariance it leads to.

A residual is fitted - target (kernels.rows says what these are). One pass over the ratings
does a whole round: every user moves her fitted values along the newest direction and adds
the outer product of her new residual, in integers, to the sum.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.quantise import clip_factor, quantise
from tacit.kernels.rows import clipped, row_weight

__all__ = [
    "StepArrays",
    "advance",
    "covariance",
    "energy",
    "moments",
    "product",
    "replay",
]


_BATCH = 1 << 14  # ratings whose outer products are added together, from the cache


class StepArrays(NamedTuple):
    """One local step: Y <- project((1 - 1/T) Y - gain (A v) v^T), rows of norm at most `norm`."""

    direction: NDArray[np.float64]
    gain: float
    keep: float
    norm: float


@njit(cache=True, nogil=True)
def _dot(a, b):
    """Return a . b in four partial sums, which do not wait for each other, in a fixed order."""
    first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
    whole = a.size - a.size % 4
    for p in range(0, whole, 4):
        first += np.float64(a[p]) * b[p]
        second += np.float64(a[p + 1]) * b[p + 1]
        third += np.float64(a[p + 2]) * b[p + 2]
        fourth += np.float64(a[p + 3]) * b[p + 3]
    for p in range(whole, a.size):
        first += np.float64(a[p]) * b[p]
    return (first + second) + (third + fourth)


@njit(cache=True, nogil=True)
def _shorten(row, most, weight):
    """Scale a row down to a norm of at most `most`; what overflowed becomes zero.

    `weight` multiplies sums over the row. Return the factor.
    """
    length = np.sqrt(weight * _dot(row, row))
    if length <= most:
        return 1.0
    factor = clip_factor(length, most)
    for p in range(row.size):
        row[p] = factor * row[p] if factor > 0.0 else 0.0
    return factor


@njit(cache=True, nogil=True)
def _step(target, fitted, picked, step, weight):
    """Move one row's fitted values; return the direction's coefficient and the row's factor.

    `picked` is the direction at the row's items; `weight` multiplies sums over the row.
    """
    coefficient = -step.gain * weight * (_dot(fitted, picked) - _dot(target, picked))
    for p in range(target.size):
        fitted[p] = step.keep * fitted[p] + coefficient * picked[p]
    factor = _shorten(fitted, step.norm, weight)
    return (coefficient if factor > 0.0 else 0.0), factor


@njit(cache=True, nogil=True)
def _load(rows, i, target):
    """Write user i's targets into a scratch row."""
    start = rows.indptr[i]
    for p in range(rows.indptr[i + 1] - start):
        target[p] = clipped(rows, start + p, rows.means[i]) * rows.scales[i]


@njit(cache=True, nogil=True)
def _pick(direction, items, picked):
    """Write a direction's entries at a row's items into a scratch row."""
    for p in range(items.size):
        picked[p] = direction[items[p]]


@njit(cache=True, nogil=True)
def _longest(indptr, lo, hi):
    longest = 0
    for i in range(lo, hi):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest


@njit(cache=True, nogil=True)
def advance(rows, fitted, step, lo, hi):
    """Take one local step for every user of the range."""
    scratch = np.empty((2, _longest(rows.indptr, lo, hi)))
    for i in range(lo, hi):
        _residual(rows, fitted, i, step, scratch)


@njit(cache=True, nogil=True)
def _residual(rows, fitted, i, step, scratch):
    """Take user i's local step, if there is one, and return her new residual (in scratch[0])."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    target, picked = scratch[0, : stop - start], scratch[1, : stop - start]
    row = fitted[start:stop]
    _load(rows, i, target)
    if step.gain != 0.0:
        _pick(step.direction, rows.items[start:stop], picked)
        _step(target, row, picked, step, 1.0)
    for p in range(target.size):
        target[p] = row[p] - target[p]
    return target


@njit(cache=True, nogil=True)
def _placed(units, items, places, at):
    """Bring what has a place in the matrix to the front, with its places; return how many."""
    count = 0
    for p in range(items.size):
        place = places[items[p]]
        if place >= 0:
            units[count] = units[p]
            at[count] = place
            count += 1
    return count


@njit(cache=True, nogil=True)
def _add_outer(units, at, ends, size, first, order, total):
    """Add the outer products of a batch of rows of integers to the upper triangle.

    Row by row of the matrix, whichever users have a part in it, so that a row is fetched once a
    batch. A user's places rise, and end at `ends`; `first` and `order` are scratch.
    """
    first[:] = 0
    for p in range(size):
        first[at[p] + 1] += 1
    for place in range(len(total)):
        first[place + 1] += first[place]
    for p in range(size):
        order[first[at[p]]] = p
        first[at[p]] += 1
    for p in order[:size]:
        unit, row = units[p], total[at[p]]
        for q in range(p, ends[p]):
            row[at[q]] += unit * units[q]


@njit(cache=True, nogil=True)
def covariance(rows, fitted, step, quanta, places, lo, hi, total):
    """Take one local step (none if its gain is zero) and add the users' outer products.

    `places` says where in the matrix an item is, or -1 if it is left out; places rise with items.
    Only the upper triangle of `total` is written: rows are sorted by item.
    """
    longest = _longest(rows.indptr, lo, hi)
    scratch = np.empty((2, longest))
    room = max(_BATCH, longest)
    units = np.empty(room, dtype=np.int64)
    at = np.empty(room, dtype=np.uint32)
    ends = np.empty(room, dtype=np.uint32)
    order = np.empty(room, dtype=np.uint32)
    first = np.empty(len(total) + 1, dtype=np.int64)
    size = 0
    for i in range(lo, hi):
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        if size + items.size > room:
            _add_outer(units, at, ends, size, first, order, total)
            size = 0
        residual = _residual(rows, fitted, i, step, scratch)
        factor = clip_factor(np.sqrt(_dot(residual, residual)), quanta.bound) / quanta.quantum
        quantise(residual, factor, quanta.most_squared, units[size:])
        count = _placed(units[size:], items, places, at[size:])
        ends[size : size + count] = size + count
        size += count
    _add_outer(units, at, ends, size, first, order, total)


@njit(cache=True, nogil=True)
def product(rows, fitted, step, block, limits, lo, hi, total):
    """Take one local step and add the users' a (a^T V), V = block; limits: (bound, unit)."""
    bound, unit = limits
    scratch = np.empty((2, _longest(rows.indptr, lo, hi)))
    for i in range(lo, hi):
        residual = _residual(rows, fitted, i, step, scratch)
        _shorten(residual, bound, 1.0)
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        picked = scratch[1, : items.size]
        for k in range(block.shape[1]):
            _pick(block[:, k], items, picked)
            inner = _dot(residual, picked) / unit
            for p in range(items.size):
                total[items[p], k] += np.int64(np.rint(residual[p] * inner))


@njit(cache=True, nogil=True)
def energy(rows, fitted, step, direction, limits, lo, hi, total):
    """Take one local step and add the users' (a . v)^2, in units, rounded down.

    `limits` are (bound of a, unit, most units of a user).
    """
    bound, unit, most = limits
    scratch = np.empty((2, _longest(rows.indptr, lo, hi)))
    for i in range(lo, hi):
        residual = _residual(rows, fitted, i, step, scratch)
        _shorten(residual, bound, 1.0)
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        picked = scratch[1, : items.size]
        _pick(direction, items, picked)
        inner = _dot(residual, picked)
        total[0] += min(np.int64(inner * inner / unit), most)


@njit(cache=True, nogil=True)
def moments(rows, fitted, step, direction, limits, lo, hi, total):
    """Take one local step and add five numbers of each user, in units.

    With a the residual, y the fitted row and w = (a . v) v on Omega: a.a, a.y, y.y, y.w, w.w.
    `limits` are the largest term, and how many units that is.
    """
    largest, most = limits
    scratch = np.empty((2, _longest(rows.indptr, lo, hi)))
    own = np.empty(5)
    for i in range(lo, hi):
        residual = _residual(rows, fitted, i, step, scratch)
        row = fitted[rows.indptr[i] : rows.indptr[i + 1]]
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        along = scratch[1, : items.size]
        _pick(direction, items, along)
        along *= _dot(residual, along)
        own[0] = _dot(residual, residual)
        own[1] = _dot(residual, row)
        own[2] = _dot(row, row)
        own[3] = _dot(row, along)
        own[4] = _dot(along, along)
        for k in range(5):
            total[k] += np.int64(np.rint(min(1.0, max(-1.0, own[k] / largest)) * most))


@njit(cache=True, nogil=True)
def replay(rows, steps, coefficients, lo, hi):
    """Take all local steps for every user of the range; write her coefficient of each direction.

    `steps` are (directions, gains, keeps, norm, most).
    """
    directions, gains, keeps, norm, most = steps
    longest = _longest(rows.indptr, lo, hi)
    target, picked = np.empty(longest), np.empty(longest)
    fitted = np.empty(longest)
    for i in range(lo, hi):
        length = rows.indptr[i + 1] - rows.indptr[i]
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        fitted[:length] = 0.0
        weight = row_weight(length, most)
        _load(rows, i, target)
        for t in range(gains.size):
            _pick(directions[t], items, picked)
            step = StepArrays(directions[t], gains[t], keeps[t], norm)
            moved = _step(target[:length], fitted[:length], picked[:length], step, weight)
            for earlier in range(t):
                coefficients[i, earlier] *= keeps[t] * moved[1]
            coefficients[i, t] = moved[0] * moved[1]
