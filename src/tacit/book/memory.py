"""What refits remember, as bytes: noisy releases combined over time, which are public."""

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np
from safetensors.numpy import load, save

from tacit._atomic import write_durably

Remember = Callable[[Mapping[str, bytes]], dict[str, bytes]]
"""From what is remembered when a refit ends, what is remembered from then on."""
_FILE = "memory.safetensors"


def digest_of(memory: Mapping[str, bytes]) -> str:
    """Return a fingerprint of everything that is remembered, by name."""
    parts = hashlib.sha256()
    for name in sorted(memory):
        parts.update(f"{len(name)}:{name}:".encode())
        parts.update(hashlib.sha256(memory[name]).digest())
    return parts.hexdigest()


def write_memory(folder: Path, memory: Mapping[str, bytes]) -> None:
    """Keep in a checkpoint folder what a refit begins with; the book will not hold it for ever."""
    if memory:
        arrays = {name: np.frombuffer(content, np.uint8) for name, content in memory.items()}
        write_durably(folder / _FILE, save(arrays), owner_only=True)


def read_memory(folder: Path) -> dict[str, bytes]:
    """Return what the refit of a checkpoint folder began with; nothing if there is no file."""
    path = folder / _FILE
    arrays = load(path.read_bytes()) if path.exists() else {}
    return {name: array.tobytes() for name, array in arrays.items()}
