"""Column roles (user, item, rating, ...), and frames or arrays as one polars column per role.

A role is what a column means: `user`, `item`, `rating`, `title`, `time`, or a feature of items. The
caller names its column, or its header tells.
No message of this module holds a value of a table: only files, column names and counts.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast
from uuid import UUID

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.errors import ConfigError, DataError

Choice = str | int | None
"""A column by name, by position, or to be guessed."""

Table = dict[str, pl.Series]
"""One column per role, under the name that messages call it by."""

_KNOWN = {
    "user": "user uid person member customer client reviewer rater viewer reader account profile",
    "item": "item iid movie film product asin isbn book song track artist joke game business"
    " article show recipe beer anime sku",
    "rating": "rating ratings score stars star value overall grade vote userrating starrating"
    " bookrating itemrating movierating",
    "title": "title name itemtitle itemname movietitle moviename producttitle productname"
    " booktitle label",
    "time": "time timestamp ts date datetime unixtime reviewtime unixreviewtime eventtime eventts"
    " eventtimestamp ratedat createdat reviewedat purchasedat boughtat orderedat playedat watchedat"
    " addedat",
}
Kind = Literal["id", "number", "text"]
KINDS: dict[str, Kind] = {
    "user": "id", "item": "id", "rating": "number", "title": "text", "time": "number",
}  # fmt: skip
_FEATURE = "feature "


READER_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError)
"""What polars raises for a file or a query that it cannot read. All else is a bug, and seen."""


_UNLIKE = (*READER_ERRORS, TypeError, ValueError, OverflowError)
"""What polars and pandas raise for Python values that do not make one column."""


def feature_role(name: str) -> str:
    """The role of a column that is a feature of items."""
    return _FEATURE + name


def kind_of(role: str) -> Kind:
    """What a column of this role holds; a feature has numbers, or text where that fails."""
    return "number" if role.startswith(_FEATURE) else KINDS[role]


@contextmanager
def refusing(trouble: str) -> Iterator[None]:
    """Say `trouble` in place of what a reader says, which quotes what it reads."""
    try:
        yield
    except READER_ERRORS:
        raise DataError(trouble) from None


@dataclass(frozen=True)
class Columns:
    """Which columns hold users, items and ratings: a name, a position from 0, or None to guess."""

    user: Choice = None
    item: Choice = None
    rating: Choice = None

    @classmethod
    def of(cls, given: "ColumnChoice") -> "Columns":
        """Take columns as they are given: these, or a dict such as {"user": "customer_id"}.

        >>> Columns.of({"user": "customer_id", "rating": 2})
        Columns(user='customer_id', item=None, rating=2)
        """
        if isinstance(given, cls):
            return given
        expected = "expected a dict such as {'user': 'customer_id', 'item': 'sku'}, or Columns(...)"
        if not isinstance(given, Mapping):
            raise ConfigError(f"columns={given!r}: {expected}")
        unknown = [key for key in given if key not in ("user", "item", "rating")]
        if unknown:
            raise ConfigError(
                f"columns: {unknown[0]!r} is none of user, item and rating; {expected}: "
                "what a column means stands first, its name or position second"
            )
        return cls(**given)

    @property
    def roles(self) -> dict[str, Choice]:
        """The choice for each role."""
        return {**self.pair, "rating": self.rating}

    @property
    def pair(self) -> dict[str, Choice]:
        """The choice for user and item, where nobody gave a rating."""
        return {"user": self.user, "item": self.item}


ColumnChoice = Columns | Mapping[str, Choice]
"""Columns, or the same as a dict."""


def read_frame(frame: object, columns: Columns, *, implicit: bool = False) -> Table:
    """The ratings in a frame of polars (lazy or not) or pandas, or in a table of pyarrow.

    With `implicit` only the columns of users and items are read.
    """
    wanted = columns.pair if implicit else columns.roles
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return _from_polars(frame.lazy(), wanted)
    if _is_pandas(frame) and hasattr(frame, "iloc"):
        names = [str(label) for label in getattr(frame, "columns", ())]
        places = places_of("the frame", names, wanted)
        return {role: _from_pandas(names[k], frame.iloc[:, k]) for role, k in places.items()}
    if _is_arrow(frame) and hasattr(frame, "schema"):
        with refusing("the table: it has a column of a type that is not read"):
            return _from_polars(cast(pl.DataFrame, pl.from_arrow(cast(Any, frame))).lazy(), wanted)
    raise ConfigError(
        f"frame is a {type(frame).__name__}; give a polars DataFrame or LazyFrame, "
        "a pandas DataFrame or a pyarrow Table"
    )


def column_of(name: str, values: object) -> pl.Series:
    """An array, list or series as a polars column; integers mixed with text become text.

    >>> column_of("item", [7, "seven"]).to_list()
    ['7', 'seven']
    """
    column: pl.Series | None = None
    if isinstance(values, pl.Series):
        column = values.alias(name)
    elif _is_pandas(values) and hasattr(values, "dtype"):
        column = _from_pandas(name, values)
    elif _is_arrow(values) and hasattr(values, "to_pylist"):
        column = _from_list(name, values.to_pylist())
    elif isinstance(values, np.ndarray):
        column = _from_array(name, values)
    elif isinstance(values, Iterable) and not isinstance(values, str | bytes):
        column = _from_list(name, list(values))
    if column is None:
        raise DataError(
            f"{name}: a {type(values).__name__} of mixed or unknown types; expected an array, a "
            "list or a series of numbers or of text"
        )
    return column


def _from_array(name: str, values: NDArray[Any]) -> pl.Series | None:
    """A one-dimensional array; what is masked is null."""
    if values.ndim != 1:
        raise DataError(f"{name}: {values.ndim} dimensions; expected 1")
    if values.dtype.kind not in "iuf" or isinstance(values, np.ma.MaskedArray):
        return _from_list(name, values.tolist())
    usual = values.dtype.kind != "f" or values.dtype.itemsize in (4, 8)
    native = values.dtype.newbyteorder("=") if usual else np.dtype(np.float64)
    return pl.Series(name, np.ascontiguousarray(values, dtype=native))


def _from_list(name: str, values: list[Any]) -> pl.Series | None:
    """A list of one type, of integers and floats (as floats), or of integers and text (as text)."""
    types = {type(value) for value in values if value is not None}
    if types in ({int, str}, {UUID}):
        return pl.Series(name, [None if value is None else str(value) for value in values])
    try:
        return pl.Series(name, values)
    except _UNLIKE:
        return _as_floats(name, values) if types <= {int, float} else None


def _as_floats(name: str, values: list[Any]) -> pl.Series | None:
    try:
        return pl.Series(name, values, dtype=pl.Float64, strict=False)
    except _UNLIKE:
        return None


def places_of(
    where: str,
    names: Sequence[str],
    wanted: Mapping[str, Choice],
    optional: frozenset[str] = frozenset(),
    shown: bool = True,
) -> dict[str, int]:
    """The position of each role's column, by the caller's choice or by its header."""
    found = f" Columns found: {_listed(names)}." if shown else ""
    hint = (
        f"{found} Say which with {spelled(wanted)}, by name or by position from 0{_typed(wanted)}."
    )
    places: dict[str, int] = {}
    chosen = {
        k for role, one in wanted.items() if one is not None for k in _matches(role, one, names)
    }
    for role, choice in wanted.items():
        matches = _matches(role, choice, names)
        if choice is None:  # what the caller has named for another role is not this one's
            matches = [k for k in matches if k not in chosen] or matches
        if len(matches) == 1:
            places[role] = matches[0]
        elif matches:
            raise DataError(f"{where}: {len(matches)} columns could be the {role} column.{hint}")
        elif choice is not None:
            raise DataError(f"{where}: no column {choice!r} for the {role}.{hint}")
        elif role not in optional:
            raise DataError(f"{where}: no column looks like the {role} column.{hint}")
    if len(set(places.values())) < len(places):
        raise DataError(f"{where}: one column is given for two things.{hint}")
    return places


def _matches(role: str, choice: Choice, names: Sequence[str]) -> list[int]:
    """Positions of the columns that fit a choice; without one, those with a telling name."""
    if isinstance(choice, bool) or not isinstance(choice, str | int | None):
        raise ConfigError(f"columns: {role}={choice!r}; give a name, a position or None")
    if isinstance(choice, str):
        named = [k for k, name in enumerate(names) if name == choice]
        if named or not choice.isdecimal():
            return named
        choice = int(choice)  # a position as it is typed in a shell
    if isinstance(choice, int):
        return [choice] if 0 <= choice < len(names) else []
    return [k for k, name in enumerate(names) if tells(role, name)]


def tells(role: str, name: str) -> bool:
    """Whether a header says the role: `userId`, `User-ID`, `user_id`, `USER` all say user."""
    plain = re.sub(r"[\W_]", "", name).lower()
    known = _KNOWN[role].split()
    endings = ("id", "uuid", "no", "code", "key", "number", "sku") if KINDS[role] == "id" else ()
    return plain in known or any(plain == word + end for word in known for end in endings)


def _listed(names: Sequence[str]) -> str:
    """Column names for a message, long ones and long lists cut."""
    shown = [repr(name if len(name) <= 40 else name[:37] + "...") for name in names[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")


def _typed(wanted: Mapping[str, Choice]) -> str:
    """What to type on the command line."""
    options = [f"--{role}-column" for role in wanted if role in KINDS]
    options += ["--feature"] * (len(options) < len(wanted))
    return f" (on the command line: {', '.join(options)})"


def spelled(wanted: Mapping[str, Choice]) -> str:
    """How a caller names the columns of these roles."""
    if "user" in wanted:
        return "columns={'user': ..., 'item': ..., 'rating': ...}"
    names = [f"{role}=..." for role in wanted if role in KINDS]
    return ", ".join(names + ["features=[...]"] * (len(names) < len(wanted)))


def _from_polars(lazy: pl.LazyFrame, wanted: Mapping[str, Choice]) -> Table:
    with refusing("the frame: its query fails"):
        names = list(lazy.collect_schema())
    places = places_of("the frame", names, wanted)
    with refusing("the frame: its query fails"):
        frame = lazy.select(names[k] for k in places.values()).collect()
    return {role: frame.get_column(names[k]) for role, k in places.items()}


def as_kind_of(frame: pl.DataFrame, like: object) -> Any:
    """A frame of the kind of another: of pandas, of pyarrow, or of polars."""
    if _is_pandas(like):
        return frame.to_pandas()
    return frame.to_arrow() if _is_arrow(like) else frame


def _is_arrow(thing: object) -> bool:
    """Whether something comes from pyarrow, which is not needed to find out."""
    return type(thing).__module__.partition(".")[0] == "pyarrow"


def _is_pandas(thing: object) -> bool:
    """Whether something comes from pandas, which is not needed to find out."""
    return type(thing).__module__.partition(".")[0] == "pandas"


def _from_pandas(name: str, column: Any) -> pl.Series:
    """A pandas column: numbers as they are, the rest through Arrow where that works or a list."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column_of(name, column.to_numpy())
    if column.dtype != object:
        try:
            return pl.Series(name, pl.from_pandas(column))
        except (*_UNLIKE, ImportError, NotImplementedError):
            pass  # no pyarrow, or a type that Arrow does not have
    gone = column.isna()
    return column_of(name, [None if no else v for no, v in zip(gone, column, strict=True)])
