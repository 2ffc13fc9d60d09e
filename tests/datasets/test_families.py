"""The star families: shapes, ranges, skew, and what people choose to rate."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

from tacit.datasets import families
from tacit.datasets.families import FAMILIES
from tacit.datasets.synthetic import Kind, Synthetic, synthesise
from tacit.errors import ConfigError

# Smaller than usual where the usual size is not the point.
USERS = {"popular": 6_000, "few": 500, "wide": 8_000, "sparse": 20_000}
USERS["missing-not-at-random"] = 6_000


@pytest.fixture(scope="module")
def made() -> dict[str, Synthetic]:
    return {
        name: synthesise(name, users=users, seed=5, test_fraction=0.05)
        for name, users in USERS.items()
    }


def everything(world: Synthetic) -> pl.DataFrame:
    return pl.concat([world.train, world.test]).sort("user", "item")


def test_every_family_is_a_kind():
    assert set(Kind.__args__) == {"rank-one", "tastes", *FAMILIES}


@pytest.mark.parametrize("name", FAMILIES)
def test_shapes_and_ranges(made, name):
    world, family = made[name], FAMILIES[name]
    ratings = everything(world)
    assert not ratings.select("user", "item").is_duplicated().any()
    assert world.train["user"].n_unique() == USERS[name]
    assert ratings["item"].max() < family.items == world.items.height
    assert sorted(ratings["rating"].unique()) == [k / 2 for k in range(1, 11)]
    assert world.rating_range == (0.5, 5.0)
    for part in (world.train, world.test):
        assert_frame_equal(part, part.sort("user", "item"))
    assert world.test.height == pytest.approx(0.05 * ratings.height, rel=0.1)
    counts = ratings.group_by("user").len()["len"]
    assert counts.min() >= family.fewest
    assert counts.max() <= (family.most or family.items)
    assert counts.median() == pytest.approx(family.per_user, rel=0.06)


def test_usual_sizes_are_those_of_the_table():
    world = synthesise("few")
    assert world.train["user"].n_unique() == 500
    assert world.items.height == 200
    assert (FAMILIES["wide"].users, FAMILIES["wide"].items) == (30_000, 20_000)
    assert (FAMILIES["sparse"].fewest, FAMILIES["sparse"].most) == (3, 15)


def share_of_the_most_rated(world: Synthetic) -> float:
    """What part of all ratings goes to the hundredth of items that has most."""
    counts = everything(world).group_by("item").len()["len"].sort(descending=True)
    return counts[: world.items.height // 100].sum() / counts.sum()


def test_popularity_is_skewed_and_would_not_be_without_the_skew(made, monkeypatch):
    assert share_of_the_most_rated(made["popular"]) > 0.1
    assert share_of_the_most_rated(made["wide"]) > 0.3
    flat = dict(FAMILIES) | {"popular": FAMILIES["popular"]._replace(skew=0.0)}
    monkeypatch.setattr("tacit.datasets.synthetic.FAMILIES", flat)
    assert share_of_the_most_rated(synthesise("popular", users=6_000, seed=5)) < 0.02


def test_numbers_of_ratings_have_a_heavy_tail_where_they_should(made):
    def longest(name):
        return everything(made[name]).group_by("user").len()["len"].max()

    assert longest("popular") > 1_000
    assert longest("wide") < 200


def excess_of_what_is_rated(name: str) -> float:
    """Mean rating of items as they are rated, less that when everyone rates everything.

    The same seed gives the same items and people; only how many ratings they give differs.
    """
    size = {"users": 3_000, "items": 100, "seed": 2, "test_fraction": 0.0}
    means = [
        synthesise(name, per_user=each, **size).train.group_by("item").agg(pl.col("rating").mean())
        for each in (10, 100)
    ]
    some, full = (frame.sort("item")["rating"].to_numpy() for frame in means)
    assert len(some) == len(full) == 100
    return float(np.mean(some - full))


def test_people_rate_what_they_like_in_one_family_only(monkeypatch):
    everyone = {name: family._replace(spread=0.01) for name, family in FAMILIES.items()}
    monkeypatch.setattr("tacit.datasets.synthetic.FAMILIES", everyone)
    assert excess_of_what_is_rated("missing-not-at-random") > 0.3
    # The twin: the sd of an item's mean of 100 ratings or more is at most 0.11, so that of the
    # mean over 100 items is at most 0.011.
    assert abs(excess_of_what_is_rated("popular")) < 0.05


def test_a_rating_is_the_same_whatever_else_is_rated(monkeypatch):
    size = {"users": 400, "items": 60, "seed": 4, "test_fraction": 0.0}
    for name in ("missing-not-at-random", "few"):
        some = synthesise(name, per_user=8, **size).train
        many = synthesise(name, per_user=40, **size).train
        both = some.join(many, on=["user", "item"])
        assert both.height > 1_000
        assert both["rating"].equals(both["rating_right"], check_names=False)


def fame_of_quality(world: Synthetic) -> float:
    """Correlation of items' means with the logarithm of how often they are rated."""
    items = everything(world).group_by("item").agg(pl.len(), pl.col("rating").mean())
    return float(np.corrcoef(np.log(items["len"]), items["rating"])[0, 1])


