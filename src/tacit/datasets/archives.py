"""Files of a dataset, by themselves or in a zip archive, never larger than they can be.

A member is unpacked into memory, or into a temporary folder that is gone afterwards; names inside
an archive never become paths.
"""

import hashlib
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path, PurePosixPath
from typing import IO

from tacit._damaged import TORN
from tacit.datasets.spec import Member
from tacit.errors import DataError

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


@contextmanager
def member_stream(source: Path, member: Member) -> Iterator[IO[bytes]]:
    """The bytes of a member of `source`, which is the file itself or an archive of it."""
    with ExitStack() as stack:
        try:
            stream = _opened(source, member, stack)
        except (*TORN, NotImplementedError, RuntimeError, UnicodeError) as error:
            raise _damaged(source, error) from None
        try:
            yield stream
        except TORN as error:
            raise _damaged(source, error) from None


def _opened(source: Path, member: Member, stack: ExitStack) -> IO[bytes]:
    """Open the file itself, or the member inside the archive."""
    if source.name == member.name:
        _refuse_large(source, member, source.stat().st_size)
        return stack.enter_context(source.open("rb"))
    archive = stack.enter_context(zipfile.ZipFile(source))
    return stack.enter_context(archive.open(_entry(archive, member)))


def member_bytes(source: Path, member: Member) -> bytes:
    """The whole content of a member, checked against its sha256 where that is known."""
    with member_stream(source, member) as stream:
        content = stream.read()
    if member.sha256 is not None and hashlib.sha256(content).hexdigest() != member.sha256:
        raise DataError(
            f"{source}: {member.name} is not the published file (its sha256 is not "
            f"{member.sha256}); get it again"
        )
    return content


@contextmanager
def member_path(source: Path, member: Member) -> Iterator[Path]:
    """A path to read a member from; out of an archive, a temporary file."""
    if source.name == member.name:
        with member_stream(source, member):
            yield source
        return
    with tempfile.TemporaryDirectory(prefix="tacit-") as folder:
        unpacked = Path(folder) / member.name
        with member_stream(source, member) as stream, unpacked.open("wb") as file:
            shutil.copyfileobj(stream, file, 1 << 20)
        yield unpacked


def _entry(archive: zipfile.ZipFile, member: Member) -> zipfile.ZipInfo:
    """The one entry with the name of a member, if it can be unpacked safely."""
    source = Path(str(archive.filename))
    found = [
        entry for entry in archive.infolist() if PurePosixPath(entry.filename).name == member.name
    ]
    if len(found) != 1:
        raise DataError(f"{source}: {len(found)} files named {member.name} inside; expected one")
    if found[0].flag_bits & 1 or found[0].compress_type not in _METHODS:
        raise DataError(f"{source}: {member.name} is packed in an unknown way; get it again")
    _refuse_large(source, member, found[0].file_size)
    return found[0]


def _refuse_large(source: Path, member: Member, size: int) -> None:
    """Refuse a file that is larger than the published one can be."""
    if size > member.most_bytes:
        raise DataError(
            f"{source}: {member.name} has more than {member.most_bytes} bytes, so it is not the "
            "published file; get it again"
        )


def _damaged(source: Path, error: Exception) -> DataError:
    """The error for an archive that cannot be unpacked, or a file that cannot be read."""
    why = (
        error.strerror if isinstance(error, OSError) and error.strerror else "cut short or damaged"
    )
    return DataError(f"{source}: cannot be read ({why}); get it again")
