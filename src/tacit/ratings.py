"""Ratings: everyone's ratings in memory, by user, and the checks that they pass on the way in."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.catalogue import Catalogue
from tacit.datasets import rating_range_of
from tacit.errors import ConfigError, DataError, PrivacyError
from tacit.ids import Numbered, clean_ids, cuts_of, join_ids, numbered, pieces_of, rows_text
from tacit.tables import Columns, Table, column_of, read_files, read_frame

if TYPE_CHECKING:
    from tacit.kernels.csr import Rows

__all__ = ["Columns", "Duplicates", "RatingRange", "Ratings"]

Duplicates = Literal["error", "last", "mean"]
"""What to do with a user's second rating of an item."""

RatingRange = str | Sequence[float]
"""The lowest and the highest rating that are possible, or the name of a dataset."""

_GUESS = Columns()
_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Who rated what and how, in rows by user; made by one of the `from_...` methods.

    Row i belongs to user `user_ids[i]` and holds `items[indptr[i]:indptr[i + 1]]`, positions in
    the catalogue in increasing order, with `values` beside them. Users are sorted by id, so that
    the order of the input does not matter.

    `rating_range` is public and given: it is never taken from the ratings. With a public
    `catalogue`, ratings of other items are left out, and a user who has no other ones keeps an
    empty row, so that the number of users does not depend on the catalogue. Without one, the
    catalogue is the sorted list of all rated items, which is not public.

    Nothing of anyone's ratings shows in `repr` or in an error, and pickling is refused. The arrays
    themselves are everything there is to protect: what is computed from them must not get out
    except through a release.

    >>> ratings = Ratings.from_arrays(
    ...     ["ann", "bob", "bob"], ["tea", "tea", "milk"], [4, 2, 5], rating_range=(1, 5)
    ... )
    >>> ratings
    Ratings(rating_range=(1, 5))
    >>> ratings.n_users, ratings.catalogue.ids.to_list()
    (2, ['milk', 'tea'])
    """

    rating_range: tuple[float, float]
    catalogue: Catalogue
    user_ids: pl.Series
    indptr: NDArray[np.int64]
    items: NDArray[Any]
    values: NDArray[np.float32]

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.indptr, self.items, self.values):
            array.flags.writeable = False

    @classmethod
    def from_file(
        cls,
        source: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        rating_range: RatingRange,
        columns: Columns = _GUESS,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
    ) -> "Ratings":
        """Read CSV, TSV, `::`-separated or Parquet files.

        Args:
            source: a path, a pattern such as `ratings-*.parquet`, or a list of them.
            rating_range: (lowest, highest) rating that is possible, or the name of a dataset.
            columns: which columns to read; those not given are guessed from the header, or are
                the first three where there is none.
            duplicates: for a user's second rating of an item: "error", or keep the "last" (in
                the order of lines and files), or the "mean".
            catalogue: the public list of items; ratings of other items are left out.
        """
        rules = _Rules.checked(rating_range, duplicates, catalogue)
        return _assembled(_joined(read_files(source, columns)), rules)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        rating_range: RatingRange,
        columns: Columns = _GUESS,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
    ) -> "Ratings":
        """Take a polars DataFrame or LazyFrame or a pandas DataFrame; see `from_file`."""
        rules = _Rules.checked(rating_range, duplicates, catalogue)
        return _assembled(_joined([read_frame(frame, columns)]), rules)

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        values: Any,
        *,
        rating_range: RatingRange,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
    ) -> "Ratings":
        """Take three arrays, lists or series of the same length; see `from_file`."""
        rules = _Rules.checked(rating_range, duplicates, catalogue)
        given = {"user": ("users", users), "item": ("items", items), "rating": ("values", values)}
        table = {role: column_of(name, array) for role, (name, array) in given.items()}
        if len({len(column) for column in table.values()}) > 1:
            raise DataError("users, items and values: different lengths; expected the same")
        return _assembled(_joined([table]), rules)

    @classmethod
    def from_sparse(
        cls,
        matrix: Any,
        *,
        rating_range: RatingRange,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
    ) -> "Ratings":
        """Take a scipy sparse matrix of users by items; stored zeros are ratings.

        Every row is a user, also an empty one, and its number is her id. Every column is an item:
        its number is its id, or it is the item at that position of the catalogue.
        """
        rules = _Rules.checked(rating_range, duplicates, catalogue)
        shape: tuple[int, ...] = getattr(matrix, "shape", ())
        if not hasattr(matrix, "tocoo") or len(shape) != 2:
            raise ConfigError(f"matrix is a {type(matrix).__name__}; give a scipy sparse matrix")
        if catalogue is not None and shape[1] != len(catalogue):
            raise DataError(f"matrix: {shape[1]} columns for a catalogue of {len(catalogue)} items")
        entries = matrix.tocoo(copy=False)
        table = {
            "user": column_of("rows", entries.row),
            "item": column_of("columns", entries.col),
            "rating": column_of("entries", entries.data),
        }
        return _assembled(_joined([table]), rules, shape)

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return self.indptr.size - 1

    @property
    def n_items(self) -> int:
        """How many items the catalogue has."""
        return len(self.catalogue)

    def __len__(self) -> int:
        """How many users there are."""
        return self.n_users

    def __repr__(self) -> str:
        """Show the rating range and nothing that comes from anyone's ratings."""
        return f"Ratings(rating_range=({self.rating_range[0]:g}, {self.rating_range[1]:g}))"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a pickled object is a way out for everyone's ratings."""
        raise PrivacyError("Ratings cannot be pickled; read the ratings again where they are used")

    def take_rows(self, rows: NDArray[Any] | Sequence[int]) -> "Ratings":
        """The ratings of some users, given by distinct row numbers, in that order."""
        from tacit.kernels.csr import gather

        chosen = _row_numbers(rows, self.n_users)
        lengths = np.diff(self.indptr)[chosen]
        indptr, items, values = gather(self.indptr[chosen], lengths, self.items, self.values)
        user_ids = self.user_ids.gather(chosen)
        return Ratings(self.rating_range, self.catalogue, user_ids, indptr, items, values)

    def digest(self) -> str:
        """A SHA-256 of all that is here, to know the same ratings again; not to be published."""
        digest = hashlib.sha256(repr(self.rating_range).encode())
        for ids in (self.catalogue.ids, self.user_ids):
            digest.update(f"{ids.dtype} {len(ids)};".encode())
            _digest_ids(digest, ids)
        for array in (self.indptr, self.items, self.values):
            digest.update(f"{array.dtype} {array.size};".encode())
            digest.update(np.ascontiguousarray(array).view(np.uint8).data)
        return digest.hexdigest()


