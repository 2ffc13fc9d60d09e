"""The digest in a model file: any accidental change of a bit is noticed on loading.

It is SHA-256 over all bytes of the file, with the 64 hex digits of the digest itself taken as
zeros. Whoever changes a file on purpose can compute it again: `tacit.models.signing` is for that.
"""

import hashlib
import re
from pathlib import Path
from typing import Any

from tacit.errors import ModelFileError

BLANK = "sha256:" + 64 * "0"
"""What stands in the place of the digest while it is computed."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


def sealed(content: bytes) -> bytes:
    """Return a model file's bytes with their digest in the place of the first BLANK."""
    digest = "sha256:" + hashlib.sha256(content).hexdigest()
    return content.replace(BLANK.encode(), digest.encode(), 1)


def check_digest(path: Path, stated: Any) -> None:
    """Refuse a file whose bytes do not give the digest that is stated in its header."""
    if not isinstance(stated, str) or not _DIGEST.fullmatch(stated):
        raise ModelFileError("it has no digest of its content, which its format requires")
    with path.open("rb") as file:
        length = file.read(8)
        header = file.read(int.from_bytes(length, "little"))
        blanked = header.replace(stated.encode(), BLANK.encode(), 1)
        found = hashlib.sha256(length + blanked)
        while chunk := file.read(1 << 20):
            found.update(chunk)
    if f"sha256:{found.hexdigest()}" != stated:
        raise ModelFileError(
            "its content does not match its digest; it was damaged or changed: get it again"
        )
