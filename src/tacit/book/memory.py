"""What refits remember, as bytes: noisy releases combined over time, which are public."""

import hashlib
from collections.abc import Mapping

__all__ = ["digest_of"]


def digest_of(memory: Mapping[str, bytes]) -> str:
    """Return a fingerprint of everything that is remembered, by name."""
    parts = hashlib.sha256()
    for name in sorted(memory):
        parts.update(f"{len(name)}:{name}:".encode())
        parts.update(hashlib.sha256(memory[name]).digest())
    return parts.hexdigest()
