"""Checks on the structure of a Parquet file before polars reads it.

A page that says it has -1 values makes polars ask for all memory there is and end the whole
process, which Python cannot catch. So the counts and sizes in the footer and in the headers of the
pages that will be read must fit each other, the file and the memory of the machine. Page contents
are not looked at: what is wrong there is an error of polars, which can be caught.

Both are written in Thrift's compact protocol; field numbers are those of `parquet.thrift`. What
two readers could take for different numbers (a field given twice, a number too large for its
type) is refused.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, NamedTuple

from tacit._resources import physical_memory
from tacit.errors import DataError

Fields = dict[int, Any]
"""By field number: whole numbers, bytes, lists and structures; None for the rest."""

_BITS = {4: 16, 5: 32, 6: 64}
_SKIPPED = {1: 1, 2: 1, 3: 1, 7: 8}
_BINARY, _LIST, _SET, _STRUCTURE = 8, 9, 10, 12
_DEEPEST = 24
_LARGEST_FOOTER = 1 << 28
_HEADER_SIZES = (256, 1 << 16, 1 << 24)
"""How many bytes are read in the hope that they hold a page header; statistics can make it long."""

_DENSEST = {0: 1, 1: 64, 2: 1100, 4: 1 << 20, 5: 300, 6: 33_000, 7: 300}
"""How many bytes one byte can stand for, by codec: none, Snappy, gzip, Brotli, LZ4, Zstandard, LZ4.

