"""Tables in, columns out: files and frames become one polars column per role.

A role is what a column means: `user`, `item`, `rating`, `title`. The caller names its column, or
its header tells. A text file without a header has its columns by position.
No message of this module holds a value of a table: only files, column names and counts.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.errors import ConfigError, DataError
from tacit.parquet_guard import Footer, checked_footer
from tacit.text_tables import HEAD, Kind, Layout, attempt, is_number, layout_of, read_columns

__all__ = [
    "Choice",
    "Columns",
    "Table",
    "column_of",
    "files_of",
    "head_of",
    "is_parquet",
    "places_of",
    "read_file",
    "read_frame",
    "read_own_ratings",
]

Choice = str | int | None
"""A column by name, by position, or to be guessed."""

Table = dict[str, pl.Series]
"""One column per role, under the name that messages call it by."""

_KNOWN = {
    "user": "user uid person member customer client reviewer rater viewer reader account profile",
    "item": "item iid movie film product asin isbn book song track artist joke game business"
    " article show recipe beer anime",
    "rating": "rating ratings score stars star value overall grade vote userrating starrating"
    " bookrating itemrating movierating",
    "title": "title name itemtitle itemname movietitle moviename producttitle productname"
    " booktitle label",
}
_KINDS: dict[str, Kind] = {"user": "id", "item": "id", "rating": "number", "title": "text"}


@dataclass(frozen=True)
class Columns:
    """Which columns hold users, items and ratings: a name, a position from 0, or None to guess."""

    user: Choice = None
    item: Choice = None
    rating: Choice = None

    @property
    def roles(self) -> dict[str, Choice]:
        """The choice for each role."""
        return {**self.pair, "rating": self.rating}

    @property
    def pair(self) -> dict[str, Choice]:
        """The choice for user and item, where nobody gave a rating."""
        return {"user": self.user, "item": self.item}


def read_file(
    path: Path, wanted: Mapping[str, Choice], optional: frozenset[str] = frozenset()
) -> Table:
    """The wanted roles of one CSV, TSV, `::`-separated or Parquet file."""
    head = head_of(path)
    if is_parquet(path, head):
        return _read_parquet(path, wanted, optional)
    return _read_text(layout_of(path, head), wanted, optional)


def is_parquet(path: Path, head: bytes) -> bool:
    """Whether a file is, or ought to be, a Parquet file."""
    return head.startswith(b"PAR1") or path.suffix.lower() in {".parquet", ".pq"}


def read_own_ratings(path: str | PathLike[str], *, implicit: bool = False) -> pl.DataFrame:
    """One person's ratings: a file with columns item and rating, as a frame with those names.

    With `implicit` only the item column is read.
    """
    paths = files_of(path)
    if len(paths) > 1:
        raise DataError(f"{path}: {len(paths)} files match; a person's own ratings are one file")
    wanted: dict[str, Choice] = {"item": None} if implicit else {"item": None, "rating": None}
    return pl.DataFrame(read_file(paths[0], wanted))


def read_frame(frame: object, columns: Columns, *, implicit: bool = False) -> Table:
    """The ratings in a polars DataFrame or LazyFrame or in a pandas DataFrame.

    With `implicit` only the columns of users and items are read.
    """
    wanted = columns.pair if implicit else columns.roles
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return _from_polars(frame.lazy(), "the frame", "the frame: its query fails", wanted)
    if _is_pandas(frame) and hasattr(frame, "iloc"):
        names = [str(label) for label in getattr(frame, "columns", ())]
        places = places_of("the frame", names, wanted)
        return {role: _from_pandas(names[k], frame.iloc[:, k]) for role, k in places.items()}
    raise ConfigError(
        f"frame is a {type(frame).__name__}; give a polars DataFrame or LazyFrame, "
        "or a pandas DataFrame"
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
    return attempt(lambda: pl.Series(name, np.ascontiguousarray(values, dtype=native)))


def _from_list(name: str, values: list[Any]) -> pl.Series | None:
    """A list of one type, of integers and floats (as floats), or of integers and text (as text)."""
    column = attempt(lambda: pl.Series(name, values))
    types = {type(value) for value in values if value is not None}
    if column is None and types <= {int, float}:
        column = attempt(lambda: pl.Series(name, values, dtype=pl.Float64, strict=False))
    elif column is None and types <= {int, str}:
        column = pl.Series(name, [None if value is None else str(value) for value in values])
    return column


def files_of(source: object) -> list[Path]:
    """The files that a path, a pattern or a list of those stands for, patterns in sorted order."""
    entries = [source] if isinstance(source, str | PathLike) else source
    if not isinstance(entries, Sequence) or not all(
        isinstance(entry, str | PathLike) for entry in entries
    ):
        raise ConfigError(
            f"source is a {type(source).__name__}; give a path, a pattern or a list of them"
        )
    if not entries:
        raise DataError("source is an empty list; give at least one file")
    return [path for entry in entries for path in _expand(Path(fspath(entry)))]


def _expand(path: Path) -> list[Path]:
    """The file itself, or the files that it matches as a pattern."""
    if attempt(path.is_file):
        return [path]
    if attempt(path.is_dir):
        raise DataError(f"{path}: a folder; give a pattern such as {path / '*.parquet'}")
    if not any(sign in str(path) for sign in "*?["):
        raise DataError(f"{path}: no such file")
    base, pattern = Path(path.anchor), str(path.relative_to(path.anchor))
    found = attempt(lambda: sorted(match for match in base.glob(pattern) if match.is_file()))
    if not found:
        raise DataError(f"{path}: no file matches this pattern")
    return found


def head_of(path: Path) -> bytes:
    """The first bytes of a file that is there and not empty."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: a pipe or a device; expected a file")
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror})") from None
    if not head:
        raise DataError(f"{path}: the file is empty")
    return head


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
        f"{found} Say which with {_spelled(wanted)}, by name or by position from 0 "
        "(on the command line: --user-column and its sisters)."
    )
    places: dict[str, int] = {}
    for role, choice in wanted.items():
        matches = _matches(role, choice, names)
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
    if isinstance(choice, int):
        return [choice] if 0 <= choice < len(names) else []
    if isinstance(choice, str):
        return [k for k, name in enumerate(names) if name == choice]
    return [k for k, name in enumerate(names) if _tells(role, name)]


