"""Parquet files in any order, of any plain type, in parts: the same rows as from a frame."""

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import _parallel
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import DataError
from tests.support.cases import slow

STARS = (0.5, 5.0)
PLAIN = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64}


@pytest.fixture(autouse=True)
def many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """With several threads, however small the files are."""
    monkeypatch.setattr(_parallel, "usable_cores", lambda: 3)


def frame_of(triples: list[tuple[int, int, float]], **kinds: Any) -> pl.DataFrame:
    return pl.DataFrame(triples, schema={**PLAIN, **kinds}, orient="row")


def written(path: Path, frame: pl.DataFrame) -> Path:
    frame.write_parquet(path, row_group_size=5)
    return path


def assert_same(path: Path, frame: pl.DataFrame, **options: Any) -> None:
    """A file and a frame give the same."""
    options = {"rating_range": STARS, **options}
    ratings = Ratings.from_file(path, **options)
    expected = Ratings.from_frame(frame, **options)
    assert ratings.digest() == expected.digest()
    assert ratings.catalogue == expected.catalogue
    assert ratings.items.dtype == expected.items.dtype


@pytest.mark.parametrize("duplicates", ["last", "mean"])
@pytest.mark.parametrize("catalogue", [None, Catalogue([9, 2, 5, 0, 77]), Catalogue(["2", "3"])])
@pytest.mark.parametrize("examples", [8, slow(50)])
def test_a_file_gives_the_same_as_a_frame(
    tmp_path: Path, catalogue: Catalogue | None, duplicates: str, examples: int
) -> None:
    ratings = st.tuples(st.integers(-3, 9), st.integers(0, 12), st.integers(1, 10))

    @settings(max_examples=examples)
    @given(st.lists(ratings, min_size=1, max_size=60))
    def assert_agrees(drawn: list[tuple[int, int, int]]) -> None:
        triples = [(-9, 2, 1.0), (-9, 3, 1.0), *((u, i, v / 2) for u, i, v in drawn), (99, 2, 5.0)]
        frame = frame_of(triples)
        frame = frame.sort("user", maintain_order=True) if len(drawn) % 2 else frame
        path = written(tmp_path / "r.parquet", frame)
        asked = {"catalogue": catalogue, "unknown_items": "drop"}
        assert_same(path, frame, duplicates=duplicates, **asked)

    assert_agrees()


