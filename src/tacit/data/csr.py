"""From three long columns (user, item, rating) to rows: a radix sort in three passes.

1. *count*: how many ratings fall into each group of neighbouring users;
2. *partition*: each rating goes to its group, as a key of 32 bits (the user within the group, and
   the position of the item) and a value;
3. *settle*: the ratings of a group are sorted by item, then by user, where they are not in order
   yet; ratings of unwanted items (their value is NaN) are left out, and repeated items are merged.
   Values take the place of the group's, so that there is never a second copy of all of them.

Each time ratings go to as many places at once as a core's cache holds open: memory is read and
written in order. Input that is already sorted by user makes the second pass sequential: nothing
needs to be told in advance. Columns come as lists of *pieces*, arrays that line up between the
columns, so that a table read in chunks is never copied into one block. Threads share the pieces;
kernels hold no lock.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from tacit._compiling import listen
from tacit._parallel import chunks_of, map_chunks, parallel_map, spans_of

listen()

Array = NDArray[Any]
Integers = NDArray[np.int64]
Pair = tuple[Array, Array]
Triple = tuple[Array, Array, Array]
UNWANTED = np.uint32(0xFFFFFFFF)
"""Item position of a rating that is to be left out."""

_PER_GROUP = 1 << 16
_MOST_GROUPS = 1 << 8
"""A core's first cache holds two lines for each of them, one of keys and one of values."""
_DIGIT = 12
"""Bits to sort by in one pass; of a group, the second cache holds as many lines open."""
_KEY_BITS = 32
_ONE = np.uint64(1)


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
def _count(users: Array, low: int, shift: np.uint64, counts: Array) -> None:
    """Count the ratings of each group, in four rows, so that no sum waits for the one before."""
    whole = users.size // 4 * 4
    for k in range(0, whole, 4):
        for row in range(4):
            counts[row, np.uint64(users[k + row] - low) >> shift] += 1
    for k in range(whole, users.size):
        counts[0, np.uint64(users[k] - low) >> shift] += 1


@numba.njit(nogil=True, cache=True)
def _partition(
    piece: Triple,
    frame: tuple[int, int, np.uint64, np.uint64],
    positions: Array,
    bounds: tuple[np.float32, np.float32],
    target: Triple,
) -> None:
    """Write each rating of one piece to the next place of its group; runs of a group are quick."""
    users_low, items_low, shift, bits = frame
    places, keys, values = target
    member, item = (_ONE << shift) - _ONE, (_ONE << bits) - _ONE
    group, place = np.uint64(0), places[0]
    for k in range(piece[0].size):
        user = np.uint64(piece[0][k] - users_low)
        if user >> shift != group:
            places[group] = place
            group = user >> shift
            place = places[group]
        position = positions[np.uint64(piece[1][k] - items_low)]
        value = min(max(np.float32(piece[2][k]), bounds[0]), bounds[1])
        keys[place] = (user & member) << bits | (np.uint64(position) & item)
        values[place] = value if position != UNWANTED else np.float32(np.nan)
        place += _ONE
    places[group] = place


@numba.njit(nogil=True, cache=True)
def _orders(keys: Array, item: np.uint32) -> tuple[bool, bool]:
    """Whether keys are in order, by user and item, and whether their items are."""
    by_user = by_item = True
    for k in range(1, keys.size):
        by_user &= keys[k] >= keys[k - 1]
        by_item &= keys[k] & item >= keys[k - 1] & item
    return by_user, by_item


@numba.njit(nogil=True, cache=True)
def _tally(keys: Array, bits: np.uint64, counts: Array) -> None:
    """Count each user's ratings in a group; runs of a user are quick."""
    member, run = np.uint64(keys[0]) >> bits, 0
    for k in range(keys.size):
        if np.uint64(keys[k]) >> bits != member:
            counts[member] += run
            member, run = np.uint64(keys[k]) >> bits, 0
        run += 1
    counts[member] += run


