"""Loops over residuals: the local step of Frank-Wolfe, fused with the covariance it leads to.

A residual is fitted - target (kernels.rows says what these are). One pass over the ratings
does a whole round: every user moves her fitted values along the newest direction and adds
the outer product of her new residual, in integers, to the sum.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.counting import without_counting
from tacit.kernels.lanes import dot, two_dots
from tacit.kernels.outer import add_batches, batches_for, put_row
from tacit.kernels.quantise import clip_factor, quantise
from tacit.kernels.row_steps import add_rounded, item_table, load_row, move_row
from tacit.kernels.rows import longest_row, row_weight


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
def _scratch(rows, lo, hi):
    """Return room for a row's targets, the entries of two vectors at its items, and its residual.

    A row may be empty, and its residual too; a loop never asks for the first entry of either.
    """
    longest = longest_row(rows.indptr, lo, hi)
    return np.empty(longest), np.empty(longest), np.empty(longest), np.empty(longest)


@njit(cache=True, nogil=True, inline="always")
def _residual(rows, table, fitted, i, step, scratch):
    """Take user i's local step, if there is one, and write her new residual A (to scratch[3]).

    `table` are offsets, step.direction and a vector w by item. Return w . A and A . A.
    """
    target, picked, along, residual = scratch
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    span, own = (start, stop - start), (rows.means[i], rows.scales[i], rows.clip)
    fits, wants = load_row(table, rows.items, rows.values, fitted, span, own, target, picked, along)
    change = (step.gain != 0.0, step.keep, -step.gain * (fits - wants))
    length, inner, squared = move_row(fitted, span, change, target, picked, along, residual)
    if step.gain != 0.0 and not np.sqrt(length) <= step.norm:
        _shorten(fitted[start:stop], step.norm, 1.0)
        stays = (False, 1.0, 0.0)
        _, inner, squared = move_row(fitted, span, stays, target, picked, along, residual)
    return inner, squared


@njit(cache=True, nogil=True)
def _clipped(scratch, size, bound):
    """Scale a residual A down to a norm of at most `bound`; return w . A."""
    _, _, along, residual = scratch
    _shorten(residual[:size], bound, 1.0)
    return dot(residual[:size], along[:size])


@njit(cache=True, nogil=True)
def advance(rows, fitted, step, lo, hi):
    """Take one local step for every user of the range."""
    scratch = _scratch(rows, lo, hi)
    table = item_table(rows.offsets, step.direction, step.direction)
    for i in range(lo, hi):
        _residual(rows, table, fitted, i, step, scratch)


@njit(cache=True, nogil=True)
def covariance(rows, fitted, step, quanta, places, lo, hi, total):
    """Take one local step (none if its gain is zero) and add the users' outer products.

    `places` says where in the matrix an item is, or -1 if it is left out; places rise with items.
    Only the upper triangle of `total` is written: rows are sorted by item.
    """
    scratch = _scratch(rows, lo, hi)
    table = item_table(rows.offsets, step.direction, step.direction)
    batches = batches_for(scratch[3].size, len(total), quanta.most_squared)
    _add_covariances(rows, table, fitted, step, quanta, places, lo, hi, scratch, batches, total)


@without_counting
def _add_covariances(rows, table, fitted, step, quanta, places, lo, hi, scratch, batches, total):
    """Add the users' outer products."""
    for i in range(lo, hi):
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        _, squared = _residual(rows, table, fitted, i, step, scratch)
        factor = clip_factor(np.sqrt(squared), quanta.bound) / quanta.quantum
        units = batches.units[batches.sizes[0] :]
        quantise(scratch[3][: items.size], factor, quanta.most_squared, units)
        put_row(batches, items, places, total)
    add_batches(batches, total)


@njit(cache=True, nogil=True)
def product(rows, fitted, step, block, limits, lo, hi, total):
    """Take one local step and add the users' a (a^T V), V = block; limits: (bound, unit)."""
    scratch, columns = _scratch(rows, lo, hi), block.T.copy()
    table = item_table(rows.offsets, step.direction, columns[0])
    sums = np.zeros(columns.shape, dtype=np.int64)
    _add_products(rows, table, fitted, step, columns, limits, lo, hi, scratch, sums)
    for k in range(len(columns)):
        for item in range(columns.shape[1]):
            total[item, k] += sums[k, item]


@without_counting
def _add_products(rows, table, fitted, step, columns, limits, lo, hi, scratch, sums):
    """Add the users' a (a^T V) to sums by column."""
    bound, unit = limits
    first, items, along, residual = sums[0], rows.items, scratch[2], scratch[3]
    for i in range(lo, hi):
        inner, squared = _residual(rows, table, fitted, i, step, scratch)
        span = (rows.indptr[i], rows.indptr[i + 1] - rows.indptr[i])
        if not np.sqrt(squared) <= bound:
            inner = _clipped(scratch, span[1], bound)
        add_rounded(residual, inner / unit, items, span, first)
        for k in range(1, len(columns)):
            _pick(columns[k], items[span[0] : span[0] + span[1]], along)
            inner = dot(residual[: span[1]], along[: span[1]])
            add_rounded(residual, inner / unit, items, span, sums[k])


@njit(cache=True, nogil=True)
def energy(rows, fitted, step, direction, limits, lo, hi, total):
    """Take one local step and add the users' (a . v)^2, in units, rounded down.

    `limits` are (bound of a, unit, most units of a user).
    """
    bound, unit, most = limits
    scratch = _scratch(rows, lo, hi)
    table = item_table(rows.offsets, step.direction, direction)
    for i in range(lo, hi):
        inner, squared = _residual(rows, table, fitted, i, step, scratch)
        if not np.sqrt(squared) <= bound:
            inner = _clipped(scratch, rows.indptr[i + 1] - rows.indptr[i], bound)
        total[0] += min(np.int64(inner * inner / unit), most)


@njit(cache=True, nogil=True)
def moments(rows, fitted, step, direction, limits, lo, hi, total):
    """Take one local step and add five numbers of each user, in units.

    With a the residual, y the fitted row and w = (a . v) v on Omega: a.a, a.y, y.y, y.w, w.w.
    `limits` are the largest term, and how many units that is.
    """
    largest, most = limits
    scratch = _scratch(rows, lo, hi)
    table = item_table(rows.offsets, step.direction, direction)
    own = np.empty(5)
    for i in range(lo, hi):
        inner, own[0] = _residual(rows, table, fitted, i, step, scratch)
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        row, along = fitted[start:stop], scratch[2][: stop - start]
        along *= inner
        own[1] = dot(scratch[3][: stop - start], row)
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
    longest = longest_row(rows.indptr, lo, hi)
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
