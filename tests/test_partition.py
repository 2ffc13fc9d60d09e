"""A store has the rows that Ratings would have, whatever the order, the types and the size."""

import os
import stat
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.data import partition as module
from tacit.data.readers import text_batches as text
from tacit.data.store_writer import write_store
from tests.contracts.test_algorithms import assert_identical

RANGE = (0.5, 5.0)


def table(users: int = 50, items: int = 20, text_ids: bool = False) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    pairs = rng.permutation([(u, i) for u in range(users) for i in range(items) if (u * i) % 3])
    stars = rng.integers(1, 11, len(pairs)) / 2
    frame = pl.DataFrame({"user": pairs[:, 0] * 7 - 30, "item": pairs[:, 1], "rating": stars})
    return frame.with_columns(pl.col("user").cast(pl.String) + "x") if text_ids else frame


def rows_of(ratings: tacit.Ratings) -> dict[Any, Any]:
    ids = ratings.user_ids.to_list()
    return {
        user: (ratings.items[a:b].tolist(), ratings.values[a:b].tolist())
        for user, a, b in zip(ids, ratings.indptr[:-1], ratings.indptr[1:], strict=True)
    }


def assert_same_rows(store: tacit.Store, ratings: tacit.Ratings) -> None:
    """Every user is in one shard, with the row that she has in memory."""
    shards = [rows_of(store.shard(number)) for number in range(len(store.shards))]
    together = {user: row for shard in shards for user, row in shard.items()}
    assert sum(map(len, shards)) == len(together) == store.n_users
    assert together == rows_of(ratings)
    assert store.catalogue == ratings.catalogue
    assert store.rating_range == ratings.rating_range
    assert store.implicit == ratings.implicit


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
@pytest.mark.parametrize("text_ids", [False, True])
def test_batches_and_shards_change_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, text_ids: bool
) -> None:
    monkeypatch.setattr(module, "_BATCH", 97)
    monkeypatch.setattr(text, "_BATCH", 801)
    path = tmp_path / f"ratings.{suffix}"
    frame = table(text_ids=text_ids)
    frame.write_csv(path) if suffix == "csv" else frame.write_parquet(path, row_group_size=60)
    shares: list[float] = []
    store = tacit.partition(
        path, tmp_path / "store", rating_range=RANGE, shards=5, progress=shares.append
    )
    assert_same_rows(store, tacit.Ratings.from_file(path, rating_range=RANGE))
    assert len(store.shards) > 1
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(shares) > 8
    assert not (tmp_path / "store" / "scratch").exists()


def test_integers_and_their_texts_are_one_user_over_all_files(tmp_path: Path) -> None:
    """One file has integers, another text: a user who is in both is in one shard, with one row."""
    frame = table()
    frame[::2].write_parquet(tmp_path / "a.parquet")
    odd = frame[1::2].with_columns(pl.col("user", "item").cast(pl.String))
    strange = pl.DataFrame({"user": ["someone", "007"], "item": ["1", "x"], "rating": [1.0, 2.0]})
    pl.concat([odd, strange]).write_parquet(tmp_path / "b.parquet")
    paths = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
    store = tacit.partition(paths, tmp_path / "store", rating_range=RANGE, shards=4)
    assert_same_rows(store, tacit.Ratings.from_file(paths, rating_range=RANGE))


def test_quotations_may_hold_line_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text, "_BATCH", 64)
    lines = [f'"a\n{k}",film{k % 7},{k % 5 + 0.5}' for k in range(60)]
    path = tmp_path / "ratings.csv"
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    store = tacit.partition(path, tmp_path / "store", rating_range=RANGE, shards=3)
    assert_same_rows(store, tacit.Ratings.from_file(path, rating_range=RANGE))


@pytest.mark.parametrize("duplicates", ["last", "mean"])
def test_second_ratings_are_merged_in_the_order_of_lines(tmp_path: Path, duplicates: Any) -> None:
    twice = pl.concat([table(), table().with_columns(rating=pl.lit(3.0))])
    twice.write_parquet(tmp_path / "r.parquet")
    options: dict[str, Any] = {"rating_range": RANGE, "duplicates": duplicates}
    store = tacit.partition(tmp_path / "r.parquet", tmp_path / "store", shards=3, **options)
    assert_same_rows(store, tacit.Ratings.from_file(tmp_path / "r.parquet", **options))


def test_a_catalogue_with_titles_and_features_comes_along(tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "r.parquet")
    catalogue = tacit.Catalogue(
        list(range(15, -1, -1)),
        titles=[f"Film {k}" if k % 2 else None for k in range(16)],
        features={"year": [None, *range(15)], "genre": ["a|b"] * 16},  # type: ignore[arg-type]
    )
    options: dict[str, Any] = {"rating_range": RANGE, "catalogue": catalogue}
    with pytest.raises(tacit.UnknownItemsError):
        tacit.partition(tmp_path / "r.parquet", tmp_path / "store", **options)
    options["unknown_items"] = "drop"
    store = tacit.partition(tmp_path / "r.parquet", tmp_path / "store", shards=4, **options)
    assert_same_rows(store, tacit.Ratings.from_file(tmp_path / "r.parquet", **options))
    assert store.catalogue.public


