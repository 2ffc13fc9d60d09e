"""Public descriptions with a digest of their value: the keys of caches and partial sums.

An engine may send a description to another process and back. It is then another object with the
same content, and must be known again: otherwise every round would begin from scratch.
"""

import hashlib
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tacit.errors import EngineError


class Described:
    """A frozen dataclass of public numbers, arrays and other descriptions."""

    @cached_property
    def digest(self) -> bytes:
        """SHA-256 of the class and of all fields; equal for equal content, in any process."""
        state = hashlib.sha256()
        _feed(state, self)
        return state.digest()


def _feed(state: Any, value: Any) -> None:
    """Add a value to a hash, with its kind and length, so that no two values look the same."""
    if isinstance(value, np.ndarray):
        state.update(f"array {value.dtype} {value.shape};".encode() + value.tobytes())
    elif is_dataclass(value):
        state.update(f"{type(value).__module__}.{type(value).__qualname__};".encode())
        for each in fields(value):
            _feed(state, getattr(value, each.name))
    elif isinstance(value, tuple | list):
        state.update(f"sequence {len(value)};".encode())
        for part in value:
            _feed(state, part)
    elif value is None or isinstance(value, bool | int | float | str | np.generic):
        text = repr(value)
        state.update(f"{type(value).__name__} {len(text)} {text};".encode())
    else:
        raise EngineError(f"{type(value).__name__}: a description of this kind has no value")
