"""Text tables that may be larger than memory: read some lines at a time."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO

import numpy as np

from tacit.data.readers.encoding import as_utf8
from tacit.data.readers.text import (
    HEAD,
    layout_of,
    line_start,
    places_in,
    read_columns,
    read_content,
)
from tacit.data.tables import Choice, Table, kind_of
from tacit.errors import DataError

_BATCH = 1 << 26
"""Bytes of a text that are read at a time."""


def text_batches(path: Path, wanted: Mapping[str, Choice]) -> Iterator[tuple[Table, float]]:
    """The wanted roles, some lines at a time, each with the share of the file that was read.

    Ids are judged one by one, so batches give the same ids as the whole file. UTF-16 is converted
    in memory, and so is one batch.
    """
    with path.open("rb") as stream:
        head = stream.read(HEAD)
        content = as_utf8(path, head, HEAD)
        if content is not None:
            yield read_content(path, content, wanted, frozenset()), 1.0
            return
        layout = layout_of(path, head)
        places = places_in(layout, wanted, frozenset())
        kinds = {k: kind_of(role) for role, k in places.items()}
        start, size = line_start(head, layout.skip), path.stat().st_size
        stream.seek(start)
        for lines in _whole_lines(path, stream, quoted=layout.separator != "::"):
            start += len(lines)
            if lines.strip():
                columns = read_columns(replace(layout, content=lines, skip=0), kinds)
                yield {role: columns[k] for role, k in places.items()}, start / size


def _whole_lines(path: Path, stream: IO[bytes], *, quoted: bool) -> Iterator[bytes]:
    """The rest of a file in batches that end where a line ends, and no quotation is open."""
    rest = b""
    while block := stream.read(_BATCH):
        rest += block
        end = _last_line_end(rest, quoted)
        if not end and len(rest) > 4 * _BATCH:
            raise DataError(f"{path}: lines that cannot be read (quotes or encoding)")
        if end:
            yield rest[:end]
            rest = rest[end:]
    if rest:
        yield rest


def _last_line_end(block: bytes, quoted: bool) -> int:
    """Where the last whole line ends; 0 if there is none."""
    if not quoted or b'"' not in block:
        return block.rfind(b"\n") + 1
    text = np.frombuffer(block, np.uint8)
    outside = np.cumsum(text == ord('"')) % 2 == 0
    ends = np.flatnonzero(outside & (text == ord("\n")))
    return int(ends[-1]) + 1 if ends.size else 0


def text_rows(path: Path) -> int:
    """About how many rows a text table has, by the length of its first lines."""
    with path.open("rb") as stream:
        head = stream.read(HEAD)
    return -(-path.stat().st_size * max(1, head.count(b"\n")) // max(1, len(head)))