@pytest.mark.parametrize("user", [pl.Int32, pl.Int64, pl.UInt32])
@pytest.mark.parametrize("item", [pl.Int32, pl.UInt32])
@pytest.mark.parametrize("rating", [pl.Float32, pl.Float64])
def test_columns_of_plain_types(tmp_path: Path, user: Any, item: Any, rating: Any) -> None:
    triples = [(k // 3, (7 * k) % 10, 1.0 + k % 4) for k in range(30)]
    frame = frame_of(triples, user=user, item=item, rating=rating)
    assert_same(written(tmp_path / "r.parquet", frame), frame)


def test_items_beyond_16_bits(tmp_path: Path) -> None:
    triples = [(k // 3, 100_000 - 7 * k, 1.0 + k % 4) for k in range(30)]
    frame = frame_of(triples)
    path = written(tmp_path / "r.parquet", frame)
    assert_same(path, frame)
    assert_same(path, frame, catalogue=Catalogue(np.arange(100_001)))
    late = frame_of([(k // 3, 5 + k, 1.0) for k in range(1500)] + [(500, 70_000, 1.0)])
    written(path, late)
    assert Ratings.from_file(path, rating_range=STARS).n_items == 1501


def test_several_files(tmp_path: Path) -> None:
    parts = [[(1, 1, 1.0), (2, 1, 2.0)], [(2, 2, 3.0), (2, 1, 4.0)], [(3, 1, 5.0)]]
    paths = [written(tmp_path / f"{k}.parquet", frame_of(part)) for k, part in enumerate(parts)]
    ratings = Ratings.from_file(paths, rating_range=STARS, duplicates="last")
    assert ratings.user_ids.to_list() == [1, 2, 3]
    assert ratings.values.tolist() == [1.0, 4.0, 3.0, 5.0]
    back = Ratings.from_file(paths[::-1], rating_range=STARS, duplicates="last")
    assert back.values.tolist() == [1.0, 2.0, 3.0, 5.0]


PLAIN_ROWS = [(1, 1, 1.0), (1, 2, 2.0), (2, 1, 3.0)]


@pytest.mark.parametrize(
    ("frame", "error"),
    [
        (frame_of([*PLAIN_ROWS, (1, 3, 1.0)]), None),
        (frame_of([(k // 2, k % 2, 1.0) for k in range(2400)] + [(0, 7, 1.0)]), None),
        (frame_of([*PLAIN_ROWS, (3, -1, 1.0)]), None),
        (frame_of([*PLAIN_ROWS, (3, 1 << 40, 1.0)]), None),
        (frame_of([*PLAIN_ROWS, (2**32 - 1, 3, 1.0)], user=pl.UInt32), None),
        (frame_of(PLAIN_ROWS).cast({"user": pl.String}), None),
        (frame_of(PLAIN_ROWS).cast({"rating": pl.Int8}), None),
        (frame_of([*PLAIN_ROWS, (3, 1, 5.5)]), "1 row outside"),
        (frame_of([*PLAIN_ROWS, (3, 1, float("nan"))]), "1 row without a rating"),
        (frame_of([*PLAIN_ROWS, (3, 1, None)]), "1 row without a rating"),  # type: ignore[list-item]
        (frame_of([*PLAIN_ROWS, (None, 1, 1.0)]), "1 row without an id"),  # type: ignore[list-item]
        (frame_of([]), "0 rows"),
    ],
)
def test_other_orders_other_types_and_wrong_ratings(
    tmp_path: Path, frame: pl.DataFrame, error: str | None
) -> None:
    path = written(tmp_path / "r.parquet", frame)
    if error is None:
        ratings = Ratings.from_file(path, rating_range=STARS)
        assert ratings.digest() == Ratings.from_frame(frame, rating_range=STARS).digest()
    else:
        with pytest.raises(DataError, match=error):
            Ratings.from_file(path, rating_range=STARS)


@pytest.mark.parametrize(
    ("triples", "error"),
    [
        ([*PLAIN_ROWS, (2, 1, 1.0)], "1 row with a pair"),
        ([(1, 1, 1.0), (1, 2, 1.0)], "'user': 1 user in all"),
        ([(1, 1, 1.0), (2, 1, 1.0)], "'item': 1 item in all"),
    ],
)
def test_errors_are_the_same(
    tmp_path: Path, triples: list[tuple[int, int, float]], error: str
) -> None:
    path = written(tmp_path / "r.parquet", frame_of(triples))
    with pytest.raises(DataError, match=error):
        Ratings.from_file(path, rating_range=STARS)
    catalogue = Catalogue([7, 8])
    with pytest.raises(DataError, match="no row has an item of the catalogue"):
        Ratings.from_file(path, rating_range=STARS, catalogue=catalogue, unknown_items="drop")


def test_unknown_items_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "r.parquet", frame_of([(1, 1, 1.0), (1, 2, 2.0), (2, 5, 3.0)]))
    with pytest.raises(DataError, match="column 'item': 1 row with an item that is not"):
        Ratings.from_file(path, rating_range=STARS, catalogue=Catalogue([1, 2]))


def test_the_first_user_may_be_the_lowest_of_all(tmp_path: Path) -> None:
    frame = frame_of([(-(2**63), 1, 1.0), (-(2**63), 2, 2.0), (2**63 - 1, 1, 3.0)])
    assert_same(written(tmp_path / "r.parquet", frame), frame)