@numba.njit(nogil=True, cache=True)
def _starts(counts: Array, places: Array) -> None:
    """Where each of some runs begins that follow each other; counts and places may be the same."""
    place = np.uint64(0)
    for k in range(counts.size):
        length = np.uint64(counts[k])
        places[k] = place
        place += length


@numba.njit(nogil=True, cache=True)
def _by_digit(
    source: Pair, target: Pair, digit: tuple[np.uint64, np.uint64], places: Array
) -> None:
    """Sort ratings by some bits of their keys, without changing the order of equal ones."""
    (keys, values), (shift, bits) = source, digit
    mask = (_ONE << bits) - _ONE
    places[: mask + _ONE] = 0
    for k in range(keys.size):
        places[(np.uint64(keys[k]) >> shift) & mask] += _ONE
    _starts(places[: mask + _ONE], places)
    for k in range(keys.size):
        slot = (np.uint64(keys[k]) >> shift) & mask
        place = places[slot]
        places[slot] = place + _ONE
        target[0][place] = keys[k]
        target[1][place] = values[k]


@numba.njit(nogil=True, cache=True)
def _by_user(source: Pair, bits: np.uint64, places: Array, rows: Pair) -> None:
    """Write each rating to the next place of its user, as item and value."""
    (keys, values), item = source, (_ONE << bits) - _ONE
    for k in range(keys.size):
        member = np.uint64(keys[k]) >> bits
        place = places[member]
        places[member] = place + _ONE
        rows[0][place] = np.uint64(keys[k]) & item
        rows[1][place] = values[k]


@numba.njit(nogil=True, cache=True)
def _sort(own: Triple, frame: tuple[np.uint64, np.uint64], counts: Array, room: Triple) -> None:
    """Sort the keys and values of a group by user and item; write items and count each user's."""
    (keys, items, values), (bits, digit) = own, frame
    item = np.uint32((_ONE << bits) - _ONE)
    by_user, by_item = _orders(keys, item)
    _tally(keys, bits, counts)
    if by_user:
        for k in range(keys.size):
            items[k] = keys[k] & item
        return
    here, there = (keys, values), (room[0][: keys.size], room[1][: keys.size])
    done, at_home = np.uint64(0), True
    while done < bits and not by_item:
        _by_digit(here if at_home else there, there if at_home else here, (done, digit), room[2])
        done, at_home = done + digit, not at_home
    _starts(counts, room[2])
    if not at_home:
        _by_user(there, bits, room[2], (items, values))
        return
    _by_user(here, bits, room[2], (items, there[1]))
    for k in range(values.size):
        values[k] = there[1][k]


@numba.njit(nogil=True, cache=True)
def _settled(items: Array, values: Array) -> bool:
    """Whether a user's items, which are in order, are wanted and distinct."""
    fine = True
    for k in range(items.size):
        fine &= not np.isnan(values[k])
    for k in range(1, items.size):
        fine &= items[k - 1] < items[k]
    return fine


@numba.njit(nogil=True, cache=True)
def _merge(items: Array, values: Array, mean: bool) -> int:
    """Leave unwanted ratings out and merge repeated ones, in place; return how many are left."""
    length, times, total = 0, 0, 0.0
    for k in range(items.size):
        if np.isnan(values[k]):
            continue
        if length == 0 or items[length - 1] != items[k]:
            items[length] = items[k]
            length, times, total = length + 1, 0, 0.0
        times, total = times + 1, total + values[k]
        values[length - 1] = total / times if mean else values[k]
    return length


@numba.njit(nogil=True, cache=True)
def _wanted(values: Array) -> int:
    return values.size - int(np.isnan(values).sum())


