"""Loops over residuals: the local step of Frank-Wolfe, fused with the covariance it leads to.

A residual is fitted - target (kernels.rows says what these are). One pass over the ratings
does a whole round: every user moves her fitted values along the newest direction and adds
the outer product of her new residual, in integers, to the sum.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.lanes import dot, two_dots
from tacit.kernels.quantise import clip_factor, quantise
from tacit.kernels.rows import row_weight

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
def _shorten(row, most, weight):
    """Scale a row down to a norm of at most `most`; what overflowed becomes zero.

    `weight` multiplies sums over the row. Return the factor.
    """
    length = np.sqrt(weight * dot(row, row))
    if length <= most:
        return 1.0
    factor = clip_factor(length, most)
    for p in range(row.size):
        row[p] = factor * row[p] if factor > 0.0 else 0.0
    return factor


@njit(cache=True, nogil=True, inline="always")
def _step(target, fitted, picked, step, weight):
    """Move one row's fitted values; return the direction's coefficient and the row's factor.

    `picked` is the direction at the row's items; `weight` multiplies sums over the row.
    """
    along, wanted = two_dots(fitted, target, picked)
    coefficient = -step.gain * weight * (along - wanted)
    for p in range(target.size):
        fitted[p] = step.keep * fitted[p] + coefficient * picked[p]
    factor = 1.0
    if not np.sqrt(weight * dot(fitted, fitted)) <= step.norm:
        factor = _shorten(fitted, step.norm, weight)
    return (coefficient if factor > 0.0 else 0.0), factor


@njit(cache=True, nogil=True)
def _load(rows, i, direction, target, picked):
    """Write user i's targets and a direction's entries at her items into scratch rows."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    items, values = rows.items[start:stop], rows.values[start:stop]
    mean, scale, most = rows.means[i], rows.scales[i], rows.clip
    for p in range(items.size):  # `clipped` written out: it reads less
        centred = values[p] - rows.offsets[items[p]] - mean
        target[p] = min(most, max(-most, centred)) * scale
        picked[p] = direction[items[p]]


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
    _load(rows, i, step.direction, target, picked)
    _move(fitted[start:stop], target, picked, step)
    return target


@njit(cache=True, nogil=True, inline="always")
def _move(row, target, picked, step):
    """Take a local step, if it is one, and turn the targets into the new residual."""
    if step.gain != 0.0:
        _step(target, row, picked, step, 1.0)
    for p in range(target.size):
        target[p] = row[p] - target[p]


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
        factor = clip_factor(np.sqrt(dot(residual, residual)), quanta.bound) / quanta.quantum
        quantise(residual, factor, quanta.most_squared, units[size:])
        count = _placed(units[size:], items, places, at[size:])
        ends[size : size + count] = size + count
        size += count
    _add_outer(units, at, ends, size, first, order, total)


@njit(cache=True, nogil=True)
def product(rows, fitted, step, block, limits, lo, hi, total):
    """Take one local step and add the users' a (a^T V), V = block; limits: (bound, unit)."""
    bound, unit = limits
    longest = _longest(rows.indptr, lo, hi)
    scratch, units = np.empty((3, longest)), np.empty(longest, dtype=np.int64)
    columns = block.T.copy()
    sums = np.zeros(columns.shape, dtype=np.int64)
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        items, residual = rows.items[start:stop], scratch[0, : stop - start]
        picked, along = scratch[1, : items.size], scratch[2, : items.size]
        _load_both(rows, i, (step.direction, columns[0]), residual, (picked, along))
        _move(fitted[start:stop], residual, picked, step)
        inner, squared = two_dots(along, residual, residual)
        if not np.sqrt(squared) <= bound:
            _shorten(residual, bound, 1.0)
            inner = dot(residual, along)
        for k in range(len(columns)):
            if k > 0:
                _pick(columns[k], items, along)
                inner = dot(residual, along)
            factor = inner / unit
            for p in range(items.size):
                units[p] = np.int64(np.rint(residual[p] * factor))
            _add_at(units, items, sums[k])
    for k in range(len(columns)):
        for item in range(columns.shape[1]):
            total[item, k] += sums[k, item]


@njit(cache=True, nogil=True)
def _load_both(rows, i, directions, target, picked):
    """Write user i's targets and two directions' entries, as `_load` does with one."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    items, values = rows.items[start:stop], rows.values[start:stop]
    mean, scale, most = rows.means[i], rows.scales[i], rows.clip
    (one, other), (first, second) = directions, picked
    for p in range(items.size):
        centred = values[p] - rows.offsets[items[p]] - mean
        target[p] = min(most, max(-most, centred)) * scale
        first[p] = one[items[p]]
        second[p] = other[items[p]]


@njit(cache=True, nogil=True)
def _add_at(units, items, sums):
    """Add a row of integers at its items."""
    for p in range(items.size):
        sums[items[p]] += units[p]


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
        inner = dot(residual, picked)
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
        along *= dot(residual, along)
        own[0] = dot(residual, residual)
        own[1] = dot(residual, row)
        own[2] = dot(row, row)
        own[3] = dot(row, along)
        own[4] = dot(along, along)
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
        for t in range(gains.size):
            if t == 0:
                _load(rows, i, directions[t], target, picked)
            else:
                _pick(directions[t], items, picked)
            step = StepArrays(directions[t], gains[t], keeps[t], norm)
            moved = _step(target[:length], fitted[:length], picked[:length], step, weight)
            for earlier in range(t):
                coefficients[i, earlier] *= keeps[t] * moved[1]
            coefficients[i, t] = moved[0] * moved[1]
