"""The accountant against two oracles: a 60-digit evaluation, and Google's dp-accounting."""

import math

import mpmath
import numpy as np
import pytest
from dp_accounting import GaussianDpEvent
from dp_accounting.pld import PLDAccountant
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import erfcx

from tacit import ConfigError, PrivacyBudget
from tacit.accounting.budget import (
    LARGEST_EPSILON,
    LARGEST_MU,
    Sensitivity,
    delta_of,
    epsilon_of,
    guessing_chance,
    mu_of,
)

EPSILONS = [0.01, 0.03, 0.1, 0.5, 1.0, 3.0, 10.0, 20.0, 50.0]
DELTAS = [1e-15, 1e-12, 1e-9, 1e-6, 1e-4, 1e-2]


def precise_delta(epsilon: float, mu: float) -> mpmath.mpf:
    """The closed form with 60 digits."""
    with mpmath.workdps(60):
        e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def integrated_delta(epsilon: float, mu: float) -> float:
    """Integral of max(0, p - e^epsilon q) for N(mu, 1) against N(0, 1): no closed form used."""
    with mpmath.workdps(30):
        start = mpmath.mpf(epsilon) / mu + mpmath.mpf(mu) / 2  # p = e^epsilon q from here on

        def gap(x: mpmath.mpf) -> mpmath.mpf:
            return mpmath.npdf(x, mu, 1) - mpmath.exp(epsilon) * mpmath.npdf(x, 0, 1)

        return float(mpmath.quad(gap, [start, start + 2, start + 6, start + 30]))


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_calibration_never_under_noises_and_wastes_nothing(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert precise_delta(epsilon, mu) <= delta
    assert precise_delta(epsilon, mu * (1 + 1e-9)) > delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_stated_epsilon_is_never_too_small(epsilon: float, delta: float) -> None:
    mu = mu_of(epsilon, delta)
    assert precise_delta(epsilon_of(mu, delta), mu) <= delta
    assert epsilon_of(mu, delta) == pytest.approx(epsilon, rel=1e-8)


@given(mu=st.floats(1e-3, 30.0), epsilon=st.floats(0.0, 60.0))
def test_delta_has_many_digits_everywhere(mu: float, epsilon: float) -> None:
    expected = precise_delta(epsilon, mu)
    assert delta_of(epsilon, mu) == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("epsilon", "mu"), [(0.1, 0.03), (1.0, 0.25), (5.0, 1.0), (20.0, 4.0)])
def test_closed_form_is_the_integral_of_its_definition(epsilon: float, mu: float) -> None:
    assert delta_of(epsilon, mu) == pytest.approx(integrated_delta(epsilon, mu), rel=1e-9)


@pytest.mark.parametrize("costs", [(0.3,), (0.1, 0.2, 0.2), (0.5, 0.5, 0.5, 0.5)])
def test_composition_agrees_with_dp_accounting(costs: tuple[float, ...]) -> None:
    accountant = PLDAccountant(value_discretization_interval=1e-4)
    for cost in costs:
        accountant.compose(GaussianDpEvent(noise_multiplier=1 / cost))
    ours = epsilon_of(math.hypot(*costs), 1e-6)
    assert ours == pytest.approx(accountant.get_epsilon(1e-6), rel=2e-3)


@pytest.mark.parametrize(
    ("epsilon", "add_remove", "replace"), [(0.1, 2.05, 1.45), (1, 1.76, 1.24), (5, 1.52, 1.07)]
)
def test_exact_accounting_cuts_the_papers_noise(
    epsilon: float, add_remove: float, replace: float
) -> None:
    bound = Sensitivity(add_remove=1.0, replace=math.sqrt(2))
    for relation, cut in (("add_remove", add_remove), ("replace", replace)):
        exact = PrivacyBudget(epsilon, neighbours=relation)
        paper = PrivacyBudget(epsilon, neighbours=relation, accounting="paper")
        assert paper.noise_sd(bound, 1.0) / exact.noise_sd(bound, 1.0) == pytest.approx(
            cut, rel=0.01
        )