def test_popular_items_are_better_where_ratings_are_not_missing_at_random(made):
    assert fame_of_quality(made["missing-not-at-random"]) > 0.4
    # The twin; a correlation over 500 items or more has an sd of at most 0.045.
    assert abs(fame_of_quality(made["sparse"])) < 0.18
    assert abs(fame_of_quality(made["popular"])) < 0.1


def test_the_parts_of_a_rating_have_the_stated_sizes():
    """Split the variance of a full table: items, people, factors, noise (rounding adds 1/48)."""
    family = FAMILIES["few"]._replace(users=1_500, items=600, level=2.75)
    rng = np.random.default_rng(1)
    stars = families._stars(family, rng)
    signal = stars.tastes @ stars.traits.T
    assert signal.std() == pytest.approx(families.FACTORS_SD, rel=0.1)
    sizes = np.linalg.svd(stars.traits, compute_uv=False)
    assert 3 < sizes[0] / sizes[-1] < 8
    assert stars.quality.std() == pytest.approx(0.5, rel=0.1)
    assert stars.level.std() == pytest.approx(0.4, rel=0.1)
    assert stars.noise.mean() == pytest.approx(0.85, rel=0.02)
    assert stars.noise.max() / stars.noise.min() == pytest.approx(1.5**2, rel=0.02)


def test_noise_differs_between_people(made):
    """Sizes of residuals of a person agree between halves of her ratings, by far beyond chance."""
    often = everything(made["popular"]).with_columns(
        excess=pl.col("rating") - pl.col("rating").mean().over("item")
    )
    often = often.with_columns(excess=(pl.col("excess") - pl.col("excess").mean().over("user")))
    halves = often.group_by("user").agg(
        first=pl.col("excess").gather_every(2).std(),
        second=pl.col("excess").gather_every(2, 1).std(),
        count=pl.len(),
    )
    halves = halves.filter(pl.col("count") > 100)
    assert np.corrcoef(halves["first"], halves["second"])[0, 1] > 0.5


@pytest.mark.parametrize("name", ["popular", "missing-not-at-random"])
def test_the_seed_decides_and_the_number_of_threads_does_not(name, monkeypatch):
    def make(seed: int, threads: int) -> Synthetic:
        monkeypatch.setattr("tacit._parallel.usable_cores", lambda: threads)
        return synthesise(name, users=5_000, items=80, per_user=6, test_fraction=0.2, seed=seed)

    one, many, other = make(1, 1), make(1, 4), make(2, 4)
    for part in ("train", "test", "items"):
        assert_frame_equal(getattr(one, part), getattr(many, part))
    assert not one.train.equals(other.train)


def test_a_row_may_be_the_whole_catalogue():
    world = synthesise("popular", users=200, items=12, per_user=12, test_fraction=0.0)
    counts = world.train.group_by("user").len()["len"]
    assert counts.max() == 12


@pytest.mark.parametrize(
    ("change", "names"),
    [
        ({"users": 0}, "users=0"),
        ({"per_user": 3_000}, "per_user=3000: expected a whole number from 2 to 2000"),
        ({"items": 50}, "per_user=60: expected a whole number from 2 to 50"),
    ],
)
def test_bad_sizes_are_named(change, names):
    with pytest.raises(ConfigError, match=names):
        synthesise("popular", **change)
