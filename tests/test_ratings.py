"""Ratings: what goes in comes out as rows, and what cannot go in is refused without telling."""

import copy
import pickle
import subprocess
import sys
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from tacit import _parallel
from tacit.data import csr
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.tables import Columns
from tacit.datasets import DATASETS, RATING_RANGES, rating_range_of
from tacit.errors import ConfigError, DataError, PrivacyError, UnknownItemsError
from tests.support.cases import slow

STARS = (0.5, 5.0)
Dense = dict[Any, dict[Any, float]]


def contents(ratings: Ratings) -> Dense:
    """All ratings as {user: {item: value}}."""
    rows: Dense = {}
    for row, user in enumerate(ratings.user_ids.to_list()):
        own = slice(ratings.indptr[row], ratings.indptr[row + 1])
        ids = ratings.catalogue.ids.gather(ratings.items[own].astype(np.int64)).to_list()
        rows[user] = dict(zip(ids, ratings.values[own].tolist(), strict=True))
    return rows


def reference(triples: list[tuple[Any, Any, float]], rule: str) -> Dense:
    """The same by a slow and plain way."""
    found: dict[Any, dict[Any, list[float]]] = {}
    for user, item, value in triples:
        found.setdefault(user, {}).setdefault(item, []).append(float(np.float32(value)))
    merge = {"last": lambda v: v[-1], "mean": lambda v: float(np.float32(sum(v) / len(v)))}[rule]
    return {
        user: {item: merge(found[user][item]) for item in sorted(found[user])}
        for user in sorted(found)
    }


def assert_promised_arrays(ratings: Ratings) -> None:
    """What every Ratings promises about its arrays."""
    assert ratings.indptr.dtype == np.int64
    assert ratings.items.dtype == (np.uint16 if ratings.n_items <= 65536 else np.uint32)
    assert ratings.values.dtype == np.float32
    assert ratings.indptr[0] == 0
    assert ratings.indptr[-1] == ratings.items.size == ratings.values.size
    assert len(ratings) == ratings.n_users == len(ratings.user_ids) == ratings.indptr.size - 1
    assert ratings.user_ids.is_sorted()
    for row in range(ratings.n_users):
        own = ratings.items[ratings.indptr[row] : ratings.indptr[row + 1]].astype(np.int64)
        assert (np.diff(own) > 0).all()
    for array in (ratings.indptr, ratings.items, ratings.values):
        assert not array.flags.writeable


def of(triples: list[tuple[Any, Any, float]], **options: Any) -> Ratings:
    columns = [list(column) for column in zip(*triples, strict=True)]
    options.setdefault("rating_range", STARS)
    return Ratings.from_arrays(*columns, **options)


SMALL = [("bob", "tea", 2.0), ("ann", "tea", 4.5), ("bob", "milk", 5.0)]

IDS = {
    "close": st.integers(-3, 8),
    "far": st.sampled_from([-(2**63), -(10**12), -1, 0, 5, 10**9, 10**15, 2**63 - 1]),
    "large": st.sampled_from([0, 1, 2**32, 2**63, 2**64 - 2, 2**64 - 1]),
    "text": st.text("ab\u00e9\U0001f600 ,\"'", min_size=1, max_size=3),
    "long": st.sampled_from(["x" * 40 + end for end in "abcdef"]),
}


