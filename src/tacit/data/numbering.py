"""Number 64-bit keys: each distinct key gets a rank 0, 1, 2, ..."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numba
import numpy as np
from numpy.typing import NDArray

from tacit._parallel import chunks_of, parallel_map

Array = NDArray[Any]
Integers = NDArray[np.int64]
Piece = TypeVar("Piece")

_ONE = np.uint64(1)


@numba.njit(nogil=True, cache=True)
def _encode(
    keys: Array, table: tuple[Array, Array, Array, Array], size: int, at: int, codes: Array
) -> int:
    """Give each key the number of its first appearance, by an open-addressing table."""
    slots, numbers, distinct, firsts = table
    mask = np.uint64(slots.size - 1)
    for k in range(keys.size):
        key = keys[k]
        mixed = (key ^ (key >> np.uint64(32))) * np.uint64(0x9E3779B97F4A7C15)
        slot = (mixed ^ (mixed >> np.uint64(29))) & mask
        while numbers[slot] >= 0 and slots[slot] != key:
            slot = (slot + _ONE) & mask
        if numbers[slot] < 0:
            numbers[slot], slots[slot] = size, key
            distinct[size], firsts[size] = key, at + k
            size += 1
        codes[k] = numbers[slot]
    return size


class _Numbering:
    """A growing table from 64-bit keys to the order of their first appearance."""

    def __init__(self) -> None:
        self.size = 0
        self._table = _empty_table(1 << 10)

    @property
    def distinct(self) -> NDArray[np.uint64]:
        """The keys, by their numbers."""
        return self._table[2][: self.size]

    @property
    def firsts(self) -> Integers:
        """The row where each number first appears."""
        return self._table[3][: self.size]

    def encode(self, keys: NDArray[np.uint64], at: int) -> NDArray[np.int32]:
        """Number the keys of a piece that starts at row `at`."""
        if 2 * (self.size + keys.size) > self._table[0].size:
            self._grow(4 * (self.size + keys.size))
        codes = np.empty(keys.size, np.int32)
        self.size = int(_encode(keys, self._table, self.size, at, codes))
        return codes

    def _grow(self, slots: int) -> None:
        distinct, firsts = self.distinct, self.firsts
        self._table = _empty_table(1 << (slots - 1).bit_length())
        _encode(distinct, self._table, 0, 0, np.empty(self.size, np.int32))
        self.firsts[:] = firsts


def _empty_table(slots: int) -> tuple[Array, Array, Array, Array]:
    """Keys and numbers by slot (at most half of them in use), keys and first rows by number."""
    return (
        np.zeros(slots, np.uint64),
        np.full(slots, -1, np.int32),
        np.empty(slots // 2, np.uint64),
        np.empty(slots // 2, np.int64),
    )


def factorize(
    pieces: Sequence[Piece],
    starts: Sequence[int],
    keys_of: Callable[[Piece], NDArray[np.uint64]],
    ranks_of: Callable[[Integers], NDArray[np.int32]],
) -> list[NDArray[np.int32]]:
    """Replace each key by the rank of its value.

    Keys are numbered in the order of their first appearance; `ranks_of` is given the row of each
    first appearance and says which rank each number has.
    """

    def number(part: Sequence[tuple[Piece, int]]) -> tuple[_Numbering, list[NDArray[np.int32]]]:
        table = _Numbering()
        return table, [table.encode(keys_of(piece), start) for piece, start in part]

    numbered = parallel_map(number, chunks_of(list(zip(pieces, starts, strict=True))))
    whole = _Numbering()
    renumber = []
    for part, _ in numbered:
        before = whole.size
        renumber.append(whole.encode(part.distinct, 0))
        whole.firsts[before:] = part.firsts[whole.firsts[before:]]
    ranks = ranks_of(whole.firsts)
    new = [ranks[codes] for codes in renumber]
    ranked = parallel_map(
        lambda codes, to: [to[piece] for piece in codes], (codes for _, codes in numbered), new
    )
    return [piece for part in ranked for piece in part]