Limits of those formats, rounded up: Snappy copies at most 64 bytes with three, LZ4 255 with one,
deflate 258 with two bits, and a block of Zstandard is at most 128 KiB, from four bytes.
"""
_SLACK = 1 << 12
_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)
_DETAILS = {_DATA: 5, _INDEX: 6, _DICTIONARY: 7, _DATA_2: 8}
_TEXT, _TEXT_WIDTH, _WIDTH = 6, 16, 8


class Unsound(ValueError):  # noqa: N818 - it reads as a sentence
    """The bytes are not what they claim to be."""


class _Chunk(NamedTuple):
    """One column in one group of rows; `name` is that of the outermost column."""

    name: bytes
    repeated: bool
    start: int
    end: int
    values: int
    width: int
    codec: int


@dataclass(frozen=True)
class Footer:
    """The columns of a Parquet file, by group of rows, as its footer says."""

    path: Path
    chunks: Sequence[_Chunk]

    def check_columns(self, names: Collection[str], *, in_groups: bool = False) -> None:
        """Look at the headers of all pages of some columns; a DataError if they cannot be right.

        `in_groups` says that a group of rows is read at a time: then each must fit into memory.
        """
        wanted = {name.encode() for name in names}
        chunks = [chunk for chunk in self.chunks if chunk.name in wanted]
        at_once = partial(_largest, times=len(wanted)) if in_groups else sum
        size, room = at_once(chunk.values * chunk.width for chunk in chunks), physical_memory()
        try:
            if size <= room:
                with self.path.open("rb", buffering=0) as file:
                    size = at_once(_check_pages(file, chunk) for chunk in chunks)
        except (OSError, Unsound):
            raise _trouble(self.path) from None
        if size > room:
            raise DataError(f"{self.path}: says that it holds more than fits into memory")

    def rows(self, name: str) -> int:
        """How many rows there are, by a column that is in no list."""
        return sum(chunk.values for chunk in self.chunks if chunk.name == name.encode())


def _largest(sizes: Iterable[int], times: int) -> int:
    return max(sizes, default=0) * times


def checked_footer(path: Path) -> Footer:
    """Read the footer of a Parquet file; a DataError if it cannot be right."""
    try:
        with path.open("rb", buffering=0) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - 8))
            tail = file.read(8)
            length = int.from_bytes(tail[:4], "little")
            place = size - 8 - length
            _require(tail[4:] == b"PAR1" and place >= 4 and length <= _LARGEST_FOOTER)
            file.seek(place)
            fields, _ = read_structure(file.read(length))
        return Footer(path, list(_chunks(fields, place)))
    except (OSError, Unsound):
        raise _trouble(path) from None


def _trouble(path: Path) -> DataError:
    return DataError(f"{path}: no whole Parquet file (cut short, damaged, or of another format)")


def _require(holds: bool) -> None:
    if not holds:
        raise Unsound("a count, a size or a type that cannot be right")


def _get(fields: Any, number: int, kind: type, default: Any = None) -> Any:
    """A field of the type it must have; a number is at least 0."""
    value: Any = fields.get(number, default) if isinstance(fields, dict) else None
    _require(type(value) is kind and not (isinstance(value, int) and value < 0))
    return value


def _chunks(footer: Fields, place: int) -> Iterator[_Chunk]:
    leaves, groups = _leaves(_get(footer, 2, list)), _get(footer, 4, list)
    _require(sum(_get(group, 3, int) for group in groups) == _get(footer, 3, int))
    for group in groups:
        columns, rows = _get(group, 1, list), _get(group, 3, int)
        _require(len(columns) == len(leaves))
        for column, (name, kind, repeated) in zip(columns, leaves, strict=True):
            about = _get(column, 3, dict)
            start = _get(about, 11 if 11 in about else 9, int)
            end, values = start + _get(about, 7, int), _get(about, 5, int)
            codec, width = _get(about, 4, int), _TEXT_WIDTH if kind == _TEXT else _WIDTH
            elsewhere = 1 in column or 8 in column  # in another file, or encrypted
            _require(not elsewhere and codec in _DENSEST and _get(about, 1, int) == kind)
            _require(values == rows or (repeated and values > rows))
            _require(end <= place and (start >= 4 or not values))
            yield _Chunk(name, repeated, start, end, values, width, codec)


def _leaves(schema: list[Any]) -> list[tuple[bytes, int, bool]]:
    """The columns that hold values: outermost name, physical type, and whether in lists."""
    leaves: list[tuple[bytes, int, bool]] = []
    above: list[tuple[bytes | None, bool]] = [(None, False)] * _children(next(iter(schema), None))
    for element in schema[1:]:
        _require(bool(above))
        (name, repeated), own = above.pop(), _get(element, 4, bytes)
        name, repeated = own if name is None else name, repeated or element.get(3) == 2
        if children := _children(element):
            above += [(name, repeated)] * children
        else:
            leaves.append((name, _get(element, 1, int), repeated))
    _require(bool(leaves) and not above)
    return leaves


def _children(element: Any) -> int:
    children: int = _get(element, 5, int, 0)
    _require(children <= 10_000)
    return children


def _check_pages(file: IO[bytes], chunk: _Chunk) -> int:
    """Walk over the pages of a column; return how many bytes they are when unpacked."""
    at, seen, size, first = chunk.start, 0, 0, True
    while seen < chunk.values:
        header, after = _page_header(file, at, chunk.end)
        unpacked, packed = _get(header, 2, int), _get(header, 3, int)
        at = after + packed
        _require(at <= chunk.end and unpacked <= _SLACK + packed * _DENSEST[chunk.codec])
        _require(unpacked == packed or chunk.codec > 0)
        seen += _check_page(header, unpacked, chunk.repeated, first)
        size, first = size + unpacked, False
    _require(seen == chunk.values)
    return size


def _page_header(file: IO[bytes], at: int, end: int) -> tuple[Fields, int]:
    """The page header at a place, and the place after it."""
    for size in _HEADER_SIZES:
        file.seek(at)
        content = file.read(min(size, end - at))
        try:
            header, length = read_structure(content)
        except Unsound:
            if len(content) < size:
                raise
        else:
            return header, at + length
    raise Unsound("a page header is too long")


def _check_page(header: Fields, unpacked: int, repeated: bool, first: bool) -> int:
    """Check one page; return how many values of the column it has."""
    kind = _get(header, 1, int)
    _require(kind in _DETAILS and (kind != _DICTIONARY or first))
    about = _get(header, _DETAILS[kind], dict)
    if kind == _INDEX:
        return 0
    values: int = _get(about, 1, int)
    if kind == _DICTIONARY:
        _require(values <= unpacked)  # a value takes a byte at least
        return 0
    if kind == _DATA_2:
        nulls, rows = _get(about, 2, int), _get(about, 3, int)
        _require(nulls <= values and (rows == values or (repeated and rows < values)))
        _require(_get(about, 5, int) + _get(about, 6, int) <= unpacked)
    return values


def read_structure(content: bytes) -> tuple[Fields, int]:
    """Read the structure that begins the bytes; return its fields and the place after it."""
    try:
        fields, end = _structure(content, 0, 0)
    except IndexError:
        end = len(content) + 1
    if end > len(content):
        raise Unsound("it is cut short")
    return fields, end


def _structure(content: bytes, at: int, depth: int) -> tuple[Fields, int]:
    fields: Fields = {}
    number = 0
    while head := content[at]:
        at, kind = at + 1, head & 15
        if head > 15:
            number += head >> 4
        else:
            number, at = _value(content, at, 4, depth)
        if number in fields:
            raise Unsound("a field is given twice")
        if kind in (1, 2):  # the type of a truth value is its value
            fields[number] = None
        else:
            fields[number], at = _value(content, at, kind, depth)
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind in _BITS:
        value, at = _varint(content, at)
        if value >> _BITS[kind]:
            raise Unsound("a number is too large for its type")
        return (value >> 1) ^ -(value & 1), at
    if kind == _BINARY:
        length, at = _varint(content, at)
        return content[at : at + length], at + length
    if kind in _SKIPPED:
        return None, at + _SKIPPED[kind]
    if depth > _DEEPEST or kind not in (_LIST, _SET, _STRUCTURE):
        raise Unsound("nested too deeply, or a type that Parquet does not use")
    return (_structure if kind == _STRUCTURE else _list)(content, at, depth + 1)


def _list(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    length, kind = content[at] >> 4, content[at] & 15
    at += 1
    if length == 15:
        length, at = _varint(content, at)
    if length > len(content) - at:  # each takes a byte at least
        raise Unsound("it is cut short")
    values = []
    for _ in range(length):
        value, at = _value(content, at, kind, depth)
        values.append(value)
    return values, at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first."""
    value = shift = 0
    while shift <= 63:
        byte = content[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    raise Unsound("a number is too long")
