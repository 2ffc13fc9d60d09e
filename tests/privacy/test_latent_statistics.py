"""What the statistics of latent factors state of themselves, and what they refuse to sum.

Their loops are compared with dense sums in test_latent_loops.py; this is what stands around them.
"""

import math
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
from tests.support.by_hand import ITEMS, ratings_with_empty_rows

import tacit
from tacit import PrivacyError
from tacit.kernels.latent import expected_equations, expected_gradient, factor_moments
from tacit.kernels.loops import LOOPS
from tacit.trusted.quantise import norm_quanta, product_quanta
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import (
    ExpectedEquations,
    ExpectedGradient,
    FactorMoments,
    LatentModel,
)

RNG = np.random.default_rng(36)
RANK, CHOICES = 3, 2
MODEL = LatentModel(
    RNG.standard_normal((ITEMS, RANK)),
    RNG.uniform(0.2, 2.0, ITEMS),
    RNG.standard_normal((ITEMS, CHOICES)),
    RNG.standard_normal((CHOICES, RANK)),
)
BOUNDS = RowBounds(None, RNG.uniform(2, 4, ITEMS), False, math.inf, 0)
PEOPLE = [{0: 4.0, 3: 1.5}, {}, {item: 1.0 + item / 3 for item in range(ITEMS)}, {7: 5.0}]


def statistics_of(model: LatentModel = MODEL, bound: float = 0.7) -> list[Statistic]:
    return [
        FactorMoments(BOUNDS, model, bound),
        ExpectedGradient(BOUNDS, model, bound, 0.6),
        ExpectedEquations(BOUNDS, model, bound, False),
        ExpectedEquations(BOUNDS, model, bound, True),
    ]


def test_what_they_state() -> None:
    moments, gradient, *equations = statistics_of()
    assert moments.shape == (CHOICES + RANK + 1,) * 2 == (6, 6)
    assert gradient.shape == (ITEMS + CHOICES, RANK + 1)
    assert {each.shape for each in equations} == {(ITEMS, 10 + 5)}  # half of 4 x 4, and 3 + 2
    assert moments.symmetric
    assert not any(each.symmetric for each in (gradient, *equations))
    assert [each.term_bits for each in (moments, gradient, *equations)] == [52, 26, 26, 26]
    assert moments.sensitivity.add_remove == pytest.approx(0.49)
    assert moments.sensitivity.replace == pytest.approx(0.49 * math.sqrt(2))
    for each in (gradient, *equations):
        assert (each.sensitivity.add_remove, each.sensitivity.replace) == (0.7, 1.4)


def test_nobody_changes_them_and_they_are_told_apart_by_their_digest() -> None:
    """They are descriptions: equal if all that their terms depend on is, and never by chance."""
    for one, same, other in zip(
        statistics_of(), statistics_of(), statistics_of(bound=0.8), strict=True
    ):
        assert one.digest == same.digest != other.digest
        with pytest.raises(FrozenInstanceError):
            one.bounds = None  # type: ignore[assignment, misc]
    for kind in (LatentModel, FactorMoments, ExpectedGradient, ExpectedEquations):
        made = kind.__dataclass_params__  # type: ignore[attr-defined]
        assert (made.frozen, made.eq) == (True, False)