def test_paper_accounting_is_the_sigma_of_algorithm_1() -> None:
    epsilon, delta, rounds, norm = 0.7, 1e-6, 12, 3.0
    sigma = norm**2 * math.sqrt(64 * rounds * math.log(1 / delta)) / epsilon
    budget = PrivacyBudget(epsilon, delta, accounting="paper")
    four = Sensitivity(add_remove=4 * norm**2, replace=4 * math.sqrt(2) * norm**2)
    assert budget.noise_sd(four, 1 / rounds) == pytest.approx(sigma)


def test_guessing_chance_is_that_of_the_best_test_between_two_gaussians() -> None:
    assert guessing_chance(0.0) == 0.5
    assert guessing_chance(2.0) == pytest.approx(float(mpmath.ncdf(1.0)))


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"epsilon": "1"}, "epsilon"),
        ({"epsilon": True}, "epsilon"),
        ({"epsilon": 1.0, "delta": 0}, "delta"),
        ({"epsilon": 1.0, "delta": 1.5}, "delta"),
        ({"epsilon": 1.0, "delta": 1e-300}, "delta"),
        ({"epsilon": 1.0, "delta": 9.9e-31}, "delta"),
        ({"epsilon": 1.0, "neighbours": "swap"}, "neighbours"),
        ({"epsilon": 1.0, "accounting": "rdp"}, "accounting"),
        ({"epsilon": 40.0, "accounting": "paper"}, "accounting"),
    ],
)
def test_a_bad_budget_names_what_is_wrong(arguments: dict[str, object], name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        PrivacyBudget(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("epsilon", "delta"), [(LARGEST_EPSILON, 1e-30), (np.float32(0.5), np.float64(1e-6)), (1, 0.5)]
)
def test_a_budget_takes_all_numbers_up_to_its_limits(epsilon: float, delta: float) -> None:
    budget = PrivacyBudget(epsilon, delta)
    assert (budget.epsilon, budget.delta) == (epsilon, delta)
    assert type(budget.epsilon) is type(budget.delta) is float


@pytest.mark.parametrize("wrong", [None, np.zeros(2), np.bool_(True), math.inf, [1.0]])
def test_what_is_no_number_is_no_budget(wrong: object) -> None:
    with pytest.raises(ConfigError, match="epsilon"):
        PrivacyBudget(wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="delta"):
        PrivacyBudget(1.0, wrong)  # type: ignore[arg-type]


def test_a_probability_of_one_is_no_delta() -> None:
    with pytest.raises(ConfigError, match="delta"):
        PrivacyBudget(1.0, 1.0)


def test_the_papers_formula_goes_up_to_twice_the_logarithm() -> None:
    most = 2 * math.log(1 / 1e-6)
    assert PrivacyBudget(most, accounting="paper").mu == pytest.approx(math.sqrt(most / 2))
    with pytest.raises(ConfigError, match="accounting"):
        PrivacyBudget(most * (1 + 1e-12), accounting="paper")


def test_nothing_costs_nothing_and_no_noise_costs_everything() -> None:
    assert delta_of(1.0, 0.0) == delta_of(1.0, -1.0) == 0.0
    assert delta_of(1e4, 0.1) == 0.0  # below what a float can hold
    assert delta_of(1.0, math.inf) == 1.0
    assert epsilon_of(0.0, 1e-6) == epsilon_of(-1.0, 1e-6) == 0.0
    assert epsilon_of(0.01, 0.5) == 0.0
    assert epsilon_of(math.inf, 1e-6) == math.inf
    assert delta_of(0.0, 1.0) == pytest.approx(2 * guessing_chance(1.0) - 1, rel=1e-14)


def mu_at(epsilon: float, place: float) -> float:
    """The mu whose smallest delta is near Phi(place)."""
    root = math.hypot(place, math.sqrt(2 * epsilon))
    return place + root if place > 0 else 2 * epsilon / (root - place)


PLACES = [-36.0, -20.0, -11.5, -8.0, -4.0, -1.0, -0.1, 0.0, 0.1, 1.0, 3.0, 8.0]


@pytest.mark.parametrize("epsilon", [10.0**power for power in range(-15, 5)] + [3e-12, 0.5, 300.0])
def test_delta_has_many_digits_on_a_grid_of_all_budgets(epsilon: float) -> None:
    """From delta 1e-284 to nearly one; 1.8 % were wrong at (1e-12, 1e-30) before."""
    for place in PLACES:
        mu = mu_at(epsilon, place)
        with mpmath.workdps(90):
            e, m = mpmath.mpf(epsilon), mpmath.mpf(mu)
            exact = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
            assert abs(mpmath.mpf(delta_of(epsilon, mu)) / exact - 1) < 1e-12


EXTREMES = [
    (epsilon, delta)
    for epsilon in (1e-300, 1e-20, 1e-12, 1e-6, 1.0, 1e3, LARGEST_EPSILON)
    for delta in (1e-30, 1e-15, 0.4, 0.6, 1 - 1e-9, 1 - 2**-53)
]


@pytest.mark.parametrize(("epsilon", "delta"), EXTREMES)
def test_extreme_budgets_are_kept_on_the_private_side(epsilon: float, delta: float) -> None:
    with mpmath.workdps(120):

        def exact(e: float, m: float) -> mpmath.mpf:
            e, m = mpmath.mpf(e), mpmath.mpf(m)
            return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)

        mu = mu_of(epsilon, delta)
        assert exact(epsilon, mu) <= delta < exact(epsilon, mu * (1 + 1e-9))
        for cost in (mu, mu * (1 + 2e-10), 1.001 * mu):
            assert exact(epsilon_of(cost, delta), cost) <= delta
        assert epsilon_of(mu, delta) <= epsilon * (1 + 1.1e-10)


