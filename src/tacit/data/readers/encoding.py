"""How text is encoded: UTF-8 as it is, UTF-16 by its byte order mark, and a remedy for the rest."""

import codecs
from pathlib import Path

from tacit._atomic import reason_of
from tacit._resources import physical_memory
from tacit.errors import DataError

_MARKS = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}
_SHARE = 8  # a text that is made in memory may take this part of it


def room() -> float:
    """How many bytes of text may be made in memory: it is held several times while it is read."""
    return physical_memory() / _SHARE


def as_utf8(path: Path, head: bytes, size: int) -> bytes | None:
    """All of a file as UTF-8, if its first bytes say that it is UTF-16; None: it is read as it is.

    `size` is how many first bytes there are of a file that has more.
    """
    encoding = _MARKS.get(head[:2])
    if encoding is None:
        return None
    if len(head) == size and 2 * path.stat().st_size > room():
        raise DataError(f"{path}: UTF-16, and too large to convert in memory. {remedy(path)}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason_of(error)})") from None
    return decoded(path, content)


def decoded(path: Path, content: bytes) -> bytes:
    """A whole text as UTF-8: itself, unless it begins with the byte order mark of UTF-16."""
    encoding = _MARKS.get(content[:2])
    if encoding is None:
        return content
    try:
        return content[2:].decode(encoding).encode()
    except UnicodeError:
        raise DataError(f"{path}: it begins as UTF-16 text and does not go on as such") from None


def is_text(head: bytes) -> bool:
    """Whether the first bytes of a file can be text that is read: UTF-8, or marked as UTF-16."""
    if head[:2] in _MARKS:
        return True
    try:
        return "\0" not in codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        return False


def whole_text(path: Path, head: bytes) -> str:
    """The first bytes of a UTF-8 file as text; all else is refused with what to do."""
    if is_text(head):
        return codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    pairs = min(len(head), 1000) // 2
    zeros = max(head[0 : 2 * pairs : 2].count(0), head[1 : 2 * pairs : 2].count(0))
    if pairs and zeros > 0.8 * pairs:
        raise DataError(
            f"{path}: looks like UTF-16 without a byte order mark. {remedy(path, 'UTF-16LE')}"
        )
    if b"\0" in head:
        raise DataError(
            f"{path}: not a table of text, nor Parquet or Arrow (unpack or convert it first)"
        )
    raise DataError(
        f"{path}: not UTF-8 text; perhaps Latin-1 (Windows-1252), as older spreadsheets write. "
        f"{remedy(path)}"
    )


def remedy(path: Path, encoding: str = "WINDOWS-1252") -> str:
    """What to type to have a file in UTF-8."""
    return f"Convert it: iconv -f {encoding} -t UTF-8 {path.name} > utf8-{path.name}"
