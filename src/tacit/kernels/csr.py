"""From three long columns (user, item, rating) to rows: a counting sort in three passes.

1. *count*: how many ratings fall into each group of neighbouring users;
2. *partition*: each rating goes to its group, as item position, value and user within the group;
3. *settle*: a group fits into a core's cache, and there its ratings are brought to their users;
   each user's are sorted by item through a bit set where they are not in order yet, those of unwanted items are left out and
   repeated items are merged. The result takes the place of the group.

Input that is already sorted by user makes the second pass sequential, and a user's ratings that
are already sorted by item are copied as they are: nothing needs to be told in advance.
Columns come as lists of *pieces*, arrays that line up between the columns, so that a table read
in chunks is never copied into one block. Threads share the pieces; kernels hold no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tacit.kernels.pieces import each, parts_of, spans_of, together

__all__ = [
    "UNWANTED",
    "Grouped",
    "Rows",
    "bad_values",
    "gather",
    "group",
    "present",
    "settle",
]

Array = NDArray[Any]
Integers = NDArray[np.int64]
Ratings = tuple[Array, Array, Array]
"""Users within a group, item positions, values."""
Scratch = tuple[Array, Array, Array, Array]
"""By item: sum and number of values, and whether there is any, as bits and as bits of words."""

UNWANTED = np.uint32(0xFFFFFFFF)
"""Item position of a rating that is to be left out."""

_PER_GROUP = 1 << 17
_MOST_GROUPS = 1 << 10
_WORD = np.uint64(6)
_BIT = np.uint64(63)
_ONE = np.uint64(1)
_DE_BRUIJN = 0x03F79D71B4CB0A89
_PLACES = np.empty(64, np.uint64)
_PLACES[[((_DE_BRUIJN << k) & 0xFFFFFFFFFFFFFFFF) >> 58 for k in range(64)]] = np.arange(64)


@numba.njit(nogil=True, cache=True)
def _lowest(word: np.uint64) -> np.uint64:
    """Position of the lowest set bit of a word that is not 0, by de Bruijn's sequence."""
    place: np.uint64 = _PLACES[((word & (~word + _ONE)) * np.uint64(_DE_BRUIJN)) >> np.uint64(58)]
    return place


@numba.njit(nogil=True, cache=True)
def _mark(items: Array, low: int, flags: Array) -> None:
    for k in range(items.size):
        flags[items[k] - low] = 1


@numba.njit(nogil=True, cache=True)
def _bad(values: Array, low: float, high: float) -> tuple[int, int]:
    """How many values are not a number, and how many numbers are out of range."""
    missing = 0
    outside = 0
    for k in range(values.size):
        missing += np.isnan(values[k])
        outside += values[k] < low or values[k] > high
    return missing, outside


@numba.njit(nogil=True, cache=True)
def _count(users: Array, low: int, shift: int, counts: Array) -> None:
    group, run = 0, 0
    for k in range(users.size):
        if (users[k] - low) >> shift != group:
            counts[group] += run
            group, run = (users[k] - low) >> shift, 0
        run += 1
    counts[group] += run


@numba.njit(nogil=True, cache=True)
def _partition(
    piece: tuple[Array, Array, Array],
    frame: tuple[int, int, int],
    positions: Array,
    bounds: tuple[np.float32, np.float32],
    target: tuple[Array, Array, Array, Array],
) -> None:
    """Write each rating of one piece to the next place of its group; NaN marks an unwanted one."""
    users_low, items_low, shift = frame
    places, members, items, values = target
    group, place = 0, places[0]
    for k in range(piece[0].size):
        user = piece[0][k] - users_low
        if user >> shift != group:
            places[group] = place
            group = user >> shift
            place = places[group]
        members[place] = user & ((1 << shift) - 1)
        position = positions[piece[1][k] - items_low]
        if position == UNWANTED:
            items[place], values[place] = 0, np.nan
        else:
            items[place] = position
            values[place] = min(max(np.float32(piece[2][k]), bounds[0]), bounds[1])
        place += 1
    places[group] = place


@numba.njit(nogil=True, cache=True)
def _tally(members: Array, counts: Array, first: int) -> bool:
    """Count each user's ratings in a group; say whether the users come in order."""
    member, run = members[0], 0
    in_order = True
    for k in range(members.size):
        if members[k] != member:
            counts[first + member] += run
            in_order = in_order and members[k] > member
            member, run = members[k], 0
        run += 1
    counts[first + member] += run
    return in_order