def test_no_budget_costs_more_than_the_largest_mu() -> None:
    """The theorem on the noise is stated up to there, and it is no further than needed."""
    assert (LARGEST_EPSILON, LARGEST_MU) == (1e4, 150.0)
    assert 0.99 * LARGEST_MU < mu_of(LARGEST_EPSILON, 1 - 2**-53) < LARGEST_MU
    with pytest.raises(ConfigError, match="epsilon"):
        PrivacyBudget(LARGEST_EPSILON * 1.001)


def test_what_the_sampler_is_off_is_far_within_what_calibration_leaves() -> None:
    """Lemma 8, for 2^60 numbers at the largest epsilon and least delta, in logarithms of two."""
    numbers, epsilon, delta = 2.0**60, LARGEST_EPSILON, PrivacyBudget(1.0, 1e-30).delta
    left = math.log2(0.7e-10 * delta)  # of delta, by a mu that is 1e-10 smaller
    factors = math.log2(2 * numbers) - 320
    beyond = (epsilon - 1024**2 / 2) / math.log(2) + math.log2(numbers)
    assert max(factors, beyond) < left - 60


def test_the_slope_of_delta_is_between_minus_one_half_and_zero() -> None:
    """Lemma 8's corollary; for large mu it is steepest near epsilon = mu^2/2, not at zero."""

    def slope(epsilon: float, mu: float) -> float:
        low, high = mu / 2 - epsilon / mu, mu / 2 + epsilon / mu
        return -math.exp(-low * low / 2) * float(erfcx(high / math.sqrt(2))) / 2

    for mu in (1e-3, 0.1, 1.0, 10.0, LARGEST_MU):
        epsilons = [part * (mu + mu * mu) for part in (0.01, 0.1, 0.4, 0.5, 0.6, 1.0, 3.0)]
        assert all(-0.5 <= slope(epsilon, mu) <= 0 for epsilon in [0.0, *epsilons])
    for epsilon, mu in ((0.5, 1.0), (50.0, 10.0), (3.0, 2.0)):
        found = (delta_of(epsilon + 1e-5, mu) - delta_of(epsilon - 1e-5, mu)) / 2e-5
        assert found == pytest.approx(slope(epsilon, mu), rel=1e-4)
    assert slope(50.0, 10.0) < 1000 * slope(0.0, 10.0)
