"""The exceptions that reading a damaged or foreign file can raise."""

import struct
import zipfile
import zlib

from safetensors import SafetensorError

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""JSON and TOML: text that cannot be read, or that says something else than what is looked for."""

UNSOUND = (*MALFORMED, MemoryError, SafetensorError)
"""Arrays and what is said of them; tables raise `data.tables:READER_ERRORS` as well."""

TORN = (EOFError, OSError, struct.error, zipfile.BadZipFile, zlib.error)
"""Packed files that are cut short or damaged."""
