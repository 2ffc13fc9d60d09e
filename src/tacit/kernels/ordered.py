"""Rows straight from ratings that come sorted by user: one pass as they arrive, one at the end."""

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from tacit.kernels.csr import UNWANTED, Rows, Scratch, average, collect, emit, new_scratch
from tacit.kernels.pieces import spans_of, together

__all__ = ["OrderedRows"]

Array = NDArray[Any]
Integers = NDArray[np.int64]


@numba.njit(nogil=True, cache=True)
def _append(
    piece: tuple[Array, Array, Array],
    state: tuple[int, int, int],
    limits: tuple[Any, Any, np.float32, np.float32],
    target: tuple[Array, Array, Array],
    rows: tuple[Array, Array],
) -> int:
    """Add ratings; return how many rows they begin, or -1 if they are not of the plain kind."""
    users, items, values = piece
    last, lowest, at = state
    low, high, stored_low, stored_high = limits
    all_items, all_values, flags = target
    ids, starts = rows
    begun = 0
    for k in range(users.size):
        user, item, value = users[k], items[k], values[k]
        if user < last or user < lowest or item < 0 or item >= flags.size:
            return -1
        if not (value >= low and value <= high):
            return -1
        if user != last or (begun == 0 and at == 0):
            ids[begun], starts[begun] = user, at + k
            begun += 1
            last = user
        flags[item] = 1
        all_items[at + k] = item
        all_values[at + k] = min(max(np.float32(value), stored_low), stored_high)
    return begun


@numba.njit(nogil=True, cache=True)
def _finish(
    span: tuple[int, int],
    ratings: tuple[Array, Array, Array],
    positions: Array,
    lengths: Array,
    rule: tuple[bool, Scratch],
) -> int:
    """Bring items to their positions and rows in order; return how many ratings repeat an item."""
    indptr, items, values = ratings
    mean, scratch = rule
    repeated = 0
    for row in range(span[0], span[1]):
        next_position, in_order = np.int64(0), True
        for k in range(indptr[row], indptr[row + 1]):
            position = positions[items[k]]
            if position == UNWANTED:
                values[k] = np.nan
            in_order = in_order and position >= next_position and position != UNWANTED
            items[k] = position
            next_position = np.int64(position) + 1
        if in_order:
            lengths[row] = indptr[row + 1] - indptr[row]
            continue
        own = slice(indptr[row], indptr[row + 1])
        more = collect(items[own], values[own], scratch)
        if more > 0 and mean:
            average(items[own], values[own], scratch)
        lengths[row] = emit(scratch, items[own], values[own])
        repeated += more
    return repeated


class OrderedRows:
    """Ratings that come sorted by user, with items that are small integers and values in range.

    `append` says so when ratings are not like that; then everything must be begun anew elsewhere.
    """

    def __init__(self, ratings: int, items: int, limits: tuple[Any, Any, Any, Any]) -> None:
        """Make room for so many ratings of items 0, ..., items - 1, with values within limits."""
        self._limits = limits
        self._items = np.empty(ratings, np.uint16 if items <= 1 << 16 else np.uint32)
        self._values = np.empty(ratings, np.float32)
        self._flags = np.zeros(items, np.uint8)
        self._ids: list[Integers] = []
        self._starts: list[Integers] = []
        self._last = np.iinfo(np.int64).min
        self._at = 0

    def append(self, users: Array, items: Array, values: Array, *, signed: bool = True) -> bool:
        """Add ratings in order; users that are not signed must not look negative."""
        if self._at + users.size > self._items.size:
            return False
        rows = (np.empty(users.size, np.int64), np.empty(users.size, np.int64))
        state = (self._last, np.iinfo(np.int64).min if signed else 0, self._at)
        target = (self._items, self._values, self._flags)
        begun = int(_append((users, items, values), state, self._limits, target, rows))
        if begun > 0:
            self._ids.append(rows[0][:begun].copy())
            self._starts.append(rows[1][:begun].copy())
            self._last = int(rows[0][begun - 1])
        self._at += users.size
        return begun >= 0

    @property
    def complete(self) -> bool:
        """Whether as many ratings came as were said to."""
        return self._at == self._items.size

    @property
    def users(self) -> Integers:
        """The users, ascending."""
        return np.concatenate(self._ids)

    @property
    def items(self) -> Integers:
        """The items that occur, ascending."""
        return np.flatnonzero(self._flags)

    def finish(self, positions: NDArray[np.uint32], n_items: int, mean: bool) -> Rows:
        """Sort and merge; the arrays are handed over."""
        indptr = np.concatenate([*self._starts, [self._at]])
        lengths = np.zeros(indptr.size - 1, np.int64)
        ratings = (indptr, self._items, self._values)
        repeated = together(
            lambda span: _finish(span, ratings, positions, lengths, (mean, new_scratch(n_items))),
            spans_of(indptr),
        )
        items = self._items if n_items > 1 << 16 else self._items.astype(np.uint16, copy=False)
        return Rows(np.diff(indptr), lengths, items, self._values, sum(repeated))
