"""The registry of readers: which reader each kind of file has.

To add a format, write a function like `read_parquet` in a file of its own, and enter its suffixes
in `READERS`.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike, fspath
from pathlib import Path

import polars as pl

from tacit._atomic import reason_of
from tacit.data.readers.arrow import read_arrow
from tacit.data.readers.encoding import is_text
from tacit.data.readers.packed import read_gzip, read_zip
from tacit.data.readers.parquet import parquet_batches, parquet_rows, read_parquet
from tacit.data.readers.text import HEAD, read_text
from tacit.data.readers.text_batches import text_batches, text_rows
from tacit.data.tables import Choice, Table, tells
from tacit.errors import ConfigError, DataError

Reader = Callable[[Path, Mapping[str, Choice], frozenset[str]], Table]
"""The wanted roles of a file that is there and not empty; those in the set may be missing."""

READERS: dict[str, Reader] = {
    ".csv": read_text,
    ".tsv": read_text,
    ".txt": read_text,
    ".dat": read_text,
    ".data": read_text,
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".ipc": read_arrow,
    ".gz": read_gzip,
    ".zip": read_zip,
}
"""The reader of each suffix. Text under any other suffix is read as a text table."""

_IN_PARTS: dict[Reader, Callable[..., Iterator[tuple[Table, float]]]] = {
    read_parquet: parquet_batches,
    read_text: lambda path, wanted, _rows: text_batches(path, wanted),
}
"""What reads a file of this kind some rows at a time, where there is such a thing."""

_ROWS: dict[Reader, Callable[[Path], int]] = {read_parquet: parquet_rows}
"""What counts the rows of a file of this kind; of others, they are judged by their first lines."""

_BEGINNINGS = {
    b"PAR1": ".parquet",
    b"ARROW1": ".arrow",
    b"FEA1": ".feather",
    b"\x1f\x8b": ".gz",
    b"PK\x03\x04": ".zip",
}
"""First bytes that tell a format whatever the suffix."""


def read_file(
    path: Path, wanted: Mapping[str, Choice], optional: frozenset[str] = frozenset()
) -> Table:
    """The wanted roles of one text table (packed or not), Parquet or Arrow file."""
    return _reader_of(path, _head_of(path))(path, wanted, optional)


def read_batches(
    path: Path, wanted: Mapping[str, Choice], rows: int
) -> Iterator[tuple[Table, float]]:
    """The wanted roles of one file, a part at a time, with the share that was read so far.

    A reader that knows no parts gives the whole file at once.
    """
    reader = _reader_of(path, _head_of(path))
    if reader in _IN_PARTS:
        yield from _IN_PARTS[reader](path, wanted, rows)
    else:
        yield reader(path, wanted, frozenset()), 1.0


def rows_about(path: Path) -> int:
    """About how many rows a file has, without reading it."""
    return _ROWS.get(_reader_of(path, _head_of(path)), text_rows)(path)


def _reader_of(path: Path, head: bytes) -> Reader:
    """The reader of a file, by its first bytes, its suffix, or because it is text."""
    for beginning, suffix in _BEGINNINGS.items():
        if head.startswith(beginning):
            return READERS[suffix]
    reader = READERS.get(path.suffix.lower())
    if reader is None and not is_text(head):
        raise DataError(
            f"{path}: unknown suffix {path.suffix!r}, and no text; files that can be read: "
            f"{' '.join(READERS)} (unpack or convert it first)"
        )
    return reader or read_text


def read_own_ratings(
    path: str | PathLike[str],
    *,
    item: Choice = None,
    rating: Choice = None,
    implicit: bool = False,
) -> pl.DataFrame:
    """One person's ratings: a file with columns item and rating, as a frame with those names.

    With `implicit` only the item column is read. A file whose header names a column of users is
    refused if there are several: they would be taken for one person.
    """
    wanted = {"item": item} if implicit else {"item": item, "rating": rating}
    own = pl.DataFrame(read_file(_one_file(path), wanted))
    users = read_file(_one_file(path), {"user": None}, frozenset({"user"})).get("user")
    # Without a header, any column may be that of users, and none is.
    if users is not None and tells("user", users.name) and users.n_unique() > 1:
        raise DataError(
            f"{path}: ratings of several users; expected those of one person. Keep the rows of one "
            "of them, or ask for everyone's result (on the command line: -o FILE)"
        )
    return own


def read_items(path: str | PathLike[str]) -> pl.DataFrame:
    """Some items: a file with a column item, as a frame of that name."""
    return pl.DataFrame(read_file(_one_file(path), {"item": None}))


def _one_file(path: str | PathLike[str]) -> Path:
    paths = files_of(path)
    if len(paths) > 1:
        raise DataError(f"{path}: {len(paths)} files match; expected one file")
    return paths[0]


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
    for entry in entries:
        if re.match(r"[a-z][a-z0-9+]+://", str(entry)):
            raise DataError(f"{entry}: an address, not a file; download it, and give the file")
    paths = [path for entry in entries for path in _expand(Path(fspath(entry)))]
    seen: set[Path] = set()
    for path in paths:
        if path.resolve() in seen:
            raise DataError(f"{path}: the file is given twice; give each once")
        seen.add(path.resolve())
    return paths


def _expand(path: Path) -> list[Path]:
    """The file itself, or the files that it matches as a pattern."""
    try:
        if path.is_file():
            return [path]
        folder = path.is_dir()
    except (OSError, ValueError):  # a name too long, or with a zero byte in it
        raise DataError(f"{path}: no such file") from None
    if folder:
        raise DataError(
            f"{path}: a folder; give a pattern such as {path / '*.parquet'}, or the files that a "
            "store was made of"
        )
    if not any(sign in str(path) for sign in "*?["):
        raise DataError(f"{path}: no such file")
    found = _matching(path)
    if not found:
        raise DataError(f"{path}: no file matches this pattern")
    return found


def _matching(path: Path) -> list[Path]:
    base, pattern = Path(path.anchor), str(path.relative_to(path.anchor))
    try:
        return sorted(match for match in base.glob(pattern) if match.is_file())
    except (OSError, ValueError):  # an unreadable folder, or no pattern after all
        return []


def _head_of(path: Path) -> bytes:
    """The first bytes of a file that is there and not empty."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise DataError(f"{path}: a pipe or a device; expected a file")
    try:
        with path.open("rb") as stream:
            head = stream.read(HEAD)
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason_of(error)})") from None
    if not head:
        raise DataError(f"{path}: the file is empty")
    return head
