"""Shrinking of noisy numbers of items: to zero, or to what popularity predicts."""

import numpy as np
import pytest

from tacit.estimation import empirical_bayes
from tacit.estimation.empirical_bayes import drawn_to_popularity, shrunk
from tacit.estimation.latent import Doubt, LatentEstimate, gradient_step

ITEMS = 400
RNG = np.random.default_rng(7)
WEIGHTS = np.exp(RNG.normal(3.0, 1.2, ITEMS))
ALONG = np.log(WEIGHTS) - WEIGHTS @ np.log(WEIGHTS) / WEIGHTS.sum()
VARIANCES = 30.0 / WEIGHTS**2 * RNG.uniform(0.5, 2.0, ITEMS)


def missed(slope: float, prior_sd: float, seed: int) -> tuple[float, float, float]:
    """Return mean squared errors of both ways to shrink, and what the second says of its own."""
    rng = np.random.default_rng(seed)
    means = slope * ALONG + prior_sd * rng.standard_normal(ITEMS)
    measured = means + np.sqrt(VARIANCES) * rng.standard_normal(ITEMS)
    to_zero = shrunk(measured, VARIANCES, 0.01).estimates
    drawn = drawn_to_popularity(measured, VARIANCES, WEIGHTS, 0.01)
    return (
        float(np.mean((to_zero - means) ** 2)),
        float(np.mean((drawn.estimates - means) ** 2)),
        float(np.mean(drawn.doubt)),
    )


def test_means_that_follow_popularity_are_drawn_to_it() -> None:
    found = np.mean([missed(0.3, 0.2, seed) for seed in range(20)], axis=0)
    assert found[1] < 0.6 * found[0]
    assert found[1] == pytest.approx(found[2], rel=0.25)


def test_where_popularity_tells_nothing_hardly_anything_is_lost() -> None:
    """A slope of more than three standard errors is chance once in 370 times."""
    found = np.array([missed(0.0, 0.3, seed) for seed in range(200)])
    assert np.sum(found[:, 0] != found[:, 1]) <= 4
    assert found[:, 1].mean() < 1.002 * found[:, 0].mean()


def test_noise_alone_is_not_taken_for_means_of_popular_items() -> None:
    """With the prior sd 0 and no slope all is noise: nearly always everything becomes zero."""
    nothing = sum(missed(0.0, 0.0, seed)[1] == 0.0 for seed in range(200))
    assert nothing >= 190


def test_an_average_item_is_not_moved() -> None:
    drawn = drawn_to_popularity(0.5 * ALONG, np.full(ITEMS, 1e-4), WEIGHTS, 0.01)
    assert WEIGHTS @ drawn.estimates == pytest.approx(0.0, abs=1e-6 * WEIGHTS.sum())


def test_numbers_that_are_known_move_less_than_others() -> None:
    """Half of the numbers are known already: what is measured of them again is mostly noise."""
    rng = np.random.default_rng(3)
    doubt = np.where(np.arange(ITEMS) < ITEMS // 2, 0.001, 1.0)
    missing = np.sqrt(doubt) * rng.standard_normal(ITEMS)
    measured = missing + rng.standard_normal(ITEMS)
    alike = shrunk(measured, np.ones(ITEMS), 0.01).estimates
    told = shrunk(measured, np.ones(ITEMS), 0.01, doubt).estimates
    assert np.mean((told - missing) ** 2) < 0.75 * np.mean((alike - missing) ** 2)


def step_of(doubt: np.ndarray, missing: str = "means") -> tuple[LatentEstimate, Doubt, np.ndarray]:
    """Take a step from means, or loadings, of which all `doubt` is missing.

    Return it, what is left in doubt, and what was missing.
    """
    rng = np.random.default_rng(5)
    truth = np.sqrt(np.where(doubt > 0, doubt, 1.0)) * rng.standard_normal(ITEMS)
    noise = np.full(ITEMS, 2.0)
    start = LatentEstimate(np.ones((ITEMS, 1)), np.zeros(ITEMS), noise, np.zeros((1, 1)))
    steps = np.zeros((ITEMS, 2))
    steps[:, int(missing == "means")] = truth + 0.3 * rng.standard_normal(ITEMS)
    before = Doubt(np.zeros(ITEMS), np.zeros(ITEMS))._replace(**{missing: doubt})
    step = steps, np.full((ITEMS, 2), 0.09)
    return *gradient_step(start, step, np.full(ITEMS, 10.0), before), truth


@pytest.mark.parametrize("missing", ["means", "factors"])
def test_what_a_step_tells_is_no_longer_in_the_noise(missing: str) -> None:
    doubt = np.where(np.arange(ITEMS) % 2 == 0, 0.2, 0.8)
    moved, left, truth = step_of(doubt, missing)
    found = moved.offsets if missing == "means" else moved.factors[:, 0] - 1.0
    remains = getattr(left, missing)
    assert np.all((remains > 0) & (remains < doubt))
    assert np.allclose(moved.noise, 2.0 - doubt + remains)
    assert np.mean((found - truth) ** 2) == pytest.approx(remains.mean(), rel=0.2)


def test_where_it_is_not_known_what_means_miss_noise_stays_as_it_is() -> None:
    moved, left, means = step_of(np.zeros(ITEMS))
    assert not left.means.any()
    assert not left.factors.any()
    assert np.array_equal(moved.noise, np.full(ITEMS, 2.0))
    assert np.mean((moved.offsets - means) ** 2) < 0.12


def test_an_item_that_nobody_rated_is_like_the_rarest() -> None:
    """Without noise its weight is nearly zero; its logarithm would be far from all others."""
    weights, variances = np.append(WEIGHTS, 1e-12), np.append(np.full(ITEMS, 1e-4), 1e20)
    drawn = drawn_to_popularity(np.append(0.3 * ALONG, 0.0), variances, weights, 0.01).estimates
    assert 1.5 * drawn[:-1].min() < drawn[-1] < np.quantile(drawn[:-1], 0.05)


def large_by_chance() -> float:
    """Return the mean square that noise alone is taken for, once in a hundred draws."""
    found = []
    for seed in range(500):
        noise = np.sqrt(VARIANCES) * np.random.default_rng(seed).standard_normal(ITEMS)
        drawn = drawn_to_popularity(noise, VARIANCES, WEIGHTS, 0.01).estimates
        found.append(float(np.mean(drawn**2)))
    return float(np.quantile(found, 0.99))


def test_a_slope_by_chance_moves_means_by_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slope a little above three standard errors counts a little; the twin counts any slope."""
    guarded = large_by_chance()
    monkeypatch.setattr(empirical_bayes, "_CHANCE", 0.0)
    assert guarded < 0.2 * large_by_chance()