@numba.njit(nogil=True, cache=True)
def _settle(
    span: tuple[int, int],
    groups: tuple[Array, int, np.uint64, np.uint64],
    ratings: Triple,
    users: tuple[Array, Array, bool],
    room: Triple,
) -> int:
    """Make rows of the ratings of some groups; return how many repeat an item."""
    starts, shift, bits, digit = groups
    counts, lengths, mean = users
    repeated = 0
    for group in range(span[0], span[1]):
        if starts[group] == starts[group + 1]:
            continue
        own = slice(starts[group], starts[group + 1])
        keys, items, values = ratings[0][own], ratings[1][own], ratings[2][own]
        inside = counts[group << shift : (group + 1) << shift]
        _sort((keys, items, values), (bits, digit), inside, room)
        at = 0
        for member in range(inside.size):
            to = slice(at, at + inside[member])
            at, length = at + inside[member], inside[member]
            if not _settled(items[to], values[to]):
                wanted = _wanted(values[to])
                length = _merge(items[to], values[to], mean)
                repeated += wanted - length
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
            if row.all():
                return
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
    bits: int
    """How many bits of a key are the item's; those above are the user's."""
    sizes: tuple[int, int]
    """How many users and how many items there are."""
    starts: Integers
    """Where each group starts, and where the last one ends."""
    keys: NDArray[np.uint32]
    """Each rating's user, counted from the first of the group, and the position of its item."""
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
    bits = (scope.sizes[1] - 1).bit_length()
    shift = min(_shift(scope.sizes[0], ratings), _KEY_BITS - bits)
    in_fours = np.zeros((len(parts), 4, ((scope.sizes[0] - 1) >> shift) + 1), np.int64)

    def count(part: Sequence[Triple], rows: Integers) -> None:
        for users, _, _ in part:
            _count(users, scope.lows[0], np.uint64(shift), rows)

    parallel_map(count, parts, in_fours)
    counts = in_fours.sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(counts.sum(axis=0))])
    places = (starts[:-1] + np.cumsum(counts, axis=0) - counts).astype(np.uint64)
    keys, values = np.empty(ratings, np.uint32), np.empty(ratings, np.float32)
    numbers = (*scope.lows, np.uint64(shift), np.uint64(bits))

    def write(part: list[Triple], row: NDArray[np.uint64]) -> None:
        part.reverse()
        while part:
            _partition(part.pop(), numbers, scope.positions, scope.bounds, (row, keys, values))

    parallel_map(write, parts, places)
    return Grouped(shift, bits, scope.sizes, starts, keys, values)


def _shift(n_users: int, ratings: int) -> int:
    """Users per group, as a power of 2: few groups to write to, each small enough for a cache."""
    groups = min(max(ratings // _PER_GROUP, 1), _MOST_GROUPS)
    return (-(-n_users // groups) - 1).bit_length()


def settle(grouped: Grouped, mean: bool) -> Settled:
    """Sort each user's ratings by item; repeated items leave their mean or the last."""
    counts, lengths = (np.zeros(grouped.sizes[0], np.int64) for _ in range(2))
    starts, bits = grouped.starts, grouped.bits
    digit = -(-bits // -(-bits // _DIGIT))
    items = np.empty(starts[-1], np.uint16 if grouped.sizes[1] <= 1 << 16 else np.uint32)
    groups = (starts, grouped.shift, np.uint64(bits), np.uint64(digit))
    ratings, users = (grouped.keys, items, grouped.values), (counts, lengths, mean)

    def work(span: tuple[int, int]) -> int:
        longest = int(np.diff(starts[span[0] : span[1] + 1]).max())
        places = np.empty(1 << max(grouped.shift, digit), np.uint64)
        room = (np.empty(longest, np.uint32), np.empty(longest, np.float32), places)
        return int(_settle(span, groups, ratings, users, room))

    repeated = parallel_map(work, spans_of(starts))
    rows = gather(np.cumsum(counts) - counts, lengths, items, grouped.values)
    return Settled(rows, counts, sum(repeated))


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
