"""Loops that bound rows: which ratings count, and each user's mean and scale.

All loops work on the users lo <= i < hi, so that threads can share the work.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray


class RowArrays(NamedTuple):
    """A user-by-item matrix in CSR form, what is public about items, and each user's own numbers.

    The target of a rating is clip(value - offsets[item] - means[user]) * scales[user], where the
    clip is to [-clip, clip].
    """

    indptr: NDArray[np.int64]
    items: NDArray[np.unsignedinteger]
    values: NDArray[np.float32]
    offsets: NDArray[np.float64]
    means: NDArray[np.float64]
    scales: NDArray[np.float64]
    clip: float


class RowLimits(NamedTuple):
    """How rows are bounded: the scalars of trusted.rows.RowBounds, for the loops."""

    centre: bool
    bias_shrinkage: float
    norm: float
    by_sqrt_count: bool
    max_ratings: float


@njit(cache=True, nogil=True)
def _mix(word):
    """Scramble a 64-bit word (the finaliser of splitmix64)."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@njit(cache=True, nogil=True)
def priorities(items, values, seed):
    """Give each rating of a row a pseudo-random word that depends on this row and the seed only."""
    row = np.uint64(seed)
    for place in range(items.size):
        mark = np.int64(values[place] * np.float32(4096))
        row = _mix(row ^ (np.uint64(items[place]) + (np.uint64(mark) << np.uint64(32))))
    words = np.empty(items.size, dtype=np.uint64)
    for place in range(items.size):
        words[place] = _mix(row + np.uint64(items[place]) * np.uint64(0x9E3779B97F4A7C15))
    return words


@njit(cache=True, nogil=True)
def _smallest(words, count):
    """Return the largest of the `count` smallest words, by Hoare's selection.

    np.partition finds it too, but takes six seconds to compile.
    """
    words, low, high = words.copy(), 0, words.size - 1
    while low < high:
        pivot, i, j = words[(low + high) // 2], low, high
        while i <= j:
            while words[i] < pivot:
                i += 1
            while words[j] > pivot:
                j -= 1
            if i <= j:
                words[i], words[j] = words[j], words[i]
                i, j = i + 1, j - 1
        low, high = (i if count > j + 1 else low), (j if count <= i else high)
    return words[count - 1]


@njit(cache=True, nogil=True)
def choose(source, chosen, most, seed, lo, hi):
    """Copy at most `most` ratings of each row from `source` to `chosen` (indptr, items, values)."""
    indptr, items, values = source
    new_indptr, new_items, new_values = chosen
    for i in range(lo, hi):
        start, stop = indptr[i], indptr[i + 1]
        at = new_indptr[i]
        last = np.uint64(0xFFFFFFFFFFFFFFFF)
        words = np.empty(0, dtype=np.uint64)
        if stop - start > most:
            words = priorities(items[start:stop], values[start:stop], seed)
            last = _smallest(words, most)
        for p in range(start, stop):
            if (words.size == 0 or words[p - start] <= last) and at < new_indptr[i + 1]:
                new_items[at] = items[p]
                new_values[at] = values[p]
                at += 1


@njit(cache=True, nogil=True)
def lengths_inside(source, counts, lengths, lo, hi):
    """Set how many ratings of each row are of items that count."""
    indptr, items, _ = source
    for i in range(lo, hi):
        inside = 0
        for p in range(indptr[i], indptr[i + 1]):
            inside += counts[items[p]]
        lengths[i] = inside


@njit(cache=True, nogil=True)
def keep_inside(source, counts, kept, lo, hi):
    """Copy the ratings of items that count from `source` to `kept` (indptr, items, values)."""
    indptr, items, values = source
    new_indptr, new_items, new_values = kept
    for i in range(lo, hi):
        at = new_indptr[i]
        for p in range(indptr[i], indptr[i + 1]):
            if counts[items[p]]:
                new_items[at] = items[p]
                new_values[at] = values[p]
                at += 1


@njit(cache=True, nogil=True)
def kept_lengths(indptr, kept):
    """Return how many ratings of each row are marked."""
    lengths = np.zeros(indptr.size - 1, dtype=np.int64)
    for i in range(lengths.size):
        for p in range(indptr[i], indptr[i + 1]):
            lengths[i] += kept[p]
    return lengths


@njit(cache=True, nogil=True)
def rows_hold(rows, limits, lo, hi):
    """Whether rows lo <= i < hi are sets of pairs: items that increase, values within the limits.

    `rows` are (indptr, items, values), `limits` the number of items, the lowest and the highest
    value, and the length of the longest row. Nothing is read beyond the arrays, whatever indptr is.
    """
    indptr, items, values = rows
    n_items, low, high, longest = limits
    for i in range(lo, hi):
        start, stop = indptr[i], indptr[i + 1]
        if not 0 <= start <= stop <= items.size or stop - start > longest:
            return False
        if stop > start and np.uint64(items[stop - 1]) >= np.uint64(n_items):
            return False
        wrong = False
        for p in range(start + 1, stop):
            wrong |= items[p] <= items[p - 1]
        for p in range(start, stop):
            wrong |= not low <= values[p] <= high
        if wrong:
            return False
    return True


@njit(cache=True, nogil=True)
def longest_row(indptr, lo, hi):
    """Return the largest number of ratings of the users lo <= i < hi."""
    longest = 0
    for i in range(lo, hi):
        longest = max(longest, indptr[i + 1] - indptr[i])
    return longest


@njit(cache=True, nogil=True)
def row_weight(length, most):
    """Return what sums over a row of this length are multiplied by: most/length, at most one.

    That is what a random choice of `most` ratings would give on average. In a fit rows are
    never longer than `most`.
    """
    return min(1.0, most / length) if length > 0 else 1.0


@njit(cache=True, nogil=True)
def _own_mean(rows, shrink, start, stop):
    """Return a user's mean of value - offset, shrunk as if `shrink` more ratings had been zero."""
    total = 0.0
    for p in range(start, stop):
        total += rows.values[p] - rows.offsets[rows.items[p]]
    return total / (stop - start + shrink)


@njit(cache=True, nogil=True)
def clipped(rows, p, mean):
    """Return rating p without its item's offset and the user's mean, clipped."""
    centred = rows.values[p] - rows.offsets[rows.items[p]] - mean
    return min(rows.clip, max(-rows.clip, centred))


@njit(cache=True, nogil=True)
def row_means_and_scales(rows, limits, lo, hi):
    """Set each user's own mean, and the scale that brings her targets to at most `norm`.

    A weighted row is divided by the root of its length first.
    """
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        if stop == start:
            continue
        mean = _own_mean(rows, limits.bias_shrinkage, start, stop) if limits.centre else 0.0
        scale = 1.0 / np.sqrt(stop - start) if limits.by_sqrt_count else 1.0
        rows.means[i], rows.scales[i] = mean, scale
        if limits.norm == np.inf:  # then no row is too long, and none is read for its length
            continue
        total = 0.0
        for p in range(start, stop):
            total += (scale * clipped(rows, p, mean)) ** 2
        total *= row_weight(stop - start, limits.max_ratings)
        rows.scales[i] = scale * (min(1.0, limits.norm / np.sqrt(total)) if total > 0 else 1.0)
