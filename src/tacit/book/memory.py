"""What refits remember, as bytes: noisy releases combined over time, which are public."""

import hashlib
from collections.abc import Callable, Mapping

__all__ = ["Remember", "digest_of"]

Remember = Callable[[Mapping[str, bytes]], dict[str, bytes]]
"""From what is remembered when a refit ends, what is remembered from then on."""


def digest_of(memory: Mapping[str, bytes]) -> str:
    """Return a fingerprint of everything that is remembered, by name."""
    parts = hashlib.sha256()
    for name in sorted(memory):
        parts.update(f"{len(name)}:{name}:".encode())
        parts.update(hashlib.sha256(memory[name]).digest())
    return parts.hexdigest()
