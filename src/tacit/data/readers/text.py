"""Text tables: separator and header judged from the first lines, columns read by position.

Fields are separated by `::`, a tab, a comma, a semicolon or a bar; the text is UTF-8, or UTF-16
with a byte order mark. A first line without any number is a header.

Every id is judged by itself, whatever else is in its column: a whole number is that number,
with or without a point and zeros after it (`12`, `12.0`); anything else is text as it is written,
leading zeros and signs included, without the blanks around it (see `written_ids`). Large
files are read as numbers at once where every id is plainly one; that gives the same.

The readers' own error texts quote what they read, so they stop here.
"""

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import polars as pl

from tacit._atomic import reason_of
from tacit.data.readers.encoding import as_utf8, remedy, whole_text
from tacit.data.tables import (
    KINDS,
    READER_ERRORS,
    Choice,
    Kind,
    Table,
    kind_of,
    places_of,
    spelled,
    tells,
)
from tacit.errors import DataError

Types = Mapping[int, pl.DataType]

HEAD = 1 << 18
"""How many bytes of a file are looked at before it is read."""

_SAMPLE = 1000
_LARGE = 1 << 20
"""Files of fewer bytes are read as text first: that takes no time, and needs no compiled loop."""

_SEPARATORS = ("::", "\t", ",", ";", "|")
_TELLING = KINDS.keys() - {"time"}  # an item may well be called "date"
_STAND_IN = "\x1f"
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_WHOLE = re.compile(r"(0|-?[1-9][0-9]*)(\.0*)?")
_WITH_POINT = r"^(0|-?[1-9][0-9]*)\.0*$"
_DIGITS: dict[type[pl.DataType], int] = {pl.Int64: 18, pl.Float64: 15}
"""How many digits these types hold, whatever the digits."""
_MARK = b"\xef\xbb\xbf"  # the byte order mark of UTF-8


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
    content: bytes | None = None
    """All of the text, where the file itself is packed or of another encoding."""

    @property
    def width(self) -> int:
        """How many fields a line has."""
        return len(self.first)

    @property
    def size(self) -> int:
        """How many bytes of text there are."""
        return self.path.stat().st_size if self.content is None else len(self.content)

    def open(self) -> BinaryIO:
        """Open the text."""
        return self.path.open("rb") if self.content is None else io.BytesIO(self.content)

    def name(self, place: int) -> str:
        """What messages call the column at a position."""
        return self.first[place].strip() if self.header else f"position {place}"