def test_interactions_have_no_ratings(tmp_path: Path) -> None:
    table().select("user", "item").write_parquet(tmp_path / "r.parquet")
    store = tacit.partition(tmp_path / "r.parquet", tmp_path / "store", shards=3, implicit=True)
    assert_same_rows(store, tacit.Ratings.from_file(tmp_path / "r.parquet", implicit=True))


def test_it_is_for_its_owner_only(tmp_path: Path) -> None:
    table().write_parquet(tmp_path / "r.parquet")
    before = os.umask(0)
    try:
        tacit.partition(tmp_path / "r.parquet", tmp_path / "store", rating_range=RANGE, shards=3)
    finally:
        os.umask(before)
    folder = tmp_path / "store"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    store = tacit.Store.open(folder)
    assert "ratings" not in repr(store).lower()
    with pytest.raises(tacit.PrivacyError, match="cannot be pickled"):
        store.__reduce__()


def test_scratch_files_are_private_while_they_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table().write_parquet(tmp_path / "r.parquet")
    modes: list[int] = []
    settle = module._settle

    def watched(scratch: Any, *rest: Any, **more: Any) -> None:
        modes.append(stat.S_IMODE(scratch.folder.stat().st_mode))
        settle(scratch, *rest, **more)

    monkeypatch.setattr(module, "_settle", watched)
    tacit.partition(tmp_path / "r.parquet", tmp_path / "store", rating_range=RANGE, shards=2)
    assert modes == [0o700, 0o700]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rating": 9.0}, "outside of the rating range"),
        ({"rating": None}, "without a rating"),
        ({"user": None}, "without an id"),
    ],
)
def test_what_ratings_refuse_is_refused_and_nothing_is_left(
    tmp_path: Path, change: dict[str, Any], said: str
) -> None:
    bad = table().with_columns(
        pl.when(pl.int_range(pl.len()) == 400).then(value).otherwise(pl.col(name)).alias(name)
        for name, value in change.items()
    )
    bad.write_parquet(tmp_path / "r.parquet")
    with pytest.raises(tacit.DataError, match=said):
        tacit.partition(tmp_path / "r.parquet", tmp_path / "store", rating_range=RANGE)
    assert not list((tmp_path / "store").iterdir())
    with pytest.raises(tacit.DataError, match="no store"):
        tacit.Store.open(tmp_path / "store")


def test_nothing_that_is_there_is_lost(tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    table().write_parquet(folder / "r.parquet")
    with pytest.raises(tacit.ConfigError, match="not empty"):
        tacit.partition(folder / "r.parquet", folder, rating_range=RANGE, overwrite=True)
    assert (folder / "r.parquet").exists()
    table().write_parquet(tmp_path / "r.parquet")
    tacit.partition(tmp_path / "r.parquet", tmp_path / "other", rating_range=RANGE)
    with pytest.raises(tacit.ConfigError, match="already"):
        tacit.partition(tmp_path / "r.parquet", tmp_path / "other", rating_range=RANGE)
    tacit.partition(tmp_path / "r.parquet", tmp_path / "other", rating_range=RANGE, overwrite=True)


@pytest.mark.parametrize("name", ["manifest.json", "catalogue.parquet", "shard-00001.safetensors"])
@pytest.mark.parametrize("way", ["cut", "flip", "gone"])
def test_damage_is_seen_and_named(tmp_path: Path, name: str, way: str) -> None:
    ratings = tacit.Ratings.from_frame(table(), rating_range=RANGE)
    store = write_store(ratings, tmp_path / "store", 2)
    path = store.folder / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if way == "gone":
        path.unlink()
    else:
        path.write_bytes(content if way == "flip" else content[: len(content) // 2])

    def fit() -> tacit.Model:
        return tacit.fit(tacit.Store.open(store.folder), tacit.SVD(rank=2), epsilon=1.0)

    if name == "manifest.json" and way == "flip":
        path.write_bytes(content.replace(b'"users": ', b'"users": 1'))
    with pytest.raises(tacit.DataError, match=r"damaged|cannot be read|no store") as caught:
        fit()
    assert len(str(caught.value)) < 300


def test_a_checkpoint_knows_its_store_again(tmp_path: Path) -> None:
    ratings = tacit.Ratings.from_frame(table(), rating_range=RANGE)
    one, other = (write_store(ratings, tmp_path / name, k) for name, k in (("a", 2), ("b", 3)))
    config, budget = tacit.SVD(rank=2), {"epsilon": 1.0, "checkpoint": tmp_path / "kept"}
    first = tacit.fit(one, config, **budget)  # type: ignore[arg-type]
    assert_identical(first, tacit.fit(tacit.Store.open(one.folder), config, **budget))  # type: ignore[arg-type]
    with pytest.raises(tacit.CheckpointError, match="differs in ratings"):
        tacit.fit(other, config, **budget)  # type: ignore[arg-type]