@numba.njit(nogil=True, cache=True)
def _spread(ratings: Ratings, counts: Array, room: tuple[Array, Array, Array]) -> None:
    """Bring a group's ratings to their users, without changing the order of a user's own."""
    members, items, values = ratings
    places, some_items, some_values = room
    place = 0
    for member in range(counts.size):
        places[member] = place
        place += counts[member]
    for k in range(members.size):
        place = places[members[k]]
        places[members[k]] = place + 1
        some_items[place] = items[k]
        some_values[place] = values[k]
    for k in range(members.size):
        items[k] = some_items[k]
        values[k] = some_values[k]


@numba.njit(nogil=True, cache=True)
def _settled(items: Array, values: Array, start: int, stop: int) -> bool:
    """Whether a user's items are wanted, distinct and in order."""
    for k in range(start, stop):
        if np.isnan(values[k]) or (k > start and items[k - 1] >= items[k]):
            return False
    return True


@numba.njit(nogil=True, cache=True)
def _merge(
    items: Array, values: Array, span: tuple[int, int], mean: bool, scratch: Scratch
) -> tuple[int, int]:
    """Sort and merge a user's ratings in place: how many are left, and how many repeat an item."""
    totals, times, bits, summary = scratch
    repeated = 0
    for k in range(span[0], span[1]):
        if np.isnan(values[k]):
            continue
        item = np.uint64(items[k])
        slot = item >> _WORD
        seen = (bits[slot] >> (item & _BIT)) & _ONE
        bits[slot] |= _ONE << (item & _BIT)
        summary[slot >> _WORD] |= _ONE << (slot & _BIT)
        repeated += seen
        add = mean and seen
        totals[item] = totals[item] + values[k] if add else values[k]
        times[item] = times[item] + 1 if add else 1
    return _emit(items, values, span[0], scratch) - span[0], repeated


@numba.njit(nogil=True, cache=True)
def _emit(items: Array, values: Array, place: int, scratch: Scratch) -> int:
    """Read the bits in order, write item and mean value for each, and clear them."""
    totals, times, bits, summary = scratch
    for top in range(summary.size):
        while summary[top] != 0:
            slot = np.uint64(top << 6) + _lowest(summary[top])
            word = bits[slot]
            while word != 0:
                item = (slot << _WORD) + _lowest(word)
                items[place] = item
                values[place] = totals[item] / times[item]
                place += 1
                word &= word - _ONE
            bits[slot] = 0
            summary[top] &= summary[top] - _ONE
    return place


@numba.njit(nogil=True, cache=True)
def _settle(
    span: tuple[int, int],
    groups: tuple[Array, int],
    ratings: Ratings,
    users: tuple[Array, Array, bool],
    space: tuple[tuple[Array, Array, Array], Scratch],
) -> int:
    """Sort and merge the ratings of some groups in place; return how many repeat an item."""
    (starts, shift), (members, items, values) = groups, ratings
    counts, lengths, mean = users
    repeated = 0
    for group in range(span[0], span[1]):
        start, end, first = starts[group], starts[group + 1], group << shift
        if start == end:
            continue
        last = min(first + (1 << shift), counts.size)
        own = members[start:end], items[start:end], values[start:end]
        if not _tally(own[0], counts, first):
            _spread(own, counts[first:last], space[0])
        for user in range(first, last):
            end = start + counts[user]
            if _settled(items, values, start, end):
                lengths[user] = counts[user]
            else:
                lengths[user], more = _merge(items, values, (start, end), mean, space[1])
                repeated += more
            start = end
    return repeated


@numba.njit(nogil=True, cache=True)
def _gather(
    span: tuple[int, int], starts: Array, indptr: Array, source: Array, target: Array
) -> None:
    """Copy row after row of an array to where the new rows start."""
    for row in range(span[0], span[1]):
        start = starts[row]
        for k in range(indptr[row], indptr[row + 1]):
            target[k] = source[start + k - indptr[row]]


def bad_values(pieces: Sequence[Array], low: float, high: float) -> tuple[int, int]:
    """Count what is not a number (NaN) and what lies outside of [low, high]."""
    counts = each(lambda piece: _bad(piece, low, high), pieces)
    return sum(missing for missing, _ in counts), sum(outside for _, outside in counts)


def present(pieces: Sequence[Array], low: int, size: int) -> NDArray[np.bool_]:
    """Which of the integers low, ..., low + size - 1 occur."""
    parts = parts_of(pieces)
    flags = np.zeros((len(parts), size), np.uint8)

    def mark(part: Sequence[Array], row: NDArray[np.uint8]) -> None:
        for piece in part:
            _mark(piece, low, row)

    together(mark, parts, flags)
    return np.asarray(flags.any(axis=0), dtype=np.bool_)


@dataclass(frozen=True)
class Grouped:
    """Ratings by group of users: users g 2^shift, ..., (g + 1) 2^shift - 1 make group g."""

    shift: int
    starts: Integers
    """Where each group starts, and where the last one ends."""
    members: NDArray[np.uint16]
    """Each rating's user, counted from the first of the group."""
    items: Array
    values: NDArray[np.float32]


