"""Write a file whole or not at all, lock one, and say why it cannot be used."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, BinaryIO

_CANNOT_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}


def write_durably(path: Path, content: bytes, *, owner_only: bool = False) -> None:
    """Write a whole file or nothing; see `durable_file`."""
    with durable_file(path, owner_only=owner_only) as file:
        file.write(content)


@contextmanager
def durable_file(path: Path, *, owner_only: bool = False) -> Iterator[BinaryIO]:
    """Write a whole file or nothing: to a temporary name, synced, renamed, the folder synced.

    If this returns, the file survives a loss of power. If it raises, the file at `path` is the old
    one or the new one, whole, and an OSError names `path`. A process that is killed in it can leave
    a temporary file behind, whose name begins with a dot and ends in `.part`.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        temporary.unlink(missing_ok=True)
        # A new file: what someone may have put at this name, a link say, is not written through.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(temporary, flags, 0o600 if owner_only else 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:  # of a full disk it names no file, of a read-only folder the temporary
        error.filename = str(path)
        raise
    finally:
        with suppress(OSError):  # what cannot be written cannot be removed either
            temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def make_folder(path: Path) -> None:
    """Make a folder for its owner only, and the folders above it, where they are not there yet."""
    missing = [level for level in (path, *path.parents) if not level.exists()]
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    for level in missing:
        sync_folder(level.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable, on systems where that can be done."""
    if not hasattr(os, "O_DIRECTORY"):  # Windows: folders cannot be opened
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
    finally:
        os.close(descriptor)


def hold(path: Path) -> IO[bytes]:
    """Lock a file for this process; the system lets go when the process ends, however.

    Raises:
        BlockingIOError: another process holds it.
    """
    file = path.open("ab")
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except ImportError:  # a system without flock
        pass
    except OSError:
        file.close()
        raise
    return file


def reason_of(error: Exception) -> str:
    """Say why a file cannot be read or written, without its name."""
    if isinstance(error, UnicodeError):
        return "it is not text in UTF-8"
    return getattr(error, "strerror", None) or type(error).__name__
