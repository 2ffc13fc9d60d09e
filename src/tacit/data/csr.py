"""From three long columns (user, item, rating) to rows: a counting sort in three passes.

1. *count*: how many ratings fall into each group of neighbouring users;
2. *partition*: each rating goes to its group, as user within the group, item position and value;
3. *settle*: a group fits into a core's cache, and there its ratings are brought to their users;
   each user's are sorted by item through a bit set, where they are not in order yet, those of
   unwanted items (their value is NaN) are left out and repeated items are merged. The result
   takes the place of the group, so that there is never a second copy of all ratings.

Input that is already sorted by user makes the second pass sequential, and a user's ratings that
are already sorted by item stay as they are: nothing needs to be told in advance.
Columns come as lists of *pieces*, arrays that line up between the columns, so that a table read
in chunks is never copied into one block. Threads share the pieces; kernels hold no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tacit._compiling import listen
from tacit._parallel import chunks_of, map_chunks, parallel_map, spans_of

__all__ = [
    "UNWANTED",
    "CsrRows",
    "Grouped",
    "Scope",
    "Settled",
    "bad_values",
    "gather",
    "group",
    "present",
    "settle",
]

listen()

Array = NDArray[Any]
Integers = NDArray[np.int64]
Triple = tuple[Array, Array, Array]
_Scratch = tuple[Array, Array, Array, Array, Array]
"""By item: the last value, whether there is one (bits, and bits of words), sum and number."""

UNWANTED = np.uint32(0xFFFFFFFF)
"""Item position of a rating that is to be left out."""

_PER_GROUP = 1 << 18
_MOST_GROUPS = 1 << 9
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
    missing, outside = 0, 0
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
    piece: Triple,
    frame: tuple[int, int, np.uint64],
    positions: Array,
    bounds: tuple[np.float32, np.float32],
    target: tuple[Array, Array, Array, Array],
) -> None:
    """Write each rating of one piece to the next place of its group; runs of a group are quick."""
    users_low, items_low, shift = frame
    places, members, items, values = target
    member = (_ONE << shift) - _ONE
    group, place = np.uint64(0), places[0]
    for k in range(piece[0].size):
        user = np.uint64(piece[0][k] - users_low)
        if user >> shift != group:
            places[group] = place
            group = user >> shift
            place = places[group]
        position = positions[np.uint64(piece[1][k] - items_low)]
        value = min(max(np.float32(piece[2][k]), bounds[0]), bounds[1])
        members[place] = user & member
        items[place] = position
        values[place] = value if position != UNWANTED else np.float32(np.nan)
        place += _ONE
    places[group] = place


@numba.njit(nogil=True, cache=True)
def _tally(members: Array, counts: Array) -> bool:
    """Count each user's ratings in a group; say whether the users come in order."""
    member, run = members[0], 0
    in_order = True
    for k in range(members.size):
        if members[k] != member:
            counts[member] += run
            in_order = in_order and members[k] > member
            member, run = members[k], 0
        run += 1
    counts[member] += run
    return in_order


@numba.njit(nogil=True, cache=True)
def _spread(ratings: Triple, counts: Array, room: Triple) -> None:
    """Bring a group's ratings to their users, without changing the order of a user's own."""
    members, items, values = ratings
    places, some_items, some_values = room
    place = np.uint64(0)
    for member in range(counts.size):
        places[member] = place
        place += np.uint64(counts[member])
    for k in range(members.size):
        place = places[members[k]]
        places[members[k]] = place + _ONE
        some_items[place] = items[k]
        some_values[place] = values[k]
    for k in range(members.size):
        items[k] = some_items[k]
        values[k] = some_values[k]


@numba.njit(nogil=True, cache=True)
def _settled(items: Array, values: Array) -> bool:
    """Whether a user's items are wanted, distinct and in order."""
    for k in range(items.size):
        if np.isnan(values[k]) or (k > 0 and items[k - 1] >= items[k]):
            return False
    return True


@numba.njit(nogil=True, cache=True)
def _collect(items: Array, values: Array, scratch: _Scratch) -> int:
    """Set the bits of a user's items and note their last values; count repeated items."""
    last, bits, summary, _, _ = scratch
    repeated = 0
    for k in range(items.size):
        if np.isnan(values[k]):
            continue
        item = np.uint64(items[k])
        slot, bit = item >> _WORD, _ONE << (item & _BIT)
        repeated += (bits[slot] & bit) != 0
        bits[slot] |= bit
        summary[slot >> _WORD] |= _ONE << (slot & _BIT)
        last[item] = values[k]
    return repeated


