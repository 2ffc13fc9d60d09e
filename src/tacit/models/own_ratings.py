"""A person's own ratings, in whatever form she has them, as positions in the catalogue."""

import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.tables import tells
from tacit.errors import DataError, UnknownItemsWarning
from tacit.models.rules import OwnRows

_FORMS = "a dict {item: rating}, a frame with columns item and rating, or (items, ratings)"
_PLAIN_FORMS = "a list of items, a frame with a column item, or a dict {item: 1}"


def own_row(own: Any, catalogue: Catalogue, rating_range: tuple[float, float]) -> OwnRows:
    """Return one person's ratings as a row; unknown items are left out with a warning."""
    items, ratings = _columns(own)
    values = _checked(ratings, rating_range)
    if len(items) != values.size:
        raise DataError(f"own_ratings: {len(items)} items, {values.size} ratings; expected pairs")
    positions = known_positions(items, catalogue, "own ratings", level=5)
    known = positions >= 0
    positions, values = positions[known], values[known]
    order = np.argsort(positions, kind="stable")
    positions, values = positions[order], values[order]
    twice = int(np.sum(positions[1:] == positions[:-1]))
    if twice:
        raise DataError(f"own_ratings: {twice} rows rate an item twice; give each item once")
    indptr = np.array([0, positions.size], dtype=np.int64)
    return OwnRows(indptr, positions.astype(np.uint32), values.astype(np.float32))


def own_interactions(own: Any, catalogue: Catalogue) -> OwnRows:
    """Return the items one person touched as a row of ones; a repeated one counts once."""
    positions = known_positions(_touched(own), catalogue, "own interactions", level=5)
    known = np.unique(positions[positions >= 0])
    indptr = np.array([0, known.size], dtype=np.int64)
    return OwnRows(indptr, known.astype(np.uint32), np.ones(known.size, np.float32))


def _touched(own: Any) -> Any:
    """Return the items of a list, a series, a frame, or a dict whose values are all 1."""
    if isinstance(own, Mapping):
        others = sum(value != 1 for value in own.values())
        if others:
            raise DataError(
                f"own_ratings: {others} values are not 1; this model knows interactions only: "
                "leave out what was not touched"
            )
        return list(own)
    if isinstance(own, pl.LazyFrame):
        own = own.collect()
    if hasattr(own, "columns"):
        _refuse_many(own)
    items = item_column(own)
    if items is None:
        raise DataError(f"own_ratings={type(own).__name__}: expected {_PLAIN_FORMS}")
    return items


def item_column(given: Any) -> Any:
    """Return the items of a list, a series, an array or a frame's item column; None of others."""
    if isinstance(given, pl.LazyFrame):
        given = given.collect()
    if hasattr(given, "columns"):
        return _column(given, "item")
    if isinstance(given, Collection) and not isinstance(given, str | bytes):
        return given if isinstance(given, pl.Series | np.ndarray) else list(given)
    return None


def wanted_positions(items: Any, catalogue: Catalogue) -> NDArray[np.int64]:
    """Return positions of a list, or of a frame's item column; -1 where unknown, with a warning."""
    column = item_column(items)
    return known_positions(items if column is None else column, catalogue, "wanted items")


def known_positions(
    items: Any, catalogue: Catalogue, what: str, *, level: int = 4
) -> NDArray[np.int64]:
    """Return positions in the catalogue, -1 where unknown, and warn with the count of those."""
    try:
        positions = catalogue.positions(items)
    except (DataError, pl.exceptions.PolarsError):  # its message may quote ids
        raise DataError(
            f"{what}: expected a list of item ids like those of the catalogue"
        ) from None
    unknown = int(np.sum(positions < 0))
    if unknown:
        message = f"{unknown} of {len(positions)} {what} are not in the catalogue and are left out"
        warnings.warn(message, UnknownItemsWarning, stacklevel=level)
    return positions


def _columns(own: Any) -> tuple[Any, Any]:
    if isinstance(own, Mapping):
        return list(own.keys()), list(own.values())
    if isinstance(own, pl.LazyFrame):
        own = own.collect()
    if hasattr(own, "columns"):
        _refuse_many(own)
        item, rating = _column(own, "item"), _column(own, "rating")
        if item is None or rating is None:
            raise DataError(f"own_ratings: expected {_FORMS}")
        return item, rating
    if isinstance(own, tuple) and len(own) == 2:
        return own
    if type(own).__module__.partition(".")[0] == "pandas" and hasattr(own, "to_dict"):
        return own.index.to_list(), own.to_list()  # a series of ratings by item
    nobody = "; the model holds no users, so give this person's own ratings"
    asked = nobody if isinstance(own, str | int) else ""
    raise DataError(f"own_ratings={type(own).__name__}: expected {_FORMS}{asked}")


def _names(frame: Any) -> list[Any]:
    """Return the column names of a frame of polars or pandas, or of a table of pyarrow."""
    return list(getattr(frame, "column_names", frame.columns))


def _column(frame: Any, role: str) -> Any:
    """Return the column of a role: the one of its name, or the only one whose name tells it."""
    names = _names(frame)
    telling = [role] if role in names else [name for name in names if tells(role, str(name))]
    return _series(frame[telling[0]]) if len(telling) == 1 else None


def _refuse_many(frame: Any) -> None:
    """Refuse a frame of several people where one is expected: their rows would become one."""
    users = _column(frame, "user")
    if users is not None and len(set(users)) > 1:
        raise DataError(
            "own_ratings: a frame of several users; expected one person's. For many, give it to "
            "recommend_frame(ratings), or to predict_frame(ratings, pairs)"
        )


def _series(column: Any) -> Any:
    if isinstance(column, pl.Series):
        return column
    return column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()


def _numbers(ratings: Any) -> NDArray[np.float64] | None:
    try:
        return np.asarray(ratings, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError, OverflowError):
        return None


def _checked(ratings: Any, rating_range: tuple[float, float]) -> NDArray[np.float64]:
    lo, hi = rating_range
    values = _numbers(ratings)
    if values is None:  # raised here, so that no error that quotes a rating is its context
        raise DataError(
            "own_ratings: every rating must be a number, with a decimal point if it has decimals"
        )
    wrong = int(np.sum(~((values >= lo) & (values <= hi))))
    if wrong:
        raise DataError(
            f"own_ratings: {wrong} of {values.size} ratings are missing or outside the rating "
            f"range [{lo:g}, {hi:g}]"
        )
    return values
