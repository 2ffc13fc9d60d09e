"""Algorithm 4 (private SVD), written a second time: dense, line by line from the paper's box.

It shares no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math

import numpy as np
import pytest
from tests.paper.test_algorithm_1 import problem
from tests.support.recorded import recorded_noise

import tacit

M, N = 60, 12


def dense_algorithm_4(
    target: np.ndarray, seen: np.ndarray, *, r: int, L: float, scale: float, noise: np.ndarray
) -> np.ndarray:
    """Return Y-hat. `scale` is m n / |Omega|; the noise is made symmetric."""
    rows = target * seen
    lengths = np.linalg.norm(rows, axis=1)
    clipped = rows * np.minimum(1, L / np.maximum(lengths, 1e-300))[:, None]
    W = sum(np.outer(row, row) for row in clipped) + (noise + noise.T) / 2
    _, vectors = np.linalg.eigh(W)
    V = vectors[:, -r:]
    return scale * rows @ V @ V.T


def uneven(seed: int) -> tuple[np.ndarray, np.ndarray, tacit.Ratings]:
    """Rows of one to eight ratings, so that |Omega| is no round number."""
    full, _, _ = problem(seed)
    rng = np.random.default_rng(seed)
    seen = np.zeros((M, N))
    for row in seen:
        row[rng.choice(N, rng.integers(1, 9), replace=False)] = 1
    users, items = np.nonzero(seen)
    catalogue = tacit.Catalogue(list(range(N)), public=True)
    ratings = tacit.Ratings.from_arrays(
        users, items, full[users, items], rating_range=(-1, 1), catalogue=catalogue
    )
    return full, seen, ratings


def furthest(model: tacit.Model, ratings: tacit.Ratings, expected: np.ndarray) -> float:
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - np.clip(expected, -1, 1))))


@pytest.mark.parametrize("rank", [1, 4])
@pytest.mark.parametrize("norm", [0.6, 50.0])
@pytest.mark.parametrize("epsilon", [1.0, 50.0, 2000.0])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_it_is_algorithm_4_with_a_released_count(
    rank: int, norm: float, epsilon: float, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = uneven(1)
    config = tacit.SVD(rank=rank, row_norm=norm, count_share=0.1, max_ratings=None, centre=False)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon, neighbours=relation)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    users, share = float(M), 0.9
    if relation == "add_remove":  # the number of users is one more release
        users = max(1, round(M + float(drawn.pop(0)[0]) / (math.sqrt(0.02) * budget.mu)))
        share -= 0.02
    count, noise = drawn
    noisy_count = seen.sum() + N / (math.sqrt(0.1) * budget.mu) * float(count[0])
    scale = N / min(max(noisy_count / users, 1), N)  # nobody has rated fewer or more
    sensitivity = norm**2 * (math.sqrt(2) if relation == "replace" else 1)
    sigma = sensitivity / (math.sqrt(share) * budget.mu)
    expected = dense_algorithm_4(
        full, seen, r=rank, L=norm, scale=scale, noise=sigma * noise.reshape(N, N)
    )
    # Under add_remove sums keep room for 2^26 users, so their grid is coarser on a small problem.
    assert furthest(model, ratings, expected) < (1e-5 if relation == "replace" else 1e-3)


def test_with_a_public_count_it_is_algorithm_4_for_rows_of_max_ratings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """There m n / |Omega| is n / max_ratings, and nothing is paid for it."""
    full, seen, ratings = problem(2)
    config = tacit.SVD(rank=2, row_norm=0.7, count_share=0.0, max_ratings=5, centre=False)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(100.0)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    assert len(drawn) == 1
    noise = math.sqrt(2) * 0.7**2 / budget.mu * drawn[0].reshape(N, N)
    scale = M * N / seen.sum()
    expected = dense_algorithm_4(full, seen, r=2, L=0.7, scale=scale, noise=noise)
    assert furthest(model, ratings, expected) < 1e-5


@pytest.mark.parametrize("norm", [0.6, 50.0])
def test_without_noise_it_is_algorithm_4(norm: float) -> None:
    full, seen, ratings = uneven(3)
    config = tacit.SVD(rank=3, row_norm=norm, max_ratings=None, centre=False)
    model = tacit.fit(ratings, config, budget=None)
    scale = M * N / seen.sum()
    expected = dense_algorithm_4(full, seen, r=3, L=norm, scale=scale, noise=np.zeros((N, N)))
    assert furthest(model, ratings, expected) < 1e-5
    assert not model.private


def test_centring_is_each_users_own_mean() -> None:
    full, seen, ratings = uneven(4)
    config = tacit.SVD(rank=2, row_norm=1.0, max_ratings=None)
    means = (full * seen).sum(1) / seen.sum(1)
    scale = M * N / seen.sum()
    expected = dense_algorithm_4(
        full - means[:, None], seen, r=2, L=1.0, scale=scale, noise=np.zeros((N, N))
    )
    model = tacit.fit(ratings, config, budget=None)
    assert furthest(model, ratings, expected + means[:, None]) < 1e-5


def test_a_wrong_constant_would_be_noticed() -> None:
    """The twin: the scale 1 % off, the clip 5 % off or one column more are seen at once."""
    full, seen, ratings = uneven(3)
    config = tacit.SVD(rank=3, row_norm=0.6, max_ratings=None, centre=False)
    model = tacit.fit(ratings, config, budget=None)
    right = {"r": 3, "L": 0.6, "scale": M * N / seen.sum(), "noise": np.zeros((N, N))}
    assert furthest(model, ratings, dense_algorithm_4(full, seen, **right)) < 1e-5
    for wrong in ({"scale": 1.01 * right["scale"]}, {"L": 0.63}, {"r": 4}):
        assert furthest(model, ratings, dense_algorithm_4(full, seen, **right | wrong)) > 1e-4


def test_the_scale_stays_between_what_can_be() -> None:
    """However the noise falls, m n / |Omega| is between n / max_ratings and n."""
    _, _, ratings = uneven(5)
    config = tacit.SVD(rank=2, max_ratings=8)
    for seed in range(30):
        model = tacit.fit(ratings, config, epsilon=0.05, noise_seed_unsafe=seed)
        assert N / 8 <= model.rule.parts()[1]["scale"] <= N
