"""Packed tables, Arrow files and other encodings: read, or refused with what to do."""

import gzip
import io
import uuid
import zipfile
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tacit
from tacit.data.readers.registry import read_own_ratings
from tacit.errors import DataError

TEXT = "user,item,rating\nann,Amélie,4.5\nbob,Amélie,3\nann,Tea,1\n"


def users_of(path: Path) -> list[Any]:
    ratings = tacit.Ratings.from_file(path, rating_range=(0.5, 5))
    assert ratings.catalogue.ids.to_list() == ["Amélie", "Tea"]
    return [ratings.n_users, ratings.n_items, ratings.values.size]


def zipped(**files: str) -> bytes:
    box = io.BytesIO()
    with zipfile.ZipFile(box, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return box.getvalue()


def packed(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)


def arrow() -> bytes:
    box = io.BytesIO()
    pl.read_csv(io.StringIO(TEXT)).write_ipc(box, compression="zstd")
    return box.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("r.csv.gz", packed(TEXT.encode())),
        ("r.csv", packed(TEXT.encode())),
        ("r.zip", zipped(**{"folder/r.csv": TEXT})),
        ("mac.zip", zipped(**{"r.csv": TEXT, "__MACOSX/._r.csv": "x"})),
        ("wide.zip", zipped(**{"r.csv": TEXT.replace(",", "::")})),
        ("r.feather", arrow()),
        ("r.bin", arrow()),
        ("r.csv", TEXT.encode("utf-16")),
        ("r.csv", b"\xfe\xff" + TEXT.encode("utf-16-be")),
        ("r.csv.gz", packed(TEXT.encode("utf-16"))),
    ],
    ids=range(10),
)
def test_it_is_read_as_the_same_table(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    assert users_of(tmp_path / name) == [2, 2, 3]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("r.csv", TEXT.encode("latin-1"), "iconv -f WINDOWS-1252 -t UTF-8 r.csv"),
        ("r.csv", TEXT.encode("utf-16-le"), "iconv -f UTF-16LE"),
        ("r.zip", zipped(**{"a.csv": TEXT, "b.csv": TEXT}), "archive of 2 files"),
        ("r.xlsx", zipped(**{"[Content_Types].xml": "x", "b": "y"}), "save the table as CSV"),
        ("r.zip", zipped(**{"a.csv": TEXT})[:-30], "zip archive"),
        ("r.csv.gz", packed(TEXT.encode())[:-20], "gzip"),
        ("r.csv.gz", packed(b""), "empty"),
        ("r.csv.gz", packed(b"PAR1...."), "unpack it"),
        ("r.feather", b"FEA1" + bytes(20), "version 2"),
        ("r.arrow", arrow()[:200], "Arrow IPC"),
        ("r.csv", TEXT.replace("4.5", '"4,5"').encode(), "decimal commas: write points"),
    ],
)
def test_it_is_refused_with_what_to_do(
    tmp_path: Path, name: str, content: bytes, words: str
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=r"r\.|column") as caught:
        users_of(tmp_path / name)
    assert words in str(caught.value)
    assert not any(secret in str(caught.value) for secret in ("ann", "bob", "4.5", "Tea"))


def test_text_that_turns_latin_1_after_the_first_bytes(tmp_path: Path) -> None:
    lines = "".join(f"u{k},Tea,1\n" for k in range(40_000))
    (tmp_path / "r.csv").write_bytes(("user,item,rating\n" + lines).encode() + b"x,Am\xe9lie,2\n")
    with pytest.raises(DataError, match="iconv"):
        tacit.Ratings.from_file(tmp_path / "r.csv", rating_range=(0.5, 5))


def test_a_bomb_is_refused_before_it_fills_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.data.readers.packed.room", lambda: 1e6)
    bomb = gzip.compress(bytes(20_000_000))
    (tmp_path / "r.csv.gz").write_bytes(bomb)
    (tmp_path / "r.zip").write_bytes(zipped(r="0" * 20_000_000))
    for name in ("r.csv.gz", "r.zip"):
        with pytest.raises(DataError, match="unpacks to more than"):
            tacit.Ratings.from_file(tmp_path / name, rating_range=(0.5, 5))


def test_an_arrow_file_of_too_many_rows_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "r.arrow").write_bytes(arrow())
    monkeypatch.setattr("tacit.data.readers.arrow.physical_memory", lambda: 10)
    with pytest.raises(DataError, match="more than this machine has memory for"):
        users_of(tmp_path / "r.arrow")


def test_own_ratings_are_told_of_the_options_that_there_are(
    tmp_path: Path,
) -> None:
    (tmp_path / "own.csv").write_text("film,points\nTea,4\n")
    with pytest.raises(DataError, match="--item-column, --rating-column") as caught:
        read_own_ratings(tmp_path / "own.csv")
    assert "--user-column" not in str(caught.value)


def test_frames_of_every_kind_and_uuids() -> None:
    pandas, arrow_lib = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    ids = [uuid.UUID(int=k) for k in (1, 2, 1)]
    columns: dict[str, list[Any]] = {"user": ids, "item": [7, 7, 8], "rating": [1.0, 2.0, 3.0]}
    plain = columns | {"user": [str(each) for each in ids]}
    frames = [pandas.DataFrame(columns), pl.DataFrame(plain), arrow_lib.table(plain)]
    found = [tacit.Ratings.from_frame(frame, rating_range=(1, 5)).digest() for frame in frames]
    assert len(set(found)) == 1
    arrays = {"items": pandas.Series([7, 7, 8]), "values": arrow_lib.array([1.0, 2.0, 3.0])}
    made = tacit.Ratings.from_arrays(users=ids, **arrays, rating_range=(1, 5))
    assert made.digest() == found[0]
