"""Algorithm 5 (private projected gradient), written a second time: dense, from the paper's box.

The step is the descent that the box means, Y <- Y + eta P(Y* - Y), and rows are clipped to L. It
shares no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math
from typing import Any

import numpy as np
import pytest
from tests.paper.recorded import recorded_noise
from tests.paper.test_algorithm_1 import problem

import tacit
from tacit.algorithms.projected_gradient import project_on_ball

N, T = 12, 4


def by_bisection(singular: np.ndarray, k: float) -> np.ndarray:
    """Return Z: max(0, Lambda - tau) of sum k, tau found by halving; Lambda if its sum is small."""
    if singular.sum() <= k:
        return singular
    low, high = 0.0, float(singular.max())
    for _ in range(200):
        tau = (low + high) / 2
        if np.maximum(0, singular - tau).sum() > k:
            low = tau
        else:
            high = tau
    return np.maximum(0, singular - high)


def dense_algorithm_5(
    target: np.ndarray,
    seen: np.ndarray,
    *,
    k: float,
    L: float,
    etas: list[float],
    noises: list[np.ndarray],
) -> np.ndarray:
    """Return Y^(T)."""
    lengths = np.linalg.norm(target * seen, axis=1)
    Y_star = target * np.minimum(1, L / np.maximum(lengths, 1e-300))[:, None]
    Y = np.zeros_like(target)
    for eta, noise in zip(etas, noises, strict=True):
        Y = Y + eta * seen * (Y_star - Y)
        lengths = np.linalg.norm(Y, axis=1)
        Y = Y * np.minimum(1, L / np.maximum(lengths, 1e-300))[:, None]
        W = Y.T @ Y + (noise + noise.T) / 2
        squares, V = np.linalg.eigh(W)
        kept = squares > 1e-9  # the others count as zero
        V, Lambda = V[:, kept], np.sqrt(squares[kept])
        U = Y @ V / Lambda
        Y = U * by_bisection(Lambda, k) @ V.T
    return Y


RATES: dict[str | float, list[float]] = {
    0.5: [0.5] * T,
    1.0: [1.0] * T,
    "t^-1/2": [t**-0.5 for t in range(1, T + 1)],
    "t^-1": [1 / t for t in range(1, T + 1)],
}


def furthest(model: tacit.Model, ratings: tacit.Ratings, expected: np.ndarray) -> float:
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - np.clip(expected, -1, 1))))


def config_of(**settings: Any) -> tacit.ProjectedGradient:
    given = {"rounds": T, "nuclear_norm": 6.0, "max_ratings": None, "centre": False} | settings
    return tacit.ProjectedGradient(**given)


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("radius", [3.0, 1000.0])
@pytest.mark.parametrize("norm", [0.6, 50.0])
@pytest.mark.parametrize("epsilon", [1.0, 50.0, 2000.0])
def test_it_is_algorithm_5(
    rate: float, radius: float, norm: float, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    config = config_of(rate=rate, nuclear_norm=radius, row_norm=norm)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    assert len(drawn) == T
    sigma = math.sqrt(2) * norm**2 * math.sqrt(T) / budget.mu
    noises = [sigma * noise.reshape(N, N) for noise in drawn]
    expected = dense_algorithm_5(full, seen, k=radius, L=norm, etas=RATES[rate], noises=noises)
    assert furthest(model, ratings, expected) < 1e-5


def test_it_is_so_under_add_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    full, seen, ratings = problem(1)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(50.0, neighbours="add_remove")
    model = tacit.fit(ratings, config_of(row_norm=0.6), budget=budget, noise_seed_unsafe=3)
    sigma = 0.6**2 * math.sqrt(T) / budget.mu
    noises = [sigma * noise.reshape(N, N) for noise in drawn]
    expected = dense_algorithm_5(full, seen, k=6.0, L=0.6, etas=[0.5] * T, noises=noises)
    assert furthest(model, ratings, expected) < 1e-3  # on a coarser grid


@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("norm", [0.6, 50.0])
def test_without_noise_it_is_the_papers_projected_gradient(rate: float, norm: float) -> None:
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, config_of(rate=rate, row_norm=norm), budget=None)
    silence = [np.zeros((N, N))] * T
    expected = dense_algorithm_5(full, seen, k=6.0, L=norm, etas=RATES[rate], noises=silence)
    assert furthest(model, ratings, expected) < 1e-5
    assert not model.private


def test_it_descends() -> None:
    """With the sign and index of the print put right, the error on Omega falls round by round."""
    full, seen, ratings = problem(2)
    errors = []
    for rounds in (1, 2, 4, 8, 16):
        config = config_of(rounds=rounds, row_norm=50.0, nuclear_norm=12.0)
        (_, found), = tacit.fit(ratings, config, budget=None).predict_rows(ratings)  # fmt: skip
        errors.append(np.linalg.norm(seen * (found - full)))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.7 * errors[0]


def test_a_wrong_constant_would_be_noticed() -> None:
    """The twin: k 1 % off, one eta 1 % off, another clip or the printed sign are seen at once."""
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, config_of(row_norm=0.6), budget=None)
    right = {"k": 6.0, "L": 0.6, "etas": [0.5] * T, "noises": [np.zeros((N, N))] * T}
    assert furthest(model, ratings, dense_algorithm_5(full, seen, **right)) < 1e-5
    for wrong in (
        {"k": 6.06},
        {"L": 0.63},
        {"etas": [0.5, 0.5, 0.5, 0.505]},
        {"etas": [-0.5] * T},
    ):
        assert furthest(model, ratings, dense_algorithm_5(full, seen, **right | wrong)) > 1e-4


def test_a_map_is_published_for_every_round_and_lengthens_nobody() -> None:
    """V diag(Z/Lambda) V^T is symmetric with eigenvalues in [0, 1]."""
    model = tacit.fit(problem(3)[2], config_of(row_norm=0.6), epsilon=5.0)
    maps = model.rule.parts()[0]["maps"]
    assert maps.shape == (T, N, N)
    for matrix in maps:
        assert np.allclose(matrix, matrix.T, atol=1e-12)
        values = np.linalg.eigvalsh(matrix)
        assert values.min() > -1e-12
        assert values.max() < 1 + 1e-12


def test_projection_agrees_with_bisection() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 30))
        singular = rng.exponential(10.0 ** rng.integers(-3, 4), size)
        singular[rng.random(size) < 0.2] = 0.0
        singular[rng.random(size) < 0.2] = singular[0]  # ties
        k = float(rng.exponential(max(singular.sum(), 1e-3)))
        found = project_on_ball(singular, k)
        assert np.allclose(found, by_bisection(singular, k), atol=1e-9 * (1 + singular.max()))
        assert found.sum() <= k * (1 + 1e-9)


@pytest.mark.parametrize("k", [1e-30, 1e-9, 0.5, 3.5, 4.0, 1e9])
def test_projection_at_the_edges(k: float) -> None:
    singular = np.array([2.0, 1.0, 1.0, 0.0])
    found = project_on_ball(singular, k)
    assert np.allclose(found, by_bisection(singular, k), atol=1e-12)
    assert found.sum() <= k * (1 + 1e-9) + 1e-15
    assert found.min() >= 0


def test_projection_is_the_nearest_point_of_the_ball() -> None:
    rng = np.random.default_rng(1)
    singular, k = rng.exponential(1.0, 6), 2.0
    nearest = np.linalg.norm(project_on_ball(singular, k) - singular)
    for _ in range(2000):
        point = rng.dirichlet(np.ones(6)) * k * rng.random() ** 0.2
        assert np.linalg.norm(point - singular) >= nearest - 1e-12
