"""Public features of items: categories, numbers and vectors, as columns of numbers."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.tables import column_of
from tacit.errors import DataError

Floats = NDArray[np.float64]
Kind = Literal["number", "category", "vector"]

_MOST = 1000  # columns of numbers
_SEPARATOR = "|"  # between the categories of one cell


class FeatureColumn(NamedTuple):
    """One column of numbers: a number, one category of several, or one entry of a vector."""

    name: str
    kind: Kind
    label: str = ""


@dataclass(frozen=True, eq=False)
class ItemFeatures:
    """Features of items as numbers, items by columns; NaN where a value is missing.

    A category has a column of 0 and 1 for each of its values; a cell may name several, with `|`
    between them, or be a list of texts. Truth values are numbers. A vector has a column for each
    entry.

    >>> made = ItemFeatures.of({"year": [1999, None], "genre": ["a|b", "b"]}, 2)
    >>> [column.label or column.name for column in made.columns]
    ['year', 'a', 'b']
    >>> made.values.tolist()
    [[1999.0, 1.0, 1.0], [nan, 0.0, 1.0]]
    """

    columns: tuple[FeatureColumn, ...]
    values: Floats

    @classmethod
    def of(cls, table: Any, count: int) -> "ItemFeatures":
        """Read a polars or pandas frame or a dict {name: column}, a row for each of `count` items.

        Raises:
            DataError: a column is of a type that is none of these, or of another length.
        """
        columns: list[FeatureColumn] = []
        arrays: list[Floats] = []
        for name, column in _named_columns(table):
            if len(column) != count:
                raise DataError(f"features: {name!r} has {len(column)} values for {count} items")
            made, values = _encoded(name, column)
            columns += made
            arrays.append(values)
        if not columns:
            raise DataError("features: no columns; expected at least one, or None")
        if len(columns) > _MOST:
            raise DataError(
                f"features: {len(columns)} columns after categories are spread out, more than "
                f"{_MOST}; leave out columns whose values are mostly different"
            )
        return cls(tuple(columns), np.hstack(arrays))

    @property
    def names(self) -> list[str]:
        """The names of the features, as they were given."""
        return list(dict.fromkeys(column.name for column in self.columns))

    def rows(self, positions: NDArray[np.int64]) -> "ItemFeatures":
        """Return the features of some items."""
        return ItemFeatures(self.columns, np.ascontiguousarray(self.values[positions]))

    def aligned(self, columns: Sequence[FeatureColumn]) -> Floats:
        """Return the values in other columns: NaN for features that are not here.

        A category that is not here has 0 where the feature itself is known.
        """
        here = {column: k for k, column in enumerate(self.columns)}
        first = {column.name: k for k, column in reversed(list(enumerate(self.columns)))}
        found = np.full((len(self.values), len(columns)), np.nan)
        for k, column in enumerate(columns):
            if column in here:
                found[:, k] = self.values[:, here[column]]
            elif column.kind == "category" and column.name in first:
                found[:, k] = 0.0 * self.values[:, first[column.name]]
        return found


def _named_columns(table: Any) -> Iterator[tuple[str, Any]]:
    """Yield the names and columns of a frame or a dict."""
    if isinstance(table, pl.LazyFrame):
        table = table.collect()
    if isinstance(table, Mapping):
        pairs = list(table.items())
    elif hasattr(table, "columns") and hasattr(table, "__getitem__"):
        pairs = [(name, table[name]) for name in table.columns]
    else:
        raise DataError(
            f"features={type(table).__name__}: expected a polars or pandas frame, or a dict "
            "{name: column}, with a row for each item"
        )
    for name, values in pairs:
        yield str(name), column_of(str(name), _lists(values))


def _lists(values: Any) -> Any:
    """Return vectors that are rows of a matrix, or arrays in a column of objects, as lists."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values.tolist()
    if isinstance(getattr(values, "dtype", None), np.dtype) and values.dtype.kind == "O":
        cells = list(values)
        if any(isinstance(cell, np.ndarray) for cell in cells):
            return [cell.tolist() if isinstance(cell, np.ndarray) else None for cell in cells]
    return values


def _encoded(name: str, column: pl.Series) -> tuple[list[FeatureColumn], Floats]:
    """Return a feature as columns of numbers."""
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        values = column.cast(pl.Float64).fill_null(np.nan).to_numpy()
        return [FeatureColumn(name, "number")], _finite(name, values[:, None])
    if isinstance(column.dtype, pl.Array):
        column = column.arr.to_list()
    inner = column.dtype.inner if isinstance(column.dtype, pl.List) else None
    if inner is not None and (inner.is_numeric() or inner == pl.Null):
        return _vector(name, column)
    if inner == pl.String or column.dtype in (pl.String, pl.Categorical, pl.Enum):
        return _categories(name, column)
    raise DataError(
        f"features: {name!r} is of the type {column.dtype}; expected numbers, texts, lists of "
        "texts, or vectors of numbers"
    )


def _vector(name: str, column: pl.Series) -> tuple[list[FeatureColumn], Floats]:
    """Return a column for each entry; a missing vector has all entries missing."""
    widths = column.list.len().drop_nulls().unique().to_list()
    if len(widths) != 1 or not widths[0]:
        raise DataError(f"features: {name!r} has vectors of different lengths, or none")
    width = int(widths[0])
    missing = [None] * width
    rows = [missing if row is None else row for row in column.to_list()]
    values = np.array(rows, dtype=np.float64)
    return [FeatureColumn(name, "vector", str(k)) for k in range(width)], _finite(name, values)


def _categories(name: str, column: pl.Series) -> tuple[list[FeatureColumn], Floats]:
    """Return a column for each category, in alphabetical order; an empty cell is missing."""
    if isinstance(column.dtype, pl.List):
        cells = [None if cell is None else set(cell) - {None} for cell in column.to_list()]
    else:
        texts = column.cast(pl.String).to_list()
        cells = [None if text is None else set(text.split(_SEPARATOR)) for text in texts]
    tidy = [{part.strip() for part in cell or () if part.strip()} or None for cell in cells]
    labels = sorted(set().union(*(cell for cell in tidy if cell)))
    values = np.zeros((len(tidy), len(labels)))
    places = {label: k for k, label in enumerate(labels)}
    for row, cell in enumerate(tidy):
        if cell is None:
            values[row] = np.nan
        else:
            values[row, [places[label] for label in cell]] = 1.0
    return [FeatureColumn(name, "category", label) for label in labels], values


def _finite(name: str, values: Floats) -> Floats:
    infinite = int(np.sum(np.isinf(values)))
    if infinite:
        raise DataError(f"features: {name!r} has {infinite} infinite values; expected numbers")
    return np.asarray(values, dtype=np.float64)
