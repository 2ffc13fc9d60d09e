"""Attacks on the stated sensitivities: no pair of neighbours may move a sum further than stated,

and some pair must come within a few percent of it, or noise is wasted.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.support.attack import (
    CATALOGUE,
    ITEMS,
    RANGE,
    SLACK,
    Row,
    assert_hers_is_the_whole_change,
    assert_no_order_matters,
    bystanders,
    change,
    climb,
    opposites,
    plain,
    random_row,
    ratings_of,
    step,
)

from tacit import Ratings, ThreadEngine
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import ItemSums, ResidualCovariance, UserCount


def test_rows_are_as_from_arrays_makes_them() -> None:
    rows = [{3: 5.0, 0: 1.0}, {}, {9: 2.3}, {2: 4.0, 1: 3.0, 7: 1.0}]
    entries = [(user, *pair) for user, row in enumerate(rows) for pair in row.items()]
    columns = zip(*entries, strict=True)
    made = Ratings.from_arrays(*columns, rating_range=RANGE, catalogue=CATALOGUE)
    for name in ("indptr", "items", "values"):
        one, other = getattr(made, name), getattr(ratings_of(rows), name)
        assert one.dtype == other.dtype
        assert np.array_equal(one, other)


def bounds(most: int | None = 4, norm: float = 3.0) -> RowBounds:
    return RowBounds(most, np.full(ITEMS, 3.0), True, norm)


CASES: dict[str, Callable[[], Statistic]] = {
    "first covariance": lambda: ResidualCovariance(bounds(), (), 3.0),
    "first covariance, no centring": lambda: ResidualCovariance(plain(), (), 3.0),
    "covariance after steps": lambda: ResidualCovariance(
        plain(), tuple(step(t, 3.0) for t in range(4)), 6.0
    ),
    "covariance after steps, tight clip": lambda: ResidualCovariance(
        plain(), tuple(step(t, 3.0) for t in range(4)), 1.5
    ),
    "covariance of some items": lambda: ResidualCovariance(
        plain(), tuple(step(t, 3.0) for t in range(4)), 1.5, np.array([0, 2, 3, 6])
    ),
    "all ratings count": lambda: ResidualCovariance(plain(most=None), (), 3.0),
    "item sums": lambda: ItemSums(plain(most=None), RANGE),
    "item sums of few ratings": lambda: ItemSums(plain(most=3), RANGE),
    "user count": UserCount,
}


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_moves_a_sum_further_than_stated(case: str) -> None:
    assert_no_climb_is_too_high(case, 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_nor_does_one_that_is_found_from_more_starts(case: str) -> None:
    assert_no_climb_is_too_high(case, 6)


def assert_no_climb_is_too_high(case: str, starts: int) -> None:
    statistic = CASES[case]()
    rng = np.random.default_rng(11)
    stated = statistic.sensitivity
    assert climb(statistic, rng, False, starts) <= stated.add_remove * SLACK
    assert climb(statistic, rng, True, starts) <= stated.replace * SLACK


def test_the_covariance_bound_is_reached() -> None:
    statistic = CASES["first covariance, no centring"]()
    before, after = opposites(4, flip=False)
    others = bystanders(np.random.default_rng(1))
    stated = statistic.sensitivity
    assert change(statistic, others, before, after) > 0.99 * stated.replace
    assert change(statistic, others, before, None) > 0.99 * stated.add_remove


def test_the_item_bound_is_reached() -> None:
    statistic = CASES["item sums"]()
    others = bystanders(np.random.default_rng(2))
    before, after = opposites(5, flip=True)
    assert change(statistic, others, before, after) > 0.99 * statistic.sensitivity.replace
    assert change(statistic, others, before, None) > 0.99 * statistic.sensitivity.add_remove


def test_the_user_count_bound_is_reached() -> None:
    others = bystanders(np.random.default_rng(3))
    assert change(UserCount(), others, {0: 5.0}, None) == pytest.approx(1.0)


def test_without_clipping_the_bound_would_be_broken() -> None:
    """The twin: rows twice as long as stated are caught by the same attack."""
    loose = ResidualCovariance(plain(norm=6.0), (), 6.0)
    stated = ResidualCovariance(plain(norm=3.0), (), 3.0).sensitivity
    assert climb(loose, np.random.default_rng(12), replace=True) > stated.replace


def test_a_forgotten_contribution_cap_would_be_noticed() -> None:
    """The twin: with centring off and no clip, more ratings move the sum further."""
    capped = ResidualCovariance(plain(most=2, norm=100.0), (), 100.0)
    uncapped = ResidualCovariance(plain(most=None, norm=100.0), (), 100.0)
    before, after = opposites(5, flip=False)
    others = bystanders(np.random.default_rng(4))
    assert change(uncapped, others, before, after) > 2 * change(capped, others, before, after)


def test_a_users_row_moves_nobody_elses_term() -> None:
    """Her term is the whole difference: with everyone else removed, the change is the same."""
    assert_hers_is_the_whole_change(CASES["covariance after steps"](), pairs=20)


def test_clipping_holds_in_integers_however_coarse_the_grid() -> None:
    """Rounding to the grid must not push a row over the bound."""
    rng = np.random.default_rng(6)
    for bits in (6, 8, 12, 20, 40):
        statistic = ResidualCovariance(plain(most=None), (), 3.0)
        engine = ThreadEngine(1)
        for _ in range(30):
            engine.take(ratings_of([random_row(rng), {0: 3.0}]))  # whose centred row is zero
            unit = statistic.max_entry * 2.0**-bits
            units = engine.sum(statistic, unit)._exact_sum
            assert math.sqrt(float(np.sum(units.astype(float) ** 2))) * unit <= 9.0


@pytest.mark.parametrize("bits", [4, 10, 30, 48, 52])
def test_item_weights_hold_in_integers_however_fine_or_coarse_the_grid(bits: int) -> None:
    statistic = ItemSums(plain(most=None), RANGE)
    others: list[Row] = [{}, {0: 5.0}]
    for count in range(1, ITEMS + 1):
        engine = ThreadEngine(1)
        engine.take(ratings_of([*others, dict.fromkeys(range(count), 5.0)]))
        unit = 2.0**-bits
        hers = engine.sum(statistic, unit)._exact_sum.astype(object)
        engine.take(ratings_of([*others, {0: 5.0}]))
        hers[:, 0] -= engine.sum(statistic, unit)._exact_sum[:, 0].astype(object) // 2
        assert sum(weight**2 for weight in hers[1]) <= 2 ** (2 * bits)
        assert all(abs(x) <= c for x, c in hers.T)


def test_a_gain_that_overflows_moves_nobody_beyond_the_bound() -> None:
    """Infinities must not turn into integers."""
    wild = tuple(RankOneStep(step(t, 3.0).direction, 1e300, 0.8, 3.0) for t in range(3))
    statistic = ResidualCovariance(plain(), wild, 6.0)
    assert climb(statistic, np.random.default_rng(13), replace=True) <= (
        statistic.sensitivity.replace * SLACK
    )


@pytest.mark.parametrize("case", CASES)
def test_sums_do_not_depend_on_threads_or_order(case: str) -> None:
    assert_no_order_matters(CASES[case](), bits=40)
