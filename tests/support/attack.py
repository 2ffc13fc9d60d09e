"""Attacks on stated sensitivities: rows, what they do to a sum, and searches for the worst of them.

Used by all tests/privacy/test_sensitivity...; the statistics and their own worst rows are there.
"""

from collections.abc import Callable, Iterator

import numpy as np
import polars as pl

from tacit import Catalogue, Ratings, ThreadEngine
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic

ITEMS, OTHERS = 10, 6
RANGE = (1.0, 5.0)
CATALOGUE = Catalogue(list(range(ITEMS)), public=True)
Row = dict[int, float]
SLACK = 1 + 1e-12
"""Norms of integers are computed in doubles: what is closer than this is equal."""
CLOSE = 0.97
"""A bound is reached if a pair comes as close; otherwise noise is wasted."""


def ratings_of(rows: list[Row]) -> Ratings:
    """What `Ratings.from_arrays` makes of these rows, without its checks: attacks need many."""
    kept = [sorted(row.items()) for row in rows if row]  # nothing tells of a user without ratings
    pairs = [pair for row in kept for pair in row]
    indptr = np.cumsum([0, *map(len, kept)], dtype=np.int64)
    items = np.array([item for item, _ in pairs], dtype=np.uint16)
    values = np.array([value for _, value in pairs], dtype=np.float32)
    return Ratings(RANGE, CATALOGUE, pl.Series(range(len(kept))), indptr, items, values)


def bystanders(rng: np.random.Generator) -> list[Row]:
    return [random_row(rng) for _ in range(OTHERS)]


def random_row(rng: np.random.Generator) -> Row:
    items = rng.choice(ITEMS, rng.integers(1, ITEMS + 1), replace=False)
    extreme = rng.random() < 0.7
    values = rng.choice([1.0, 5.0], items.size) if extreme else rng.uniform(1, 5, items.size)
    return {int(item): float(value) for item, value in zip(items, values, strict=True)}


def mutated(row: Row | None, rng: np.random.Generator) -> Row:
    row = dict(row or {})
    for _ in range(int(rng.integers(1, 4))):
        item = int(rng.integers(ITEMS))
        if item in row and len(row) > 1 and rng.random() < 0.4:
            del row[item]
        else:
            row[item] = float(rng.choice([1.0, 5.0, rng.uniform(1, 5)]))
    return row


def opposites(count: int, flip: bool) -> tuple[Row, Row]:
    """Two rows at the ends of the range, on the same items or on others."""
    items = range(count)
    before = dict.fromkeys(items, 5.0)
    after = dict.fromkeys(items, 1.0) if flip else {item + count: 5.0 for item in items}
    return before, after


def structured_pairs() -> Iterator[tuple[Row, Row]]:
    """Neighbours by design: all or few ratings, at the ends of the range, alike or apart."""
    everything = {item: RANGE[item % 2] for item in range(ITEMS)}
    turned = {item: RANGE[1 - item % 2] for item in range(ITEMS)}
    for count in (1, 2, 4, 5):
        yield opposites(count, flip=True)
        yield opposites(count, flip=False)
        yield everything, dict.fromkeys(range(count), 5.0)
        yield {**dict.fromkeys(range(count), 5.0), count: 1.0}, turned
    yield everything, turned
    yield everything, dict.fromkeys(range(ITEMS), 3.0)
    yield {0: 5.0, 1: 3.0}, {0: 3.0, 1: 5.0}


def step(seed: int, norm: float) -> RankOneStep:
    direction = np.random.default_rng(seed).standard_normal(ITEMS)
    return RankOneStep(direction / np.linalg.norm(direction), 1.5, 0.8, norm)


def plain(most: int | None = 4, norm: float = 3.0) -> RowBounds:
    return RowBounds(most, np.full(ITEMS, 3.0), False, norm)


def summed(statistic: Statistic, rows: list[Row]) -> np.ndarray:
    engine = ThreadEngine(1)
    engine.take(ratings_of(rows))
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    return engine.sum(statistic, unit)._exact_sum * unit


def exact_sum(statistic: Statistic, rows: list[Row], threads: int) -> np.ndarray:
    engine = ThreadEngine(threads)
    engine.take(ratings_of(rows))
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    return engine.sum(statistic, unit)._exact_sum


