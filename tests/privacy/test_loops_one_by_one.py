"""Loops called by themselves: what a fit never shows of them, or only at its edges."""

import math

import numpy as np
import pytest
from tests.support.by_hand import (
    BOUNDS,
    ROWS,
    STEPS,
    assert_close,
    bounded,
    ratings_with_empty_rows,
    residual,
    solved,
    summed,
    words_of,
)
from tests.support.rows import frozen

from tacit.kernels.factors import solve_factors
from tacit.kernels.filled import descend
from tacit.kernels.holdout import mark_held_out
from tacit.kernels.normal_equations import _full_length
from tacit.kernels.residuals import StepArrays, _shorten, _step, replay
from tacit.kernels.rows import RowArrays, longest_row
from tacit.kernels.solving import cholesky, own_solution
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistics import NormalEquations, ResidualCovariance

ITEMS = 10


def arrays(how: str) -> RowArrays:
    held = Rows(ratings_with_empty_rows(ROWS))
    return held.bounded(BOUNDS[how], Run(lambda task: [task(0, len(ROWS))]))


def coefficients(row: dict[int, float], steps: tuple[RankOneStep, ...], most: float) -> np.ndarray:
    """How much of each direction is in her fitted row after all steps; sums count by weight."""
    items, target = bounded(row, BOUNDS["centred"])
    weight = min(1.0, most / len(items)) if items else 1.0
    fitted, found = np.zeros(len(items)), np.zeros(len(steps))
    for t, one in enumerate(steps):
        along = one.direction[items]
        moved = -one.gain * weight * float((fitted - target) @ along)
        fitted, found = one.keep * fitted + moved * along, one.keep * found
        found[t] = moved
        length = math.sqrt(weight) * float(np.linalg.norm(fitted))
        factor = min(1.0, one.norm / length) if length else 1.0
        fitted, found = factor * fitted, factor * found
    return found


@pytest.mark.parametrize("most", [math.inf, 4.0, 1.0])
@pytest.mark.parametrize("norm", [0.4, 50.0])
def test_a_replay_gives_everyone_her_coefficients(most: float, norm: float) -> None:
    rows, steps = arrays("centred"), STEPS["steps"]
    directions = np.array([one.direction for one in steps])
    gains, keeps = (np.array([getattr(one, name) for one in steps]) for name in ("gain", "keep"))
    found = np.full((len(ROWS), 3), 7.0)
    replay(rows, (directions, gains, keeps, norm, most), found, 0, len(ROWS))
    limited = tuple(RankOneStep(s.direction, s.gain, s.keep, norm) for s in steps)
    expected = np.array([coefficients(row, limited, most) for row in ROWS])
    assert_close(found, expected, 1e-9)
    some = np.full((len(ROWS), 3), 7.0)
    replay(rows, (directions, gains, keeps, norm, most), some, 2, 5)
    assert np.array_equal(some[2:5], found[2:5])
    assert (some[:2] == 7.0).all()
    assert (some[5:] == 7.0).all()


def test_a_step_that_overflows_moves_nothing() -> None:
    """Her coefficient is zero, as her fitted row is; a step that is short enough is kept."""
    target, picked = np.array([1.0, -2.0]), np.array([0.5, 0.5])
    with np.errstate(all="ignore"):
        fitted = np.zeros(2)
        wild = StepArrays(picked, 1e300, 0.8, 1.0)
        assert tuple(_step(target, fitted, picked, wild, 1.0)) == (0.0, 0.0)
        assert fitted.tolist() == [0.0, 0.0]
    calm = StepArrays(picked, 0.8, 0.8, 1.0)
    moved = _step(target, fitted, picked, calm, 1.0)
    assert tuple(moved) == pytest.approx((-0.4, 1.0))
    assert fitted.tolist() == pytest.approx([-0.2, -0.2])
    assert _step(target, np.zeros(2), picked, calm, 0.25)[0] == pytest.approx(-0.1)


def test_rows_are_shortened_by_what_is_returned() -> None:
    for length, weight, factor in (
        (5.0, 1.0, 0.5),
        (5.0, 0.25, 1.0),
        (2.5, 1.0, 1.0),
        (5, 4, 0.25),
    ):
        row = np.array([0.6, 0.0, -0.8]) * length
        found = _shorten(row, 2.5, weight)
        assert found == pytest.approx(factor)
        assert row.tolist() == pytest.approx([0.6 * length * factor, 0.0, -0.8 * length * factor])
    with np.errstate(all="ignore"):
        row = np.array([math.inf, 1.0, 2.0, math.nan, 4.0])
        assert _shorten(row, 2.5, 1.0) == 0.0
        assert row.tolist() == [0.0] * 5


def test_the_longest_row_of_some_and_of_nobody() -> None:
    indptr = np.array([0, 3, 3, 8, 9])
    found = [longest_row(indptr, lo, hi) for lo, hi in ((0, 4), (0, 2), (1, 2), (3, 4), (2, 2))]
    assert found == [5, 3, 0, 1, 0]


