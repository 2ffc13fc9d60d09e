"""Files that are there whole or not at all."""

import contextlib
import os
from pathlib import Path

__all__ = ["write_durably"]


def write_durably(path: Path, content: bytes, *, owner_only: bool = False) -> None:
    """Write a whole file or nothing: to a temporary name, synced, renamed, the folder synced."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            if owner_only:
                temporary.chmod(0o600)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    with contextlib.suppress(OSError, AttributeError):  # folders cannot be synced everywhere
        descriptor = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
