"""Every statistic against a plain computation of its definition, person by person.

Bounds alone say little: a sum that is too small, or of other rows, keeps any bound. Here the rows
are of all lengths from none to all items, some must be shortened and some not, and each statistic
is computed a second time from its docstring, densely and in double precision. A loop that begins
one rating late, leaves out the last of four, or takes another step than was published is noticed.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.support.attack import ITEMS
from tests.support.by_hand import (
    AFTER,
    BOUNDS,
    OFFSETS,
    ROWS,
    STEPS,
    assert_close,
    bounded,
    centred,
    chosen,
    fitted,
    ratings_with_empty_rows,
    residual,
    shortened,
    solved,
    summed,
)

from tacit import ThreadEngine
from tacit.kernels import outer
from tacit.trusted.local_state import LinearStep
from tacit.trusted.rows import RowBounds
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


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("how", BOUNDS)
def test_covariances(how: str, after: str) -> None:
    for bound in (0.7, 9.0):
        expected = np.zeros((ITEMS, ITEMS))
        for row in ROWS:
            own = residual(row, BOUNDS[how], STEPS[after], bound)
            expected += np.outer(own, own)
        statistic = ResidualCovariance(BOUNDS[how], STEPS[after], bound)
        assert_close(summed(statistic, ROWS), expected)
        some = np.array([0, 3, 4, 8])
        part = summed(replace(statistic, items=some), ROWS)
        assert_close(part, expected[np.ix_(some, some)])


@pytest.mark.parametrize("gain", [1.0, -1.0])
def test_fitted_rows_are_shortened_whatever_the_gain_is(gain: float) -> None:
    """Also where it is a number that means nothing special, as no gain does."""
    steps = (replace(STEPS["a step"][0], gain=gain, norm=0.2),)
    expected = np.zeros((ITEMS, ITEMS))
    for row in ROWS:
        own = residual(row, BOUNDS["centred"], steps, 9.0)
        expected += np.outer(own, own)
    assert_close(summed(ResidualCovariance(BOUNDS["centred"], steps, 9.0), ROWS), expected)


@pytest.mark.parametrize("room", [1, 8, 11, 27])
def test_covariances_whose_rows_come_in_batches(room: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches that are full to the last place, and that begin with a row longer than a batch."""
    monkeypatch.setattr(outer, "BATCH", room)
    expected = np.zeros((ITEMS, ITEMS))
    for row in ROWS * 2:
        own = residual(row, BOUNDS["centred"], (), 1.5)
        expected += np.outer(own, own)
    assert_close(summed(ResidualCovariance(BOUNDS["centred"], (), 1.5), ROWS * 2), expected)


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
        assert_close(summed(product, ROWS), expected)
        along = ResidualEnergy(BOUNDS[how], STEPS[after], bound, block[:, 1].copy())
        assert_close(summed(along, ROWS), np.array([energy]))


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
    for rows in (ROWS, ROWS[::-1]):  # long rows after short ones, and before them
        assert_close(summed(DescentMoments(bounds, steps, direction), rows), expected)


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
    assert_close(summed(DescentMoments(bounds, steps, sign * direction), ROWS), expected, 1e-4)


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
            assert_close(engine.sum(statistic, 2.0**-40)._exact_sum * 2.0**-40, expected)


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
    assert_close(summed(statistic, ROWS), dense.T @ dense)
    assert_close(summed(statistic, ROWS * 5, threads=2), 5 * dense.T @ dense)


def test_filled_rows_go_on_from_where_they_are() -> None:
    whole = filled(3, 4)
    engine = ThreadEngine(1)
    engine.take(ratings_with_empty_rows(ROWS))
    for taken in (0, 1, 3, 3, 1, 2):
        statistic = replace(whole, steps=whole.steps[:taken], rates=whole.rates[: taken + 1],
                            norms=whole.norms[: taken + 1])  # fmt: skip
        dense = filled_rows(statistic)
        assert_close(engine.sum(statistic, 2.0**-40)._exact_sum * 2.0**-40, dense.T @ dense)


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
    assert_close(summed(FactorGradient(bounds, factors, 0.5, clip), ROWS), expected)


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
    assert_close(summed(statistic, ROWS), expected, 1e-4)


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
    assert_close(summed(RowSums(bounds), ROWS), expected)
    assert_close(summed(RowNorms(bounds, edges), ROWS), bins)


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
    assert_close(summed(ItemSums(bounds, ends), ROWS), expected)


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
        assert_close(summed(UserMoments(bounds, half, cap, 0.25), ROWS), expected)


def test_counts_of_users_and_ratings() -> None:
    """Someone with no ratings is a user like any other; rows are cut to what may count."""
    lengths = [len(row) for row in ROWS]
    assert_close(summed(UserCount(), ROWS), np.array([float(len(ROWS))]))
    everything = RowBounds(None, OFFSETS, False, math.inf)
    for threads in (1, 3):
        for most in (1, 4, 10):
            expected = np.array([float(sum(min(length, most) for length in lengths))])
            assert_close(summed(RatingCount(everything, most), ROWS, threads), expected)
