"""Text tables compressed with gzip or zip: unpacked in memory, never on disk, up to a limit.

A small file can unpack to more than any machine holds: unpacking stops as soon as it has made
more than `encoding:room` allows.
"""

import gzip
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tacit._damaged import TORN
from tacit.data.readers.encoding import decoded, room
from tacit.data.readers.text import read_content
from tacit.data.tables import Choice, Table
from tacit.errors import DataError

_PIECE = 1 << 20
_DAMAGE = (*TORN, KeyError, NotImplementedError, RuntimeError, ValueError)
"""What the unpackers raise for a file that is damaged, encrypted or packed in a way unknown."""


class _Stream(Protocol):
    def read(self, size: int, /) -> bytes: ...


def read_gzip(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of a text table packed with gzip."""
    try:
        with gzip.open(path) as stream:
            content = _unpacked(path, stream)
    except DataError:
        raise
    except _DAMAGE:
        raise DataError(f"{path}: no whole gzip file (cut short or damaged)") from None
    return _read(path, content, wanted, optional)


def read_zip(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of the one text table in a zip archive."""
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(_only_member(path, archive)) as stream,
        ):
            content = _unpacked(path, stream)
    except DataError:
        raise
    except _DAMAGE:
        raise DataError(
            f"{path}: no whole zip archive (cut short, damaged or encrypted); unpack it first"
        ) from None
    return _read(path, content, wanted, optional)


def _only_member(path: Path, archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """The one file in an archive, whatever a Mac adds to it."""
    members = [
        member
        for member in archive.infolist()
        if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    if any(member.filename == "[Content_Types].xml" for member in members):
        raise DataError(f"{path}: a spreadsheet or document; save the table as CSV (UTF-8)")
    if len(members) != 1:
        raise DataError(
            f"{path}: an archive of {len(members)} files; expected one table. Unpack it and give "
            "the file of ratings"
        )
    return members[0]


def _unpacked(path: Path, stream: _Stream) -> bytes:
    """All that a stream holds, or an error once it is more than there is room for."""
    pieces, size, most = [], 0, room()
    while piece := stream.read(_PIECE):
        size += len(piece)
        if size > most:
            raise DataError(
                f"{path}: unpacks to more than {most:,.0f} bytes, which is what this machine has "
                "room for; unpack it on disk and give the file"
            )
        pieces.append(piece)
    return b"".join(pieces)


def _read(
    path: Path, content: bytes, wanted: Mapping[str, Choice], optional: frozenset[str]
) -> Table:
    if not content:
        raise DataError(f"{path}: the file in it is empty")
    if content.startswith((b"PAR1", b"ARROW1")):
        raise DataError(f"{path}: a packed Parquet or Arrow file; unpack it and give that")
    return read_content(path, decoded(path, content), wanted, optional)
