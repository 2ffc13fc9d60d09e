"""Families of ratings on which a method that trusts its noise does worse than everyone's mean."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import polars as pl

import tacit
from tacit.datasets.synthetic import synthesise

STARS = (0.5, 5.0)
Generator = np.random.Generator


class Split(NamedTuple):
    """Ratings to learn from, and others of the same people."""

    train: tacit.Ratings
    test: pl.DataFrame


def revealed(rng: Generator, full: np.ndarray, lengths: np.ndarray, range_: tuple[float, float],
             popularity: np.ndarray | None = None) -> Split:  # fmt: skip
    """Let each user reveal so many items of a full matrix; up to ten others are for testing."""
    users, items = full.shape
    order = [rng.choice(items, items, replace=False, p=popularity) for _ in range(users)]
    train = [(i, int(j)) for i in range(users) for j in order[i][: lengths[i]]]
    test = [(i, int(j)) for i in range(users) for j in order[i][lengths[i] : lengths[i] + 10]]
    return split_of(full[tuple(zip(*train, strict=True))], train,
                    full[tuple(zip(*test, strict=True))], test, (items, range_))  # fmt: skip


def split_of(
    learn: np.ndarray,
    train: list[tuple[int, int]],
    held: np.ndarray,
    test: list[tuple[int, int]],
    about: tuple[int, tuple[float, float]],
) -> Split:
    """Make a split of pairs (user, item) and their ratings; `about` is (items, rating range)."""
    catalogue = tacit.Catalogue(list(range(about[0])), public=True)
    users, items = zip(*train, strict=True)
    ratings = tacit.Ratings.from_arrays(
        users, items, learn, rating_range=about[1], catalogue=catalogue
    )
    people, things = zip(*test, strict=True)
    frame = {"user": people, "item": things, "rating": held}
    return Split(ratings, pl.DataFrame(frame))


def stars(x: np.ndarray) -> np.ndarray:
    return np.clip(np.round(2 * x) / 2, *STARS)


def plain(rng: Generator, users: int, items: int) -> np.ndarray:
    """Stars with a level of the user, one of the item, and noise."""
    level, quality = 0.4 * rng.standard_normal((users, 1)), 0.5 * rng.standard_normal(items)
    return stars(3.5 + level + quality + 0.8 * rng.standard_normal((users, items)))


def equal(rng: Generator, n: int) -> Split:
    """All ratings are the same."""
    return revealed(rng, np.full((n, 30), 4.0), np.full(n, 10), STARS)


def own_constants(rng: Generator, n: int) -> Split:
    """Each user gives one and the same rating to everything."""
    full = np.repeat(rng.choice([1.0, 2.0, 3.0, 4.0, 5.0], (n, 1)), 30, axis=1)
    return revealed(rng, full, np.full(n, 10), STARS)


def top_end(rng: Generator, n: int) -> Split:
    """Everyone is at the upper end of the range."""
    return revealed(rng, rng.choice([4.5, 5.0], (n, 30)), np.full(n, 10), STARS)


def two_each(rng: Generator, n: int) -> Split:
    return revealed(rng, plain(rng, n, 30), np.full(n, 2), STARS)


def one_each(rng: Generator, n: int) -> Split:
    return revealed(rng, plain(rng, n, 30), np.full(n, 1), STARS)


def two_items(rng: Generator, n: int) -> Split:
    """Everyone has rated one of two items."""
    return revealed(rng, plain(rng, n, 2), np.full(n, 1), STARS)


def few_items(rng: Generator, n: int) -> Split:
    return revealed(rng, plain(rng, n, 5), np.full(n, 3), STARS)


def rank_one(rng: Generator, n: int) -> Split:
    full = np.outer(rng.uniform(-1, 1, n), rng.uniform(-1, 1, 50))
    return revealed(rng, full, np.full(n, 15), (-1.0, 1.0))


def levels(rng: Generator, n: int) -> Split:
    """Users' levels are anywhere, and ratings close to them."""
    full = rng.uniform(0.5, 5, (n, 1)) + 0.2 * rng.standard_normal((n, 40))
    return revealed(rng, np.clip(full, *STARS), np.full(n, 10), STARS)


def percent(rng: Generator, n: int) -> Split:
    """A range of 0 to 100, of which 60 to 100 is used."""
    full = 80 + 4 * rng.standard_normal((n, 1)) + 3 * rng.standard_normal(40)
    full = np.clip(full + 6 * rng.standard_normal((n, 40)), 60, 100)
    return revealed(rng, full, np.full(n, 12), (0.0, 100.0))


def percent_tight(rng: Generator, n: int) -> Split:
    """A range of 0 to 100, of which 95 to 100 is used."""
    full = 98 + rng.standard_normal((n, 1)) + rng.standard_normal((n, 40))
    return revealed(rng, np.clip(full, 95, 100), np.full(n, 12), (0.0, 100.0))


def heavy(rng: Generator, n: int) -> Split:
    """Lengths from 1 to 190 by Pareto's law, and items of very unequal fame."""
    lengths = np.clip((2 * rng.pareto(0.8, n) + 1).astype(int), 1, 190)
    fame = (np.arange(200) + 5.0) ** -1
    return revealed(rng, plain(rng, n, 200), lengths, STARS, fame / fame.sum())


def thumbs(rng: Generator, n: int) -> Split:
    """Coins, each user with one of her own."""
    full = (rng.random((n, 40)) < rng.random((n, 1))).astype(float)
    return revealed(rng, full, np.full(n, 10), (0.0, 1.0))


def nothing(rng: Generator, n: int) -> Split:
    """A level of the user, noise, and nothing to learn."""
    full = stars(3.5 + 0.4 * rng.standard_normal((n, 1)) + 0.9 * rng.standard_normal((n, 60)))
    return revealed(rng, full, np.full(n, 20), STARS)


def own_noise(rng: Generator, n: int) -> Split:
    """Some people are two hundred times as noisy as others."""
    sds = 10 ** rng.uniform(-2, 0.3, (n, 1))
    full = rng.uniform(1.5, 4.5, (n, 1)) + sds * rng.standard_normal((n, 40))
    return revealed(rng, np.clip(full, *STARS), np.full(n, 12), STARS)


def one_hated_item(rng: Generator, n: int) -> Split:
    full = np.full((n, 40), 5.0)
    full[:, 0] = 0.8
    return revealed(rng, full - rng.uniform(0, 0.3, full.shape), np.full(n, 10), STARS)


def synthetic(kind: str, items: int, per_user: int) -> Callable[[Generator, int], Split]:
    """One of the package's own families, small."""

    def make(rng: Generator, n: int) -> Split:
        seed = int(rng.integers(2**31))
        world = synthesise(
            kind, users=n, items=items, per_user=per_user, test_fraction=0.3, seed=seed
        )
        train, test = (
            list(part.select("user", "item").iter_rows()) for part in (world.train, world.test)
        )
        learn, held = (part["rating"].to_numpy() for part in (world.train, world.test))
        return split_of(learn, train, held, test, (items, world.rating_range))

    return make


FAMILIES: dict[str, Callable[[Generator, int], Split]] = {
    family.__name__: family
    for family in (
        equal, own_constants, top_end, two_each, one_each, two_items, few_items, rank_one, levels,
        percent, percent_tight, heavy, thumbs, nothing, own_noise, one_hated_item,
    )
} | {
    "tastes": synthetic("tastes", 60, 15),
    "popular": synthetic("popular", 120, 20),
    "few": synthetic("few", 100, 20),
    "sparse": synthetic("sparse", 80, 7),
    "missing": synthetic("missing-not-at-random", 100, 30),
}  # fmt: skip
