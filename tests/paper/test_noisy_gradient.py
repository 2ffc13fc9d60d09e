"""Noisy gradient factorisation ([liu2015fast] with a provable guarantee), written a second time.

Dense, from the formulas; it shares no code with the package. Given the same noise, both must
agree to 1e-5. The gradient itself is also checked by finite differences of the loss.
"""

import math
from typing import Any

import numpy as np
import pytest
from tests.paper.test_algorithm_1 import problem
from tests.support.attack import (
    ITEMS,
    Row,
    random_row,
    summed,
)
from tests.support.recorded import recorded_noise

import tacit
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import FactorGradient

M, N, T = 60, 12, 4
SETTINGS: dict[str, Any] = {
    "rank": 3, "rate": 3.0, "clip": 0.12, "ridge": 0.2, "start_scale": 0.4, "start_seed": 5,
}  # fmt: skip


def own_factors(y: np.ndarray, V: np.ndarray, ridge: float) -> np.ndarray:
    """Return argmin_u |y - V u|^2 + ridge |u|^2."""
    return np.linalg.solve(V.T @ V + ridge * np.eye(V.shape[1]), V.T @ y)


def dense_gradient(y: np.ndarray, rated: np.ndarray, V: np.ndarray, ridge: float) -> np.ndarray:
    """Return one user's gradient, items by rank: rows (u . v_j - y_j) u where she rated."""
    u = own_factors(y[rated], V[rated], ridge)
    gradient = np.zeros_like(V)
    gradient[rated] = np.outer(V[rated] @ u - y[rated], u)
    return gradient


def dense_noisy_gradient(
    target: np.ndarray,
    seen: np.ndarray,
    settings: dict[str, Any],
    L: float,
    noises: list[np.ndarray],
) -> np.ndarray:
    """Return everyone's scores."""
    rank, ridge = settings["rank"], settings["ridge"]
    start = np.random.default_rng(settings["start_seed"]).standard_normal((N, rank))
    V = settings["start_scale"] * math.sqrt(N) * np.linalg.qr(start)[0]
    lengths = np.linalg.norm(target * seen, axis=1)
    rows = target * np.minimum(1, L / lengths)[:, None]
    a_rating = M * settings["most"] / N  # ratings that an item can expect
    for noise in noises:
        total = noise.reshape(N, rank)
        for row, mask in zip(rows, seen.astype(bool), strict=True):
            gradient = dense_gradient(row, mask, V, ridge)
            length = np.linalg.norm(gradient)
            total = total + gradient * min(1, settings["clip"] / max(length, 1e-300))
        V = V - settings["rate"] / a_rating * total
    scores = np.empty_like(target)
    for i, mask in enumerate(seen.astype(bool)):
        scores[i] = V @ own_factors(target[i, mask], V[mask], ridge)
    return np.clip(scores, -1, 1)


def furthest(model: tacit.Model, ratings: tacit.Ratings, expected: np.ndarray) -> float:
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - expected)))


def config_of(norm: float, most: int | None, settings: dict[str, Any]) -> tacit.NoisyGradient:
    return tacit.NoisyGradient(rounds=T, row_norm=norm, max_ratings=most, centre=False, **settings)


@pytest.mark.parametrize("norm", [0.6, 50.0])
@pytest.mark.parametrize("clip", [0.12, 100.0])
@pytest.mark.parametrize("most", [5, None])
@pytest.mark.parametrize("epsilon", [5.0, 100.0, 2000.0])
def test_it_is_noisy_gradient_descent(
    norm: float, clip: float, most: int | None, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    settings = SETTINGS | {"clip": clip, "rate": 3.0 if clip < 1 else 0.01}
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon)
    config = config_of(norm, most, settings)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    assert [noise.size for noise in drawn] == [N * 3] * T
    sigma = 2 * clip * math.sqrt(T) / budget.mu
    noises = [sigma * noise for noise in drawn]
    settings["most"] = most or N
    assert furthest(model, ratings, dense_noisy_gradient(full, seen, settings, norm, noises)) < 1e-5