def _tells(role: str, name: str) -> bool:
    """Whether a header says the role: `userId`, `User-ID`, `user_id`, `USER` all say user."""
    plain = re.sub(r"[\W_]", "", name).lower()
    known = _KNOWN[role].split()
    endings = ("id", "no", "code", "key", "number") if _KINDS[role] == "id" else ()
    return plain in known or any(plain == word + end for word in known for end in endings)


def _listed(names: Sequence[str]) -> str:
    """Column names for a message, long ones and long lists cut."""
    shown = [repr(name if len(name) <= 40 else name[:37] + "...") for name in names[:20]]
    return ", ".join(shown) + (", ..." if len(names) > 20 else "")


def _spelled(wanted: Mapping[str, Choice]) -> str:
    """How a caller names the columns of these roles."""
    if "user" in wanted:
        return "columns=Columns(user=..., item=..., rating=...)"
    return ", ".join(f"{role}=..." for role in wanted)


def _read_parquet(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    footer = checked_footer(path)
    lazy = attempt(lambda: pl.scan_parquet(path, glob=False, hive_partitioning=False))
    trouble = f"{path}: no whole Parquet file (cut short, damaged, or of another format)"
    if lazy is None:
        raise DataError(trouble)
    return _from_polars(lazy, str(path), trouble, wanted, optional, footer)


def _from_polars(
    lazy: pl.LazyFrame,
    where: str,
    trouble: str,
    wanted: Mapping[str, Choice],
    optional: frozenset[str] = frozenset(),
    footer: Footer | None = None,
) -> Table:
    """The wanted columns of a query; `trouble` is what to say when it fails."""
    names = attempt(lambda: list(lazy.collect_schema()))
    if names is None:
        raise DataError(trouble)
    places = places_of(where, names, wanted, optional)
    picked = [names[k] for k in places.values()]
    if footer is not None:
        footer.check_columns(picked)
    frame = attempt(lambda: lazy.select(picked).collect())
    if frame is None:
        raise DataError(trouble)
    return {role: frame.get_column(names[k]) for role, k in places.items()}


def _is_pandas(thing: object) -> bool:
    """Whether something comes from pandas, which is not needed to find out."""
    return type(thing).__module__.partition(".")[0] == "pandas"


def _from_pandas(name: str, column: Any) -> pl.Series:
    """A pandas column: numbers as they are, the rest through Arrow where that works or a list."""
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf":
        return column_of(name, column.to_numpy())
    converted: pl.Series | None = None
    if column.dtype != object:
        converted = attempt(lambda: pl.Series(name, pl.from_pandas(column)))
    if converted is not None:
        return converted
    gone = column.isna()
    return column_of(name, [None if no else v for no, v in zip(gone, column, strict=True)])


def _read_text(layout: Layout, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    places = _places(layout, wanted, optional)
    columns = read_columns(layout, {k: _KINDS[role] for role, k in places.items()})
    return {role: columns[k] for role, k in places.items()}


def _places(
    layout: Layout, wanted: Mapping[str, Choice], optional: frozenset[str]
) -> dict[str, int]:
    """Where the wanted columns of a text are: by header, or by position where there is none."""
    where, names = str(layout.path), [layout.name(k) for k in range(layout.width)]
    if layout.header:
        return places_of(where, names, wanted, optional, shown=_surely_header(layout))
    for role, choice in wanted.items():
        if isinstance(choice, str):
            raise DataError(
                f"{where}: the first line is no header, so there is no column {choice!r} "
                f"for the {role}. Give positions from 0 with {_spelled(wanted)}."
            )
    by_order = {
        role: k if choice is None else choice
        for k, (role, choice) in enumerate(wanted.items())
        if choice is not None or role not in optional or k < layout.width
    }
    return places_of(where, names, by_order, optional)


def _surely_header(layout: Layout) -> bool:
    """Whether a message may show the first line: it is no rating of anybody beyond doubt."""
    if any(_tells(role, name) for role in _KNOWN for name in layout.first):
        return True
    columns = zip(*layout.sample, strict=False)
    return any(all(map(is_number, column)) for column in columns)
