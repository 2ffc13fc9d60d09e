"""The three loops over one row that a round of Frank-Wolfe is made of, in vectors of four.

They take whole arrays and where the row begins: to cut a piece out of an array in compiled code
counts references to it, with instructions that wait for all that was written before, and for a row
of 80 ratings that took longer than the row. `kernels.residuals` puts them together. Sums have the
order of `lanes.dot`. `table` has, for each item, its offset, the entry of the newest direction, the
entry of another vector, and nothing.
"""

import numpy as np
from numba import njit

from tacit.kernels.lanes import at_items, four, larger, load, parts, rounded, smaller, store


@njit(cache=True, nogil=True)
def item_table(offsets, direction, other):
    """Return what the loops read about items, side by side."""
    table = np.zeros((offsets.size, 4))
    for item in range(offsets.size):
        table[item, 0], table[item, 1] = offsets[item], direction[item]
        table[item, 2] = other[item]
    return table


@njit(cache=True, nogil=True, inline="always")
def load_row(table, items, values, fitted, span, own, target, picked, along):
    """Write a row's targets and the entries of both vectors at its items.

    `span` is where the row begins and its length, `own` the user's mean and scale and the clip.
    Return the inner products of the direction with the fitted values and with the targets.
    """
    (start, size), (mean, scale, clip) = span, own
    whole, level, factor = size - size % 4, four(mean), four(scale)
    low, high, fits, wants = four(-clip), four(clip), four(0.0), four(0.0)
    for p in range(0, whole, 4):
        offset, entry, second = at_items(table, items, start + p)
        centred = load(values, start + p) - offset - level
        wanted = smaller(high, larger(low, centred)) * factor
        store(target, p, wanted)
        store(picked, p, entry)
        store(along, p, second)
        fits = fits + load(fitted, start + p) * entry
        wants = wants + wanted * entry
    a, b, c, d = parts(fits)
    e, f, g, h = parts(wants)
    for p in range(whole, size):
        item = items[start + p]
        centred = values[start + p] - table[item, 0] - mean
        target[p] = min(clip, max(-clip, centred)) * scale
        picked[p], along[p] = table[item, 1], table[item, 2]
        a += np.float64(fitted[start + p]) * picked[p]
        e += target[p] * picked[p]
    return (a + b) + (c + d), (e + f) + (g + h)


@njit(cache=True, nogil=True, inline="always")
def move_row(fitted, span, change, target, picked, along, residual):
    """Move a row's fitted values Y to keep Y + coefficient v, and write the new residual.

    `change` is whether they move, keep, and the coefficient. Return Y . Y, w . A and A . A, with w
    the second vector and A the residual.
    """
    (start, size), (moves, keep, coefficient) = span, change
    whole, kept, gain = size - size % 4, four(keep), four(coefficient)
    lengths, inners, squares = four(0.0), four(0.0), four(0.0)
    for p in range(0, whole, 4):
        if moves:
            store(fitted, start + p, kept * load(fitted, start + p) + gain * load(picked, p))
        fit = load(fitted, start + p)
        left = fit - load(target, p)
        store(residual, p, left)
        lengths = lengths + fit * fit
        inners = inners + load(along, p) * left
        squares = squares + left * left
    a, b, c, d = parts(lengths)
    e, f, g, h = parts(inners)
    i, j, k, l = parts(squares)
    for p in range(whole, size):
        if moves:
            fitted[start + p] = keep * fitted[start + p] + coefficient * picked[p]
        fit = np.float64(fitted[start + p])
        residual[p] = fit - target[p]
        a += fit * fit
        e += along[p] * residual[p]
        i += residual[p] * residual[p]
    return (a + b) + (c + d), (e + f) + (g + h), (i + j) + (k + l)


@njit(cache=True, nogil=True, inline="always")
def add_rounded(residual, factor, items, span, sums):
    """Add residual * factor, rounded to whole numbers, at a row's items."""
    (start, size), factors = span, four(factor)
    whole = size - size % 4
    for p in range(0, whole, 4):
        a, b, c, d = rounded(load(residual, p) * factors)
        sums[items[start + p]] += a
        sums[items[start + p + 1]] += b
        sums[items[start + p + 2]] += c
        sums[items[start + p + 3]] += d
    for p in range(whole, size):
        sums[items[start + p]] += np.int64(np.rint(residual[p] * factor))
