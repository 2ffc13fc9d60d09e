"""Every statistic against a plain computation of its definition, person by person.

Bounds alone say little: a sum that is too small, or of other rows, keeps any bound. Here the rows
are of all lengths from none to all items, some must be shortened and some not, and each statistic
is computed a second time from its docstring, densely and in double precision. A loop that begins
one rating late, leaves out the last of four, or takes another step than was published is noticed.
"""

import math
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from tests.privacy.test_sensitivity import CATALOGUE, ITEMS, RANGE, Row, step

from tacit import Ratings, ThreadEngine
from tacit.kernels import residuals
from tacit.trusted.local_state import LinearStep, RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import (
    DescentMoments,
    FactorGradient,
    FilledCovariance,
    ItemSums,
    NormalEquations,
    RatingCount,
    ResidualCovariance,
    ResidualEnergy,
    ResidualProduct,
    RowNorms,
    RowSums,
    UserCount,
    UserMoments,
)

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


def close(found: np.ndarray, expected: np.ndarray, tolerance: float = CLOSE) -> None:
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


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("how", BOUNDS)
def test_covariances(how: str, after: str) -> None:
    for bound in (0.7, 9.0):
        expected = np.zeros((ITEMS, ITEMS))
        for row in ROWS:
            own = residual(row, BOUNDS[how], STEPS[after], bound)
            expected += np.outer(own, own)
        statistic = ResidualCovariance(BOUNDS[how], STEPS[after], bound)
        close(summed(statistic, ROWS), expected)
        some = np.array([0, 3, 4, 8])
        part = summed(replace(statistic, items=some), ROWS)
        close(part, expected[np.ix_(some, some)])


