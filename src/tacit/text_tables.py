"""Text tables: separator and header judged from the first lines, columns read by position.

Fields are separated by `::`, a tab, a comma, a semicolon or a bar; the text is UTF-8. A first line
without any number is a header. Identifiers that look like integers in the first lines are read
as integers, unless they show leading zeros; a column that turns out otherwise is read as text.

The readers' own error texts quote what they read, so they stop here (see `attempt`).
"""

import codecs
import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Literal, TypeVar

import polars as pl

from tacit.errors import DataError

__all__ = ["HEAD", "Kind", "Layout", "attempt", "is_number", "layout_of", "read_columns"]

Kind = Literal["id", "number", "text"]
Result = TypeVar("Result")
Types = Mapping[int, pl.DataType]

HEAD = 1 << 18
"""How many bytes of a file are looked at before it is read."""

_SAMPLE = 1000
_SEPARATORS = ("::", "\t", ",", ";", "|")
_STAND_IN = "\x1f"
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")
_FLOAT = re.compile(r"-?[0-9]{1,15}(\.[0-9]*)?")


def attempt(work: Callable[[], Result]) -> Result | None:
    """What a reader gives, or None when it fails: its message quotes the file and goes nowhere."""
    try:
        return work()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        return None
    except (
        AttributeError,
        ImportError,
        MemoryError,
        OSError,
        OverflowError,
        TypeError,
        ValueError,
    ):
        return None


@dataclass(frozen=True)
class Layout:
    """How a text table is laid out, judged from its first lines."""

    path: Path
    separator: str
    header: bool
    skip: int
    """Lines before the first line of values."""
    first: Sequence[str]
    """Fields of the first line that is not blank."""
    sample: Sequence[Sequence[str]]
    """Fields of the first lines of values."""

    @property
    def width(self) -> int:
        """How many fields a line has."""
        return len(self.first)

    def name(self, place: int) -> str:
        """What messages call the column at a position."""
        return self.first[place].strip() if self.header else f"position {place}"


def layout_of(path: Path, head: bytes) -> Layout:
    """Find separator, header and the first rows in the first bytes of a file."""
    lines = _lines(path, head)
    skip = next((k for k, line in enumerate(lines) if line.strip("\r")), None)
    if skip is None:
        raise DataError(f"{path}: the file has only blank lines")
    separator = next((sign for sign in _SEPARATORS if sign in lines[skip]), ",")
    try:
        rows = list(islice(_split(lines[skip:], separator), _SAMPLE))
    except csv.Error:
        rows = []
    if not rows:
        raise DataError(f"{path}: not a table of text, nor Parquet")
    header = not any(is_number(field) for field in rows[0])
    return Layout(path, separator, header, skip + header, rows[0], rows[1:] if header else rows)


def read_columns(layout: Layout, kinds: Mapping[int, Kind]) -> dict[int, pl.Series]:
    """Read columns by position, typed as the first lines look, or as text when that fails."""
    source = _source(layout)
    frame = _scan(layout, source, {k: _type(kind, layout, k) for k, kind in kinds.items()})
    if frame is None:
        frame = _scan(layout, source, dict.fromkeys(kinds, pl.String()))
    if frame is None or _maybe_short(layout, frame):
        _refuse_misshapen(layout)
    if frame is None:
        raise DataError(f"{layout.path}: lines that cannot be read (quotes or encoding)")
    columns = {k: frame.get_column(str(k)).alias(layout.name(k)) for k in kinds}
    return {k: _tidy(column, kinds[k]) for k, column in columns.items()}


def is_number(field: str) -> bool:
    """Whether a field holds a number; words that Python takes for one (`nan`) are not."""
    try:
        float(field)
    except ValueError:
        return False
    return any(sign.isdigit() for sign in field)


def _lines(path: Path, head: bytes) -> list[str]:
    """The whole lines in the first bytes of a file."""
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise DataError(f"{path}: neither UTF-8 text nor Parquet (unpack or convert it first)")
    lines = text.split("\n")
    if len(head) == HEAD:
        lines.pop()
    if not lines:
        raise DataError(f"{path}: no line break in the first {HEAD} bytes")
    return lines


