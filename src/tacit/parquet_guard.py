"""A look at a Parquet file before polars reads it.

A page that says it has -1 values makes polars ask for all memory there is and end the whole
process, which Python cannot catch. So the counts and sizes in the footer and in the headers of all
pages that will be read are compared with each other and with the file. Page contents are not looked
at: what is wrong there is an error of polars, which can be caught.

The numbers of fields are those of `parquet.thrift`.
"""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from tacit.compact_thrift import Fields, Unsound, read_structure
from tacit.cores import physical_memory
from tacit.errors import DataError

__all__ = ["Footer", "checked_footer"]

_MAGIC = b"PAR1"
_LARGEST_FOOTER = 1 << 28
_HEADER_SIZES = (256, 1 << 16, 1 << 24)
"""How many bytes are read in the hope that they hold a page header; statistics can make it long."""

_WIDTHS = {0: 1, 1: 4, 2: 8, 3: 12, 4: 4, 5: 8}
"""Bytes of a value by physical type: Boolean, Int32, Int64, Int96, Float, Double."""
_FIXED, _TEXT_VIEW = 7, 16

_DENSEST = {0: 1, 1: 64, 2: 1100, 4: 1 << 20, 5: 300, 6: 33_000, 7: 300}
"""How many bytes one byte can stand for, by codec: none, Snappy, gzip, Brotli, LZ4, Zstandard, LZ4.

Limits of those formats, rounded up: Snappy copies at most 64 bytes with three, LZ4 255 with one,
deflate 258 with two bits, and a block of Zstandard is at most 128 KiB, from four bytes.
"""
_SLACK = 1 << 12
_EMPTY_PAGES = 16
_DATA, _INDEX, _DICTIONARY, _DATA_2 = range(4)


class _Leaf(NamedTuple):
    """A column that holds values: its outermost name, type, bytes of a value, and whether lists."""

    name: bytes
    kind: int
    width: int | None
    repeated: bool


class _Chunk(NamedTuple):
    """One column in one group of rows."""

    leaf: _Leaf
    start: int
    end: int
    values: int
    codec: int


@dataclass(frozen=True)
class Footer:
    """The columns of a Parquet file, by group of rows, as its footer says."""

    path: Path
    chunks: Sequence[_Chunk]

    def check_columns(self, names: Collection[str]) -> None:
        """Look at the headers of all pages of some columns; a DataError if they cannot be right."""
        wanted = {name.encode() for name in names}
        chunks = [chunk for chunk in self.chunks if chunk.leaf.name in wanted]
        if sum(chunk.values * (chunk.leaf.width or _TEXT_VIEW) for chunk in chunks) > _room():
            raise DataError(f"{self.path}: says that it holds more than fits into memory")
        try:
            with self.path.open("rb", buffering=0) as file:
                size = sum(_check_pages(file, chunk) for chunk in chunks)
        except (OSError, Unsound):
            raise _trouble(self.path) from None
        if size > _room():
            raise DataError(f"{self.path}: says that it holds more than fits into memory")


def checked_footer(path: Path) -> Footer:
    """Read the footer of a Parquet file; a DataError if it cannot be right."""
    try:
        content, place = _footer_bytes(path)
        fields, _ = read_structure(content)
        return Footer(path, _chunks(fields, place))
    except (OSError, Unsound):
        raise _trouble(path) from None


def _trouble(path: Path) -> DataError:
    return DataError(f"{path}: no whole Parquet file (cut short, damaged, or of another format)")


def _room() -> float:
    return physical_memory()


def _footer_bytes(path: Path) -> tuple[bytes, int]:
    """The footer, and where it begins."""
    with path.open("rb", buffering=0) as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - 8))
        tail = file.read(8)
        length = int.from_bytes(tail[:4], "little")
        place = size - 8 - length
        if tail[4:] != _MAGIC or place < 4 or length > _LARGEST_FOOTER:
            raise Unsound("no footer")
        file.seek(place)
        return file.read(length), place


def _get(fields: Any, number: int, kind: type, default: Any = None) -> Any:
    """A field of a structure, of the type it must have."""
    value = fields.get(number, default) if isinstance(fields, dict) else None
    if type(value) is not kind:
        raise Unsound("a field is missing or of another type")
    return value


def _count(fields: Any, number: int) -> int:
    """A field that is a number of at least 0."""
    value = fields.get(number) if isinstance(fields, dict) else None
    if type(value) is not int or value < 0:
        raise Unsound("a count is missing, of another type, or below 0")
    return value


