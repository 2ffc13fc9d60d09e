"""Algorithm 1, written a second time: dense, slow, line by line from the paper's box.

It shares no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import Sensitivity
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.sampler import SeededNoiseUnsafe, floor_normals

M, N, T = 60, 12, 6


def dense_algorithm_1(
    target: np.ndarray,
    seen: np.ndarray,
    *,
    k: float,
    L: float,
    sigma: float,
    noises: list[np.ndarray],
    beta: float | None,
    clip: float = math.inf,
    usual: bool = False,
) -> np.ndarray:
    """Return Y^(T). `target` is Y*, `seen` the 0/1 mask of Omega, `noises` N^(1) ... N^(T-1)."""
    rows = np.linalg.norm(target * seen, axis=1)
    Y_star = target * np.minimum(1, L / np.maximum(rows, 1e-300))[:, None]
    Y = np.zeros_like(target)
    v, lam = np.zeros(target.shape[1]), 0.0
    for t in range(1, T + 1):
        A = seen * (Y - Y_star)
        lam_shifted = lam
        if beta is not None:
            lam_shifted += math.sqrt(sigma * math.log(N / beta)) * N**0.25
        if t > 1:  # in round 1, v = 0 and nothing moves
            u = A @ v / lam_shifted
            eta = 2 / t if usual else 1 / T
            Y = (1 - eta) * Y - eta * k * np.outer(u, v)
        norms = np.linalg.norm(seen * Y, axis=1)
        Y = Y * np.minimum(1, L / np.maximum(norms, 1e-300))[:, None]
        A = seen * (Y - Y_star)
        if t == T:
            return Y
        lengths = np.linalg.norm(A, axis=1)
        A = A * np.minimum(1, clip / np.maximum(lengths, 1e-300))[:, None]
        W = A.T @ A + (noises[t - 1] + noises[t - 1].T) / 2
        values, vectors = np.linalg.eigh(W)
        v, lam = vectors[:, -1], math.sqrt(max(values[-1], sigma))
    raise AssertionError("unreachable")


def problem(seed: int, per_user: int = 5) -> tuple[np.ndarray, np.ndarray, tacit.Ratings]:
    rng = np.random.default_rng(seed)
    full = rng.uniform(-1, 1, (M, 2)) @ rng.uniform(-1, 1, (2, N))
    full = np.clip(full, -1, 1).astype(np.float32).astype(float)
    seen = np.zeros((M, N))
    for row in seen:
        row[rng.choice(N, per_user, replace=False)] = 1
    users, items = np.nonzero(seen)
    ratings = tacit.Ratings.from_arrays(users, items, full[users, items], rating_range=(-1, 1))
    assert ratings.n_items == N
    return full, seen, ratings


def recorded_noise(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """Keep a copy of the noise that a fit draws, in units of its sd."""
    drawn: list[np.ndarray] = []

    def draw(source: SeededNoiseUnsafe, size: int, bits: int) -> np.ndarray:
        units = floor_normals(source, size, bits)
        drawn.append((units / 2.0**bits).reshape(N, N))
        return units

    monkeypatch.setattr(mechanism_module, "floor_normals", draw)
    return drawn


CASES = {
    "projection bites": {"row_norm": 0.6},
    "projection never bites": {"row_norm": 50.0},
    "no shift": {"row_norm": 0.9, "shift": False},
    "usual steps": {"row_norm": 0.9, "step": "2/(t+2)"},
    "residuals clipped": {"row_norm": 0.9, "residual_clip": 0.6},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [1.0, 50.0, 2000.0])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_it_is_algorithm_1(
    case: str, epsilon: float, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.0, max_ratings=None, centre=False, **CASES[case]
    )
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon, neighbours=relation)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    clip = config.residual_clip * config.row_norm
    bound = Sensitivity(clip**2, math.sqrt(2) * clip**2)
    sigma = budget.noise_sd(bound, 1 / (T - 1))
    expected = dense_algorithm_1(
        full, seen, k=20.0, L=config.row_norm, sigma=sigma, clip=clip,
        noises=[sigma * noise for noise in drawn], beta=config.beta if config.shift else None,
        usual=config.step != "1/T",
    )  # fmt: skip
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    assert len(drawn) == T - 1
    # Under add_remove sums keep room for 2^26 users, so their grid is coarser on a small problem.
    tolerance = 1e-5 if relation == "replace" else 1e-3
    assert np.max(np.abs(found - np.clip(expected, -1, 1))) < tolerance


def test_predictions_are_those_of_the_print_before_they_are_cut() -> None:
    """With a large k, Y leaves the rating range; clip=False gives it as it is."""
    full, seen, ratings = problem(1)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=500.0, max_ratings=None, centre=False, shift=False, row_norm=50.0
    )
    model = tacit.fit(ratings, config, budget=None)
    silence = [np.zeros((N, N))] * (T - 1)
    expected = dense_algorithm_1(
        full, seen, k=500.0, L=50.0, sigma=1.0, clip=100.0, noises=silence, beta=None
    )
    assert np.max(np.abs(expected)) > 3
    (_, found), = model.predict_rows(ratings, clip=False)  # fmt: skip
    assert np.allclose(found, expected, rtol=1e-5, atol=1e-5)
    (_, cut), = model.predict_rows(ratings)  # fmt: skip
    assert np.allclose(cut, np.clip(expected, -1, 1), atol=1e-4)


def test_an_eigenvalue_that_noise_makes_negative_counts_as_the_noise_sd(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The print takes its root. Here noise is -20 sd on the diagonal: no eigenvalue is positive."""
    full, seen, ratings = problem(1)
    below = -20 * np.eye(N)

    def draw(_: SeededNoiseUnsafe, size: int, bits: int) -> np.ndarray:
        assert size == N * N
        return (below.ravel() * 2.0**bits).astype(np.int64)

    monkeypatch.setattr(mechanism_module, "floor_normals", draw)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.0, row_norm=0.6, max_ratings=None, centre=False, shift=False
    )
    budget = tacit.PrivacyBudget(1.0)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    bound = Sensitivity(1.2**2, math.sqrt(2) * 1.2**2)
    sigma = budget.noise_sd(bound, 1 / (T - 1))
    assert model.rule.parts()[0]["gains"] == pytest.approx(20.0 / T / math.sqrt(sigma))
    expected = dense_algorithm_1(
        full, seen, k=20.0, L=0.6, sigma=sigma, noises=[sigma * below] * T, beta=None
    )
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    assert np.max(np.abs(found - np.clip(expected, -1, 1))) < 1e-5