def change(statistic: Statistic, others: list[Row], before: Row, after: Row | None) -> float:
    """How far the sum moves when one user's row `before` becomes `after` (None: she is gone)."""
    left = summed(statistic, [before, *others])
    right = summed(statistic, [after, *others] if after is not None else others)
    return float(np.linalg.norm(left - right))


def climb(statistic: Statistic, rng: np.random.Generator, replace: bool, starts: int = 6) -> float:
    """Search for the worst pair: random starts, then moves that make the change larger."""
    others = bystanders(rng)
    best = 0.0
    for _ in range(starts):
        before, after = random_row(rng), random_row(rng) if replace else None
        here = change(statistic, others, before, after)
        for _ in range(40):
            tried = mutated(before, rng), mutated(after, rng) if after else None
            there = change(statistic, others, *tried)
            if there >= here:
                (before, after), here = tried, there
        best = max(best, here)
    return best


def furthest(own: np.ndarray) -> tuple[float, float, int, int]:
    """Return the longest term, the largest distance of two, and which two those are."""
    apart = np.linalg.norm(own[:, None] - own[None], axis=2)
    one, other = np.unravel_index(np.argmax(apart), apart.shape)
    return float(np.max(np.linalg.norm(own, axis=1))), float(apart.max()), int(one), int(other)


def evolve(
    terms: Callable[[list[Row]], np.ndarray],
    rng: np.random.Generator,
    turns: int = 25,
    children: int = 7,
) -> tuple[float, float]:
    """Search for the worst rows: of many, the longest and the furthest apart live on and change.

    `terms` gives every row's own term. Returns the longest term and the largest distance of two.
    """
    rows = [random_row(rng) for _ in range(24)]
    longest, distance = 0.0, 0.0
    for _ in range(turns):
        own = terms(rows)
        one_user, pair, *parents = furthest(own)
        longest, distance = max(longest, one_user), max(distance, pair)
        parents.append(int(np.argmax(np.linalg.norm(own, axis=1))))
        best = [rows[parent] for parent in parents]
        rows = [*best, *(mutated(row, rng) for row in best for _ in range(children))]
        rows += [random_row(rng) for _ in range(4)]
    return longest, distance


def assert_hers_is_the_whole_change(statistic: Statistic, pairs: int = 5) -> None:
    """A row moves nobody else's term: with everyone else removed, the change is the same."""
    rng = np.random.default_rng(5)
    others = bystanders(rng)
    for _ in range(pairs):
        before, after = random_row(rng), random_row(rng)
        together = summed(statistic, [before, *others]) - summed(statistic, [after, *others])
        alone = summed(statistic, [before, {0: 3.0}]) - summed(statistic, [after, {0: 3.0}])
        assert np.array_equal(together, alone)


def assert_no_order_matters(statistic: Statistic, bits: int) -> None:
    """Sums are the same integers whatever the threads and the order of users."""
    rows = [random_row(np.random.default_rng(seed)) for seed in range(40)]
    unit = statistic.max_entry * 2.0**-bits
    results = []
    for threads, order in ((1, rows), (3, rows), (2, rows[::-1])):
        engine = ThreadEngine(threads)
        engine.take(ratings_of(order))
        results.append(engine.sum(statistic, unit)._exact_sum)
    assert np.array_equal(results[0], results[1])
    assert np.array_equal(results[0], results[2])


def assert_no_row_is_too_long_on_a_grid(statistic: Statistic, bits: int) -> None:
    """What one person adds is within the bound in whole numbers, however coarse their unit."""
    rng = np.random.default_rng(6)
    engine = ThreadEngine(1)
    unit = statistic.max_entry * 2.0**-bits
    other: Row = {0: 3.0}
    engine.take(ratings_of([other, other]))
    twice = engine.sum(statistic, unit)._exact_sum
    for _ in range(20):
        engine.take(ratings_of([random_row(rng), other]))
        units = (engine.sum(statistic, unit)._exact_sum - twice // 2).astype(object).ravel()
        assert float(sum(units**2)) * unit**2 <= statistic.sensitivity.add_remove**2
