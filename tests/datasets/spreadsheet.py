"""A writer of the smallest .xls there is: one sheet of numbers (BIFF8 in a compound file)."""

import struct
from collections.abc import Sequence

SECTOR = 512
FREE, END, FAT = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def xls(rows: Sequence[Sequence[float]]) -> bytes:
    """The bytes of a spreadsheet with these rows."""
    return _compound(_workbook(rows))


def _record(kind: int, content: bytes = b"") -> bytes:
    return struct.pack("<HH", kind, len(content)) + content


def _workbook(rows: Sequence[Sequence[float]]) -> bytes:
    """The globals, which say where the sheet begins, and the sheet."""
    start = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0005, 0, 0, 0, 6))
    name = b"sheet"
    length = len(start) + 4 + 8 + len(name) + 4
    where = struct.pack("<IHBB", length, 0, len(name), 0) + name
    cells = b"".join(
        _record(0x0203, struct.pack("<HHHd", y, x, 0, value))
        for y, row in enumerate(rows)
        for x, value in enumerate(row)
    )
    size = struct.pack("<IIHHH", 0, len(rows), 0, len(rows[0]), 0)
    sheet = _record(0x0809, struct.pack("<HHHHII", 0x0600, 0x0010, 0, 0, 0, 6))
    sheet += _record(0x0200, size) + cells + _record(0x000A)
    return start + _record(0x0085, where) + _record(0x000A) + sheet


def _compound(stream: bytes) -> bytes:
    """A compound file with one stream, `Workbook`: header, allocation, folder, stream."""
    stream = stream.ljust(4096, b"\0")  # a shorter one would be a mini stream
    stream += b"\0" * (-len(stream) % SECTOR)
    count = len(stream) // SECTOR
    tables = -(-(count + 1) // (SECTOR // 4 - 1))
    chain = [*range(tables + 2, tables + 1 + count), END]
    fat = [FAT] * tables + [END] + chain
    fat += [FREE] * (tables * SECTOR // 4 - len(fat))
    header = bytes.fromhex("d0cf11e0a1b11ae1") + b"\0" * 16
    header += struct.pack(
        "<HHHHH6xIIIIIIIII", 0x3E, 3, 0xFFFE, 9, 6, 0, tables, tables, 0, 4096, END, 0, END, 0
    )
    header += struct.pack("<109I", *range(tables), *[FREE] * (109 - tables))
    folder = _entry("Root Entry", 5, END, 0, child=1) + _entry(
        "Workbook", 2, tables + 1, len(stream)
    )
    return header + struct.pack(f"<{len(fat)}I", *fat) + folder.ljust(SECTOR, b"\0") + stream


def _entry(name: str, kind: int, first: int, size: int, child: int = FREE) -> bytes:
    text = name.encode("utf-16-le") + b"\0\0"
    head = text.ljust(64, b"\0") + struct.pack("<HBB", len(text), kind, 1)
    return head + struct.pack("<III36xIQ", FREE, FREE, child, first, size)
