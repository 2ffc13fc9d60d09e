"""Bounds from counts: they must be right as often as they say, and not be empty."""

import math

import numpy as np
import pytest
from scipy.stats import binom, norm

from tacit.accounting.budget import delta_of, epsilon_of
from tacit.audit.bounds import (
    GuessCounts,
    best_threshold,
    count,
    epsilon_at_least,
    gaussian_epsilon_at_least,
    mu_at_least,
    rate_at_least,
    rate_at_most,
)

MISS = 0.05


def chance_of_missing(trials: int, rate: float, bound: np.ndarray) -> float:
    """How often the bound of each count lies above the true rate; exact, nothing is drawn."""
    return float(binom.pmf(np.arange(trials + 1), trials, rate)[bound > rate].sum())


@pytest.mark.parametrize("trials", [1, 7, 60])
def test_a_rate_is_missed_no_more_often_than_stated(trials: int) -> None:
    bounds = np.array([rate_at_least(k, trials, MISS) for k in range(trials + 1)])
    above = np.array([rate_at_most(k, trials, MISS) for k in range(trials + 1)])
    missed = [chance_of_missing(trials, rate, bounds) for rate in np.linspace(0.01, 0.99, 99)]
    assert max(missed) <= MISS
    assert np.all(bounds < above)
    assert np.allclose(above, 1 - bounds[::-1])


def test_the_bare_share_would_be_missed_far_too_often() -> None:
    """The twin: without Clopper and Pearson a bound is wrong about every other time."""
    assert chance_of_missing(60, 0.3, np.arange(61) / 60) > 0.3


def chance_of_exceeding(epsilon: float, delta: float, rates: tuple[float, float]) -> float:
    """How often the bound of epsilon passes the true one, over all counts; exact."""
    trials = 30
    false, true = (binom.pmf(np.arange(trials + 1), trials, rate) for rate in rates)
    return sum(
        false[f] * true[t]
        for f in range(trials + 1)
        for t in range(trials + 1)
        if epsilon_at_least(GuessCounts(f, trials, t, trials), delta, MISS) > epsilon
    )


@pytest.mark.parametrize("threshold", [-0.5, 0.5, 2.0])
def test_epsilon_is_exceeded_no_more_often_than_stated(threshold: float) -> None:
    """The worst process: Gaussian, at the edge of its promise, for a delta that can be seen."""
    mu, epsilon = 1.5, 1.0
    rates = float(norm.sf(threshold)), float(norm.sf(threshold - mu))
    assert chance_of_exceeding(epsilon, delta_of(epsilon, mu), rates) <= MISS


def test_a_broken_promise_is_seen() -> None:
    """The twin: a quarter of the noise that the promise needs."""
    rates = float(norm.sf(3.0)), float(norm.sf(3.0 - 6.0))
    assert chance_of_exceeding(1.0, delta_of(1.0, 1.5), rates) > 0.9


def test_both_directions_are_looked_at() -> None:
    rare = GuessCounts(0, 1000, 100, 1000)
    common = GuessCounts(900, 1000, 1000, 1000)
    assert epsilon_at_least(rare, 1e-6, MISS) > 2.5
    assert epsilon_at_least(common, 1e-6, MISS) == pytest.approx(
        epsilon_at_least(rare, 1e-6, MISS), rel=1e-9
    )


@pytest.mark.parametrize(
    "counts", [GuessCounts(0, 10, 0, 10), GuessCounts(10, 10, 10, 10), GuessCounts(5, 10, 5, 10)]
)
def test_counts_that_say_nothing_bound_nothing(counts: GuessCounts) -> None:
    assert epsilon_at_least(counts, 1e-6, MISS) == 0.0
    assert mu_at_least(counts, MISS) == 0.0
    assert gaussian_epsilon_at_least(counts, 1e-6, MISS) == 0.0


def test_delta_is_taken_off() -> None:
    counts = GuessCounts(0, 200, 30, 200)
    assert epsilon_at_least(counts, 0.05, MISS) < epsilon_at_least(counts, 1e-6, MISS)
    assert epsilon_at_least(counts, 0.5, MISS) == 0.0


def test_the_gaussian_form_comes_close_with_many_games() -> None:
    """With exact shares of a million games, a cost of 1 is found to within a percent."""
    games = 10**6
    false, true = (round(games * norm.sf(x)) for x in (0.5, -0.5))
    found = mu_at_least(GuessCounts(false, games, true, games), MISS)
    assert 0.99 < found < 1.0
    bound = gaussian_epsilon_at_least(GuessCounts(false, games, true, games), 1e-6, MISS)
    assert bound == epsilon_of(found, 1e-6)
    # The form for any noise sees far less: its delta is too small to be met in a million games.
    assert epsilon_at_least(GuessCounts(false, games, true, games), 1e-6, MISS) < bound / 3


def test_the_threshold_is_the_best_of_those_tried() -> None:
    without, with_her = np.arange(100.0), np.arange(100.0) + 60

    def bound(counts: GuessCounts) -> float:
        return epsilon_at_least(counts, 1e-6, MISS)

    chosen = best_threshold(without, with_her, bound)
    found = [bound(count(without, with_her, t)) for t in np.arange(-1.0, 160.0)]
    assert bound(count(without, with_her, chosen)) == pytest.approx(max(found), rel=0.05)
    assert math.isfinite(chosen)
