"""Loops that draw synthetic ratings, one independent random stream per user."""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from tacit._parallel import map_chunks
from tacit.datasets.streams import below, normal, start, uniform

ROWS, _HOLD_OUT = np.uint64(0x726F7773), np.uint64(0x686F6C64)
BLOCK = 2048  # users that one thread takes at a time
ZIPF_OFFSET = 5.0
TRIES = 16  # per rating, before a person stops being choosy


_Ids = npt.NDArray[np.uint32]
_Flags = npt.NDArray[np.bool_]
_Floats = npt.NDArray[np.float32]
_Doubles = npt.NDArray[np.float64]


class DrawPlan(NamedTuple):
    """How many ratings each user gives and which share of them is held out."""

    key: np.uint64
    counts: npt.NDArray[np.int64]
    fraction: float
    n_items: int


class Part(NamedTuple):
    """Where the ratings of one part (train or test) go; user i owns start[i] .. start[i+1]."""

    start: npt.NDArray[np.int64]
    user: _Ids
    item: _Ids
    rating: _Floats


class Parts(NamedTuple):
    """Where all ratings go."""

    train: Part
    test: Part


class TasteWorld(NamedTuple):
    """What "tastes" are made of: items, users, and two numbers for all of them.

    `order` lists the items from the most popular down. `traits` and `tastes` have a column per
    genre.
    """

    traits: _Floats
    quality: _Floats
    order: _Ids
    tastes: _Floats
    level: _Floats
    selectivity: float
    noise: float


@nb.njit(cache=True)
def _choose_uniform(state: np.uint64, n_items: int, row: _Ids, chosen: _Flags) -> None:
    """Fill `row` with distinct items, every set equally likely (Floyd), in ascending order."""
    for k in range(len(row)):
        last = n_items - len(row) + k
        state, item = below(state, last + 1)
        if chosen[item]:
            item = last
        chosen[item] = True
        row[k] = item
    row.sort()
    for item in row:
        chosen[item] = False


@nb.njit(cache=True)
def _affinity(world: TasteWorld, item: int, user: int) -> float:
    """Return how well an item suits a user, before levels and noise."""
    total = 0.0
    for k in range(world.traits.shape[1]):
        total += world.traits[item, k] * world.tastes[user, k]
    return total


@nb.njit(cache=True)
def _by_popularity(state: np.uint64, order: _Ids) -> tuple[np.uint64, int]:
    """Return the next state and an item: rank r has a weight of about (r + OFFSET)**-0.9."""
    low, high = ZIPF_OFFSET**0.1, (len(order) + ZIPF_OFFSET) ** 0.1
    state, coin = uniform(state)
    root = low + coin * (high - low)
    square = root * root
    rank = int(square * square * square * square * square - ZIPF_OFFSET)
    return state, int(order[min(max(rank, 0), len(order) - 1)])


@nb.njit(cache=True)
def _choose_liked(
    state: np.uint64, world: TasteWorld, user: int, row: _Ids, chosen: _Flags
) -> np.uint64:
    """Fill `row` with distinct items, popular and suitable ones first, in ascending order.

    Popularity comes from the order of items, suitability from rejection. After enough tries the
    rest of the row is whatever stands next to a random place in the catalogue: people who rate
    almost everything are not choosy.
    """
    n_items, found, tries = len(world.order), 0, TRIES * len(row)
    while found < len(row):
        if tries > 0:
            tries -= 1
            state, item = _by_popularity(state, world.order)
            if chosen[item]:
                continue
            pull = world.selectivity * _affinity(world, item, user)
            state, coin = uniform(state)
            if coin * (1.0 + np.exp(-pull)) >= 1.0:
                continue
        else:
            state, item = below(state, n_items)
            while chosen[item]:
                item = (item + 1) % n_items
        chosen[item] = True
        row[found] = item
        found += 1
    row.sort()
    for item in row:
        chosen[item] = False
    return state


@nb.njit(cache=True)
def _put(part: Part, place: int, user: int, item: int, rating: float) -> None:
    """Write one rating at one place of a part."""
    part.user[place] = user
    part.item[place] = item
    part.rating[place] = rating