@pytest.fixture
def many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small input goes the way of large input: several pieces, groups and threads."""
    monkeypatch.setattr("tacit.data.ids._PIECE", 7)
    monkeypatch.setattr(csr, "_PER_GROUP", 5)
    monkeypatch.setattr(_parallel, "usable_cores", lambda: 3)


@pytest.mark.usefixtures("many_pieces")
@pytest.mark.parametrize("rule", ["last", "mean"])
@pytest.mark.parametrize("kind", sorted(IDS))
@pytest.mark.parametrize("examples", [8, slow(50)])
def test_rows_agree_with_a_plain_reference(kind: str, rule: str, examples: int) -> None:
    values = st.integers(1, 10).map(lambda half: half / 2)

    @settings(max_examples=examples)
    @given(st.lists(st.tuples(IDS[kind], IDS[kind], values), min_size=2, max_size=80))
    def assert_agrees(triples: list[tuple[Any, Any, float]]) -> None:
        expected = reference(triples, rule)
        if len(expected) < 2 or len({item for _, item, _ in triples}) < 2:
            with pytest.raises(DataError, match="at least 2 are needed"):
                of(triples, duplicates=rule)
            return
        ratings = of(triples, duplicates=rule)
        assert_promised_arrays(ratings)
        assert contents(ratings) == expected
        assert ratings.catalogue.ids.to_list() == sorted({item for _, item, _ in triples})
        assert not ratings.catalogue.public
        repeated = len(triples) - sum(map(len, expected.values()))
        if repeated:
            with pytest.raises(DataError, match=f"{repeated} rows? with a pair"):
                of(triples)
        else:
            assert of(triples).digest() == ratings.digest()

    assert_agrees()


@pytest.mark.usefixtures("many_pieces")
@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=5, unique=True),
    st.randoms(use_true_random=False),
)
def test_the_order_of_the_input_does_not_matter(pairs: list[tuple[int, int]], random: Any) -> None:
    triples = [(user, item, 1.0 + (user * item) % 4) for user, item in [*pairs, (98, 98), (99, 99)]]
    shuffled = list(triples)
    random.shuffle(shuffled)
    assert of(triples).digest() == of(shuffled).digest() == of(sorted(triples)).digest()


@pytest.mark.usefixtures("many_pieces")
@pytest.mark.parametrize("order", ["by user", "by item", "random"])
@pytest.mark.parametrize(("digit", "key"), [(12, 32), (3, 32), (2, 32), (4, 9)])
def test_rows_in_every_order_by_passes_of_any_width(
    order: str, digit: int, key: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One, three or four passes by item, and keys so short that a group has four users.

    A pass that changed the order of equal keys would keep another of the repeated ratings.
    """
    monkeypatch.setattr(csr, "_PER_GROUP", 60)
    monkeypatch.setattr(csr, "_DIGIT", digit)
    monkeypatch.setattr(csr, "_KEY_BITS", key)
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 40, 600), rng.integers(0, 95, 600)
    keys = {"by user": (items, users), "by item": (users, items), "random": (np.zeros(600),)}
    placed = np.lexsort(keys[order])
    halves = (rng.integers(2, 11, 600) / 2).tolist()
    triples = list(zip(users[placed].tolist(), items[placed].tolist(), halves, strict=True))
    catalogue = Catalogue(np.arange(90))
    for rule in ("last", "mean"):
        found = of(triples, duplicates=rule, catalogue=catalogue, unknown_items="drop")
        assert_promised_arrays(found)
        assert contents(found) == reference([one for one in triples if one[1] < 90], rule)


def test_items_beyond_16_bits_and_rows_of_all_lengths() -> None:
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(300), rng.integers(1, 700, 300))
    items = np.concatenate([rng.choice(70_000, n, replace=False) for n in np.bincount(users)])
    values = rng.uniform(0.5, 5, users.size)
    catalogue = Catalogue(np.arange(70_000))
    ratings = Ratings.from_arrays(users, items, values, rating_range=STARS, catalogue=catalogue)
    assert_promised_arrays(ratings)
    dense = sparse.coo_array((values.astype(np.float32), (users, items)), (300, 70_000)).tocsr()
    dense.sort_indices()
    assert ratings.items.tolist() == dense.indices.tolist()
    assert ratings.values.tolist() == dense.data.tolist()


@pytest.mark.usefixtures("many_pieces")
def test_a_public_catalogue_decides_on_items_and_not_on_users() -> None:
    catalogue = Catalogue(["milk", "tea", "wine"], titles=["Milk", "Tea", "Wine"])
    triples = [*SMALL, ("eve", "rum", 3.0), ("eve", "gin", 2.0), ("bob", "rum", 1.0)]
    ratings = of(triples, catalogue=catalogue, unknown_items="drop")
    assert_promised_arrays(ratings)
    assert contents(ratings) == {
        "ann": {"tea": 4.5},
        "bob": {"milk": 5.0, "tea": 2.0},
        "eve": {},
    }
    assert ratings.catalogue is catalogue
    assert ratings.n_items == 3
    twice = [*triples, ("eve", "rum", 1.0)]
    assert of(twice, catalogue=catalogue, unknown_items="drop").digest() == ratings.digest()
    with pytest.raises(DataError, match="no row has an item of the catalogue"):
        of(SMALL, catalogue=Catalogue(["x", "y"]), unknown_items="drop")
    with pytest.raises(DataError, match="at least 2"):
        of(SMALL, catalogue=Catalogue(["tea"]), unknown_items="drop")


