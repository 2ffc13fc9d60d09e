"""Loops that draw the star families: half-star ratings of items chosen by popularity and liking."""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from tacit._parallel import map_chunks
from tacit.datasets.streams import below, normal, start, uniform
from tacit.datasets.synthetic_loops import (
    BLOCK,
    ROWS,
    TRIES,
    DrawPlan,
    Parts,
    blocks_of,
    deal,
)

_SHOCKS = np.uint64(0x73686F636B) << np.uint64(24)  # leaves room for the number of an item

_Ids = npt.NDArray[np.uint32]
_Floats = npt.NDArray[np.float32]


class Stars(NamedTuple):
    """What a star family is made of.

    `popularity` is the distribution function over `order`, which lists the items from the most
    popular down. `traits` and `tastes` have a column per factor; `noise` is each user's own sd.
    """

    quality: _Floats
    traits: _Floats
    order: _Ids
    popularity: npt.NDArray[np.float64]
    level: _Floats
    tastes: _Floats
    noise: _Floats
    selectivity: float


@nb.njit(cache=True)
def _liking(key: np.uint64, stars: Stars, item: int, user: int) -> float:
    """Return what a rating is above the user's bias, before rounding.

    Noise belongs to the pair: it is the same whatever else she rates, and however often the item
    comes up.
    """
    _, shock = normal(start(key, user, _SHOCKS + np.uint64(item)))
    total = float(stars.quality[item] + stars.noise[user] * shock)
    for k in range(stars.traits.shape[1]):
        total += stars.traits[item, k] * stars.tastes[user, k]
    return total


@nb.njit(cache=True)
def _fill(
    key: np.uint64, stars: Stars, user: int, row: _Ids, liking: _Floats, place: _Floats
) -> None:
    """Fill a row with distinct items, and `liking` with what she thinks of each.

    An item comes up by its popularity and is kept with chance 1 / (1 + exp(-selectivity x liking)),
    or always when the selectivity is 0. After enough tries the rest of the row is whatever stands
    next to a random place in the catalogue. `place` is NaN where an item is not chosen.
    """
    state = start(key, user, ROWS)
    n_items, found, tries = len(stars.order), 0, TRIES * len(row)
    while found < len(row):
        choosy = tries > 0
        if choosy:
            tries -= 1
            state, coin = uniform(state)
            rank = int(np.searchsorted(stars.popularity, coin, side="right"))
            item = int(stars.order[min(rank, n_items - 1)])
            if not np.isnan(place[item]):
                continue
        else:
            state, item = below(state, n_items)
            while not np.isnan(place[item]):
                item = (item + 1) % n_items
        like = _liking(key, stars, item, user)
        if choosy and stars.selectivity > 0.0:
            state, coin = uniform(state)
            if coin * (1.0 + np.exp(-stars.selectivity * like)) >= 1.0:
                continue
        place[item] = like
        row[found] = item
        found += 1
    row.sort()
    for k in range(len(row)):
        liking[k] = place[row[k]]
        place[row[k]] = np.nan


@nb.njit(cache=True, nogil=True)
def _block(first: int, plan: DrawPlan, stars: Stars, parts: Parts) -> None:
    """Draw the rows of one block of users."""
    last = min(len(plan.counts), first + BLOCK)
    longest = plan.counts[first:last].max()
    place = np.full(plan.n_items, np.nan, np.float32)
    row, ratings = np.empty(longest, np.uint32), np.empty(longest, np.float32)
    for user in range(first, last):
        count = plan.counts[user]
        _fill(plan.key, stars, user, row[:count], ratings[:count], place)
        for k in range(count):
            value = stars.level[user] + ratings[k]
            ratings[k] = min(max(np.rint(2.0 * value) / 2.0, 0.5), 5.0)
        deal(plan, user, row[:count], ratings[:count], parts)


def draw_stars(plan: DrawPlan, stars: Stars, parts: Parts) -> None:
    """Draw half-star ratings: level + quality + factors + noise, of items that people come upon."""
    map_chunks(lambda first: _block(first, plan, stars, parts), blocks_of(plan))