@pytest.mark.parametrize("norm", [0.6, 50.0])
def test_without_noise_it_is_the_papers_frank_wolfe(norm: float) -> None:
    full, seen, ratings = problem(2)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.0, row_norm=norm, max_ratings=None, centre=False
    )
    model = tacit.fit(ratings, config, budget=None)
    silence = [np.zeros((N, N))] * T
    expected = dense_algorithm_1(full, seen, k=20.0, L=norm, sigma=0.0, noises=silence, beta=None)
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    assert np.max(np.abs(found - np.clip(expected, -1, 1))) < 1e-5
    assert not model.private


def test_a_wrong_constant_would_be_noticed() -> None:
    """The twin: with k 1 % off, the two versions are further apart than the tolerance."""
    full, seen, ratings = problem(2)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.2, row_norm=0.6, max_ratings=None, centre=False
    )
    silence = [np.zeros((N, N))] * T
    expected = dense_algorithm_1(full, seen, k=20.0, L=0.6, sigma=0.0, noises=silence, beta=None)
    (_, found), = tacit.fit(ratings, config, budget=None).predict_rows(ratings)  # fmt: skip
    assert np.max(np.abs(found - np.clip(expected, -1, 1))) > 1e-4


def test_centring_is_each_users_own_mean() -> None:
    full, seen, ratings = problem(4)
    config = tacit.FrankWolfe(rounds=T, nuclear_norm=20.0, row_norm=1.0, max_ratings=None)
    means = (full * seen).sum(1) / seen.sum(1)
    silence = [np.zeros((N, N))] * T
    centred = full - means[:, None]
    expected = dense_algorithm_1(centred, seen, k=20.0, L=1.0, sigma=0.0, noises=silence, beta=None)
    (_, found), = tacit.fit(ratings, config, budget=None).predict_rows(ratings)  # fmt: skip
    assert np.max(np.abs(found - np.clip(expected + means[:, None], -1, 1))) < 1e-5


def test_who_has_more_than_max_ratings_predicts_from_all_of_them_at_less_weight() -> None:
    """Sums over d ratings count xi/d. In Algorithm 1 each of her ratings would count in full."""
    full, seen, ratings = problem(1, per_user=8)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.0, row_norm=0.6, max_ratings=5, centre=False
    )
    model = tacit.fit(ratings, config, budget=None)
    published = model.rule.parts()[0]

    def shortened(rows: np.ndarray, weight: float) -> np.ndarray:
        lengths = math.sqrt(weight) * np.linalg.norm(seen * rows, axis=1)
        return rows * np.minimum(1, 0.6 / np.maximum(lengths, 1e-300))[:, None]

    def replayed(weight: float) -> np.ndarray:
        Y_star, Y = shortened(full, weight), np.zeros_like(full)
        parts = (published[name] for name in ("directions", "gains", "keeps"))
        for v, gain, keep in zip(*parts, strict=True):
            along = weight * (seen * (Y - Y_star)) @ v
            Y = shortened(keep * Y - gain * np.outer(along, v), weight)
        return Y

    (_, found), = model.predict_rows(ratings, clip=False)  # fmt: skip
    assert np.max(np.abs(found - replayed(5 / 8))) < 1e-5
    assert np.max(np.abs(found - replayed(1.0))) > 1e-2
