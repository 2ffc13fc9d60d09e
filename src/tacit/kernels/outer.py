"""Sums of outer products of sparse rows of whole numbers: the upper half of sum_i a_i a_i^T.

Rows wait in batches that stay in the processor's cache. A batch is added row by row of the matrix,
whichever users have a part in that row, so that it is fetched once a batch. There are two kinds.
Short rows are multiplied pair by pair. Long ones are filled with zeros, and each of their numbers
is multiplied with a tile of columns at once, with sums in registers.

*Both give the same integers.* Long rows are multiplied in double precision. If the squared norm of
a row is at most M, so is the size of each product, and a batch has at most 2^53 / M rows, so that
every sum is exact. It has 32 rows or more, or rows are not taken to be long: so M is at most 2^48,
and single precision holds a row's numbers, which have at most 24 bits.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.counting import without_counting
from tacit.kernels.tiles import COLUMNS, put_combination

BATCH = 1 << 14  # numbers of short rows that are added together
_MOST, _FEWEST = 256, 32  # long rows that are added together
_EXACT = 2**53


class Batches(NamedTuple):
    """Rows that wait to be added.

    Attributes:
        sizes: how many numbers of short rows wait, how many of long ones, and how many long rows.
        units: numbers of short rows, and room for one row more.
        at: their places in the matrix.
        ends: where the row of each ends.
        order: room to sort them by place.
        first: room to count by place.
        filled: long rows, filled with zeros: a tile of columns of all rows, then the next.
        owners: which long row a number is of.
        places: its place in the matrix.
        sorted_owners: the same owners by place.
        sorted_units: the numbers by place.
        sums: room for a tile's sums.
        limits: how many long rows are added together, and from how many numbers on a row is long.
    """

    sizes: NDArray[np.int64]
    units: NDArray[np.int64]
    at: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    order: NDArray[np.uint32]
    first: NDArray[np.int64]
    filled: NDArray[np.float32]
    owners: NDArray[np.uint32]
    places: NDArray[np.uint32]
    sorted_owners: NDArray[np.uint32]
    sorted_units: NDArray[np.float64]
    sums: NDArray[np.float64]
    limits: tuple[int, int]


@njit(cache=True, nogil=True)
def batches_for(longest, n_places, most_squared):
    """Return empty batches for rows of at most so many numbers, with squared norms up to M."""
    rows, long_from = min(_MOST, _EXACT // max(most_squared, 1)), n_places // 16 + 30
    if rows < _FEWEST or longest < long_from:
        rows, long_from = 0, longest + 1
    tiles, room, most = -(-n_places // COLUMNS), BATCH + 2 * longest, rows * min(longest, n_places)
    return Batches(
        np.zeros(3, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.uint32),
        np.empty(room, dtype=np.uint32),
        np.empty(room, dtype=np.uint32),
        np.empty(n_places + 1, dtype=np.int64),
        np.zeros((tiles * rows, COLUMNS), dtype=np.float32),
        np.empty(most, dtype=np.uint32),
        np.empty(most, dtype=np.uint32),
        np.empty(most, dtype=np.uint32),
        np.empty(most),
        np.empty(COLUMNS),
        (rows, long_from),
    )


@without_counting
def _row(batches, owner, place):
    """Return which row of `filled` has a number of a long row: tile by tile, then by owner."""
    return place // COLUMNS * batches.limits[0] + owner


@without_counting
def _count(places, size, first):
    """Write where the numbers of each place begin when they are sorted by place."""
    first[:] = 0
    for p in range(size):
        first[places[p] + 1] += 1
    for place in range(first.size - 1):
        first[place + 1] += first[place]


@without_counting
def _add_short(batches, total):
    """Add the short rows that wait."""
    size, units, at, ends = batches.sizes[0], batches.units, batches.at, batches.ends
    first, order = batches.first, batches.order
    _count(at, size, first)
    for p in range(size):
        order[first[at[p]]] = p
        first[at[p]] += 1
    for p in order[:size]:
        unit, row = units[p], total[at[p]]
        for q in range(p, ends[p]):
            row[at[q]] += unit * units[q]
    batches.sizes[0] = 0


@without_counting
def _add_long(batches, total):
    """Add the long rows that wait, and clear them."""
    size, first, places = batches.sizes[1], batches.first, batches.places
    owners, units, sums = batches.sorted_owners, batches.sorted_units, batches.sums
    _count(places, size, first)
    for p in range(size):
        place, owner = places[p], batches.owners[p]
        unit = batches.filled[_row(batches, owner, place), place % COLUMNS]
        owners[first[place]], units[first[place]] = owner, unit
        first[place] += 1
    for column in range(0, len(total), COLUMNS):
        stop, begin = min(column + COLUMNS, len(total)), 0
        row = column // COLUMNS * batches.limits[0]
        for place in range(stop):
            end = first[place]
            if begin < end:
                put_combination(sums, batches.filled, owners, units, begin, end, row)
                for k in range(max(column, place), stop):
                    total[place, k] += np.int64(sums[k - column])
            begin = end
    for p in range(size):
        row = _row(batches, batches.owners[p], places[p])
        batches.filled[row, places[p] % COLUMNS] = 0.0
    batches.sizes[1] = batches.sizes[2] = 0


@without_counting
def put_row(batches, items, places, total):
    """Let the row wait whose numbers stand after `sizes[0]` others, and add a batch that is full.

    `places` says where in the matrix an item is, or -1 if it is left out; places rise with items.
    """
    begin, units, at = batches.sizes[0], batches.units, batches.at
    end = begin
    for p in range(items.size):
        place = places[items[p]]
        if place >= 0:
            units[end] = units[begin + p]
            at[end] = place
            end += 1
    if end - begin >= batches.limits[1]:
        _put_long(batches, begin, end)
        if batches.sizes[2] == batches.limits[0]:
            _add_long(batches, total)
        return
    for p in range(begin, end):
        batches.ends[p] = end
    batches.sizes[0] = end
    if end >= BATCH:
        _add_short(batches, total)


@without_counting
def _put_long(batches, begin, end):
    """Copy the newest row to the long ones."""
    size, owner = batches.sizes[1], batches.sizes[2]
    for p in range(begin, end):
        place = batches.at[p]
        batches.filled[_row(batches, owner, place), place % COLUMNS] = batches.units[p]
        batches.owners[size] = owner
        batches.places[size] = place
        size += 1
    batches.sizes[1], batches.sizes[2] = size, owner + 1


@without_counting
def add_batches(batches, total):
    """Add all that waits."""
    _add_short(batches, total)
    _add_long(batches, total)