@numba.njit(nogil=True, cache=True)
def _average(items: Array, values: Array, scratch: _Scratch) -> None:
    """Put the mean of each of a user's items in the place of its last value."""
    last, _, _, totals, times = scratch
    for k in range(items.size):
        if not np.isnan(values[k]):
            totals[items[k]], times[items[k]] = 0.0, 0
    for k in range(items.size):
        if not np.isnan(values[k]):
            totals[items[k]] += values[k]
            times[items[k]] += 1
            last[items[k]] = totals[items[k]] / times[items[k]]


@numba.njit(nogil=True, cache=True)
def _emit(scratch: _Scratch, items: Array, values: Array) -> int:
    """Read the bits in order, write item and value for each, clear them; return how many."""
    last, bits, summary, _, _ = scratch
    length = 0
    for top in range(summary.size):
        marked = summary[top]
        while marked != 0:
            slot = np.uint64(top << 6) + _lowest(marked)
            word = bits[slot]
            while word != 0:
                item = (slot << _WORD) + _lowest(word)
                items[length], values[length] = item, last[item]
                length += 1
                word &= word - _ONE
            bits[slot] = 0
            marked &= marked - _ONE
        summary[top] = 0
    return length


@numba.njit(nogil=True, cache=True)
def _settle(
    span: tuple[int, int],
    groups: tuple[Array, int],
    ratings: Triple,
    users: tuple[Array, Array, bool],
    rooms: tuple[Triple, _Scratch],
) -> int:
    """Sort and merge the ratings of some groups in place; return how many repeat an item."""
    (starts, shift), (room, scratch) = groups, rooms
    counts, lengths, mean = users
    repeated = 0
    for group in range(span[0], span[1]):
        if starts[group] == starts[group + 1]:
            continue
        own = slice(starts[group], starts[group + 1])
        members, items, values = ratings[0][own], ratings[1][own], ratings[2][own]
        inside = counts[group << shift : (group + 1) << shift]
        if not _tally(members, inside):
            _spread((members, items, values), inside, room)
        at = 0
        for member in range(inside.size):
            to = slice(at, at + inside[member])
            at, length = at + inside[member], inside[member]
            if not _settled(items[to], values[to]):
                more = _collect(items[to], values[to], scratch)
                if more > 0 and mean:
                    _average(items[to], values[to], scratch)
                length = _emit(scratch, items[to], values[to])
                repeated += more
            lengths[(group << shift) + member] = length
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
    counts = map_chunks(lambda piece: _bad(piece, low, high), pieces)
    return sum(missing for missing, _ in counts), sum(outside for _, outside in counts)


def present(pieces: Sequence[Array], low: int, size: int) -> NDArray[np.bool_]:
    """Which of the integers low, ..., low + size - 1 occur."""
    parts = chunks_of(pieces)
    flags = np.zeros((len(parts), size), np.uint8)

    def mark(part: Sequence[Array], row: NDArray[np.uint8]) -> None:
        for piece in part:
            _mark(piece, low, row)

    parallel_map(mark, parts, flags)
    return np.asarray(flags.any(axis=0), dtype=np.bool_)


class CsrRows(NamedTuple):
    """Rows next to each other: row i is items and values[indptr[i]:indptr[i + 1]]."""

    indptr: Integers
    items: Array
    values: NDArray[np.float32]


class Settled(NamedTuple):
    """The rows of all users, and what became of their ratings."""

    rows: CsrRows
    counts: Integers
    """How many ratings each user came with."""
    repeated: int
    """How many ratings were merged into another one of the same user and item."""


@dataclass(frozen=True)
class Grouped:
    """Ratings by group of users: users g 2^shift, ..., (g + 1) 2^shift - 1 make group g."""

    shift: int
    sizes: tuple[int, int]
    """How many users and how many items there are."""
    starts: Integers
    """Where each group starts, and where the last one ends."""
    members: NDArray[np.uint16]
    """Each rating's user, counted from the first of the group."""
    items: Array
    values: NDArray[np.float32]