@dataclass(frozen=True)
class _Rules:
    """What the caller has laid down before any rating is looked at."""

    rating_range: tuple[float, float]
    duplicates: Duplicates
    catalogue: Catalogue | None

    @classmethod
    def checked(
        cls, rating_range: RatingRange, duplicates: str, catalogue: Catalogue | None
    ) -> "_Rules":
        if duplicates not in get_args(Duplicates):
            raise ConfigError(f"duplicates={duplicates!r}; give 'error', 'last' or 'mean'")
        if not isinstance(catalogue, Catalogue | None):
            raise ConfigError(f"catalogue is a {type(catalogue).__name__}; give a tacit.Catalogue")
        return cls(_checked_range(rating_range), duplicates, catalogue)  # type: ignore[arg-type]


def _checked_range(rating_range: RatingRange) -> tuple[float, float]:
    """The rating range as two floats in order, with room for float32 between them."""
    if isinstance(rating_range, str):
        return rating_range_of(rating_range)
    try:
        low, high = (float(bound) for bound in rating_range)
    except (TypeError, ValueError):
        low = high = math.nan
    if not (-math.inf < low < high < math.inf) or max(-low, high) > _LARGEST:
        raise ConfigError(
            f"rating_range={rating_range!r}; give (lowest, highest) with lowest < highest, both "
            "finite, or the name of a dataset"
        )
    stored = _stored_range(low, high)
    if not stored[0] < stored[1]:
        raise ConfigError(f"rating_range={rating_range!r} is too narrow for 32-bit floats")
    return low, high


def _stored_range(low: float, high: float) -> tuple[np.float32, np.float32]:
    """The lowest and the highest float32 within the rating range."""
    lowest, highest = np.float32(low), np.float32(high)
    if float(lowest) < low:
        lowest = np.nextafter(lowest, np.float32(np.inf))
    if float(highest) > high:
        highest = np.nextafter(highest, np.float32(-np.inf))
    return lowest, highest


def _joined(tables: list[Table]) -> Table:
    """The tables of several files as one; each column is let go of as soon as it is taken over."""
    if not sum(len(table["user"]) for table in tables):
        raise DataError("there are no ratings: 0 rows")
    users = join_ids([clean_ids(table.pop("user")) for table in tables])
    items = join_ids([clean_ids(table.pop("item")) for table in tables])
    ratings = [_numbers(table.pop("rating")) for table in tables]
    if len({column.dtype for column in ratings}) > 1:
        ratings = [column.cast(pl.Float64) for column in ratings]
    return {"user": users, "item": items, "rating": pl.concat(ratings, rechunk=False)}


def _numbers(column: pl.Series) -> pl.Series:
    """Ratings as Float32 or Float64; anything that is no number is an error with its count."""
    where = f"column {column.name!r}"
    missing = column.null_count()
    if column.dtype == pl.String:
        parsed = column.cast(pl.Float64, strict=False)
        wrong = parsed.null_count() - missing
        if wrong:
            raise DataError(f"{where}: {rows_text(wrong)} with a rating that is no number")
        column = parsed
    if missing:
        raise DataError(f"{where}: {rows_text(missing)} without a rating")
    if not column.dtype.is_numeric():
        raise DataError(
            f"{where}: {rows_text(len(column))} of type {column.dtype}; ratings are numbers"
        )
    if column.dtype in (pl.Float32, pl.Float64):
        return column
    short = column.dtype in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
    return column.cast(pl.Float32 if short else pl.Float64)