def _split(lines: Iterable[str], separator: str) -> Iterable[list[str]]:
    """Fields of each line that is not blank."""
    if separator == "::":
        return (line.rstrip("\r\n").split("::") for line in lines if line.strip("\r\n"))
    return (row for row in csv.reader(lines, delimiter=separator) if row)


def _type(kind: Kind, layout: Layout, place: int) -> pl.DataType:
    """The type to read a column as, from its first fields."""
    if kind == "number":
        return pl.Float64()
    fields = [row[place].strip() for row in layout.sample if len(row) > place]
    if kind == "text" or not fields:
        return pl.String()
    if all(_INTEGER.fullmatch(field) for field in fields):
        return pl.Int64()
    floats = any("." in field for field in fields) and all(map(_FLOAT.fullmatch, fields))
    return pl.Float64() if floats else pl.String()


def _source(layout: Layout) -> Path | bytes:
    """What polars can read: the file, or its bytes with one sign in place of `::`."""
    if layout.separator != "::":
        return layout.path
    raw = attempt(layout.path.read_bytes)
    if raw is None or _STAND_IN.encode() in raw:
        raise DataError(f"{layout.path}: cannot be read as text")
    return raw.replace(b"::", _STAND_IN.encode())


def _scan(layout: Layout, source: Path | bytes, types: Types) -> pl.DataFrame | None:
    """Read columns by position. The last one is looked at too: a longer line then is an error."""
    lazy = pl.scan_csv(
        source,
        schema={str(k): types.get(k, pl.String()) for k in range(layout.width)},
        has_header=False,
        skip_lines=layout.skip,
        separator=_STAND_IN if layout.separator == "::" else layout.separator,
        quote_char=None if layout.separator == "::" else '"',
        glob=False,
    )
    last = pl.col(str(layout.width - 1)).is_null().alias("short")
    frame = attempt(lambda: lazy.select(*(str(k) for k in types), last).collect())
    return None if frame is None else frame.head(max(0, frame.height - _trailing_blanks(layout)))


def _trailing_blanks(layout: Layout) -> int:
    """How many blank lines end the file."""
    with layout.path.open("rb") as stream:
        stream.seek(max(0, layout.path.stat().st_size - 4096))
        tail = stream.read()
    return max(0, tail[len(tail.rstrip(b"\r\n")) :].count(b"\n") - 1)


def _maybe_short(layout: Layout, frame: pl.DataFrame) -> bool:
    """Whether lines may end early; an empty last field is no sign where it is usual."""
    usual = any(len(row) == layout.width and not row[-1] for row in layout.sample)
    return not usual and bool(frame.get_column("short").any())


def _refuse_misshapen(layout: Layout) -> None:
    """Count the lines with more or fewer fields than the first; an error if there are any."""
    with layout.path.open(encoding="utf-8-sig", errors="replace", newline="") as lines:
        try:
            count = sum(len(row) != layout.width for row in _split(lines, layout.separator))
        except csv.Error:
            return
    if count:
        raise DataError(
            f"{layout.path}: {count} line(s) of another shape than the first, which has "
            f"{layout.width} field(s) with {layout.separator!r} between them"
        )


def _tidy(column: pl.Series, kind: Kind) -> pl.Series:
    """Text without the blanks around it, or the numbers that all of it stands for."""
    if column.dtype != pl.String or not len(column):
        return column
    column = column.str.strip_chars()
    if kind == "number":
        numbers = column.cast(pl.Float64, strict=False)
        return numbers if numbers.null_count() == column.null_count() else column
    for integer in (pl.Int64, pl.UInt64) if kind == "id" else ():
        numbers = column.cast(integer, strict=False)
        if not numbers.null_count() and (numbers.cast(pl.String) == column).all():
            return numbers
    return column
