"""Steps of the latent factor model from its gradient, on people drawn from the model itself."""

import math

import numpy as np
import pytest

from tacit.estimation import latent
from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.latent import LatentEstimate, choice_step, known, newton_step

USERS, ITEMS, RANK = 40_000, 10, 2
RNG = np.random.default_rng(39)
FACTORS = RNG.normal(size=(ITEMS, RANK)) * (0.6, 0.25)
NOISE = RNG.uniform(0.5, 1.5, ITEMS)
C = np.column_stack([np.ones(USERS), RNG.normal(size=USERS)]) * (0.7, 0.3)
PRIOR = np.array([[0.1, -0.2], [0.9, 0.6]])
EXACT = LatentEstimate(FACTORS, np.zeros(ITEMS), NOISE, PRIOR)


def everyone() -> CoRatings:
    """Everyone rated everything."""
    weights = np.full(ITEMS, USERS / math.sqrt(ITEMS))
    sizes, lengths = np.array([float(USERS)]), np.array([float(ITEMS)])
    return CoRatings(
        weights, np.zeros(ITEMS), weights / math.sqrt(ITEMS), sizes, lengths, weights[None]
    )


RATED = everyone()


def ratings(prior: np.ndarray) -> np.ndarray:
    rng = np.random.default_rng(1)
    u = C @ prior + rng.normal(size=(USERS, RANK))
    return u @ FACTORS.T + rng.normal(size=(USERS, ITEMS)) * np.sqrt(NOISE)


def posterior(at: LatentEstimate, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return everyone's posterior mean, and the covariance, which is the same for all here."""
    weighed = at.factors / at.noise[:, None]
    covariance = np.linalg.inv(np.eye(RANK) + at.factors.T @ weighed)
    mean = C @ at.prior
    return mean + (y - mean @ at.factors.T) @ weighed @ covariance, covariance


def test_how_much_is_known_is_the_identity_less_the_covariance() -> None:
    even = EXACT._replace(noise=np.ones(ITEMS))
    _, covariance = posterior(even, ratings(PRIOR))
    assert np.allclose(known(even, RATED), np.eye(RANK) - covariance, atol=0.01)
    lost = known(even._replace(factors=np.zeros((ITEMS, RANK))), RATED)
    assert np.allclose(lost, latent._LEAST_KNOWN * np.eye(RANK))


def fraction_made_up() -> float:
    """Move the factors of one item alone; return how much of that a step makes up for."""
    y, wrong = ratings(0 * PRIOR), np.array([0.0, 0.3])
    at = EXACT._replace(factors=FACTORS.copy(), prior=0 * PRIOR)
    at.factors[3] += wrong
    u, covariance = posterior(at, y)
    left = y - u @ at.factors.T
    slopes = left.T @ u - USERS * at.factors @ covariance
    gradient = np.column_stack([slopes, left.sum(axis=0)]) / math.sqrt(ITEMS)
    step, _ = newton_step(at, gradient, 0.0, RATED, np.zeros((RANK, RANK)))
    return float(-(step[3, :RANK] / latent._FURTHER) @ wrong / (wrong @ wrong))


def test_a_step_of_item_factors_has_the_length_that_people_tell() -> None:
    """The other items explain part of the ratings too: what is left over is not for one step."""
    assert 0.8 < fraction_made_up() < 1.2


def test_a_step_of_expected_likelihood_would_be_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: with all of u taken to be known, less than half is made up for."""
    monkeypatch.setattr(latent, "known", lambda *_: np.eye(RANK))
    assert fraction_made_up() < 0.5


@pytest.mark.parametrize("begun", [0.0, 0.5])
def test_the_prior_from_choice_is_found_in_one_step(begun: float) -> None:
    at, moment = EXACT._replace(prior=begun * PRIOR), C.T @ C / USERS
    u, _ = posterior(at, ratings(PRIOR))
    gradient = C.T @ (u - C @ at.prior)
    prior, spread = choice_step(at, gradient, 0.0, moment, RATED)
    assert np.allclose(prior[1:], PRIOR[1:], atol=0.05)
    assert np.array_equal(prior[0], begun * PRIOR[0]), "popularity is left to the means"
    assert np.allclose(spread, prior.T @ moment @ prior)


def test_noise_that_hides_it_leaves_the_prior_where_it_was() -> None:
    at, moment = EXACT._replace(prior=0.5 * PRIOR), C.T @ C / USERS
    noise_sd = 10.0 * USERS
    gradient = noise_sd * np.random.default_rng(2).normal(size=(2, RANK))
    assert np.array_equal(choice_step(at, gradient, noise_sd, moment, RATED)[0], 0.5 * PRIOR)


def test_without_what_is_known_the_prior_would_be_too_small(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: posterior means are shrunk, and so is what is regressed from them."""
    monkeypatch.setattr(latent, "known", lambda *_: np.eye(RANK))
    at, moment = EXACT._replace(prior=0 * PRIOR), C.T @ C / USERS
    u, _ = posterior(at, ratings(PRIOR))
    prior, _ = choice_step(at, C.T @ u, 0.0, moment, RATED)
    assert np.linalg.norm(prior) < 0.85 * np.linalg.norm(PRIOR)
