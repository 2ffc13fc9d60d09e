"""Families of synthetic star ratings, each difficult in its own way; all parameters are public.

A rating is, in stars and before it is rounded to half stars from 0.5 to 5,

    level of all (3.5) + quality of the item (sd 0.5) + level of the user (sd 0.4)
        + sum over 12 factors of trait x taste (sd 0.5 in all, each factor weaker than the last)
        + noise (an sd of the user's own, 0.85 on average, from 0.55 to 1.24).
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from tacit.datasets.drawing import counts_near, parts_of, plan_for
from tacit.datasets.family_loops import Stars, draw_stars
from tacit.datasets.synthetic_loops import ZIPF_OFFSET, Parts

STAR_RANGE: Final = (0.5, 5.0)
LEVEL_SD: Final = 0.4
QUALITY_SD: Final = 0.5
FACTORS: Final = 12
FACTORS_SD: Final = 0.5
FACTOR_DECAY: Final = 0.75
"""How much of a factor's variance the next one has."""
NOISE_SD: Final = 0.85
NOISE_FACTOR: Final = 1.5
"""The sd of a user's noise is up to so many times the usual one, or that much smaller."""


class Family(NamedTuple):
    """What one family is like.

    Attributes:
        users: how many, unless asked otherwise.
        items: how many, unless asked otherwise.
        per_user: the median number of ratings of a user, unless asked otherwise.
        spread: sd of the logarithm of that number.
        fewest: ratings that everyone has at least.
        most: ratings that nobody exceeds; None is the number of items.
        skew: popularity falls with rank r as (r + 5)^-skew.
        fame: correlation of quality and popularity, as the rank's normal score.
        selectivity: with s > 0, an item that would be rated x stars above the user's level is rated
            with chance 1 / (1 + exp(-s x)); 0 has nothing to do with liking.
        level: the mean rating of all pairs of users and items, rated or not.
    """

    users: int
    items: int
    per_user: int
    spread: float
    fewest: int = 2
    most: int | None = None
    skew: float = 0.8
    fame: float = 0.0
    selectivity: float = 0.0
    level: float = 3.5


FAMILIES: Mapping[str, Family] = MappingProxyType(
    {
        "popular": Family(20_000, 2_000, 60, spread=1.0, fewest=5, skew=1.0),
        "few": Family(500, 200, 40, spread=0.5, fewest=5),
        "wide": Family(30_000, 20_000, 40, spread=0.3, fewest=5, skew=1.0),
        "sparse": Family(50_000, 500, 7, spread=0.5, fewest=3, most=15),
        "missing-not-at-random": Family(
            40_000, 1_000, 60, spread=0.6, fame=0.5, selectivity=1.5, level=3.0
        ),
    }
)
"""The families by name, beside "rank-one" and "tastes", which are of another make."""


def draw_family(family: Family, fraction: float, rng: np.random.Generator) -> Parts:
    """Draw the ratings of a family, the training ones and the held-out ones."""
    stars = _stars(family, rng)
    most = family.items if family.most is None else min(family.most, family.items)
    centre, limits = math.log(family.per_user), (min(family.fewest, most), most)
    counts = counts_near(family.users, (centre, family.spread), limits, rng)
    plan = plan_for(counts, fraction, family.items, rng)
    parts = parts_of(plan)
    draw_stars(plan, stars, parts)
    return parts


def _stars(family: Family, rng: np.random.Generator) -> Stars:
    """Draw what items are like, what users like, and how their moods vary."""
    order = rng.permutation(family.items).astype(np.uint32)
    quality = _qualities(family, order, rng)
    share = FACTOR_DECAY ** np.arange(FACTORS)
    sds = (FACTORS_SD * np.sqrt(share / share.sum())).astype(np.float32)
    traits = rng.standard_normal((family.items, FACTORS), np.float32) * sds
    level = family.level + LEVEL_SD * rng.standard_normal(family.users, np.float32)
    tastes = rng.standard_normal((family.users, FACTORS), np.float32)
    noise = _noise_sds(family.users, rng)
    popularity = _popularity(family)
    return Stars(quality, traits, order, popularity, level, tastes, noise, family.selectivity)


def _qualities(
    family: Family, order: npt.NDArray[np.uint32], rng: np.random.Generator
) -> npt.NDArray[np.float32]:
    """Draw the qualities of items; with `fame`, popular ones are better."""
    from scipy.special import ndtri

    scores = np.empty(family.items)
    scores[order] = -ndtri((np.arange(family.items) + 0.5) / family.items)
    own = rng.standard_normal(family.items)
    mixed = family.fame * scores + math.sqrt(1.0 - family.fame**2) * own
    return (QUALITY_SD * mixed).astype(np.float32)


def _noise_sds(users: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
    """Draw each user's sd of noise: log-uniform, with the right mean."""
    span = math.log(NOISE_FACTOR)
    mean = math.sinh(span) / span
    return (NOISE_SD / mean * np.exp(rng.uniform(-span, span, users))).astype(np.float32)


def _popularity(family: Family) -> npt.NDArray[np.float64]:
    """The distribution function of popularity over ranks."""
    weights = (np.arange(family.items) + ZIPF_OFFSET) ** -family.skew
    total: npt.NDArray[np.float64] = np.cumsum(weights) / weights.sum()
    return total