@pytest.mark.usefixtures("many_pieces")
@pytest.mark.parametrize("kind", [str, int])
def test_ratings_of_unknown_items_are_dropped_only_when_asked(kind: Any, tmp_path: Path) -> None:
    triples = [(user, kind(10 * item), 3.0) for user in range(5) for item in range(user + 2)]
    catalogue = Catalogue([kind(10), kind(0), kind(20)])
    outside = sum(int(item) > 20 for _, item, _ in triples)
    frame = pl.DataFrame(triples, schema=["user", "item", "rating"], orient="row")
    frame.write_csv(tmp_path / "r.csv")
    ways: list[Callable[..., Ratings]] = [
        partial(of, triples),
        partial(Ratings.from_frame, frame, rating_range=STARS),
        partial(Ratings.from_file, tmp_path / "r.csv", rating_range=STARS),
        partial(Ratings.from_frame, frame.select("user", "item"), implicit=True),
    ]
    for way in ways:
        with pytest.raises(UnknownItemsError, match=f"{outside} rows .* unknown_items='drop'") as e:
            way(catalogue=catalogue)
        assert e.value.rows == outside
        assert way(catalogue=catalogue, unknown_items="drop").values.size == 20 - outside
        assert way().n_items == 6


def test_catalogue_ids_are_matched_across_types() -> None:
    numbers = [(1, 10, 1.0), (2, 20, 2.0)]
    texts = [(user, str(item), value) for user, item, value in numbers]
    as_text, as_numbers = Catalogue(["20", "10"]), Catalogue([20, 10])
    for triples in (numbers, texts):
        for catalogue in (as_text, as_numbers):
            assert of(triples, catalogue=catalogue).items.tolist() == [1, 0]


def test_the_mean_is_over_wanted_ratings_in_any_order() -> None:
    triples = [("a", "x", 1.0), ("a", "y", 2.0), ("b", "x", 1.0), ("a", "x", 4.0), ("a", "z", 5.0)]
    catalogue = Catalogue(["y", "x"])
    ratings = of(triples, duplicates="mean", catalogue=catalogue, unknown_items="drop")
    assert contents(ratings) == {"a": {"y": 2.0, "x": 2.5}, "b": {"x": 1.0}}


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.dat", "r.parquet"])
def test_files_give_what_arrays_give(tmp_path: Path, name: str) -> None:
    triples = [
        (user, 100 * item, value) for user, item, value in [(3, 1, 2.5), (1, 2, 5), (3, 2, 1)]
    ]
    frame = pl.DataFrame(triples, schema=["userId", "movieId", "rating"], orient="row")
    path = tmp_path / name
    if name == "r.parquet":
        frame.write_parquet(path)
    elif name == "r.dat":
        path.write_text("".join("::".join(map(str, (*row, 978300760))) + "\n" for row in triples))
    else:
        frame.write_csv(path, separator="\t" if name == "r.tsv" else ",")
    ratings = Ratings.from_file(path, rating_range="movielens")
    assert ratings.digest() == of(triples).digest()
    assert ratings.user_ids.dtype == ratings.catalogue.ids.dtype == pl.Int64