@pytest.mark.parametrize("threads", [13, 40])
def test_more_threads_than_people(threads: int) -> None:
    """Some have nobody to look at."""
    expected = np.zeros((ITEMS, ITEMS))
    for row in ROWS:
        own = residual(row, BOUNDS["centred"], STEPS["steps"], 0.7)
        expected += np.outer(own, own)
    statistic = ResidualCovariance(BOUNDS["centred"], STEPS["steps"], 0.7)
    assert_close(summed(statistic, ROWS, threads), expected)


@pytest.mark.parametrize("wild", [1e25, math.inf, -math.inf, math.nan])
def test_filled_rows_that_overflow_become_zero(wild: float) -> None:
    """And the row beside it, which is long but a number, is scaled down."""
    rows = RowArrays(
        *frozen(np.zeros(3, np.int64), np.zeros(0, np.uint16), np.zeros(0, np.float32)),
        *(np.zeros(3), np.zeros(2), np.ones(2), math.inf),
    )
    filled = np.array([[1.0, wild, 2.0], [3.0, 0.0, -4.0]], np.float32)
    with np.errstate(all="ignore"):
        descend(rows, filled, 0.5, 2.5, 0, 2)
    assert filled[0].tolist() == [0.0, 0.0, 0.0]
    assert filled[1].tolist() == pytest.approx([1.5, 0.0, -2.0])


@pytest.mark.parametrize("corner", [0.0, -0.5, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 1, 2])
def test_what_has_no_factors_is_said_to_have_none(corner: float, place: int) -> None:
    gram = np.eye(3)
    gram[place, place] = corner
    with np.errstate(all="ignore"):
        assert not cholesky(gram)
    assert cholesky(np.eye(3))


def test_a_user_without_a_solution_knows_what_she_knew() -> None:
    """Without a ridge and with factors that are zero, or so large that squares overflow."""
    rows = arrays("centred")
    with np.errstate(all="ignore"):
        for scale in (0.0, 1e200, math.inf):
            for user in (0, 3):  # three ratings and ten: fewer than four factors, and more
                own = own_solution(rows, user, np.full((ITEMS, 4), scale), np.ones(ITEMS), 0.0)
                assert own.tolist() == [0.0] * 4
        tiny, huge = np.full((ITEMS, 1), 1e-308), np.full(ITEMS, 1e308)
        far = rows._replace(scales=np.full(len(ROWS), 1e3))
        for user in (0, 2, 3):  # the system is sound, and its right side is infinite
            assert own_solution(far, user, tiny, huge, 0.5).tolist() == [0.0]


def test_own_factors_of_everyone() -> None:
    """With a ridge of 1, and for the people that are asked for."""
    rows = arrays("centred")
    factors, roots = (
        np.random.default_rng(1).standard_normal((ITEMS, 3)),
        np.linspace(0.5, 2, ITEMS),
    )
    found = np.full((len(ROWS), 3), 7.0)
    solve_factors(rows, factors, roots, found, 2, 9)
    for user in range(2, 9):
        items, target = bounded(ROWS[user], BOUNDS["centred"])
        own = solved(items, target, factors, roots**-2.0, 1.0)
        assert found[user] == pytest.approx(own, abs=1e-9)
    assert (found[:2] == 7.0).all()
    assert (found[9:] == 7.0).all()


def test_vectors_without_a_length_are_not_made_longer() -> None:
    assert _full_length(np.array([3.0, 0.0, -4.0]), 100) == 2.0
    with np.errstate(all="ignore"):
        for vector in ([0.0, 0.0], [math.inf, 1.0], [1e200, 0.0], [math.nan, 1.0]):
            assert _full_length(np.array(vector), 100) == 0.0


@pytest.mark.parametrize("seed", [0, 3])
def test_ratings_with_smaller_words_are_held_out(seed: int) -> None:
    """Smaller than the limit: one that is equal to it is not."""
    ratings = ratings_with_empty_rows(ROWS)
    rows = (ratings.indptr, ratings.items, ratings.values)
    words = [word for row in ROWS for word in dict(sorted(words_of(row, seed).items())).values()]
    for limit in (0, words[7], max(words), 2**63):
        marks = np.zeros(len(words), np.bool_)
        with np.errstate(over="ignore"):
            mark_held_out(rows, seed, np.uint64(limit), 0, len(ROWS), marks)
        assert marks.tolist() == [word < limit for word in words]


def test_weights_of_one_unit_count() -> None:
    """On the coarsest of grids ten equal weights are one unit each."""
    bounds = RowBounds(None, np.full(ITEMS, 3.0), False, math.inf, clip=2.0)
    factors = np.ones((ITEMS, 1))
    statistic = NormalEquations(bounds, factors, np.ones(ITEMS), np.ones(ITEMS), 0.1, 1.0)
    rows = Rows(ratings_with_empty_rows([dict.fromkeys(range(ITEMS), 5.0)]))
    found = statistic.integer_sum(rows, 2.0**-6, Run(lambda task: [task(0, 1)]))
    assert found.reshape(ITEMS, 2).tolist() == [[9, 9]] * ITEMS  # 3 x 3, and 3 x 3 once more
