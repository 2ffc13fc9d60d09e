import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tacit.datasets.synthetic import Synthetic, synthesise
from tacit.datasets.titles import GENRES
from tacit.errors import ConfigError

SIZE = {"users": 6_000, "items": 120, "per_user": 30}


@pytest.fixture(scope="module")
def rank_one() -> Synthetic:
    return synthesise("rank-one", **SIZE, test_fraction=0.1, seed=3)


@pytest.fixture(scope="module")
def tastes() -> Synthetic:
    return synthesise("tastes", **SIZE, test_fraction=0.1, seed=3)


def everything(world: Synthetic) -> pl.DataFrame:
    return pl.concat([world.train, world.test]).sort("user", "item")


def chi_square(counts: np.ndarray, expected: float) -> float:
    """Standardised: about normal(0, 1) when every count has this mean and is Poisson-like."""
    terms = (counts - expected) ** 2 / expected
    return float((terms.sum() - len(counts)) / np.sqrt(2 * len(counts)))


@pytest.mark.parametrize("kind", ["rank-one", "tastes"])
def test_frames_have_the_same_columns_and_order_and_no_pair_twice(kind, request):
    world = request.getfixturevalue(kind.replace("-", "_"))
    schema = {"user": pl.UInt32, "item": pl.UInt32, "rating": pl.Float32}
    for frame in (world.train, world.test):
        assert dict(frame.schema) == schema
        assert_frame_equal(frame, frame.sort("user", "item"))
    pairs = everything(world).select("user", "item")
    assert not pairs.is_duplicated().any()
    assert pairs["item"].max() < SIZE["items"]
    assert world.train["user"].n_unique() == SIZE["users"]


@pytest.mark.parametrize("kind", ["rank-one", "tastes"])
def test_the_held_out_share_is_what_was_asked_for(kind, request):
    world = request.getfixturevalue(kind.replace("-", "_"))
    total = world.train.height + world.test.height
    assert abs(world.test.height - 0.1 * total) < 5 * np.sqrt(0.09 * total)
    assert set(world.test["user"]) <= set(world.train["user"])


def test_everyone_keeps_a_training_rating_even_when_nearly_all_are_held_out():
    world = synthesise("rank-one", users=2_000, items=9, per_user=3, test_fraction=0.95)
    counts = world.train.group_by("user").len()["len"]
    assert len(counts) == 2_000
    assert counts.min() == 1
    assert world.test.height > 0.6 * 6_000
    nobody = synthesise("rank-one", users=50, items=9, per_user=1, test_fraction=0.95)
    assert (nobody.train.height, nobody.test.height) == (50, 0)


def test_no_test_ratings_when_none_are_asked_for():
    world = synthesise("tastes", users=50, items=9, per_user=4, test_fraction=0.0)
    assert world.test.height == 0
    assert world.test.columns == ["user", "item", "rating"]


def test_rank_one_ratings_are_entries_of_the_outer_product(rank_one):
    left, right = rank_one.truth
    assert np.abs(left).max() == 1.0
    assert np.abs(right).max() == 1.0
    ratings = everything(rank_one)
    entries = (left[ratings["user"]] * right[ratings["item"]]).astype(np.float32)
    assert np.array_equal(entries, ratings["rating"].to_numpy())
    assert rank_one.rating_range == (-1.0, 1.0)


def test_rank_one_factors_are_uniform(rank_one):
    for factor, size in zip(rank_one.truth, (SIZE["users"], SIZE["items"]), strict=True):
        edges = np.linspace(-1, 1, 11)
        assert chi_square(np.histogram(factor, edges)[0], size / 10) < 4
    assert np.sqrt((everything(rank_one)["rating"] ** 2).mean()) == pytest.approx(1 / 3, abs=0.05)


def test_rank_one_rows_are_uniform_sets_of_exactly_the_size_asked_for(rank_one):
    ratings = everything(rank_one)
    assert (ratings.group_by("user").len()["len"] == SIZE["per_user"]).all()
    n, d, m = SIZE["items"], SIZE["per_user"], SIZE["users"]
    seen = np.zeros((m, n), bool)
    seen[ratings["user"], ratings["item"]] = True
    # Counts of a fixed-size sample are less spread than independent ones, by (1 - d/n).
    alone = chi_square(seen.sum(0), m * d / n)
    assert -8 < alone < 4
    together = (seen.astype(np.float32).T @ seen.astype(np.float32))[np.triu_indices(n, 1)]
    assert chi_square(together, m * d * (d - 1) / (n * (n - 1))) < 4
    assert together.std() > 0.5 * np.sqrt(together.mean())


def test_a_row_may_be_the_whole_catalogue():
    for kind in ("rank-one", "tastes"):
        world = synthesise(kind, users=300, items=7, per_user=7, test_fraction=0.0)
        counts = world.train.group_by("user").len()["len"]
        assert counts.max() == 7
        assert (counts == 7).all() or kind == "tastes"


def test_tastes_are_half_stars_with_all_of_them_used(tastes):
    values = everything(tastes)["rating"]
    assert sorted(values.unique()) == [k / 2 for k in range(1, 11)]
    assert tastes.rating_range == (0.5, 5.0)
    assert 3.2 < values.mean() < 3.8
    assert 0.7 < values.std() < 1.2