@pytest.mark.parametrize("room", [1, 8, 11, 27])
def test_covariances_whose_rows_come_in_batches(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are full to the last place, and that begin with a row longer than a batch."""
    monkeypatch.setattr(residuals, "_BATCH", room)
    expected = np.zeros((ITEMS, ITEMS))
    for row in ROWS * 2:
        own = residual(row, BOUNDS["centred"], (), 1.5)
        expected += np.outer(own, own)
    close(summed(ResidualCovariance(BOUNDS["centred"], (), 1.5), ROWS * 2), expected)


@pytest.mark.parametrize("items", [[0, 0], [3, 1], [-1, 2], [0, ITEMS]])
def test_items_that_do_not_rise_are_refused(items: list[int]) -> None:
    from tacit import PrivacyError

    statistic = ResidualCovariance(BOUNDS["centred"], (), 1.0, np.array(items))
    with pytest.raises(PrivacyError, match="rise"):
        summed(statistic, ROWS)
    first_and_last = np.array([0, ITEMS - 1])
    assert summed(replace(statistic, items=first_and_last), ROWS).shape == (2, 2)


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("how", ["short rows", "weighted"])
def test_products_and_energies(how: str, after: str) -> None:
    block = np.linalg.qr(np.random.default_rng(2).standard_normal((ITEMS, 3)))[0]
    for bound in (0.5, 9.0):
        expected, energy = np.zeros((ITEMS, 3)), 0.0
        for row in ROWS:
            own = residual(row, BOUNDS[how], STEPS[after], bound)
            expected += np.outer(own, own @ block)
            energy += float(own @ block[:, 1]) ** 2
        product = ResidualProduct(BOUNDS[how], STEPS[after], bound, block)
        close(summed(product, ROWS), expected)
        along = ResidualEnergy(BOUNDS[how], STEPS[after], bound, block[:, 1].copy())
        close(summed(along, ROWS), np.array([energy]))


@pytest.mark.parametrize("after", AFTER)
def test_moments_of_a_descent(after: str) -> None:
    bounds, steps = BOUNDS["short rows"], STEPS[after]
    direction = np.linalg.qr(np.random.default_rng(4).standard_normal((ITEMS, 1)))[0][:, 0]
    expected = np.zeros(5)
    for row in ROWS:
        items, target = bounded(row, bounds)
        own = fitted(items, target, steps)
        left = own - target
        w = (left @ direction[items]) * direction[items]
        expected += [left @ left, left @ own, own @ own, own @ w, w @ w]
    close(summed(DescentMoments(bounds, steps, direction), ROWS), expected)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_moments_of_a_descent_are_cut_off(sign: float) -> None:
    """Along a direction far longer than one, (a . v)(v . y) is beyond either limit."""
    bounds, steps = BOUNDS["short rows"], STEPS["a step"]
    most = 4 * bounds.norm**2
    direction = 100 * np.linspace(1.0, 2.0, ITEMS)
    expected = np.zeros(5)
    for row in ROWS:
        items, target = bounded(row, bounds)
        own = fitted(items, target, steps)
        left = own - target
        w = (left @ direction[items]) * direction[items]
        terms = np.array([left @ left, left @ own, own @ own, own @ w, w @ w])
        expected += np.clip(terms, -most, most)
    close(summed(DescentMoments(bounds, steps, sign * direction), ROWS), expected, 1e-4)


def test_steps_are_taken_once_each_whether_together_or_one_by_one() -> None:
    """Local state goes on from where it is, and begins anew where it took another way."""
    bounds, steps = BOUNDS["short rows"], STEPS["steps"]
    engine = ThreadEngine(1)
    engine.take(ratings_with_empty_rows(ROWS))
    ways = [steps[:1], steps[:2], steps, steps[:1], steps[1:], (), steps[:2], steps]
    for way in ways:
        statistic = ResidualCovariance(bounds, way, 0.7)
        expected = np.zeros((ITEMS, ITEMS))
        for row in ROWS:
            own = residual(row, bounds, way, 0.7)
            expected += np.outer(own, own)
        for _ in range(2):  # the second time there is no step left to take
            close(engine.sum(statistic, 2.0**-40)._exact_sum * 2.0**-40, expected)


def filled_rows(statistic: FilledCovariance) -> np.ndarray:
    """Algorithm 5's rows over all items, put right as the docstring says."""
    dense = np.zeros((len(ROWS), ITEMS))
    for user, row in enumerate(ROWS):
        items, target = bounded(row, statistic.bounds)
        own = dense[user]
        for turn, (rate, norm) in enumerate(zip(statistic.rates, statistic.norms, strict=True)):
            if turn:
                one = statistic.steps[turn - 1]
                own = (own @ one.vectors * one.shrinkage) @ one.vectors.T
            own[items] += rate * (target - own[items])
            own = shortened(own, norm)
        dense[user] = own
    return dense


def filled(taken: int, columns: int) -> FilledCovariance:
    rng = np.random.default_rng(taken)
    steps = []
    for _ in range(taken):
        vectors = np.linalg.qr(rng.standard_normal((ITEMS, columns)))[0]
        steps.append(LinearStep(vectors, rng.uniform(0.3, 1.0, columns)))
    rates = (0.7, 0.5, 0.9, 0.4)[: taken + 1]
    norms = (1.2, 0.8, 1.0, 0.9)[: taken + 1]
    return FilledCovariance(BOUNDS["short rows"], tuple(steps), rates, norms)


@pytest.mark.parametrize(("taken", "columns"), [(0, 1), (1, 10), (1, 3), (3, 4), (2, 5)])
def test_covariances_of_filled_rows(taken: int, columns: int) -> None:
    statistic = filled(taken, columns)
    dense = filled_rows(statistic)
    close(summed(statistic, ROWS), dense.T @ dense)
    close(summed(statistic, ROWS * 5, threads=2), 5 * dense.T @ dense)


def test_filled_rows_go_on_from_where_they_are() -> None:
    whole = filled(3, 4)
    engine = ThreadEngine(1)
    engine.take(ratings_with_empty_rows(ROWS))
    for taken in (0, 1, 3, 3, 1, 2):
        statistic = replace(whole, steps=whole.steps[:taken], rates=whole.rates[: taken + 1],
                            norms=whole.norms[: taken + 1])  # fmt: skip
        dense = filled_rows(statistic)
        close(engine.sum(statistic, 2.0**-40)._exact_sum * 2.0**-40, dense.T @ dense)


def solved(items: list[int], target: np.ndarray, factors: np.ndarray, noise: np.ndarray,
           ridge: float) -> np.ndarray:  # fmt: skip
    """Her own factors, by a general solver."""
    G = factors[items] / np.sqrt(noise[items])[:, None]
    left = G.T @ G + ridge * np.eye(factors.shape[1])
    return np.linalg.solve(left, G.T @ (target / np.sqrt(noise[items])))


@pytest.mark.parametrize("rank", [1, 3, 5, 8])
@pytest.mark.parametrize("clip", [0.3, 5.0])
def test_gradients_of_factors(rank: int, clip: float) -> None:
    bounds = BOUNDS["centred"]
    factors = np.random.default_rng(rank).standard_normal((ITEMS, rank))
    expected = np.zeros((ITEMS, rank))
    for row in ROWS:
        items, target = bounded(row, bounds)
        own = solved(items, target, factors, np.ones(ITEMS), 0.5)
        term = np.outer(factors[items] @ own - target, own)
        expected[items] += shortened(term.ravel(), clip).reshape(term.shape)
    close(summed(FactorGradient(bounds, factors, 0.5, clip), ROWS), expected)


@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize(("reach", "ratio"), [(0.3, 1.3), (3.0, 0.4), (1.0, 2.5)])
def test_normal_equations(rank: int, reach: float, ratio: float) -> None:
    bounds = RowBounds(7, OFFSETS, True, math.inf, seed=2, bias_shrinkage=1.0, clip=1.1)
    rng = np.random.default_rng(rank)
    factors, noise = rng.standard_normal((ITEMS, rank)), rng.uniform(0.5, 2.0, ITEMS)
    weights = np.append(rng.uniform(0.2, 3.0, ITEMS - 1), 0.0)
    expected = np.zeros((ITEMS, rank, rank + 1))
    for row in ROWS:
        items, target = bounded(row, bounds)
        own = shortened(solved(items, target, factors, noise, 1.0) / reach, 1.0)
        length = np.linalg.norm(weights[items])
        for place, item in enumerate(items):
            share = weights[item] / length if length else 0.0
            beside = np.append(own, ratio * target[place] / 1.1)
            expected[item] += share * np.outer(own, beside)
    statistic = NormalEquations(bounds, factors, noise, weights, reach, ratio)
    close(summed(statistic, ROWS), expected, 1e-4)


@pytest.mark.parametrize("how", BOUNDS)
def test_sums_and_norms_of_rows(how: str) -> None:
    bounds = BOUNDS[how]
    edges = np.array([0.4, 0.9, 1.5, 2.0])
    expected, bins = np.zeros(ITEMS), np.zeros(4)
    for row in ROWS:
        items, own = bounded(row, bounds)
        expected[items] += own
        norm = float(np.linalg.norm(centred(row, bounds)[1]))
        if norm > 1e-6:  # one rating, its own mean taken off
            bins[min(int(np.sum(edges < norm)), 3)] += 1
    close(summed(RowSums(bounds), ROWS), expected)
    close(summed(RowNorms(bounds, edges), ROWS), bins)


@pytest.mark.parametrize("ends", [(1.0, 5.0), (1.0, 4.0), (2.0, 5.0)])
@pytest.mark.parametrize("most", [None, 4])
def test_sums_of_items(most: int | None, ends: tuple[float, float]) -> None:
    """Ratings beyond either end of the range count as that end."""
    bounds = RowBounds(most, np.zeros(ITEMS), False, math.inf, seed=9)
    expected = np.zeros((2, ITEMS))
    for row in ROWS:
        own = chosen(row, most, 9)
        for item, value in own.items():
            place = 2 * (np.clip(value, *ends) - ends[0]) / (ends[1] - ends[0]) - 1
            expected[:, item] += np.array([place, 1.0]) / math.sqrt(len(own))
    close(summed(ItemSums(bounds, ends), ROWS), expected)


def test_moments_of_levels() -> None:
    """Levels beyond either end of a narrow half are cut off, and so are variances."""
    bounds = RowBounds(None, OFFSETS, False, math.inf)
    for half, cap in ((0.3, 0.4), (2.0, 3.0)):
        expected = np.zeros(4)
        for row in filter(None, ROWS):
            left = np.array([row[item] - OFFSETS[item] for item in row])
            level = float(np.clip(left.mean() / half, -1, 1))
            variance = left.var(ddof=1) if len(row) > 1 else 0.25
            expected += [(1 + level) / 2, level**2, min(1.0, variance / cap), 1.0]
        close(summed(UserMoments(bounds, half, cap, 0.25), ROWS), expected)


def test_counts_of_users_and_ratings() -> None:
    """Someone with no ratings is a user like any other; rows are cut to what may count."""
    lengths = [len(row) for row in ROWS]
    close(summed(UserCount(), ROWS), np.array([float(len(ROWS))]))
    everything = RowBounds(None, OFFSETS, False, math.inf)
    for threads in (1, 3):
        for most in (1, 4, 10):
            expected = np.array([float(sum(min(length, most) for length in lengths))])
            close(summed(RatingCount(everything, most), ROWS, threads), expected)
