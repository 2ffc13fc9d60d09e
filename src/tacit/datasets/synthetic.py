"""Synthetic ratings at any size: the paper's rank-one matrix, a world of tastes, star families."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit._validate import Range, check, one_of, refuse
from tacit.datasets import synthetic_loops as loops
from tacit.datasets.drawing import counts_near, frames_of, parts_of, plan_for
from tacit.datasets.families import FAMILIES, STAR_RANGE, draw_family
from tacit.datasets.titles import GENRES, invent_titles

Kind = Literal["rank-one", "tastes", "popular", "few", "wide", "sparse", "missing-not-at-random"]
"""The worlds that there are."""

_Positions = npt.NDArray[np.int64]
_Things = tuple[npt.NDArray[np.float32], npt.NDArray[np.float32], npt.NDArray[np.uint32]]

_USUAL: Final = (20_000, 400, 80)
_MOST_USERS: Final = 2**32 - 1
_MOST_ITEMS: Final = 10_000_000

# The world of "tastes", in stars.
_LEVEL, _LEVEL_SD = 3.2, 0.4
_QUALITY_SD, _QUALITY_OF_FAME = 0.25, 0.25
_TASTE_SDS = np.geomspace(1.1, 0.5, len(GENRES)).astype(np.float32)
_TRAIT_SD, _NOISE_SD = 0.1, 0.6
_SELECTIVITY = 1.0
_COUNT_SPREAD = 0.6


@dataclass(frozen=True, repr=False)
class Synthetic:
    """Ratings of invented people.

    Attributes:
        train: columns user, item (uint32) and rating (float32), sorted by user, then item.
        test: the held-out ratings, same columns and order; each of their users has training ones.
        items: columns item and title, one row per item, rated or not.
        rating_range: the smallest and largest rating that can occur.
        truth: vectors (u, v) whose outer product is the whole matrix, for "rank-one" only.
    """

    train: pl.DataFrame
    test: pl.DataFrame
    items: pl.DataFrame
    rating_range: tuple[float, float]
    truth: tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]] | None = None

    def __repr__(self) -> str:
        """Show the rating range and nothing else, as for real ratings."""
        return f"Synthetic(rating_range={self.rating_range})"


def synthesise(
    kind: str,
    *,
    users: int | None = None,
    items: int | None = None,
    per_user: int | None = None,
    test_fraction: float = 0.01,
    seed: int = 0,
) -> Synthetic:
    """Make ratings of invented people; the same arguments give the same ratings.

    "rank-one" is the matrix of the paper's experiments, Y* = u v^T with max |Y*_ij| = 1: u and v
    are uniform in [-1, 1], then scaled, and each user reveals `per_user` items, uniformly chosen.
    *Paper:* Section 4, dataset "Synthetic" (and "Synthetic-900" of the appendix).

    "tastes" imitates a film site: eight genres that people like more or less, famous items that
    are rated far more often, good and bad items, generous and strict people who rate between two
    and all items (log-normal, `per_user` on average) and rather what they like, noise, and half
    stars from 0.5 to 5. Titles hint at the genre.

    The star families ("popular", "few", "wide", "sparse", "missing-not-at-random") are for
    accuracy experiments, each hard in a way of its own: see `tacit.datasets.families`.

    Args:
        kind: "rank-one", "tastes" or a star family.
        users: how many people; None is what is usual for the kind, as for the next two.
        items: how many items.
        per_user: ratings of each person, held-out ones included ("tastes": on average; star
            families: the median).
        test_fraction: chance of each rating to be held out; everyone keeps at least one.
        seed: where all randomness comes from.

    Raises:
        ConfigError: an argument cannot be used.

    >>> world = synthesise("rank-one", users=3, items=4, per_user=2, seed=1)
    >>> world.train.columns, world.rating_range
    (['user', 'item', 'rating'], (-1.0, 1.0))
    """
    if kind not in get_args(Kind):
        refuse("kind", kind, one_of(kind, get_args(Kind)))
    usual = FAMILIES[kind][:3] if kind in FAMILIES else _USUAL
    given = (users, items, per_user)
    people, things, each = (u if g is None else g for g, u in zip(given, usual, strict=True))
    fewest = 1 if kind == "rank-one" else 2
    _check_whole("users", people, 1, _MOST_USERS)
    _check_whole("items", things, fewest, _MOST_ITEMS)
    _check_whole("per_user", each, fewest, things, " (the number of items)")
    _check_whole("seed", seed, 0, 2**64 - 1)
    check("test_fraction", test_fraction, Annotated[float, Range(0, 1, "[)")])
    rng = np.random.default_rng(seed)
    make = {"rank-one": _rank_one, "tastes": _tastes}.get(kind, partial(_family, kind))
    return make((people, things), each, float(test_fraction), rng)


def tastes_in_parts(
    users: int, items: int, per_user: int, *, part: int, seed: int = 0
) -> Iterator[Synthetic]:
    """Make ratings of kind "tastes" for more people than fit into memory, `part` at a time.

    All parts have the same items; people are numbered on from part to part. Nothing is held out.

    >>> worlds = list(tastes_in_parts(5, 20, 4, part=3))
    >>> [sorted(set(world.train["user"])) for world in worlds]
    [[0, 1, 2], [3, 4]]
    """
    _check_whole("users", users, 1, _MOST_USERS)
    _check_whole("items", items, 2, _MOST_ITEMS)
    _check_whole("per_user", per_user, 2, items, " (the number of items)")
    _check_whole("part", part, 1, _MOST_USERS)
    rng = np.random.default_rng(seed)
    main, second = _genres(items, rng)
    titles, things = invent_titles(main, second, rng), _things(main, second, rng)
    for number, first in enumerate(range(0, users, part)):
        count, own = min(part, users - first), np.random.default_rng([seed, number])
        world, plan = _people(count, things, per_user, 0.0, own)
        parts = parts_of(plan)
        loops.draw_tastes(plan, world, parts)
        parts.train.user[:] += np.uint32(first)
        yield Synthetic(*frames_of(parts, titles), rating_range=STAR_RANGE)


def _people(
    count: int, things: _Things, per_user: int, fraction: float, rng: np.random.Generator
) -> tuple[loops.TasteWorld, loops.DrawPlan]:
    """Draw what some people like, and how many ratings each of them gives."""
    items = len(things[2])
    tastes = rng.standard_normal((count, len(GENRES)), np.float32) * _TASTE_SDS
    level = _LEVEL + _LEVEL_SD * rng.standard_normal(count, np.float32)
    world = loops.TasteWorld(*things, tastes, level, _SELECTIVITY, _NOISE_SD)
    law = math.log(per_user) - _COUNT_SPREAD**2 / 2, _COUNT_SPREAD  # the mean is per_user
    return world, plan_for(counts_near(count, law, (2, items), rng), fraction, items, rng)


def _check_whole(name: str, value: object, low: int, high: int, what: str = "") -> None:
    """Refuse what is not a whole number from low to high."""
    text = f"a whole number from {low} to {high}{what}"
    check(name, value, Annotated[int, Range(low, high, words=text)])


def _rank_one(
    shape: tuple[int, int], per_user: int, fraction: float, rng: np.random.Generator
) -> Synthetic:
    """Draw entries of u v^T with unit l-infinity norm."""
    left, right = (_unit_uniform(size, rng) for size in shape)
    counts = np.full(shape[0], per_user, np.int64)
    plan = plan_for(counts, fraction, shape[1], rng)
    parts = parts_of(plan)
    loops.draw_rank_one(plan, left, right, parts)
    frames = frames_of(parts, _plain_titles(shape[1]))
    return Synthetic(*frames, rating_range=(-1.0, 1.0), truth=(left, right))


def _unit_uniform(size: int, rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Draw numbers uniform in [-1, 1], scaled so that the largest has size 1."""
    numbers = rng.uniform(-1.0, 1.0, size)
    numbers /= np.abs(numbers).max()
    return numbers