def test_many_files_of_different_types(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("user,item,rating\n1,1,1\n2,2,2\n")
    (tmp_path / "b.csv").write_text("uid\tiid\tstars\nx\t2\t3\n1\t1\t4\n")
    pl.DataFrame({"user": [2.0], "item": [3], "rating": [5]}).write_parquet(tmp_path / "c.parquet")
    files = [tmp_path / "b.csv", tmp_path / "a.csv", tmp_path / "c.parquet"]
    ratings = Ratings.from_file(files, rating_range=STARS, duplicates="last")
    assert contents(ratings) == {"1": {1: 1.0}, "2": {2: 2.0, 3: 5.0}, "x": {2: 3.0}}
    by_pattern = Ratings.from_file(tmp_path / "*", rating_range=STARS, duplicates="last")
    assert contents(by_pattern)["1"] == {1: 4.0}
    large = pl.DataFrame({"user": [2**64 - 1, 5], "item": [1, 2], "rating": [1, 2]})
    small = pl.DataFrame({"user": [3, 5], "item": [1, 3], "rating": [1, 2]})
    large.write_parquet(tmp_path / "large.parquet")
    small.write_parquet(tmp_path / "small.parquet")
    both = Ratings.from_file(
        [tmp_path / "small.parquet", tmp_path / "large.parquet"], rating_range=STARS
    )
    assert both.user_ids.to_list() == [3, 5, 2**64 - 1]


@pytest.mark.parametrize(
    "kind",
    ["Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64", "Float64"],
)
def test_ids_of_every_number_type(kind: str) -> None:
    ids = pl.Series([30, 7, 100]).cast(getattr(pl, kind))
    frame = pl.DataFrame({"user": ids, "item": ids, "rating": [1, 2, 3]})
    ratings = Ratings.from_frame(frame, rating_range=(1, 3))
    assert_promised_arrays(ratings)
    assert list(contents(ratings)) == [7, 30, 100]


@pytest.mark.parametrize("kind", [pl.String, pl.Categorical, pl.Enum(["30", "7", "100"])])
def test_ids_of_every_text_type(kind: Any) -> None:
    ids = pl.Series(["30", "7", "100"]).cast(kind)
    frame = pl.DataFrame({"user": ids, "item": ids, "rating": [1, 2, 3]})
    ratings = Ratings.from_frame(frame, rating_range=(1, 3))
    assert list(contents(ratings)) == ["100", "30", "7"]


def test_uint32_ids_beyond_int32() -> None:
    ids = np.array([2**32 - 1, 2**32 - 2, 2**32 - 5], dtype=np.uint32)
    ratings = Ratings.from_arrays(ids, ids, [1, 2, 3], rating_range=(1, 3))
    assert ratings.user_ids.to_list() == [2**32 - 5, 2**32 - 2, 2**32 - 1]


@pytest.mark.parametrize(
    "kind", [pl.Int8, pl.UInt32, pl.Int64, pl.Float32, pl.Decimal(10, 2), pl.String]
)
def test_ratings_of_every_type(kind: Any) -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": pl.Series([1, 3]).cast(kind)})
    assert Ratings.from_frame(frame, rating_range=(1, 3)).values.tolist() == [1, 3]


def test_pandas_3_strings() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(SMALL, columns=["user", "item", "rating"])
    assert Ratings.from_frame(frame, rating_range=STARS).digest() == of(SMALL).digest()
    columns = [frame[name] for name in ("user", "item", "rating")]
    assert Ratings.from_arrays(*columns, rating_range=STARS).digest() == of(SMALL).digest()


def test_texts_that_share_a_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    honest = pl.Series.hash

    def poor(self: pl.Series, seed: int = 0) -> pl.Series:
        return honest(self, seed) % 2 if seed < 3 else honest(self, seed)

    monkeypatch.setattr(pl.Series, "hash", poor)
    triples = [(f"user {k}", f"item {k % 7}", 1.0 + k % 4) for k in range(40)]
    assert contents(of(triples)) == reference(triples, "last")


@pytest.mark.parametrize("form", ["coo", "csr", "csc", "lil", "dok"])
def test_sparse_matrices(form: str) -> None:
    matrix = sparse.coo_array(([3.0, 0.0, 1.0], ([2, 0, 2], [1, 0, 0])), shape=(4, 3))
    if form in ("coo", "csr", "csc"):
        expected: Dense = {0: {0: 0.0}, 1: {}, 2: {0: 1.0, 1: 3.0}, 3: {}}
    else:
        expected = {0: {}, 1: {}, 2: {0: 1.0, 1: 3.0}, 3: {}}
        matrix = sparse.coo_array(([3.0, 1.0], ([2, 2], [1, 0])), shape=(4, 3))
    ratings = Ratings.from_sparse(matrix.asformat(form), rating_range=(0, 3))
    assert_promised_arrays(ratings)
    assert contents(ratings) == expected
    assert ratings.catalogue.ids.to_list() == [0, 1, 2]
    assert not ratings.catalogue.public


def test_columns_of_a_sparse_matrix_are_the_catalogues_items() -> None:
    matrix = sparse.csr_array(np.array([[0, 2], [1, 0]]))
    catalogue = Catalogue(["b", "a"])
    ratings = Ratings.from_sparse(matrix, rating_range=(0, 3), catalogue=catalogue)
    assert contents(ratings) == {0: {"a": 2.0}, 1: {"b": 1.0}}
    with pytest.raises(DataError, match="2 columns for a catalogue of 3 items"):
        Ratings.from_sparse(matrix, rating_range=(0, 3), catalogue=Catalogue([1, 2, 3]))
    twice = sparse.coo_array(([1.0, 2.0, 2.0], ([0, 0, 1], [1, 1, 0])))
    with pytest.raises(DataError, match="1 row with a pair"):
        Ratings.from_sparse(twice, rating_range=(0, 3))
    merged = Ratings.from_sparse(twice, rating_range=(0, 3), duplicates="mean")
    assert merged.values.tolist() == [1.5, 2.0]
    for wrong in (np.eye(3), sparse.coo_array([1.0, 2.0]), None):
        with pytest.raises(ConfigError):
            Ratings.from_sparse(wrong, rating_range=(0, 3))
    for empty in (sparse.coo_array((3, 3)), sparse.coo_array([[1.0, 2.0]])):
        with pytest.raises(DataError):
            Ratings.from_sparse(empty, rating_range=(0, 3))


def test_named_rating_ranges() -> None:
    assert of(SMALL, rating_range=" MovieLens").rating_range == (0.5, 5.0)
    for name, expected in RATING_RANGES.items():
        assert rating_range_of(name.upper()) == expected
    assert all(rating_range_of(name) == known.scale for name, known in DATASETS.items())
    with pytest.raises(ConfigError, match=r"jester, .*yahoo-music.*did you mean 'netflix'"):
        rating_range_of("netflx")


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_stored_values_never_leave_the_range(kind: Any) -> None:
    """0.1 and 0.7 are not float32 numbers: their nearest ones lie just outside of the range."""
    values = np.array([0.1, 0.7, 0.3], dtype=kind)
    ratings = Ratings.from_arrays([1, 2, 2], [1, 1, 2], values, rating_range=(0.1, 0.7))
    assert float(ratings.values.min()) >= 0.1
    assert float(ratings.values.max()) <= 0.7
    np.testing.assert_allclose(ratings.values, [0.1, 0.7, 0.3], rtol=1e-6)


def test_take_rows() -> None:
    triples = [
        (user, item, 1.0 + (user + item) % 4) for user in range(6) for item in range(user + 1)
    ]
    ratings = of(triples)
    everything = contents(ratings)
    for rows in ([4, 0, 2], [1], [], np.arange(6), np.array([5, 3], dtype=np.uint8)):
        part = ratings.take_rows(rows)
        assert contents(part) == {row: everything[row] for row in np.asarray(rows, int).tolist()}
        assert part.catalogue is ratings.catalogue
        assert part.rating_range == ratings.rating_range
        assert not part.items.flags.writeable
    assert ratings.take_rows(np.arange(6)).digest() == ratings.digest()
    for wrong in ([6], [-1], [1, 1], [0.5], [[1]], [True], ["0"], 3):
        with pytest.raises(ConfigError, match="rows"):
            ratings.take_rows(wrong)  # type: ignore[arg-type]


def test_the_digest_depends_on_everything() -> None:
    changes = [
        of(SMALL),
        of(SMALL, rating_range=(0, 5)),
        of([*SMALL[:2], ("bob", "milk", 4.5)]),
        of([*SMALL[:2], ("bob", "wine", 5.0)]),
        of([*SMALL[:2], ("bert", "milk", 5.0)]),
        of(SMALL, catalogue=Catalogue(["milk", "tea", "wine"])),
        of([(1, 1, 2.0), (2, 1, 4.5), (1, 2, 5.0)]),
        of([("1", "1", 2.0), ("2", "1", 4.5), ("1", "2", 5.0)]),
    ]
    digests = {ratings.digest() for ratings in changes}
    assert len(digests) == len(changes)
    assert all(len(digest) == 64 for digest in digests)
    assert of(SMALL).digest() == of(SMALL[::-1]).digest()


def test_nothing_shows_and_nothing_changes() -> None:
    ratings = of(SMALL)
    assert repr(ratings) == str(ratings) == f"{ratings}" == "Ratings(rating_range=(0.5, 5))"
    with pytest.raises(FrozenInstanceError):
        ratings.values = np.zeros(3, dtype=np.float32)  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        ratings.values[0] = 1
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(PrivacyError):
            pickle.dumps(ratings, protocol)
    with pytest.raises(PrivacyError):
        copy.deepcopy(ratings)


def test_columns_are_chosen() -> None:
    frame = pl.DataFrame({"a": ["x", "y"], "b": [1, 2], "c": [1.0, 2.0], "user": [3, 4]})
    ratings = Ratings.from_frame(frame, rating_range=STARS, columns=Columns("a", "b", "c"))
    assert ratings.user_ids.to_list() == ["x", "y"]
    names = {"user": "a", "item": "b", "rating": 2}
    assert Ratings.from_frame(frame, rating_range=STARS, columns=names).digest() == ratings.digest()


def test_importing_is_light() -> None:
    """Commands that read no ratings do not wait for the compiler."""
    code = "import sys, tacit.data.ratings; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