@dataclass(frozen=True)
class Scope:
    """What numbers and values may occur."""

    lows: tuple[int, int]
    """The lowest user and the lowest item."""
    sizes: tuple[int, int]
    """How many users there are from the lowest one on, and how many item positions."""
    positions: NDArray[np.uint32]
    """The position of each item from the lowest one on, or UNWANTED."""
    bounds: tuple[np.float32, np.float32]
    """Values are brought within these."""


def group(columns: tuple[list[Array], list[Array], list[Array]], scope: Scope) -> Grouped:
    """Bring every rating to its group, in the order of the input.

    The columns are users, items and values, in pieces that line up. The lists are emptied, and
    each piece is let go of as soon as it is taken over.
    """
    ratings = sum(piece.size for piece in columns[0])
    parts = [list(part) for part in chunks_of(list(zip(*columns, strict=True)))]
    for column in columns:
        column.clear()
    shift = _shift(scope.sizes[0], ratings)
    counts = np.zeros((len(parts), ((scope.sizes[0] - 1) >> shift) + 1), np.int64)

    def count(part: Sequence[Triple], row: Integers) -> None:
        for users, _, _ in part:
            _count(users, scope.lows[0], shift, row)

    parallel_map(count, parts, counts)
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = (starts[:-1] + np.cumsum(counts, axis=0) - counts).astype(np.uint64)
    members, values = np.empty(ratings, np.uint16), np.empty(ratings, np.float32)
    items = np.empty(ratings, np.uint16 if scope.sizes[1] <= 1 << 16 else np.uint32)
    numbers = (*scope.lows, np.uint64(shift))

    def write(part: list[Triple], row: NDArray[np.uint64]) -> None:
        target = (row, members, items, values)
        part.reverse()
        while part:
            _partition(part.pop(), numbers, scope.positions, scope.bounds, target)

    parallel_map(write, parts, places)
    return Grouped(shift, scope.sizes, starts, members, items, values)


def _shift(n_users: int, ratings: int) -> int:
    """Users per group, as a power of 2: few groups to write to, each small enough for a cache."""
    groups = min(max(ratings // _PER_GROUP, 1), _MOST_GROUPS)
    return min((-(-n_users // groups) - 1).bit_length(), 16)


def settle(grouped: Grouped, mean: bool) -> Settled:
    """Sort each user's ratings by item, in place; repeated items leave their mean or the last."""
    counts, lengths = (np.zeros(grouped.sizes[0], np.int64) for _ in range(2))
    groups, users = (grouped.starts, grouped.shift), (counts, lengths, mean)
    ratings = (grouped.members, grouped.items, grouped.values)

    def work(span: tuple[int, int]) -> int:
        longest = int(np.diff(grouped.starts[span[0] : span[1] + 1]).max())
        places = np.empty(1 << grouped.shift, np.uint64)
        room = (places, np.empty(longest, grouped.items.dtype), np.empty(longest, np.float32))
        return int(_settle(span, groups, ratings, users, (room, _new_scratch(grouped.sizes[1]))))

    repeated = parallel_map(work, spans_of(grouped.starts))
    starts = np.cumsum(counts) - counts
    rows = gather(starts, lengths, grouped.items, grouped.values)
    return Settled(rows, counts, sum(repeated))


def _new_scratch(n_items: int) -> _Scratch:
    """Scratch with nothing in it, as each user leaves it."""
    words = (n_items + 63) // 64
    bits, summary = np.zeros(words, np.uint64), np.zeros((words + 63) // 64, np.uint64)
    totals, times = np.zeros(n_items, np.float64), np.zeros(n_items, np.int64)
    return np.zeros(n_items, np.float32), bits, summary, totals, times


def gather(
    starts: Integers, lengths: Integers, items: Array, values: NDArray[np.float32]
) -> CsrRows:
    """Rows of the given starts and lengths, next to each other; copied if they are not yet."""
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    if indptr[-1] == items.size and np.array_equal(starts, indptr[:-1]):
        return CsrRows(indptr, items, values)
    picked = (np.empty(int(indptr[-1]), items.dtype), np.empty(int(indptr[-1]), values.dtype))

    def copy(span: tuple[int, int]) -> None:
        _gather(span, starts, indptr, items, picked[0])
        _gather(span, starts, indptr, values, picked[1])

    parallel_map(copy, spans_of(indptr))
    return CsrRows(indptr, *picked)