def read_text(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of a text table."""
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    return read_content(path, as_utf8(path, head, HEAD), wanted, optional)


def read_content(
    path: Path, content: bytes | None, wanted: Mapping[str, Choice], optional: frozenset[str]
) -> Table:
    """The wanted roles of a text table: of the file, or of UTF-8 that was made of it."""
    if content is None:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
    else:
        head = content[:HEAD]
    layout = replace(layout_of(path, head), content=content)
    places = places_in(layout, wanted, optional)
    columns = read_columns(layout, {k: kind_of(role) for role, k in places.items()})
    return {role: columns[k] for role, k in places.items()}


def places_in(
    layout: Layout, wanted: Mapping[str, Choice], optional: frozenset[str]
) -> dict[str, int]:
    """Where the wanted columns of a text are: by header, or by position where there is none."""
    where, names = str(layout.path), [layout.name(k) for k in range(layout.width)]
    if layout.header:
        return places_of(where, names, wanted, optional, shown=_surely_header(layout))
    for role, choice in wanted.items():
        if isinstance(choice, str) and not choice.isdecimal():
            raise DataError(
                f"{where}: the first line is no header, so there is no column {choice!r} "
                f"for the {role}. Give positions from 0 with {spelled(wanted)}."
            )
    by_order = {
        role: k if choice is None else choice
        for k, (role, choice) in enumerate(wanted.items())
        if choice is not None or role not in optional or k < layout.width
    }
    return places_of(where, names, by_order, optional)


def _surely_header(layout: Layout) -> bool:
    """Whether a message may show the first line: it is no rating of anybody beyond doubt."""
    if any(tells(role, name) for role in _TELLING for name in layout.first):
        return True
    columns = zip(*layout.sample, strict=False)
    return any(all(map(_is_number, column)) for column in columns)


def layout_of(path: Path, head: bytes) -> Layout:
    """Find separator, header and the first rows in the first bytes of a file."""
    lines = _lines(path, head)
    skip = next((k for k, line in enumerate(lines) if line.strip("\r")), None)
    if skip is None:
        raise DataError(f"{path}: the file has only blank lines")
    if lines[skip].lstrip()[:1] in ("{", "["):
        raise DataError(
            f"{path}: JSON, which is not read; write it as CSV or Parquet, with columns user, item "
            "and rating"
        )
    separator = next((sign for sign in _SEPARATORS if sign in lines[skip]), ",")
    try:
        rows = list(islice(_split(lines[skip:], separator), _SAMPLE))
    except csv.Error:
        rows = []
    if not rows:
        raise DataError(f"{path}: not a table of text, nor Parquet")
    header = not any(_is_number(field) for field in rows[0])
    return Layout(path, separator, header, skip + header, rows[0], rows[1:] if header else rows)


def read_columns(layout: Layout, kinds: Mapping[int, Kind]) -> dict[int, pl.Series]:
    """Read columns by position, as numbers where that gives the same as text, else as text."""
    source = _source(layout)
    frame = _scan(layout, source, _types(layout, source, kinds))
    if frame is None:
        frame = _scan(layout, source, dict.fromkeys(kinds, pl.String()))
    if frame is None or _maybe_short(layout, frame):
        _refuse_misshapen(layout)
    if frame is None:
        raise DataError(
            f"{layout.path}: lines that cannot be read: a quote that does not end, or signs that "
            f"are not UTF-8. {remedy(layout.path)}"
        )
    columns = {k: frame.get_column(str(k)).alias(layout.name(k)) for k in kinds}
    return {k: _tidy(column, kinds[k]) for k, column in columns.items()}


def written_ids(column: pl.Series) -> pl.Series:
    """Ids of a text file: each cell by itself, whatever the others are.

    Blanks around it are cut off. A whole number with a point and zeros behind it is that whole
    number; all else is itself. If
    all are whole numbers the column is one of integers. That changes neither which ids are equal
    nor which are in a catalogue: there an integer and its own text are the same id.

    >>> written_ids(pl.Series(["7", "7.0", "007", "+7", "x"])).to_list()
    ['7', '7', '007', '+7', 'x']
    >>> written_ids(pl.Series(["7", "7.0"])).to_list()
    [7, 7]
    """
    integers = _integers(column)
    if integers is not None:
        return integers
    column = column.str.strip_chars()
    if column.str.contains(".", literal=True).any():
        column = column.str.replace(_WITH_POINT, "$1")
    integers = _integers(column)
    return column if integers is None else integers


def _integers(column: pl.Series) -> pl.Series | None:
    """A column of integers, if every text of this one is that of an integer of 64 bits."""
    for integer in (pl.Int64, pl.UInt64):
        for texts in (column.head(_SAMPLE), column):  # most columns of other texts show it early
            numbers = texts.cast(integer, strict=False)
            if numbers.null_count() or not (numbers.cast(pl.String) == texts).all():
                break
        else:
            return numbers
    return None


def _is_number(field: str) -> bool:
    """Whether a field holds a number; words that Python takes for one (`nan`) are not."""
    try:
        float(field)
    except ValueError:
        return False
    return any(sign.isdigit() for sign in field)


def _lines(path: Path, head: bytes) -> list[str]:
    """The whole lines in the first bytes of a file."""
    lines = whole_text(path, head).split("\n")
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


def _types(layout: Layout, source: Path | bytes, kinds: Mapping[int, Kind]) -> Types:
    """The types to read columns as: ratings as numbers, ids too if all of them are plainly ones."""
    types: dict[int, pl.DataType] = {
        k: pl.Float64() if kind == "number" else pl.String() for k, kind in kinds.items()
    }
    seen = {k: _seen(layout, k) for k, kind in kinds.items() if kind == "id"}
    numbers = {k: found for k, found in seen.items() if found != pl.String}
    if numbers and _written_plainly(layout, source, numbers):
        types.update(numbers)
    return types


def _seen(layout: Layout, place: int) -> pl.DataType:
    """What type would do for the ids in the first lines."""
    fields = [row[place].strip() for row in layout.sample if len(row) > place]
    if not fields or not all(map(_WHOLE.fullmatch, fields)):
        return pl.String()
    return pl.Int64() if all(map(_INTEGER.fullmatch, fields)) else pl.Float64()


def _written_plainly(layout: Layout, source: Path | bytes, types: Types) -> bool:
    """Whether a large file writes all of these ids as its first lines do, which is as numbers."""
    if layout.size < _LARGE:
        return False
    import numpy as np

    from tacit.data.readers.text_loops import no_odd_starts, written_plainly

    if isinstance(source, bytes):
        text = np.frombuffer(source, dtype=np.uint8)
    else:
        text = np.asarray(np.memmap(source, dtype=np.uint8, mode="r"))
    text = text[line_start(text[:HEAD].tobytes(), layout.skip) :]
    separator, kinds = ord(_sign(layout)), {type(kind) for kind in types.values()}
    if kinds == {pl.Int64} and no_odd_starts(text, separator):
        return True  # if it is no integer all the same, the reader of integers fails
    wanted = np.array([k in types for k in range(layout.width)])
    return written_plainly(text, wanted, separator, min(_DIGITS[kind] for kind in kinds))


def line_start(head: bytes, skip: int) -> int:
    """Where the first line of values begins."""
    start = len(_MARK) if head.startswith(_MARK) else 0
    for _ in range(skip):
        start = head.index(b"\n", start) + 1
    return start


def _sign(layout: Layout) -> str:
    """The one sign between fields, where it need not be the one of the file."""
    return _STAND_IN if layout.separator == "::" else layout.separator


def _source(layout: Layout) -> Path | bytes:
    """What polars can read: the file, or its bytes with one sign in place of `::`."""
    if layout.separator != "::":
        return layout.path if layout.content is None else layout.content
    try:
        raw = layout.path.read_bytes() if layout.content is None else layout.content
    except OSError as error:
        raise DataError(f"{layout.path}: cannot be read ({reason_of(error)})") from None
    if _STAND_IN.encode() in raw:
        raise DataError(f"{layout.path}: cannot be read as text")
    return raw.replace(b"::", _STAND_IN.encode())


def _scan(layout: Layout, source: Path | bytes, types: Types) -> pl.DataFrame | None:
    """Read columns by position; None if polars cannot, as types or lines are not as expected.

    The last column is looked at too: a longer line then is an error.
    """
    lazy = pl.scan_csv(
        source,
        schema={str(k): types.get(k, pl.String()) for k in range(layout.width)},
        has_header=False,
        skip_lines=layout.skip,
        separator=_sign(layout),
        quote_char=None if layout.separator == "::" else '"',
        glob=False,
    )
    last = pl.col(str(layout.width - 1)).is_null().alias("short")
    try:
        frame = lazy.select(*(str(k) for k in types), last).collect()
    except READER_ERRORS:
        return None
    return frame.head(max(0, frame.height - _trailing_blanks(layout)))


def _trailing_blanks(layout: Layout) -> int:
    """How many blank lines end the file."""
    with layout.open() as stream:
        stream.seek(max(0, layout.size - 4096))
        tail = stream.read()
    return max(0, tail[len(tail.rstrip(b"\r\n")) :].count(b"\n") - 1)


def _maybe_short(layout: Layout, frame: pl.DataFrame) -> bool:
    """Whether lines may end early; an empty last field is no sign where it is usual."""
    usual = any(len(row) == layout.width and not row[-1] for row in layout.sample)
    return not usual and bool(frame.get_column("short").any())


def _refuse_misshapen(layout: Layout) -> None:
    """Count the lines with more or fewer fields than the first; an error if there are any."""
    with io.TextIOWrapper(
        layout.open(), encoding="utf-8-sig", errors="replace", newline=""
    ) as lines:
        try:
            count = sum(len(row) != layout.width for row in _split(lines, layout.separator))
        except csv.Error:
            return
    if count:
        raise DataError(
            f"{layout.path}: {count} line(s) of another shape than the first, which has "
            f"{layout.width} field(s) with {layout.separator!r} between them; mend them or "
            "leave them out (an id with that sign in it stands in quotes)"
        )


def _tidy(column: pl.Series, kind: Kind) -> pl.Series:
    """Text without the blanks around it, or the numbers that it stands for."""
    if column.dtype != pl.String or not len(column):
        return column
    if kind == "id":
        return written_ids(column)
    column = column.str.strip_chars()
    if kind == "number":
        numbers = column.cast(pl.Float64, strict=False)
        return numbers if numbers.null_count() == column.null_count() else column
    return column