def test_tastes_have_a_popularity_skew(tastes):
    counts = everything(tastes).group_by("item").len()["len"].sort(descending=True)
    assert len(counts) == SIZE["items"]
    assert counts[0] > 5 * counts[-1]
    assert counts[:12].sum() > 2.5 * counts[54:66].sum()


def test_number_of_ratings_varies_around_what_was_asked_for(tastes):
    counts = everything(tastes).group_by("user").len()["len"]
    assert counts.mean() == pytest.approx(SIZE["per_user"], rel=0.05)
    assert counts.min() >= 2
    assert counts.max() <= SIZE["items"]
    assert np.log(counts).std() == pytest.approx(0.6, abs=0.06)


def test_people_differ_and_items_differ(tastes):
    ratings = everything(tastes)
    for who, least in (("user", 0.35), ("item", 0.2)):
        means = ratings.group_by(who).agg(pl.col("rating").mean(), pl.len()).filter(pl.len() > 0)
        assert means["rating"].std() > least


def test_genres_explain_ratings_and_choices(tastes):
    """People agree with themselves within a genre, and rate more of the genre that they like."""
    genre = genre_of_titles(tastes.items["title"].to_list())
    ratings = everything(tastes).with_columns(
        genre=pl.Series(genre)[pl.Series(everything(tastes)["item"])],
        excess=pl.col("rating") - pl.col("rating").mean().over("item"),
    )
    ratings = ratings.with_columns(excess=pl.col("excess") - pl.col("excess").mean().over("user"))
    groups = ratings.group_by("user", "genre").agg(
        first=pl.col("excess").gather_every(2).mean(),
        second=pl.col("excess").gather_every(2, 1).mean(),
        mean=pl.col("excess").mean(),
        count=pl.len(),
    )
    often = groups.filter(pl.col("count") >= 6)
    assert np.corrcoef(often["first"], often["second"])[0, 1] > 0.4
    some = groups.filter(pl.col("count") >= 2)
    share = some["count"] / some["count"].mean()
    assert 0.05 < np.corrcoef(some["mean"], share)[0, 1] < 0.6


def genre_of_titles(titles: list[str]) -> list[int]:
    """Read the main genre off the noun in the title, as a person would."""
    return [
        next(k for k, genre in enumerate(GENRES) if any(noun in title for noun in genre.nouns))
        for title in titles
    ]


def test_titles_are_unique_even_when_words_run_out():
    items = synthesise("tastes", users=1, items=20_000, per_user=2).items
    assert items.columns == ["item", "title"]
    assert items["item"].to_list() == list(range(20_000))
    assert items["title"].n_unique() == 20_000
    assert items["title"].str.contains(", Part 2").any()


def test_rank_one_items_have_plain_titles(rank_one):
    assert rank_one.items["title"][7] == "Item 7"
    assert rank_one.items["item"].dtype == pl.UInt32


@pytest.mark.parametrize("kind", ["rank-one", "tastes"])
def test_the_seed_decides_and_the_number_of_threads_does_not(kind, monkeypatch):
    def make(seed: int, threads: int) -> Synthetic:
        monkeypatch.setattr("tacit._parallel.usable_cores", lambda: threads)
        return synthesise(kind, users=9_000, items=50, per_user=5, test_fraction=0.2, seed=seed)

    one, many, other = make(1, 1), make(1, 4), make(2, 4)
    for part in ("train", "test", "items"):
        assert_frame_equal(getattr(one, part), getattr(many, part))
    assert not one.train.equals(other.train)
    overlap = one.train.select("user", "item").join(
        other.train.select("user", "item"), on=["user", "item"], how="inner"
    )
    assert overlap.height < 0.5 * one.train.height


def test_neighbouring_users_have_unrelated_rows(rank_one):
    """Streams of users 0, 1, 2, ... start from neighbouring counters and must not show it."""
    ratings = everything(rank_one)
    seen = np.zeros((SIZE["users"], SIZE["items"]), np.float32)
    seen[ratings["user"], ratings["item"]] = 1
    expected = SIZE["per_user"] ** 2 / SIZE["items"]
    shared = (seen[1:] * seen[:-1]).sum(1)
    assert shared.mean() == pytest.approx(expected, abs=0.1)


def test_repr_says_nothing_of_anyone(tastes):
    assert repr(tastes) == "Synthetic(rating_range=(0.5, 5.0))"


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"kind": "cubist"}, "kind='cubist'"),
        ({"users": 0}, "users=0"),
        ({"users": 2.5}, r"users=2\.5"),
        ({"users": True}, "users=True"),
        ({"items": 0}, "items=0"),
        ({"items": "many"}, "items='many'"),
        ({"per_user": 11}, "per_user=11: expected a whole number from 2 to 10"),
        ({"per_user": 0}, "per_user=0"),
        ({"per_user": 1}, "per_user=1"),
        ({"test_fraction": 1.0}, r"test_fraction=1\.0"),
        ({"test_fraction": float("nan")}, "test_fraction=nan"),
        ({"test_fraction": "half"}, "test_fraction='half'"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": None}, "seed=None"),
    ],
)
def test_bad_arguments_are_named(change, names):
    arguments = {"kind": "tastes", "users": 5, "items": 10, "per_user": 3} | change
    with pytest.raises(ConfigError, match=names):
        synthesise(**arguments)
