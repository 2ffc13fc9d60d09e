"""Ratings: all ratings in memory, in rows by user, and the checks they pass."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, NoReturn

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.build import (
    Duplicates,
    RatingRange,
    Rules,
    UnknownItems,
    assembled,
    joined,
    with_ones,
)
from tacit.data.catalogue import Catalogue
from tacit.data.readers.registry import files_of, read_file
from tacit.data.tables import Choice, ColumnChoice, Columns, Table, column_of, read_frame
from tacit.errors import ConfigError, DataError, PrivacyError

_GUESS = Columns()


@dataclass(frozen=True, eq=False, repr=False)
class Ratings:
    """Who rated what and how, in rows by user; made by one of the `from_...` methods.

    Row i belongs to user `user_ids[i]` and holds `items[indptr[i]:indptr[i + 1]]`, positions in
    the catalogue in increasing order, with `values` beside them. Users are sorted by id, so that
    the order of the input does not matter.

    `rating_range` is public and given: it is never taken from the ratings. With a public
    `catalogue`, ratings of other items are an error, or are left out with unknown_items="drop". A
    user who has no other ones keeps an empty row, so that the number of users does not depend on
    the catalogue. Without one, the catalogue is the sorted list of all rated items, which is not
    public.

    `implicit` says that nobody gave ratings: it is only known who interacted with what. Then every
    value is 1, the rating range is (0, 1), and a pair that is given twice counts once.

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
    implicit: bool = False

    def __post_init__(self) -> None:
        """Make the arrays read-only."""
        for array in (self.indptr, self.items, self.values):
            array.flags.writeable = False

    @classmethod
    def from_file(
        cls,
        source: str | PathLike[str] | Sequence[str | PathLike[str]],
        *,
        rating_range: RatingRange | None = None,
        columns: ColumnChoice = _GUESS,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
        unknown_items: UnknownItems = "error",
        implicit: bool = False,
    ) -> "Ratings":
        """Read CSV, TSV, `::`-separated or Parquet files.

        Args:
            source: a path, a pattern such as `ratings-*.parquet`, or a list of them.
            rating_range: (lowest, highest) rating that is possible, or the name of a dataset.
            columns: which columns to read, such as {"user": "customer_id", "item": "sku"}, by name
                or by position from 0 (or a `Columns`); those not given are guessed from the header,
                or are the first three where there is none.
            duplicates: for a user's second rating of an item: "error", or keep the "last" (in
                the order of lines and files), or the "mean".
            catalogue: the public list of items.
            unknown_items: for ratings of items that are not in the catalogue: "error", or "drop"
                to leave them out.
            implicit: whether there are no ratings, only users and items: who interacted with
                what. A rating column is not looked at, rating_range is left out, and pairs given
                twice count once.
        """
        rules = Rules.checked(rating_range, duplicates, catalogue, implicit, unknown_items)
        roles = columns_of(columns, implicit)
        return cls.of_tables([read_file(path, roles) for path in files_of(source)], rules)

    @classmethod
    def from_frame(
        cls,
        frame: object,
        *,
        rating_range: RatingRange | None = None,
        columns: ColumnChoice = _GUESS,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
        unknown_items: UnknownItems = "error",
        implicit: bool = False,
    ) -> "Ratings":
        """Take a polars DataFrame or LazyFrame or a pandas DataFrame; see `from_file`."""
        rules = Rules.checked(rating_range, duplicates, catalogue, implicit, unknown_items)
        chosen = Columns.of(columns)
        if implicit:
            _pair(chosen)
        return cls.of_tables([read_frame(frame, chosen, implicit=implicit)], rules)

    @classmethod
    def from_arrays(
        cls,
        users: Any,
        items: Any,
        values: Any = None,
        *,
        rating_range: RatingRange | None = None,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
        unknown_items: UnknownItems = "error",
        implicit: bool = False,
    ) -> "Ratings":
        """Take three arrays, lists or series of the same length; see `from_file`.

        With `implicit` two of them, users and items; values are not looked at.
        """
        rules = Rules.checked(rating_range, duplicates, catalogue, implicit, unknown_items)
        given = {"user": ("users", users), "item": ("items", items)}
        if not implicit:
            given["rating"] = ("values", values)
        if not implicit and values is None:
            raise ConfigError("values=None: give the ratings, or implicit=True if there are none")
        table = {role: column_of(name, array) for role, (name, array) in given.items()}
        if len({len(column) for column in table.values()}) > 1:
            raise DataError("users, items and values: different lengths; expected the same")
        return cls.of_tables([table], rules)

    @classmethod
    def from_sparse(
        cls,
        matrix: Any,
        *,
        rating_range: RatingRange | None = None,
        duplicates: Duplicates = "error",
        catalogue: Catalogue | None = None,
        unknown_items: UnknownItems = "error",
        implicit: bool = False,
    ) -> "Ratings":
        """Take a scipy sparse matrix of users by items; stored zeros are ratings.

        Every row is a user, also an empty one, and its number is her id. Every column is an item:
        its number is its id, or it is the item at that position of the catalogue. With `implicit`
        every stored entry is an interaction, whatever its value.
        """
        rules = Rules.checked(rating_range, duplicates, catalogue, implicit, unknown_items)
        shape: tuple[int, ...] = getattr(matrix, "shape", ())
        if not hasattr(matrix, "tocoo") or len(shape) != 2:
            raise ConfigError(
                f"matrix is a {type(matrix).__name__}; give a scipy sparse matrix of users by items"
            )
        if catalogue is not None and shape[1] != len(catalogue):
            raise DataError(f"matrix: {shape[1]} columns for a catalogue of {len(catalogue)} items")
        entries = matrix.tocoo(copy=False)
        table = {
            "user": column_of("rows", entries.row),
            "item": column_of("columns", entries.col),
            "rating": column_of("entries", entries.data),
        }
        return cls.of_tables([table], rules, shape)

    @classmethod
    def of_tables(
        cls, tables: list[Table], rules: Rules, shape: Sequence[int] | None = None
    ) -> "Ratings":
        """Make rows of the tables of some files; interactions are ratings of 1.

        It is what the other methods end in; the tables are emptied on the way.
        """
        if rules.implicit:
            tables = [with_ones(table) for table in tables]
        catalogue, user_ids, rows = assembled(joined(tables), rules, shape)
        return cls(rules.rating_range, catalogue, user_ids, *rows, rules.implicit)

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
        if self.implicit:
            return "Ratings(implicit=True)"
        return f"Ratings(rating_range=({self.rating_range[0]:g}, {self.rating_range[1]:g}))"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled or copied: a pickled object is a way out for everyone's ratings."""
        raise PrivacyError("Ratings cannot be pickled; read the ratings again where they are used")

    def take_rows(self, rows: NDArray[Any] | Sequence[int]) -> "Ratings":
        """The ratings of some users, given by distinct row numbers, in that order."""
        from tacit.data.csr import gather

        chosen = _row_numbers(rows, self.n_users)
        lengths = np.diff(self.indptr)[chosen]
        picked = gather(self.indptr[chosen], lengths, self.items, self.values)
        user_ids = self.user_ids.gather(chosen)
        return Ratings(self.rating_range, self.catalogue, user_ids, *picked, self.implicit)

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


def columns_of(columns: ColumnChoice, implicit: bool) -> dict[str, Choice]:
    """The columns to read of a file; of interactions there is no rating to read."""
    chosen = Columns.of(columns)
    return _pair(chosen) if implicit else chosen.roles


def _pair(columns: Columns) -> dict[str, Choice]:
    """The columns of users and items; a rating column is refused if it was asked for."""
    if columns.rating is not None:
        raise ConfigError(
            f"columns: rating={columns.rating!r} with implicit=True: interactions have no ratings; "
            "leave one of the two out"
        )
    return columns.pair


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
