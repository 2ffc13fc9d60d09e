"""Sums of outer products of rows whose numbers are all the same: who rated what, with whom.

The outer product of such a row is one number, the square, at every pair of its places. Users with
as many ratings have the same number, and for each pair of places it is enough to count who has
both: users are bits of words, some words for each place, and 64 columns of a row of the matrix are
counted at once. Whether numbers are the same is looked at, user by user, and who has others adds
her row as in any other sum (kernels.outer): the integers are the same.
"""

import numpy as np
from numba import njit

from tacit.kernels.counting import without_counting
from tacit.kernels.outer import add_batches, batches_for, put_row
from tacit.kernels.quantise import clip_factor, quantise
from tacit.kernels.residuals import _residual, _scratch
from tacit.kernels.row_steps import item_table
from tacit.kernels.rows import longest_row
from tacit.kernels.tiles import COLUMNS, count_pairs

_USERS = 64  # bits of a word
_WORDS = 8  # of users that are counted together
_FEWEST = 32  # users with as many ratings, or counting is not worth it
_SPARSE = 20  # nor for rows of less than one in so many places
_MOST = 1 << 22  # words of all groups


@njit(cache=True, nogil=True)
def _groups_for(indptr, lo, hi, n_places):
    """Return which group users with so many ratings are in, -1 for none, and how many there are."""
    most = _MOST // (_WORDS * max(n_places, 1))
    longest = longest_row(indptr, lo, hi)
    users = np.zeros(longest + 1, dtype=np.int64)
    for i in range(lo, hi):
        users[indptr[i + 1] - indptr[i]] += 1
    groups, count = np.full(longest + 1, -1, dtype=np.int64), 0
    for length in range(longest + 1):
        if users[length] >= _FEWEST and _SPARSE * length >= n_places and count < most:
            groups[length] = count
            count += 1
    return groups, count


@without_counting
def _all_are(units, size, unit):
    """Return whether the first numbers are all this one."""
    same = True
    for p in range(size):
        same &= units[p] == unit
    return same


@without_counting
def _add_counted(words, group, unit, counts, total):
    """Add unit^2 at every pair of places of a group's users, and clear its words."""
    squared, start = unit * unit, group * _WORDS
    for column in range(0, len(total), COLUMNS):
        end = min(column + COLUMNS, len(total))
        for place in range(end):
            count_pairs(counts, words, start, start + _WORDS, place, column)
            for k in range(max(column, place), end):
                total[place, k] += squared * counts[k - column]
    for w in range(start, start + _WORDS):
        for k in range(words.shape[1]):
            words[w, k] = 0


@njit(cache=True, nogil=True)
def co_occurrences(rows, fitted, step, quanta, places, lo, hi, total):
    """Add what `covariance` adds; quicker where a row's residuals are all the same."""
    scratch = _scratch(rows, lo, hi)
    table = item_table(rows.offsets, step.direction, step.direction)
    batches = batches_for(scratch[3].size, len(total), quanta.most_squared)
    groups, count = _groups_for(rows.indptr, lo, hi, len(total))
    width = -(-len(total) // COLUMNS) * COLUMNS
    words, counts = np.zeros((count * _WORDS, width), np.int64), np.empty(COLUMNS, np.int64)
    waiting, shared = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    counted = groups, words, counts, waiting, shared
    _add_all(rows, table, fitted, step, quanta, places, lo, hi, scratch, batches, counted, total)


@without_counting
def _add_all(rows, table, fitted, step, quanta, places, lo, hi, scratch, batches, counted, total):
    """Add the users' outer products.

    `counted` are the group by length, the words of all groups, room, and for each group how many
    users wait and their number.
    """
    groups, words, counts, waiting, shared = counted
    for i in range(lo, hi):
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        _, squared = _residual(rows, table, fitted, i, step, scratch)
        factor = clip_factor(np.sqrt(squared), quanta.bound) / quanta.quantum
        units, group = batches.units[batches.sizes[0] :], groups[items.size]
        quantise(scratch[3][: items.size], factor, quanta.most_squared, units)
        if group >= 0 and waiting[group] == 0:
            shared[group] = units[0]
        if group < 0 or not _all_are(units, items.size, shared[group]):
            put_row(batches, items, places, total)
            continue
        word = group * _WORDS + waiting[group] // _USERS
        bit = np.int64(1) << np.int64(waiting[group] % _USERS)
        for p in range(items.size):
            if places[items[p]] >= 0:
                words[word, places[items[p]]] |= bit
        waiting[group] += 1
        if waiting[group] == _WORDS * _USERS:
            _add_counted(words, group, shared[group], counts, total)
            waiting[group] = 0
    for group in range(waiting.size):
        if waiting[group]:
            _add_counted(words, group, shared[group], counts, total)
    add_batches(batches, total)