def _chunks(footer: Fields, place: int) -> list[_Chunk]:
    leaves = _leaves(_get(footer, 2, list))
    groups, chunks = _get(footer, 4, list), []
    if sum(_count(group, 3) for group in groups) != _count(footer, 3):
        raise Unsound("groups do not have as many rows as the file")
    for group in groups:
        columns = _get(group, 1, list)
        if len(columns) != len(leaves):
            raise Unsound("a group has other columns than the file")
        rows = _count(group, 3)
        chunks += [_chunk(*pair, rows, place) for pair in zip(columns, leaves, strict=True)]
    return chunks


def _chunk(column: Any, leaf: _Leaf, rows: int, place: int) -> _Chunk:
    about: Fields = _get(column, 3, dict)
    values, codec = _count(about, 5), _count(about, 4)
    if 1 in column or 8 in column or codec not in _DENSEST or _get(about, 1, int) != leaf.kind:
        raise Unsound("in another file, encrypted, or of another type")
    if values < rows or (values != rows and not leaf.repeated):
        raise Unsound("a column does not have as many values as its group has rows")
    start = _count(about, 11) if 11 in about else _count(about, 9)
    end = start + _count(about, 7)
    if end > place or (values and start < 4):
        raise Unsound("a column is outside the file")
    return _Chunk(leaf, start, end, values, codec)


def _leaves(schema: list[Any]) -> list[_Leaf]:
    """The columns that hold values, in order, from the tree of all columns."""
    elements = iter(schema)
    children = _get(next(elements, None), 5, int)
    leaves = [leaf for _ in range(children) for leaf in _below(elements, None, False, 0)]
    if children < 1 or next(elements, None) is not None:
        raise Unsound("the columns are no tree")
    return leaves


def _below(elements: Iterator[Any], name: bytes | None, lists: bool, depth: int) -> list[_Leaf]:
    """The leaves of the next column in the tree."""
    element = next(elements, None)
    own: bytes = _get(element, 4, bytes)
    name, lists = own if name is None else name, lists or _get(element, 3, int, 0) == 2
    children = _get(element, 5, int, 0)
    if not 0 <= children <= 10_000 or depth > 64:
        raise Unsound("the columns are no tree")
    if children:
        nested = (_below(elements, name, lists, depth + 1) for _ in range(children))
        return [leaf for leaves in nested for leaf in leaves]
    kind: int = _get(element, 1, int)
    width = _count(element, 2) if kind == _FIXED else _WIDTHS.get(kind)
    return [_Leaf(name, kind, width, lists)]


def _check_pages(file: IO[bytes], chunk: _Chunk) -> int:
    """Walk over the pages of a column; return how many bytes they are when unpacked."""
    at, seen, size, pages = chunk.start, 0, 0, 0
    while seen < chunk.values:
        if pages > chunk.values + _EMPTY_PAGES:
            raise Unsound("pages without values")
        header, after = _page_header(file, at, chunk.end)
        unpacked, packed = _count(header, 2), _count(header, 3)
        at = after + packed
        if at > chunk.end or unpacked > _SLACK + packed * _DENSEST[chunk.codec]:
            raise Unsound("a page is larger than its column, or than it can be")
        if not chunk.codec and unpacked != packed:
            raise Unsound("a page that is not packed has two sizes")
        seen += _check_page(header, unpacked, chunk.leaf, first=not pages)
        size, pages = size + unpacked, pages + 1
    if seen != chunk.values:
        raise Unsound("pages have more values than their column")
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


def _check_page(header: Fields, unpacked: int, leaf: _Leaf, *, first: bool) -> int:
    """Check one page; return how many values of the column it has."""
    kind = _get(header, 1, int)
    if kind == _DATA:
        return _check_data(_get(header, 5, dict), unpacked, leaf)
    if kind == _DATA_2:
        return _check_data_2(_get(header, 8, dict), unpacked, leaf)
    if kind == _DICTIONARY and first:
        least = _count(_get(header, 7, dict), 1) * (leaf.width or 4)
        if least > unpacked:
            raise Unsound("a dictionary has more values than fit into it")
    elif kind != _INDEX:
        raise Unsound("an unknown page, or a second dictionary")
    return 0


def _check_data(about: Fields, unpacked: int, leaf: _Leaf) -> int:
    values = _count(about, 1)
    if leaf.width is not None and unpacked > _SLACK + values * (leaf.width + 8):
        raise Unsound("a page is larger than its values")
    return values


def _check_data_2(about: Fields, unpacked: int, leaf: _Leaf) -> int:
    values = _check_data(about, unpacked, leaf)
    nulls, rows = _count(about, 2), _count(about, 3)
    if nulls > values or rows > values or (rows != values and not leaf.repeated):
        raise Unsound("a page has more rows or nulls than values")
    if _count(about, 5) + _count(about, 6) > unpacked:
        raise Unsound("a page is smaller than its levels")
    return values