def _assembled(table: Table, rules: _Rules, shape: Sequence[int] | None = None) -> Ratings:
    """Make rows of a table of clean columns; it is emptied on the way to save memory.

    A `shape` says that ids are positions, and how many users and items there are.
    """
    from tacit.kernels import csr

    names = {role: column.name for role, column in table.items()}
    n_users, n_items = (None, None) if shape is None else shape
    cuts = cuts_of(table.values())
    values = pieces_of(table.pop("rating"), cuts)
    _check_values(values, names["rating"], rules.rating_range)
    users = numbered(table.pop("user"), cuts, n_users)
    items = numbered(table.pop("item"), cuts, n_items)
    catalogue, positions = _placed(items, rules.catalogue, n_items)
    _refuse_fewer_than_two(names["item"], "item", len(catalogue))
    scope = csr.Scope(
        lows=(users.low, items.low),
        sizes=(users.size, len(catalogue)),
        positions=positions,
        bounds=_stored_range(*rules.rating_range),
    )
    columns = (users.pieces, items.pieces, values)
    grouped = csr.group(columns, scope)
    for pieces in columns:
        pieces.clear()
    rows = csr.settle(grouped, rules.duplicates == "mean")
    _check_rows(rows, names, rules.duplicates)
    known = np.flatnonzero(rows.counts) if n_users is None else np.arange(n_users)
    _refuse_fewer_than_two(names["user"], "user", known.size)
    user_ids = users.ids(known).alias("user")
    return Ratings(rules.rating_range, catalogue, user_ids, *rows.packed(known))


def _placed(
    items: Numbered, catalogue: Catalogue | None, n_items: int | None
) -> tuple[Catalogue, NDArray[np.uint32]]:
    """The catalogue, and the position in it of each number that stands for an item."""
    from tacit.kernels.csr import UNWANTED, present

    positions = np.full(items.size, UNWANTED, dtype=np.uint32)
    if n_items is not None:
        positions[:] = np.arange(n_items)
        if catalogue is None:
            catalogue = Catalogue(items.ids(np.arange(n_items)), public=False)
        return catalogue, positions
    occur = np.flatnonzero(present(items.pieces, items.low, items.size))
    if catalogue is None:
        positions[occur] = np.arange(occur.size)
        return Catalogue(items.ids(occur), public=False), positions
    found = catalogue.positions(items.ids(occur))
    positions[occur[found >= 0]] = found[found >= 0]
    return catalogue, positions


def _check_rows(rows: "Rows", names: dict[str, str], duplicates: Duplicates) -> None:
    """Refuse repeated pairs, unless they are to be merged, and rows without any rating at all."""
    if rows.repeated and duplicates == "error":
        raise DataError(
            f"columns {names['user']!r} and {names['item']!r}: {rows_text(rows.repeated)} repeat a "
            "pair of user and item; give duplicates='last' or 'mean' to merge them"
        )
    if not rows.lengths.any():
        raise DataError(f"column {names['item']!r}: no row has an item of the catalogue")


def _refuse_fewer_than_two(name: str, role: str, found: int) -> None:
    if found < 2:
        raise DataError(f"column {name!r}: {found} {role} in all; at least 2 are needed")


def _check_values(pieces: list[NDArray[Any]], name: str, rating_range: tuple[float, float]) -> None:
    """Refuse ratings that are NaN or out of range; float32 ratings meet the range as float32."""
    from tacit.kernels.csr import bad_values

    low, high = (pieces[0].dtype.type(bound) for bound in rating_range)
    missing, outside = bad_values(pieces, low, high)
    if missing:
        raise DataError(f"column {name!r}: {rows_text(missing)} without a rating (NaN)")
    if outside:
        raise DataError(
            f"column {name!r}: {rows_text(outside)} outside of the rating range "
            f"[{rating_range[0]:g}, {rating_range[1]:g}]"
        )


def _row_numbers(rows: NDArray[Any] | Sequence[int], n_users: int) -> NDArray[np.int64]:
    """Row numbers that exist, each at most once."""
    chosen = np.asarray(rows)
    if chosen.ndim != 1 or (chosen.size and chosen.dtype.kind not in "iu"):
        raise ConfigError("rows: expected a one-dimensional array of row numbers")
    outside = int(np.sum((chosen < 0) | (chosen >= n_users)))
    if outside:
        raise ConfigError(f"rows: {outside} row numbers do not exist; they run from 0")
    if np.unique(chosen).size < chosen.size:
        raise ConfigError("rows: some row numbers are given twice; give each once")
    return chosen.astype(np.int64)


def _digest_ids(digest: "hashlib._Hash", ids: pl.Series) -> None:
    """Add ids to a digest so that different lists of ids are different bytes."""
    if ids.dtype == pl.String:
        texts = [text.encode() for text in ids.to_list()]
        digest.update(np.array([len(text) for text in texts], dtype=np.int64).data)
        digest.update(b"".join(texts))
    else:
        digest.update(np.ascontiguousarray(ids.to_numpy()).data)