def group(
    columns: tuple[Sequence[Array], Sequence[Array], Sequence[Array]],
    lows: tuple[int, int],
    sizes: tuple[int, int],
    positions: NDArray[np.uint32],
    bounds: tuple[np.float32, np.float32],
) -> Grouped:
    """Bring every rating to its group, in the order of the input.

    Args:
        columns: users, items and values, in pieces that line up.
        lows: the lowest user and the lowest item.
        sizes: how many users there are from the lowest one on, and how many item positions.
        positions: the position of each item from the lowest one on, or UNWANTED.
        bounds: values are brought within these.
    """
    parts = parts_of(list(zip(*columns, strict=True)))
    ratings = sum(piece.size for piece in columns[0])
    shift = _shift(sizes[0], ratings)
    places = np.zeros((len(parts), ((sizes[0] - 1) >> shift) + 1), np.int64)

    def count(part: Sequence[tuple[Array, Array, Array]], row: Integers) -> None:
        for users, _, _ in part:
            _count(users, lows[0], shift, row)

    together(count, parts, places)
    totals = places.sum(axis=0)
    starts = np.concatenate([[0], np.cumsum(totals)])
    places[:] = starts[:-1] + np.cumsum(places, axis=0) - places
    members, values = np.empty(ratings, np.uint16), np.empty(ratings, np.float32)
    items = np.empty(ratings, np.uint16 if sizes[1] <= 1 << 16 else np.uint32)

    def write(part: Sequence[tuple[Array, Array, Array]], row: Integers) -> None:
        for piece in part:
            _partition(piece, (*lows, shift), positions, bounds, (row, members, items, values))

    together(write, parts, places)
    return Grouped(shift, starts, members, items, values)


def _shift(n_users: int, ratings: int) -> int:
    """Users per group, as a power of 2: about as many ratings as a cache holds, 2^16 at most."""
    groups = min(max(ratings // _PER_GROUP, 1), _MOST_GROUPS)
    return min((-(-n_users // groups) - 1).bit_length(), 16)


@dataclass(frozen=True)
class Rows:
    """Ratings by user: user i has items[starts[i]:][:lengths[i]] in order, and their values."""

    counts: Integers
    """How many ratings each user came with."""
    lengths: Integers
    """How many are left, after unwanted items were left out and repeated ones merged."""
    items: Array
    values: NDArray[np.float32]
    repeated: int
    """How many ratings were merged into another one of the same user and item."""

    def packed(self, users: Integers) -> tuple[Integers, Array, NDArray[np.float32]]:
        """The rows of some users, ascending, as indptr, items and values without gaps."""
        starts = np.cumsum(self.counts) - self.counts
        lengths = self.lengths[users]
        if int(lengths.sum()) == self.items.size:
            return np.concatenate([[0], np.cumsum(lengths)]), self.items, self.values
        return gather(starts[users], lengths, self.items, self.values)


def settle(grouped: Grouped, n_users: int, n_items: int, mean: bool) -> Rows:
    """Sort each user's ratings by item, in place; repeated items leave their mean or the last."""
    counts, lengths = np.zeros(n_users, np.int64), np.zeros(n_users, np.int64)
    groups, users = (grouped.starts, grouped.shift), (counts, lengths, mean)
    ratings = (grouped.members, grouped.items, grouped.values)

    def work(span: tuple[int, int]) -> int:
        longest = int(np.diff(grouped.starts[span[0] : span[1] + 1]).max())
        room = (
            np.empty(1 << grouped.shift, np.int64),
            np.empty(longest, grouped.items.dtype),
            np.empty(longest, np.float32),
        )
        return int(_settle(span, groups, ratings, users, (room, _scratch(n_items))))

    repeated = together(work, spans_of(grouped.starts))
    return Rows(counts, lengths, grouped.items, grouped.values, sum(repeated))


def _scratch(n_items: int) -> Scratch:
    words = (n_items + 63) // 64
    bits, summary = np.zeros(words, np.uint64), np.zeros((words + 63) // 64, np.uint64)
    return np.zeros(n_items, np.float64), np.ones(n_items, np.int64), bits, summary


def gather(
    starts: Integers, lengths: Integers, items: Array, values: NDArray[np.float32]
) -> tuple[Integers, Array, NDArray[np.float32]]:
    """Rows of the given starts and lengths, copied next to each other."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    picked = (np.empty(int(indptr[-1]), items.dtype), np.empty(int(indptr[-1]), values.dtype))

    def copy(span: tuple[int, int]) -> None:
        _gather(span, starts, indptr, items, picked[0])
        _gather(span, starts, indptr, values, picked[1])

    together(copy, spans_of(indptr))
    return indptr, *picked