def test_loops_get_the_numbers_that_were_published() -> None:
    found = replace(MODEL, factors=np.asfortranarray(MODEL.factors)).arrays()
    assert np.array_equal(found.factors, MODEL.factors)
    assert np.allclose(found.roots**-2, MODEL.noise, rtol=1e-12)
    assert np.array_equal(found.choice, MODEL.choice)
    assert np.array_equal(found.prior, MODEL.prior)
    assert all(each.flags.c_contiguous and each.dtype == np.float64 for each in found)
    one = replace(MODEL, choice=MODEL.choice[:, :1], prior=MODEL.prior[:1])
    assert one.arrays().choice.shape == (ITEMS, 1)  # a single choice factor is enough


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise": MODEL.noise[:-1]},
        {"noise": np.where(np.arange(ITEMS) == 4, 0.0, MODEL.noise)},
        {"noise": np.where(np.arange(ITEMS) == 4, -0.5, MODEL.noise)},
        {"noise": np.full(ITEMS, math.nan)},
        {"noise": MODEL.noise[:, None]},
        {"choice": MODEL.choice[:-1]},
        {"choice": MODEL.choice[:, 0]},
        {"choice": np.zeros((ITEMS, 0)), "prior": np.zeros((0, RANK))},
        {"factors": MODEL.factors[:, 0]},
        {"factors": MODEL.factors[:, :, None]},
        {"factors": MODEL.factors[:-1]},
        {"factors": MODEL.factors[:, :, None], "choice": MODEL.choice[:, :, None]},
        {"prior": MODEL.prior[:-1]},
        {"prior": MODEL.prior[:, :-1]},
        {"prior": MODEL.prior.T},
        {name: getattr(MODEL, name)[1:] for name in ("factors", "noise", "choice")},
    ],
    ids="-".join,
)
def test_arrays_that_do_not_fit_are_refused(wrong: dict[str, np.ndarray]) -> None:
    """Loops would read elsewhere, or divide by nothing."""
    for statistic in statistics_of(replace(MODEL, **wrong)):
        with pytest.raises(PrivacyError, match="nothing was summed"):
            statistic.adder((None,), 1e-6, LOOPS)


def test_a_bound_bounds_something() -> None:
    for bound in (0.0, -0.5, math.inf, math.nan):
        for statistic in statistics_of(bound=bound):
            with pytest.raises(PrivacyError, match="must be finite"):
                statistic.adder((None,), 1e-6, LOOPS)
    for bound in (0.3, 1.0, 40.0):
        for statistic in statistics_of(bound=bound):
            statistic.adder((None,), statistic.max_entry * 2.0**-20, LOOPS)


@pytest.mark.parametrize("weight", [-0.1, math.inf, math.nan])
def test_a_weight_of_choice_factors_is_finite(weight: float) -> None:
    with pytest.raises(PrivacyError, match="weight of choice factors must be finite"):
        ExpectedGradient(BOUNDS, MODEL, 0.7, weight).adder((None,), 1e-6, LOOPS)


def test_a_weight_of_zero_leaves_the_rows_of_choice_factors_empty() -> None:
    engine = tacit.ThreadEngine(1)
    engine.take(ratings_with_empty_rows(PEOPLE))
    statistic = ExpectedGradient(BOUNDS, MODEL, 2.5, 0.0)
    total = engine.sum(statistic, statistic.max_entry * 2.0**-20)._exact_sum
    items = len(MODEL.factors)
    assert total[:items].any()
    assert not total[items:].any()


def test_sums_are_those_of_the_loops() -> None:
    """With the statistic's own bound, its own grid and its own weights; both halves are there."""
    held = Rows(ratings_with_empty_rows(PEOPLE))
    run = Run(lambda task: [task(0, 2), task(2, len(PEOPLE))])
    rows, arrays = held.bounded(BOUNDS, run), MODEL.arrays()
    for statistic in statistics_of(bound=2.5):
        unit = statistic.max_entry * 2.0**-20
        total = np.zeros(statistic.shape, dtype=np.int64)
        if isinstance(statistic, FactorMoments):
            factor_moments(rows, arrays, product_quanta(2.5, unit), 0, len(PEOPLE), total)
            assert np.count_nonzero(total) > 15
            total = np.triu(total) + np.triu(total, 1).T
        elif isinstance(statistic, ExpectedGradient):
            quanta = norm_quanta(2.5, unit)
            expected_gradient(rows, arrays, 0.6, quanta, 0, len(PEOPLE), total)
        else:
            quanta, root = norm_quanta(2.5, unit), statistic.by_sqrt_count  # type: ignore[attr-defined]
            expected_equations(rows, arrays, root, quanta, 0, len(PEOPLE), total)
        assert total.any()
        assert np.array_equal(statistic.integer_sum(held, unit, run), total)