@nb.njit(cache=True)
def deal(plan: DrawPlan, user: int, row: _Ids, ratings: _Floats, parts: Parts) -> None:
    """Deal one row to train and test; the last rating stays if all others were held out."""
    state = start(plan.key, user, _HOLD_OUT)
    train, test = parts.train, parts.test
    to_train, to_test = train.start[user], test.start[user]
    for k in range(len(row)):
        state, coin = uniform(state)
        if coin < plan.fraction and to_test < test.start[user + 1]:
            _put(test, to_test, user, row[k], ratings[k])
            to_test += 1
        else:
            _put(train, to_train, user, row[k], ratings[k])
            to_train += 1


def blocks_of(plan: DrawPlan) -> range:
    """Return the first user of each block; threads share blocks, since prange compiles slowly."""
    return range(0, len(plan.counts), BLOCK)


def count_held_out(plan: DrawPlan) -> npt.NDArray[np.int64]:
    """Count the ratings of every user that will be held out: never all of them."""
    held = np.zeros(len(plan.counts), np.int64)
    map_chunks(lambda first: _count_block(first, plan, held), blocks_of(plan))
    return held


@nb.njit(cache=True, nogil=True)
def _count_block(first: int, plan: DrawPlan, held: npt.NDArray[np.int64]) -> None:
    """Count those of one block of users."""
    for user in range(first, min(len(plan.counts), first + BLOCK)):
        state = start(plan.key, user, _HOLD_OUT)
        total = 0
        for _ in range(plan.counts[user]):
            state, coin = uniform(state)
            total += coin < plan.fraction
        held[user] = min(total, plan.counts[user] - 1)


@nb.njit(cache=True, nogil=True)
def _rank_one_block(
    first: int, plan: DrawPlan, left: _Doubles, right: _Doubles, parts: Parts
) -> None:
    """Draw the rows of one block of users of the rank-one matrix."""
    last = min(len(plan.counts), first + BLOCK)
    longest = plan.counts[first:last].max()
    chosen = np.zeros(plan.n_items, np.bool_)
    row, ratings = np.empty(longest, np.uint32), np.empty(longest, np.float32)
    for user in range(first, last):
        count = plan.counts[user]
        _choose_uniform(start(plan.key, user, ROWS), plan.n_items, row[:count], chosen)
        for k in range(count):
            ratings[k] = left[user] * right[row[k]]
        deal(plan, user, row[:count], ratings[:count], parts)


@nb.njit(cache=True, nogil=True)
def _tastes_block(first: int, plan: DrawPlan, world: TasteWorld, parts: Parts) -> None:
    """Draw the rows of one block of users of the world of tastes."""
    last = min(len(plan.counts), first + BLOCK)
    longest = plan.counts[first:last].max()
    chosen = np.zeros(plan.n_items, np.bool_)
    row, ratings = np.empty(longest, np.uint32), np.empty(longest, np.float32)
    for user in range(first, last):
        count = plan.counts[user]
        state = start(plan.key, user, ROWS)
        state = _choose_liked(state, world, user, row[:count], chosen)
        for k in range(count):
            state, shock = normal(state)
            stars = world.level[user] + world.quality[row[k]] + world.noise * shock
            stars += _affinity(world, row[k], user)
            ratings[k] = min(max(np.rint(2.0 * stars) / 2.0, 0.5), 5.0)
        deal(plan, user, row[:count], ratings[:count], parts)


def draw_rank_one(plan: DrawPlan, left: _Doubles, right: _Doubles, parts: Parts) -> None:
    """Draw uniformly chosen entries of the outer product of `left` and `right`."""
    map_chunks(lambda first: _rank_one_block(first, plan, left, right, parts), blocks_of(plan))


def draw_tastes(plan: DrawPlan, world: TasteWorld, parts: Parts) -> None:
    """Draw half-star ratings: level + quality + affinity + noise, of items that people choose."""
    map_chunks(lambda first: _tastes_block(first, plan, world, parts), blocks_of(plan))
