"""From clean columns to a Ratings object, with every check on the way."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._validate import check
from tacit.data.catalogue import Catalogue
from tacit.data.ids import Numbered, clean_ids, cuts_of, join_ids, numbered, pieces_of, rows_text
from tacit.data.tables import Table
from tacit.datasets.registry import rating_range_of
from tacit.errors import ConfigError, DataError, UnknownItemsError

if TYPE_CHECKING:
    from tacit.data.csr import CsrRows, Settled

Duplicates = Literal["error", "last", "mean"]
"""What to do with a user's second rating of an item."""

UnknownItems = Literal["error", "drop"]
"""What to do with ratings of items that are not in the catalogue."""

RatingRange = str | Sequence[float]
"""The lowest and the highest rating that are possible, or the name of a dataset."""

NO_ROWS = "there are no ratings: 0 rows; expected at least one row of user, item and rating"

_LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Rules:
    """What the caller has laid down before any rating is looked at."""

    rating_range: tuple[float, float]
    duplicates: Duplicates
    catalogue: Catalogue | None
    implicit: bool = False
    unknown_items: UnknownItems = "error"
    fewest_users: int = 2
    """A fit needs two, and a local rule one; a part of many users may be empty."""

    @classmethod
    def checked(
        cls,
        rating_range: RatingRange | None,
        duplicates: str,
        catalogue: Catalogue | None,
        implicit: bool = False,
        unknown_items: str = "error",
    ) -> "Rules":
        """Check what the caller gave."""
        check("implicit", implicit, bool)
        if duplicates not in get_args(Duplicates):
            raise ConfigError(f"duplicates={duplicates!r}; give 'error', 'last' or 'mean'")
        if unknown_items not in get_args(UnknownItems):
            raise ConfigError(f"unknown_items={unknown_items!r}; give 'error' or 'drop'")
        if not isinstance(catalogue, Catalogue | None):
            raise ConfigError(f"catalogue is a {type(catalogue).__name__}; give a tacit.Catalogue")
        if not implicit:
            scale = _checked_range(rating_range)
            return cls(scale, duplicates, catalogue, False, unknown_items)  # type: ignore[arg-type]
        if rating_range is not None:
            raise ConfigError(
                f"rating_range={rating_range!r}: interactions (implicit) have no ratings; "
                "leave one of the two out"
            )
        return cls((0.0, 1.0), "last", catalogue, True, unknown_items)  # type: ignore[arg-type]


def _checked_range(rating_range: RatingRange | None) -> tuple[float, float]:
    """The rating range as two floats in order, with room for float32 between them."""
    if rating_range is None:
        raise ConfigError(
            "rating_range=None; give (lowest, highest), or implicit=True if there are no ratings "
            "(on the command line: --rating-range LO HI, or --implicit)"
        )
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
    stored = stored_range(low, high)
    if not stored[0] < stored[1]:
        raise ConfigError(f"rating_range={rating_range!r} is too narrow for 32-bit floats")
    return low, high


def stored_range(low: float, high: float) -> tuple[np.float32, np.float32]:
    """The lowest and the highest float32 within the rating range."""
    lowest, highest = np.float32(low), np.float32(high)
    if float(lowest) < low:
        lowest = np.nextafter(lowest, np.float32(np.inf))
    if float(highest) > high:
        highest = np.nextafter(highest, np.float32(-np.inf))
    return lowest, highest


def joined(tables: list[Table]) -> Table:
    """The tables of several files as one; each column is let go of as soon as it is taken over."""
    if not sum(len(table["user"]) for table in tables):
        raise DataError(NO_ROWS)
    users = join_ids([clean_ids(table.pop("user")) for table in tables])
    items = join_ids([clean_ids(table.pop("item")) for table in tables])
    ratings = [_numbers(table.pop("rating")) for table in tables]
    if len({column.dtype for column in ratings}) > 1:
        ratings = [column.cast(pl.Float64) for column in ratings]
    return {"user": users, "item": items, "rating": pl.concat(ratings, rechunk=False)}


def with_ones(table: Table) -> Table:
    """A table of users and items with a rating of 1 in every row: they interacted."""
    ones = pl.repeat(1.0, len(table["user"]), dtype=pl.Float32, eager=True)
    return {**table, "rating": ones.alias("rating")}


