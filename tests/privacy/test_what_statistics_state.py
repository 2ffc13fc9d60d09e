"""What each statistic states about itself: its bounds in closed form, its bits, what it refuses.

Noise is calibrated to these numbers. Attacks show that none is too small; here a number that is
too large, or a bit more or less than the loops were proved for, is noticed too.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.privacy.test_statistics_are_what_they_say import (
    filled,
)
from tests.support.by_hand import (
    BOUNDS,
    ROWS,
    STEPS,
    ratings_with_empty_rows,
    summed,
)

from tacit import EngineError, PrivacyError
from tacit.trusted.local_state import FilledRows, FittedValues
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import (
    DescentMoments,
    FactorGradient,
    HeldOutLosses,
    Holdout,
    ItemCounts,
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
    equations_sensitivity,
    product_sensitivity,
)
from tacit.trusted.statistics.filled_covariance import _BLOCK
from tacit.trusted.statistics.holdout_losses import _Own
from tacit.trusted.statistics.normal_equations import _quanta
from tacit.trusted.statistics.product import _check_rounding
from tacit.trusted.statistics.residual import check_orthonormal

ROOT = math.sqrt(2.0)
SHORT = BOUNDS["short rows"]  # of norm 1.6
FACTORS = np.random.default_rng(0).standard_normal((10, 3))


def block(columns: int) -> np.ndarray:
    return np.linalg.qr(np.random.default_rng(2).standard_normal((10, columns)))[0]


def equations(ratio: float, **change: Any) -> NormalEquations:
    bounds = RowBounds(None, np.zeros(10), False, math.inf, clip=1.1)
    statistic = NormalEquations(bounds, FACTORS, np.ones(10), np.ones(10), 0.3, ratio)
    return replace(statistic, **change)


def losses(clip: float) -> HeldOutLosses:
    return HeldOutLosses((None, None, None), 10, (1.0, 5.0), Holdout(0.5, 0), clip)  # type: ignore[arg-type]


ENLARGED = 1 + 2.0**-20
# statistic: add_remove, replace, largest entry, shape, whether symmetric, bits of a term
STATED: dict[str, tuple[Statistic, float, float, float, tuple[int, ...], bool, int]] = {
    "covariance": (ResidualCovariance(SHORT, (), 3.0), 9, 9 * ROOT, 9, (10, 10), True, 52),
    "covariance of some": (
        ResidualCovariance(SHORT, (), 0.5, np.array([2, 3, 7])),
        *(0.25, 0.25 * ROOT, 0.25, (3, 3), True, 52),
    ),
    "product of one": (
        ResidualProduct(SHORT, (), 3.0, block(1)),
        *(9 * ENLARGED, 9 * ENLARGED, 9, (10, 1), False, 52),
    ),
    "product": (
        ResidualProduct(SHORT, (), 3.0, block(2)),
        *(9 * ENLARGED, 9 * ROOT * ENLARGED, 9, (10, 2), False, 52),
    ),
    "energy": (ResidualEnergy(SHORT, (), 3.0, block(1)[:, 0]), 9, 9, 9, (1,), False, 52),
    "moments of a descent": (
        DescentMoments(SHORT, (), block(1)[:, 0]),
        *(4 * math.sqrt(5) * 1.6**2, 8 * math.sqrt(5) * 1.6**2, 4 * 1.6**2, (5,), False, 50),
    ),
    "filled covariance": (filled(1, 2), 0.64, 0.64 * ROOT, 0.64, (10, 10), True, 42),
    "gradient": (FactorGradient(SHORT, FACTORS, 0.5, 0.7), 0.7, 1.4, 0.7, (10, 3), False, 26),
    "losses": (losses(0.3), 0.3, 0.6, 0.3, (3,), False, 26),
    "item counts": (ItemCounts(10), 1, ROOT, 1, (10,), False, 50),
    "item counts by length": (ItemCounts(10, (2, 4)), 1, ROOT, 1, (3, 10), False, 50),
    "item sums": (ItemSums(SHORT, (1.0, 5.0)), ROOT, 2, 1, (2, 10), False, 50),
    "row norms": (RowNorms(SHORT, np.ones(4)), 1, ROOT, 1, (4,), False, 50),
    "rating count": (RatingCount(SHORT, 4), 4, 4, 4, (1,), False, 50),
    "row sums": (RowSums(SHORT), 1.6, 3.2, 1.6, (10,), False, 50),
    "user count": (UserCount(), 1, 1, 1, (1,), False, 50),
    "moments of levels": (UserMoments(SHORT, 2.0, 3.0, 0.1), 2, 2, 1, (4,), False, 50),
    "equations": (equations(1.0), ROOT, 1.5 * ROOT, 1, (10, 3, 4), False, 51),
    "equations, hardly b": (
        equations(0.5),
        math.sqrt(1.25),
        ROOT * 1.125,
        1,
        (10, 3, 4),
        False,
        51,
    ),
    "equations, mostly b": (equations(3.0), math.sqrt(10), 6, 3, (10, 3, 4), False, 51),
}


@pytest.mark.parametrize("case", STATED)
def test_bounds_are_those_of_the_docstring(case: str) -> None:
    statistic, add_remove, replaced, largest, shape, symmetric, bits = STATED[case]
    assert statistic.sensitivity.add_remove == pytest.approx(add_remove, rel=1e-12)
    assert statistic.sensitivity.replace == pytest.approx(replaced, rel=1e-12)
    assert statistic.max_entry == pytest.approx(largest, rel=1e-12)
    assert statistic.shape == shape
    assert statistic.symmetric is symmetric
    assert statistic.term_bits == bits


@pytest.mark.parametrize(
    ("ratio", "replaced"),
    [
        (0.0, ROOT),
        (0.3, ROOT * 1.045),
        (1.0, ROOT * 1.5),
        (1.35, ROOT * 1.91125),
        (ROOT, 2 * ROOT),
        (1.5, 3.0),
        (2.0, 4.0),
    ],
)
def test_the_bound_of_equations_at_every_ratio(ratio: float, replaced: float) -> None:
    assert equations_sensitivity(ratio).replace == pytest.approx(replaced, rel=1e-12)
    assert equations_sensitivity(ratio).add_remove == pytest.approx(math.sqrt(1 + ratio**2))


def test_one_column_is_cheaper_than_two() -> None:
    assert product_sensitivity(2.0, 1).replace == product_sensitivity(2.0, 1).add_remove
    for columns in (2, 3):
        found = product_sensitivity(2.0, columns)
        assert found.replace == pytest.approx(ROOT * found.add_remove)


# What is refused


def test_a_grid_may_be_as_coarse_as_rounding_is_in_the_bound() -> None:
    """Entries of a term are off by half a unit each: in all less than 2^-22 B^2."""
    _check_rounding(2.0**-22, 1, 1.0)
    _check_rounding(2.0**-22, 9, math.sqrt(3.0) * (1 + 1e-15))
    _check_rounding(2.0**-20, 1, 2.0)
    _check_rounding(2.0**-24, 1, 0.5)
    coarse = ((2.0**-22 * 1.001, 1, 1.0), (2.0**-22, 4, 1.2), (0.2, 1, 1.0), (2.0**-19.9, 1, 2.0))
    with pytest.raises(EngineError, match="too coarse"):
        units(ResidualProduct(SHORT, (), 3.0, block(1)), ROWS, 10)
    for unit, entries, bound in coarse:
        with pytest.raises(EngineError, match="too coarse"):
            _check_rounding(unit, entries, bound)


def test_columns_are_orthonormal_to_a_part_in_a_thousand_millions() -> None:
    for columns in (1, 2):
        fine, long = block(columns), block(columns)
        fine[:, 0] *= 1 + 0.4e-9 / columns
        long[:, 0] *= 1 + 0.6e-9 / columns
        check_orthonormal(fine)
        with pytest.raises(PrivacyError, match="orthonormal"):
            check_orthonormal(long)
    with pytest.raises(PrivacyError, match="orthonormal"):
        check_orthonormal(np.hstack([block(1), block(1)]))


@pytest.mark.parametrize("name", ["half", "cap", "usual"])
def test_scales_of_levels_are_finite_and_positive(name: str) -> None:
    right = UserMoments(SHORT, 2.0, 3.0, 0.1)
    for value in (math.inf, math.nan, -0.5, -1.0):
        with pytest.raises(PrivacyError, match=name):
            replace(right, **{name: value})
    replace(right, **{name: 0.5})
    assert replace(right, usual=0.0).usual == 0.0
    for zero in ("half", "cap"):
        with pytest.raises(PrivacyError, match=zero):
            replace(right, **{zero: 0.0})
    with pytest.raises(PrivacyError, match="offsets"):
        replace(right, bounds=replace(SHORT, offsets=np.array([0.0, math.nan])))


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, math.nan])
@pytest.mark.parametrize("name", ["reach", "ratio", "clip"])
def test_scales_of_equations_are_finite_and_positive(name: str, value: float) -> None:
    statistic = equations(1.0)
    if name == "clip":
        wrong = replace(statistic, bounds=replace(statistic.bounds, clip=value))
    else:
        wrong = replace(statistic, **{name: value})
    with pytest.raises(PrivacyError, match="normal equations need"):
        wrong.adder((), 2.0**-40, None)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [-0.5, -1.0, -1e-300, math.inf, math.nan])
def test_weights_of_equations_are_finite_and_not_negative(value: float) -> None:
    weights = np.ones(10)
    weights[3] = value
    with pytest.raises(PrivacyError, match="normal equations need"):
        summed(equations(1.0, weights=weights), ROWS)
    weights[3] = 0.0
    assert summed(equations(1.0, weights=weights), ROWS)[3].max() == 0.0


@pytest.mark.parametrize("bits", [9, 30, 51])
def test_three_integers_share_the_bits_of_a_term(bits: int) -> None:
    """Weights and factors up to u^(-1/3) long, targets up to rho times that, rounded down."""
    unit, reach, ratio, clip = 2.0**-bits, 0.3, 1.7, 1.1
    quanta = _quanta(unit, reach, ratio, clip)
    steps = unit ** (-1 / 3) * (1 - 1e-12)
    assert quanta.factor == pytest.approx(steps / reach, rel=1e-14)
    assert quanta.target == pytest.approx(ratio * steps / clip, rel=1e-14)
    assert quanta.most_squared == math.floor(steps**2)
    assert quanta.most == math.floor(ratio * steps)


# The grid of a term: each is as long as it may be, to the unit


def units(statistic: Statistic, rows: list[dict[int, float]], bits: int) -> np.ndarray:
    """The integers of the sum over these people."""
    held = Rows(ratings_with_empty_rows(rows))
    return statistic.integer_sum(held, 2.0**-bits, Run(lambda task: [task(0, len(rows))]))


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10])
def test_item_weights_are_two_units_below_what_they_may_be(count: int) -> None:
    rows = [dict.fromkeys(range(count), 5.0)]
    radius = 2**30 - 1
    weight = math.isqrt(radius**2 // count) - 2
    found = units(ItemCounts(10), rows, 30)
    assert found.tolist() == [weight] * count + [0] * (10 - count)
    both = units(ItemSums(SHORT, (1.0, 5.0)), rows, 30)
    many = min(count, 4)
    weight = math.isqrt(radius**2 // many) - 2
    assert sorted(both[1].tolist()) == [0] * (10 - many) + [weight] * many
    assert np.array_equal(both[0], both[1])


def test_weights_on_the_coarsest_grid_are_not_negative() -> None:
    rows = [dict.fromkeys(range(10), 1.0)]
    assert units(ItemCounts(10), rows, 2).tolist() == [0] * 10
    assert not units(ItemSums(SHORT, (1.0, 5.0)), rows, 2).any()


def test_rows_are_a_part_in_a_thousand_millions_shorter_than_they_may_be() -> None:
    """More than rounding of their scales can have added, cut towards zero."""
    bounds = RowBounds(None, np.full(10, 3.0), False, 1.5)
    for value, sign in ((5.0, 1), (1.0, -1)):
        (found,) = units(RowSums(bounds), [{4: value}], 40)[[4]].tolist()
        assert found == sign * math.floor(1.5 * (1 - 1e-9) * 2**40)


def test_counts_use_the_largest_number_of_units_below_one() -> None:
    one = 2**20 - 1
    assert units(UserCount(), ROWS, 20).tolist() == [len(ROWS) * one]
    lengths = sum(min(len(row), 4) for row in ROWS)
    assert units(RatingCount(SHORT, 4), ROWS, 20).tolist() == [lengths * one]
    bins = units(RowNorms(SHORT, np.array([0.5, 9.0])), [{0: 5.0}, {1: 1.0}, {2: 2.6}], 20)
    assert bins.tolist() == [one, 2 * one]


def test_levels_are_cut_towards_zero() -> None:
    bounds, one = RowBounds(None, np.full(10, 3.0), False, math.inf), 2**20 - 1
    found = units(UserMoments(bounds, 2.0, 0.7, 0.1), [{0: 4.0}], 20)
    assert found.tolist() == [int(0.75 * one), int(0.25 * one), int(0.1 / 0.7 * one), one]
    two = units(UserMoments(bounds, 2.0, 0.7, 0.1), [{0: 4.0, 1: 4.5}], 20)
    assert two[2] == int(0.125 / 0.7 * one)


def test_energies_are_rounded_down_and_cut_off_in_integers() -> None:
    direction = np.zeros(10)
    direction[0] = 1.0
    bounds = RowBounds(None, np.full(10, 3.0), False, 5.0)
    statistic = ResidualEnergy(bounds, (), 1.5, direction)
    assert units(statistic, [{0: 4.3}], 20).tolist() == [
        int(float(np.float32(4.3) - 3) ** 2 * 2**20)
    ]
    assert units(statistic, [{0: 5.0}], 20).tolist() == [math.floor(2.25 * 2**20 * (1 - 1e-12))]


@pytest.mark.parametrize("after", ["a step that overflows", "no step"])
def test_residuals_that_overflow_become_zero(after: str) -> None:
    """A fitted row that cannot be scaled down is set to zero, and so is its coefficient."""
    with np.errstate(all="ignore"):
        found = summed(DescentMoments(SHORT, STEPS[after], block(1)[:, 0]), ROWS)
    calm = summed(DescentMoments(SHORT, (), block(1)[:, 0]), ROWS)
    assert found == pytest.approx(calm, abs=1e-9)


def test_steps_are_done_when_a_sum_is() -> None:
    """Or every round would take all steps anew."""
    rows, run = Rows(ratings_with_empty_rows(ROWS)), Run(lambda task: [task(0, len(ROWS))])
    whole = filled(2, 3)
    whole.integer_sum(rows, 2.0**-30, run)
    assert rows.state(FilledRows, whole.bounds, run).missing(whole.steps) == (False, ())
    residuals = ResidualCovariance(SHORT, STEPS["steps"], 1.0)
    residuals.integer_sum(rows, 2.0**-30, run)
    state = rows.state(FittedValues, SHORT, run)
    still = state.catch_up(STEPS["steps"], run)
    assert (still.gain, still.keep, still.norm) == (0.0, 1.0, math.inf)


def test_blocks_of_filled_rows_are_exact_in_doubles() -> None:
    assert _BLOCK * 2**42 <= 2**53


class Says:
    """A published rule that gives everything one score."""

    def __init__(self, score: float) -> None:
        self.score = score

    def scores(self, own: Any) -> np.ndarray:
        assert own.indptr.size == 2
        return np.full((1, 10), self.score)


def test_a_score_that_is_no_number_is_the_largest_loss() -> None:
    """Of one, and no more: of two rules that are both wrong by all of the range, neither wins."""
    holdout = Holdout(1.0 - 2.0**-53, 0)  # all of them
    rules = tuple(map(Says, (math.nan, 1.0, 5.0)))
    for value, others in ((5.0, (1.0, 0.0)), (1.0, (0.0, 1.0))):
        statistic = HeldOutLosses(rules, 10, (1.0, 5.0), holdout, 9.0)  # type: ignore[arg-type]
        hers = np.array([1.0, *others])
        found = summed(statistic, [{3: value, 7: value}])
        assert found == pytest.approx(hers - hers.mean(), abs=1e-6)


class Learns:
    """A rule that predicts the sum of what it is given, for every item."""

    def scores(self, own: Any) -> np.ndarray:
        assert own.indptr.tolist() == [0, own.items.size]
        return np.full((1, 10), own.values.sum(), np.float32)


def test_losses_are_of_what_is_held_out_and_of_nothing_else() -> None:
    """Everyone's, the first one's too: mean squares of errors, as parts of the range."""
    rows = [{3: 1.5, 5: 1.0, 7: 2.0}, {0: 1.0, 1: 2.5, 2: 1.5, 9: 1.0}]
    ratings, holdout = ratings_with_empty_rows(rows), Holdout(0.5, 3)
    held = holdout.marks((ratings.indptr, ratings.items, ratings.values), 0, 2)
    assert [0 < part.sum() < part.size for part in (held[:3], held[3:])] == [True, True]
    rest = holdout.rest(ratings)
    assert np.array_equal(rest.items, ratings.items[~held])
    assert np.array_equal(rest.values, ratings.values[~held])
    statistic = HeldOutLosses((Learns(), Says(2.0)), 10, (1.0, 5.0), holdout, 9.0)  # type: ignore[arg-type]
    found = statistic._losses(_Own(ratings.indptr, ratings.items, ratings.values), 0, 2)
    for user, (start, stop) in enumerate(((0, 3), (3, 7))):
        own, truth = held[start:stop], ratings.values[start:stop]
        known = np.clip(truth[~own].sum(), 1.0, 5.0)
        expected = [float(np.mean(((truth[own] - one) / 4) ** 2)) for one in (known, 2.0)]
        assert found[user].tolist() == pytest.approx(expected)


def test_some_people_are_looked_at_by_themselves() -> None:
    """Marks and losses of a range are as many as its ratings and people, wherever it begins."""
    ratings = ratings_with_empty_rows(ROWS)
    rows = (ratings.indptr, ratings.items, ratings.values)
    holdout = Holdout(0.5, 3)
    whole = holdout.marks(rows, 0, len(ROWS))
    first = ratings.indptr[4]
    assert np.array_equal(holdout.marks(rows, 4, 9), whole[first : ratings.indptr[9]])
    statistic = HeldOutLosses((Says(2.0), Says(4.0)), 10, (1.0, 5.0), holdout, 9.0)  # type: ignore[arg-type]
    losses = statistic._losses(_Own(*rows), 0, len(ROWS))
    assert losses.shape == (len(ROWS), 2)
    assert np.array_equal(statistic._losses(_Own(*rows), 4, 9), losses[4:9])