def _tastes(
    shape: tuple[int, int], per_user: int, fraction: float, rng: np.random.Generator
) -> Synthetic:
    """Draw half-star ratings from a world of genres, fame, quality, moods and noise."""
    main, second = _genres(shape[1], rng)
    titles = invent_titles(main, second, rng)
    world, plan = _people(shape[0], _things(main, second, rng), per_user, fraction, rng)
    parts = parts_of(plan)
    loops.draw_tastes(plan, world, parts)
    return Synthetic(*frames_of(parts, titles), rating_range=STAR_RANGE)


def _family(
    kind: str, shape: tuple[int, int], per_user: int, fraction: float, rng: np.random.Generator
) -> Synthetic:
    """Draw half-star ratings of one of the star families, at this size."""
    family = FAMILIES[kind]._replace(users=shape[0], items=shape[1], per_user=per_user)
    frames = frames_of(draw_family(family, fraction, rng), _plain_titles(shape[1]))
    return Synthetic(*frames, rating_range=STAR_RANGE)


def _plain_titles(items: int) -> list[str]:
    """Titles that say no more than the number of the item."""
    return [f"Item {item}" for item in range(items)]


def _genres(n: int, rng: np.random.Generator) -> tuple[_Positions, _Positions]:
    """Draw the main genre of every item, and another one that comes second."""
    main = rng.integers(len(GENRES), size=n)
    return main, (main + rng.integers(1, len(GENRES), size=n)) % len(GENRES)


def _things(main: _Positions, second: _Positions, rng: np.random.Generator) -> _Things:
    """Draw what items are like: traits, quality, and their order by fame."""
    n = len(main)
    traits = rng.normal(0.0, _TRAIT_SD, (n, len(GENRES)))
    traits[np.arange(n), main] += 1.0
    traits[np.arange(n), second] += rng.uniform(0.1, 0.5, n)
    order = rng.permutation(n).astype(np.uint32)
    fame = np.empty(n)
    fame[order] = np.linspace(1.0, -1.0, n)
    quality = rng.normal(_QUALITY_OF_FAME * fame, _QUALITY_SD)
    return traits.astype(np.float32), quality.astype(np.float32), order
