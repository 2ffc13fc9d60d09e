"""What statistics are by definition, person by person, dense and in double precision."""

import math
from dataclasses import replace

import numpy as np
import polars as pl

from tacit import Ratings, ThreadEngine
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tests.support.attack import CATALOGUE, ITEMS, RANGE, Row, step

WORD = (1 << 64) - 1
CLOSE = 2e-6  # fitted values are kept in single precision
OFFSETS = np.linspace(2.2, 3.7, ITEMS)


def people() -> list[Row]:
    """Rows of every length, in no order of length, values anywhere in the range."""
    rng = np.random.default_rng(3)
    lengths = [3, 0, 1, 10, 2, 4, 5, 9, 8, 6, 7, 0, 4]
    return [
        {int(item): float(np.float32(rng.uniform(1, 5))) for item in rng.permutation(ITEMS)[:n]}
        for n in lengths
    ]


ROWS = people()


def ratings_with_empty_rows(rows: list[Row]) -> Ratings:
    pairs = [pair for row in rows for pair in sorted(row.items())]
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    items = np.array([item for item, _ in pairs], dtype=np.uint16)
    values = np.array([value for _, value in pairs], dtype=np.float32)
    return Ratings(RANGE, CATALOGUE, pl.Series(range(len(rows))), indptr, items, values)


def summed(statistic: Statistic, rows: list[Row], threads: int = 1) -> np.ndarray:
    engine = ThreadEngine(threads)
    engine.take(ratings_with_empty_rows(rows))
    unit = statistic.max_entry * 2.0 ** -min(50, statistic.term_bits)
    return engine.sum(statistic, unit)._exact_sum * unit


def mixed(word: int) -> int:
    """The finaliser of splitmix64, in whole numbers."""
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 & WORD
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB & WORD
    return word ^ (word >> 31)


def words_of(row: Row, seed: int) -> dict[int, int]:
    """The pseudo-random word of each item of a row."""
    state = seed
    for item, value in sorted(row.items()):
        state = mixed(state ^ (item + ((int(value * 4096) << 32) & WORD) & WORD))
    return {item: mixed((state + item * 0x9E3779B97F4A7C15) & WORD) for item in row}


def chosen(row: Row, most: int | None, seed: int) -> Row:
    words = words_of(row, seed)
    kept = sorted(row, key=lambda item: words[item])[:most]
    return {item: row[item] for item in sorted(kept)}


def shortened(vector: np.ndarray, norm: float) -> np.ndarray:
    length = float(np.linalg.norm(vector))
    return vector if length <= norm else vector * (norm / length)


def centred(row: Row, bounds: RowBounds) -> tuple[list[int], np.ndarray]:
    """Her items, and what is left of her ratings before the row is scaled."""
    row = chosen(row, bounds.max_ratings, bounds.seed)
    items = sorted(row)
    values = np.array([1.0 if bounds.binarise else row[item] for item in items])
    left = values - bounds.offsets[items]
    if bounds.centre and items:
        left -= left.sum() / (len(items) + bounds.bias_shrinkage)
    return items, np.clip(left, -bounds.clip, bounds.clip)


def bounded(row: Row, bounds: RowBounds) -> tuple[list[int], np.ndarray]:
    items, left = centred(row, bounds)
    if bounds.by_sqrt_count:
        left = left / math.sqrt(max(len(items), 1))
    return items, shortened(left, bounds.norm)


def fitted(items: list[int], target: np.ndarray, steps: tuple[RankOneStep, ...]) -> np.ndarray:
    """Her fitted values after the published steps, from Algorithm 1."""
    row = np.zeros(len(items))
    for one in steps:
        along = one.direction[items]
        row = one.keep * row - one.gain * ((row - target) @ along) * along
        row = shortened(row, one.norm)
    return row


def residual(
    row: Row, bounds: RowBounds, steps: tuple[RankOneStep, ...], bound: float
) -> np.ndarray:
    """Her residual over all items, zero where she rated nothing."""
    items, target = bounded(row, bounds)
    dense = np.zeros(ITEMS)
    dense[items] = shortened(fitted(items, target, steps) - target, bound)
    return dense


def assert_close(found: np.ndarray, expected: np.ndarray, tolerance: float = CLOSE) -> None:
    assert found.shape == np.shape(expected)
    assert np.abs(expected).max() > 1e-3
    assert np.allclose(found, expected, rtol=0.0, atol=tolerance * max(1.0, np.abs(expected).max()))


BOUNDS: dict[str, RowBounds] = {
    "short rows": RowBounds(4, OFFSETS, False, 1.6, seed=5),
    "centred": RowBounds(None, OFFSETS, True, 2.0, bias_shrinkage=1.5),
    "centred, no shrinking, clipped": RowBounds(7, OFFSETS, True, 2.5, seed=1, clip=0.9),
    "weighted": RowBounds(None, OFFSETS, True, 0.6, bias_shrinkage=5.0, by_sqrt_count=True),
    "weighted, few too long": RowBounds(
        None, OFFSETS, True, 1.1, bias_shrinkage=5.0, by_sqrt_count=True
    ),
    "presence": RowBounds(3, np.zeros(ITEMS), False, 0.9, by_sqrt_count=True, binarise=True),
}
STEPS: dict[str, tuple[RankOneStep, ...]] = {
    "no step": (),
    "a step": (replace(step(0, 0.9), gain=-1.0, keep=0.8),),
    "steps": tuple(replace(step(t, 0.9), gain=0.6 + 0.2 * t, keep=0.75) for t in range(3)),
    "a step that overflows": (replace(step(0, 0.9), gain=1e300),),
}
AFTER = [name for name in STEPS if name != "a step that overflows"]


def solved(items: list[int], target: np.ndarray, factors: np.ndarray, noise: np.ndarray,
           ridge: float) -> np.ndarray:  # fmt: skip
    """Her own factors, by a general solver."""
    G = factors[items] / np.sqrt(noise[items])[:, None]
    left = G.T @ G + ridge * np.eye(factors.shape[1])
    return np.linalg.solve(left, G.T @ (target / np.sqrt(noise[items])))
