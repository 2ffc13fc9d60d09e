"""The guard in front of polars: what is sound passes, and no count or size that is not does."""

import io
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tacit
from tacit.data.readers import guard
from tacit.data.readers.guard import Unsound, checked_footer, read_structure
from tacit.errors import DataError
from tests.fuzz.subjects import SUBJECTS, numbered_frame, parquet_of

SOUND = {sound.name: sound.content for sound in SUBJECTS["parquet"].sound()}


def assert_passes(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    names = pq.read_schema(io.BytesIO(content)).names
    checked_footer(path).check_columns(names)


@pytest.mark.parametrize("name", SOUND)
def test_sound_files_pass(name: str, tmp_path: Path) -> None:
    assert_passes(tmp_path / "x.parquet", SOUND[name])


def odd_tables() -> Iterator[pa.Table]:
    whole = numbered_frame().to_arrow()
    yield whole.slice(0, 0)
    yield pa.table({"user": pa.nulls(5, pa.int64()), "text": ["x" * 70_000] * 5})
    yield pa.table({"a": pa.array([[1], [], None, [2, 3]]), "b": [{"c": 1, "d": [2]}] * 4})
    yield pa.table({"flag": [True, None, False], "fixed": pa.array([b"abc"] * 3, pa.binary(3))})
    yield pa.table(
        {
            "long": ["lorem ipsum " * 20_000, "", None],
            "dict": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )
    yield pa.table({"constant": [7] * 200_000, "time": pa.array([0] * 200_000, pa.timestamp("ns"))})


@cache
def odd_table(number: int) -> pa.Table:
    return next(islice(odd_tables(), number, None))


@pytest.mark.parametrize("number", range(6))
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("codec", ["none", "snappy", "gzip", "brotli", "lz4", "zstd"])
def test_unusual_sound_files_pass(number: int, version: Any, codec: Any, tmp_path: Path) -> None:
    """Empty, constant, nested, with nulls only, with statistics longer than a first look takes."""
    buffer = io.BytesIO()
    table = odd_table(number)
    pq.write_table(table, buffer, compression=codec, data_page_version=version, data_page_size=500)
    assert_passes(tmp_path / "x.parquet", buffer.getvalue())


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    """A file of one column whose first page header was written anew by hand."""
    page: dict[str, Any] = {"kind": 0, "unpacked": 40, "packed": 40, "values": 10, "rows": 10}
    page |= {"group": 10, "chunk": 10, "codec": 0, "start": 4, "size": None, "type": 1}
    change(page)
    header = (
        _i32(page["kind"]) + _i32(page["unpacked"]) + _i32(page["packed"])
        + b"\x2c" + _i32(page["values"]) + _i32(0) + _i32(3) + _i32(3) + b"\0\0"
    )  # fmt: skip
    pages = header + struct.pack("<10i", *range(10))
    size = len(pages) if page["size"] is None else page["size"]
    meta = (
        _i32(page["type"]) + b"\x19\x15\x00" + b"\x19\x18\x01a" + _i32(page["codec"])
        + _i64(page["chunk"]) + _i64(size) + _i64(size) + b"\x26" + _zigzag(page["start"]) + b"\0"
    )  # fmt: skip
    group = (
        b"\x19\x1c"
        + b"\x26"
        + _zigzag(4)
        + b"\x1c"
        + meta
        + b"\0"
        + _i64(len(pages))
        + _i64(page["group"])
        + b"\0"
    )
    schema = b"\x19\x2c" + b"\x48\x01r\x15\x02\x00" + _i32(1) + b"\x25\x00\x18\x01a\x00"
    footer = _i32(1) + schema + _i64(page["rows"]) + b"\x19\x1c" + group + b"\0"
    return b"PAR1" + pages + footer + struct.pack("<I", len(footer)) + b"PAR1"


def _zigzag(value: int) -> bytes:
    value, coded = (value << 1) ^ (value >> 63), bytearray()
    while value >= 128:
        coded.append(value & 127 | 128)
        value >>= 7
    return bytes([*coded, value])


def _i32(value: int) -> bytes:
    return b"\x15" + _zigzag(value)


def _i64(value: int) -> bytes:
    return b"\x16" + _zigzag(value)


def test_a_file_by_hand_is_sound(tmp_path: Path) -> None:
    """What the tests below change is a file that polars reads."""
    assert_passes(tmp_path / "x.parquet", changed(lambda _: None))
    assert pl.read_parquet(tmp_path / "x.parquet")["a"].to_list() == list(range(10))


@pytest.mark.parametrize(
    "change",
    [
        {"values": -1},
        {"values": 11},
        {"values": 2**31 - 1},
        {"unpacked": -1},
        {"unpacked": 2**31 - 1},
        {"packed": -1},
        {"packed": 41},
        {"packed": 2**31 - 1},
        {"kind": 2},
        {"kind": 9},
        {"rows": -1},
        {"rows": 2**62},
        {"group": 11},
        {"chunk": -1},
        {"chunk": 11},
        {"rows": 11, "group": 11},
        {"rows": 2**40, "group": 2**40, "chunk": 2**40},
        {
            "rows": 2**31 - 1,
            "group": 2**31 - 1,
            "chunk": 2**31 - 1,
            "values": 2**31 - 1,
            "codec": 6,
        },
        {"start": -1},
        {"start": 2**62},
        {"size": -1},
        {"size": 2**62},
        {"codec": 3},
        {"codec": 99},
        {"type": 2},
        {"type": 77},
    ],
    ids=str,
)
def test_numbers_that_cannot_be_right(
    change: dict[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "physical_memory", lambda: 4 * 2**30)
    path = tmp_path / "x.parquet"
    path.write_bytes(changed(lambda page: page.update(change)))
    with pytest.raises(DataError, match=r"x\.parquet"):
        checked_footer(path).check_columns(["a"])


def test_only_the_columns_that_are_read_are_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_bytes(changed(lambda page: page.update(values=-1)))
    checked_footer(path).check_columns(["b"])


@pytest.mark.parametrize("number", [715, 1562, 3344, 5330])
def test_what_ended_polars_is_refused(number: int, tmp_path: Path) -> None:
    """The twin: handed to polars without the guard, these mutants end the process (SIGABRT)."""
    files = SUBJECTS["parquet"].sound()
    path = tmp_path / "x.parquet"
    path.write_bytes(files[number % len(files)].mutant(number))
    with pytest.raises(DataError, match="no whole Parquet file"):
        tacit.Ratings.from_file(path, rating_range=(0.5, 5.0))
    code = "import polars as pl, sys; pl.scan_parquet(sys.argv[1], glob=False).collect()"
    line = [sys.executable, "-c", code, str(path)]
    if subprocess.run(line, capture_output=True, check=False).returncode >= 0:
        pytest.skip("this version of polars survives it")


@given(st.binary(max_size=300))
@settings(max_examples=300, derandomize=True)
def test_any_bytes_are_a_structure_or_unsound(content: bytes) -> None:
    try:
        fields, end = read_structure(content)
    except Unsound:
        return
    assert end <= len(content)
    assert all(isinstance(number, int) for number in fields)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x15",
        b"\x15\x80",
        b"\x15\x02\x05\x02\x04\x00",  # field 1 twice
        b"\x15" + b"\xff" * 5 + b"\x01\x00",  # more than 32 bits
        b"\x16" + b"\xff" * 12 + b"\x00",
        b"\x18\x7f\x00",
        b"\x19\xf5\xff\xff\xff\xff\x0f\x00",
        b"\x1b\xff\xff\xff\xff\x0f\x55\x00",
        b"\x1d\x00\x00",  # no such type
        b"\x17\x00\x00",
        b"\x1c" * 5000,
        b"\x19\x19" * 5000,
    ],
)
def test_bytes_that_are_no_structure(content: bytes) -> None:
    with pytest.raises(Unsound):
        read_structure(content)


def test_the_guard_reads_headers_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its cost grows with the number of pages, not with the number of ratings."""
    path = tmp_path / "x.parquet"
    path.write_bytes(parquet_of(pl.DataFrame({"user": range(300_000)}), compression="uncompressed"))
    taken = []
    inner = guard.read_structure
    monkeypatch.setattr(
        guard,
        "read_structure",
        lambda content: taken.append(len(content)) or inner(content),
    )
    checked_footer(path).check_columns(["user"])
    assert sum(taken) < 20_000 < path.stat().st_size
