"""Ids of users and items: any integers or texts are mapped to consecutive integers."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count, pairwise
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.errors import DataError

_EXACT_FLOAT = 2.0**53
_LARGEST = 2**63 - 1
_PIECE = 1 << 17
"""Rows per piece: few enough for the cache, enough to be worth a call."""


@dataclass(frozen=True)
class Numbered:
    """A column of ids as integers low, ..., low + size - 1 in the order of the ids, in pieces."""

    pieces: list[NDArray[Any]]
    low: int
    size: int
    distinct: pl.Series | None = None
    """The id of each integer; None where the integers are the ids."""

    def ids(self, numbers: NDArray[np.int64]) -> pl.Series:
        """The ids of some integers, counted from `low`."""
        if self.distinct is None:
            return pl.Series("id", numbers + self.low, dtype=pl.Int64)
        return unify_ids(self.distinct.gather(numbers)).alias("id")


def clean_ids(column: pl.Series) -> pl.Series:
    """Ids as integers or text: whole floats become integers; nulls and other types are errors."""
    missing = column.null_count()
    if missing:
        raise DataError(
            f"column {column.name!r}: {rows_text(missing)} without an id; leave them out"
        )
    if column.dtype.is_float():
        return _whole(column)
    if column.dtype in (pl.Categorical, pl.Enum) or str(column.dtype) in ("Int128", "UInt128"):
        column = column.cast(pl.String)
    if column.dtype == pl.UInt64 and _largest(column) <= _LARGEST:
        return column.cast(pl.Int64)
    if column.dtype == pl.Null:
        return column.cast(pl.Int64)
    if column.dtype == pl.String:
        blank = int((column == "").sum())
        if blank:
            raise DataError(
                f"column {column.name!r}: {rows_text(blank)} without an id; leave them out"
            )
    elif not column.dtype.is_integer():
        raise DataError(
            f"column {column.name!r}: {rows_text(len(column))} of type {column.dtype}; "
            "ids are integers or text"
        )
    return column


def join_ids(columns: Sequence[pl.Series]) -> pl.Series:
    """Clean ids of several tables as one column: text as soon as one of them holds text."""
    if len({column.dtype for column in columns}) == 1:
        return pl.concat(columns, rechunk=False)
    texts = any(column.dtype == pl.String for column in columns)
    large = any(column.dtype == pl.UInt64 for column in columns)
    if large and any(_smallest(column) < 0 for column in columns if column.dtype != pl.String):
        texts = True
    kind = pl.String if texts else pl.UInt64 if large else pl.Int64
    return pl.concat([column.cast(kind) for column in columns], rechunk=False)


def unify_ids(ids: pl.Series) -> pl.Series:
    """Clean ids as text, Int64, or UInt64 where they need it."""
    return ids if ids.dtype in (pl.String, pl.UInt64) else ids.cast(pl.Int64)


def rows_of(wanted: pl.Series, known: pl.Series) -> NDArray[np.int64]:
    """The place of each wanted id among those that are known, -1 where it is not among them.

    >>> rows_of(pl.Series(["7", "8"]), pl.Series([6, 7]))
    array([ 1, -1])
    """
    rows, asked = pl.DataFrame({"id": known}).with_row_index("row"), pl.DataFrame({"id": wanted})
    if known.dtype != wanted.dtype:
        rows, asked = rows.cast({"id": pl.String}), asked.cast({"id": pl.String})
    found = asked.join(rows, on="id", how="left", maintain_order="left")["row"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy()


def rows_text(count: int) -> str:
    """A count of rows for a message.

    >>> rows_text(1), rows_text(2)
    ('1 row', '2 rows')
    """
    return f"{count} row{'' if count == 1 else 's'}"


def _whole(column: pl.Series) -> pl.Series:
    """Floats that are whole numbers, exactly, as integers."""
    # 2^53 itself may be what is left of 2^53 + 1, in a list of integers and floats.
    whole = (column == column.floor()) & (column.abs() < _EXACT_FLOAT)
    wrong = len(column) - int((whole & column.is_finite()).sum())
    if wrong:
        raise DataError(
            f"column {column.name!r}: {rows_text(wrong)} with a float that is no whole number; "
            "ids are integers or text"
        )
    return column.cast(pl.Int64)


def _largest(column: pl.Series) -> int:
    return int(column.max() or 0)  # type: ignore[arg-type]


def _smallest(column: pl.Series) -> int:
    return int(column.min() or 0)  # type: ignore[arg-type]


def cuts_of(columns: Iterable[pl.Series]) -> NDArray[np.int64]:
    """Where to cut columns so that pieces line up, lie within chunks and are not too long."""
    ends = [np.cumsum(column.chunk_lengths()) for column in columns]
    length = int(ends[0][-1])
    return np.unique(np.concatenate([*ends, np.arange(0, length, _PIECE), [length]]))


def pieces_of(column: pl.Series, cuts: NDArray[np.int64]) -> list[NDArray[Any]]:
    """The column's memory, cut into arrays; nothing is copied."""
    pieces: list[NDArray[Any]] = []
    start = 0
    for chunk in column.get_chunks():
        array, stop = chunk.to_numpy(), start + len(chunk)
        inner = cuts[np.searchsorted(cuts, start) : np.searchsorted(cuts, stop, "right")] - start
        pieces += [array[a:b] for a, b in pairwise(inner.tolist())]
        start = stop
    return pieces