def _numbers(column: pl.Series) -> pl.Series:
    """Ratings as Float32 or Float64; anything that is no number is an error with its count."""
    where = f"column {column.name!r}"
    missing = column.null_count()
    if column.dtype == pl.String:
        parsed = column.cast(pl.Float64, strict=False)
        wrong = parsed.null_count() - missing
        if wrong:
            raise DataError(
                f"{where}: {rows_text(wrong)} with a rating that is no number"
                f"{_decimal_commas(column, parsed)}"
            )
        column = parsed
    if missing:
        raise DataError(f"{where}: {rows_text(missing)} without a rating; leave them out")
    if not column.dtype.is_numeric():
        raise DataError(
            f"{where}: {rows_text(len(column))} of type {column.dtype}; ratings are numbers"
        )
    if column.dtype in (pl.Float32, pl.Float64):
        return column
    short = column.dtype in (pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
    return column.cast(pl.Float32 if short else pl.Float64)


def _decimal_commas(column: pl.Series, parsed: pl.Series) -> str:
    """A hint where all that is no number would be one with a point in place of its comma."""
    pointed = column.filter(parsed.is_null()).str.replace(",", ".", literal=True)
    if pointed.cast(pl.Float64, strict=False).null_count():
        return "; expected numbers such as 4.5"
    return "; they have decimal commas: write points instead"


def assembled(
    table: Table, rules: Rules, shape: Sequence[int] | None = None
) -> "tuple[Catalogue, pl.Series, CsrRows]":
    """The catalogue, the users' ids and their rows; the table is emptied on the way.

    A `shape` says that ids are positions, and how many users and items there are.
    """
    from tacit.data import csr

    names = {role: column.name for role, column in table.items()}
    n_users, n_items = (None, None) if shape is None else shape
    cuts = cuts_of(table.values())
    values = pieces_of(table.pop("rating"), cuts)
    check_values(values, names["rating"], rules.rating_range)
    users = numbered(table.pop("user"), cuts, n_users)
    items = numbered(table.pop("item"), cuts, n_items)
    if n_items is None:
        catalogue, positions = _found(items, rules, names["item"])
    else:
        catalogue, positions = _in_place(items, rules.catalogue)
    _refuse_fewer_than(2, names["item"], "item", len(catalogue))
    scope = csr.Scope(
        lows=(users.low, items.low),
        sizes=(users.size, len(catalogue)),
        positions=positions,
        bounds=stored_range(*rules.rating_range),
    )
    grouped = csr.group((users.pieces, items.pieces, values), scope)
    settled = csr.settle(grouped, rules.duplicates == "mean")
    _check_rows(settled, names, rules)
    known = np.flatnonzero(settled.counts) if n_users is None else np.arange(n_users)
    _refuse_fewer_than(rules.fewest_users, names["user"], "user", known.size)
    indptr = np.append(settled.rows.indptr[known], settled.rows.indptr[-1])
    user_ids = users.ids(known).alias("user")
    return catalogue, user_ids, settled.rows._replace(indptr=indptr)


def _found(items: Numbered, rules: Rules, name: str) -> tuple[Catalogue, NDArray[np.uint32]]:
    """The catalogue, and the position in it of each number; unknown items may be an error."""
    from tacit.data.csr import UNWANTED, present

    occur = np.flatnonzero(present(items.pieces, items.low, items.size))
    positions = np.full(items.size, UNWANTED, dtype=np.uint32)
    if rules.catalogue is None:
        positions[occur] = np.arange(occur.size)
        return Catalogue(items.ids(occur), public=False), positions
    found = rules.catalogue.positions(items.ids(occur))
    positions[occur[found >= 0]] = found[found >= 0]
    if rules.unknown_items == "error" and np.any(found < 0):
        raise UnknownItemsError(name, _count_unknown(items, positions))
    return rules.catalogue, positions


def _count_unknown(items: Numbered, positions: NDArray[np.uint32]) -> int:
    """How many rows have an item without a position in the catalogue."""
    from tacit.data.csr import UNWANTED

    unknown = positions == UNWANTED
    return sum(int(np.count_nonzero(unknown[piece - items.low])) for piece in items.pieces)


def _in_place(items: Numbered, catalogue: Catalogue | None) -> tuple[Catalogue, NDArray[np.uint32]]:
    """The same for numbers that are positions already."""
    everything = np.arange(items.size)
    if catalogue is None:
        catalogue = Catalogue(items.ids(everything), public=False)
    return catalogue, everything.astype(np.uint32)


def _check_rows(settled: "Settled", names: Mapping[str, str], rules: Rules) -> None:
    """Refuse repeated pairs, unless they are to be merged, and rows without any rating at all."""
    if settled.repeated and rules.duplicates == "error":
        raise DataError(
            f"columns {names['user']!r} and {names['item']!r}: {rows_text(settled.repeated)} with "
            "a pair of user and item given before; duplicates='last' or 'mean' of tacit.Ratings "
            "merges them (on the command line: --duplicates)"
        )
    if not settled.rows.items.size and rules.fewest_users:
        raise DataError(f"column {names['item']!r}: no row has an item of the catalogue")


def _refuse_fewer_than(least: int, name: str, role: str, found: int) -> None:
    """Refuse a single user or a single item."""
    if found < least:
        raise DataError(f"column {name!r}: {found} {role} in all; at least {least} are needed")


def check_values(pieces: list[NDArray[Any]], name: str, rating_range: tuple[float, float]) -> None:
    """Refuse ratings that are NaN or out of range; float32 ratings meet the range as float32."""
    from tacit.data.csr import bad_values

    low, high = (pieces[0].dtype.type(bound) for bound in rating_range)
    missing, outside = bad_values(pieces, low, high)
    if missing:
        raise DataError(
            f"column {name!r}: {rows_text(missing)} without a rating (NaN); leave them out"
        )
    if outside:
        raise DataError(
            f"column {name!r}: {rows_text(outside)} outside of the rating range "
            f"[{rating_range[0]:g}, {rating_range[1]:g}]; give the range of the scale that people "
            "rate on, or correct those rows"
        )