def test_it_is_so_under_add_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    """There the number of users is one more release; here its noise is less than a half."""
    full, seen, ratings = problem(1)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(5000.0, neighbours="add_remove")
    model = tacit.fit(ratings, config_of(0.6, 5, SETTINGS), budget=budget, noise_seed_unsafe=3)
    assert abs(float(drawn[0][0])) / (math.sqrt(0.02) * budget.mu) < 0.5
    sigma = 0.12 * math.sqrt(T / 0.98) / budget.mu
    noises = [sigma * noise for noise in drawn[1:]]
    expected = dense_noisy_gradient(full, seen, SETTINGS | {"most": 5}, 0.6, noises)
    assert furthest(model, ratings, expected) < 1e-4  # on a coarser grid


SILENCE = [np.zeros(N * 3)] * T


def test_without_noise_it_is_gradient_descent() -> None:
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, config_of(0.6, 5, SETTINGS), budget=None)
    expected = dense_noisy_gradient(full, seen, SETTINGS | {"most": 5}, 0.6, SILENCE)
    assert furthest(model, ratings, expected) < 1e-5
    assert not model.private


def test_a_wrong_constant_would_be_noticed() -> None:
    """The twin: each constant, 2 % off or one off, is seen at once."""
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, config_of(0.6, 5, SETTINGS), budget=None)
    right = SETTINGS | {"most": 5}
    names = ("rate", "clip", "ridge", "start_scale")
    wrong = [{name: 1.02 * right[name]} for name in names] + [{"start_seed": 6}, {"most": 6}]
    for change in wrong:
        expected = dense_noisy_gradient(full, seen, right | change, 0.6, SILENCE)
        assert furthest(model, ratings, expected) > 1e-4, change
    assert furthest(model, ratings, dense_noisy_gradient(full, seen, right, 0.65, SILENCE)) > 1e-4


def half_loss(rows: list[Row], V: np.ndarray, ridge: float) -> float:
    """Return half of sum_i min_u (|y_i - V_i u|^2 + ridge |u|^2), ratings counted from 3."""
    total = 0.0
    for row in rows:
        rated = np.array(list(row))
        y = np.array(list(row.values())) - 3.0
        u = own_factors(y, V[rated], ridge)
        total += np.sum((y - V[rated] @ u) ** 2) + ridge * np.sum(u**2)
    return total / 2


def test_the_statistic_is_the_gradient_of_the_loss() -> None:
    """By finite differences: that the users solve anew as V moves adds nothing (envelope)."""
    rng = np.random.default_rng(3)
    rows = [random_row(rng) for _ in range(6)]
    V = rng.standard_normal((ITEMS, 3))
    bounds = RowBounds(None, np.full(ITEMS, 3.0), False, 1e6)
    found = summed(FactorGradient(bounds, V, 0.7, 100.0), rows)
    for j in range(ITEMS):
        for k in range(3):
            moved = np.zeros_like(V)
            moved[j, k] = 1e-5
            slope = (half_loss(rows, V + moved, 0.7) - half_loss(rows, V - moved, 0.7)) / 2e-5
            assert found[j, k] == pytest.approx(slope, abs=2e-5)
    wrong = summed(FactorGradient(bounds, V, 0.71, 100.0), rows)
    assert np.max(np.abs(wrong - found)) > 1e-4  # the twin: another ridge is another gradient


def test_it_descends() -> None:
    """Without noise and clip, more steps leave less error on what was rated."""
    full, seen, ratings = problem(2)
    settings = SETTINGS | {"clip": 1e3, "rate": 1.0}
    errors = []
    for rounds in (1, 4, 16, 64):
        config = tacit.NoisyGradient(
            rounds=rounds, row_norm=50.0, max_ratings=5, centre=False, **settings
        )
        (_, found), = tacit.fit(ratings, config, budget=None).predict_rows(ratings)  # fmt: skip
        errors.append(float(np.linalg.norm(seen * (found - full))))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.5 * errors[0]
