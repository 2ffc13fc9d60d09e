"""The file of one shard: rows and the ids of their users, as safetensors."""

import json
from os import SEEK_END
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from safetensors.numpy import save

from tacit._atomic import reason_of
from tacit._damaged import UNSOUND
from tacit.data.ratings import Ratings
from tacit.data.tables import READER_ERRORS
from tacit.errors import DataError

Arrays = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32]]

UNSOUND_SHARD = (*UNSOUND, *READER_ERRORS)
"""What bytes that are no shard can raise."""

_TYPES: dict[str, Any] = {
    "I64": np.int64,
    "U64": np.uint64,
    "F32": np.float32,
    "U16": np.uint16,
    "U32": np.uint32,
    "U8": np.uint8,
}
_LARGEST_HEADER = 1 << 16


def encoded(ratings: Ratings) -> bytes:
    """The bytes of a shard. Text ids are one run of UTF-8 and the places where they end."""
    arrays = {"indptr": ratings.indptr, "items": ratings.items, "values": ratings.values}
    ids = ratings.user_ids
    if ids.dtype == pl.String:
        texts = [text.encode() for text in ids.to_list()]
        arrays["text_ends"] = np.cumsum([len(text) for text in texts], dtype=np.int64)
        arrays["texts"] = np.frombuffer(b"".join(texts), np.uint8)
    else:
        arrays["users"] = ids.to_numpy()
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def decoded(content: bytearray, *, ids: bool) -> tuple[pl.Series, Arrays]:
    """The ids of users (none without `ids`) and their rows, in the memory of the content.

    Raises one of UNSOUND_SHARD for bytes that are no shard. `Rows` sees whether its rows are rows.
    """
    size = int.from_bytes(content[:8], "little")
    if size > min(_LARGEST_HEADER, len(content)):
        raise ValueError("header")
    header = json.loads(bytes(content[8 : 8 + size]))
    arrays = {
        name: _array(content, 8 + size, about)
        for name, about in header.items()
        if name != "__metadata__"
    }
    rows = arrays["indptr"], arrays["items"], arrays["values"]
    return (_user_ids(arrays) if ids else pl.Series("user", [], pl.Int64)), rows


def read_whole(path: Path) -> bytearray:
    """All bytes of a file, in memory of this process's own."""
    try:
        with path.open("rb", buffering=0) as file:
            content = bytearray(file.seek(0, SEEK_END))
            file.seek(0)
            view, at = memoryview(content), 0
            while at < len(content):
                read = file.readinto(view[at:])
                if not read:
                    raise DataError(f"{path}: it was cut short while it was read")
                at += read
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({reason_of(error)})") from None
    return content


def _array(content: bytearray, base: int, about: Any) -> NDArray[Any]:
    """One array of one dimension, whose bytes lie within the content."""
    start, stop = about["data_offsets"]
    kind, (count,) = np.dtype(_TYPES[about["dtype"]]), about["shape"]
    if not 0 <= start <= stop <= len(content) - base or stop - start != count * kind.itemsize:
        raise ValueError("offsets")
    array: NDArray[Any] = np.frombuffer(content, kind, count, base + start)
    return array


def _user_ids(arrays: dict[str, NDArray[Any]]) -> pl.Series:
    """Ids of users, as they were given."""
    if "users" in arrays:
        return pl.Series("user", arrays["users"].copy())
    ends, texts = arrays["text_ends"].tolist(), arrays["texts"].tobytes()
    starts = [0, *ends[:-1]]
    found = [texts[a:b].decode() for a, b in zip(starts, ends, strict=True)]
    return pl.Series("user", found, pl.String)