def numbered(column: pl.Series, cuts: NDArray[np.int64], size: int | None = None) -> Numbered:
    """Number clean ids: by themselves where they lie close together, else by their rank.

    With a size they are positions already, from 0 on.
    """
    if column.dtype == pl.String:
        return _ranked_texts(column, cuts)
    if column.dtype == pl.UInt64:
        return _ranked_integers(column, cuts)
    low, high = _smallest(column), _largest(column)
    if size is not None and (low < 0 or high >= size):
        raise DataError(f"{column.name}: positions outside of the matrix")
    if size is None and high - low >= max(len(column), 1 << 16):
        return _ranked_integers(column, cuts)
    # Loops are made for int32 and int64; the bits of UInt32 are taken as they are.
    narrow = high < 1 << 31 and column.dtype != pl.Int64
    if column.dtype != pl.UInt32 or not narrow:
        column = column.cast(pl.Int32 if narrow else pl.Int64)
    pieces = [piece.view(np.int32) if narrow else piece for piece in pieces_of(column, cuts)]
    return Numbered(pieces, 0, size) if size is not None else Numbered(pieces, low, high - low + 1)


def _ranked_integers(column: pl.Series, cuts: NDArray[np.int64]) -> Numbered:
    """Integers far apart, by their rank."""
    from tacit.data.numbering import factorize

    column = unify_ids(column)
    pieces = [piece.view(np.uint64) for piece in pieces_of(column, cuts)]
    ranking = _Ranking(column)
    ranks = factorize(pieces, cuts.tolist()[:-1], lambda piece: piece, ranking)
    return Numbered([*ranks], 0, len(ranking.distinct), ranking.distinct)


def _ranked_texts(column: pl.Series, cuts: NDArray[np.int64]) -> Numbered:
    """Texts by their rank, told apart by a hash; should two share it, by one of another seed."""
    from tacit._parallel import map_chunks
    from tacit.data.numbering import factorize

    starts = cuts.tolist()[:-1]
    pieces = [column.slice(start, stop - start) for start, stop in pairwise(cuts.tolist())]
    for seed in count():
        ranking = _Ranking(column)
        ranks = factorize(pieces, starts, _Hashing(seed), ranking)
        if all(map_chunks(ranking.fits, list(zip(pieces, ranks, strict=True)))):
            break
    return Numbered([*ranks], 0, len(ranking.distinct), ranking.distinct)


class _Ranking:
    """Ranks distinct ids, given the rows where they first appear."""

    def __init__(self, column: pl.Series) -> None:
        self._column = column
        self.distinct = column.clear()

    def __call__(self, rows: NDArray[np.int64]) -> NDArray[np.int32]:
        found = self._column.gather(rows)
        order = found.arg_sort().to_numpy()
        self.distinct = found.gather(order)
        ranks = np.empty(order.size, np.int32)
        ranks[order] = np.arange(order.size)
        return ranks

    def fits(self, piece: tuple[pl.Series, NDArray[np.int32]]) -> bool:
        """Whether each id of a piece is the one that its rank stands for."""
        ids, ranks = piece
        return bool((self.distinct.gather(ranks) == ids).all())


@dataclass(frozen=True)
class _Hashing:
    """Hashes the texts of a piece."""

    seed: int

    def __call__(self, texts: pl.Series) -> NDArray[np.uint64]:
        return texts.hash(self.seed).to_numpy()
