"""The baseline [MM09], "SVD after cleansing", written a second time: dense, in its five steps.

It shares no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math
from typing import Any

import numpy as np
import pytest
from tests.support.recorded import recorded_noise

import tacit
from tacit.algorithms.cleansing import _shrunk_to_averages

M, N = 60, 12
LO, HI = 1.0, 5.0
MIDDLE, HALF = 3.0, 2.0
SETTINGS: dict[str, Any] = {
    "beta_m": 7.0, "beta_p": 6.0, "beta": 9.0, "clip": 0.8, "shares": (0.2, 0.5, 0.3),
}  # fmt: skip


def problem(seed: int) -> tuple[np.ndarray, np.ndarray, tacit.Ratings]:
    """Uneven rows of stars."""
    rng = np.random.default_rng(seed)
    full = 3 + rng.standard_normal((M, 2)) @ rng.standard_normal((2, N)) + rng.normal(0, 0.5, N)
    full = np.clip(np.round(full), LO, HI)
    seen = np.zeros((M, N))
    for row in seen:
        row[rng.choice(N, rng.integers(1, 10), replace=False)] = 1
    users, items = np.nonzero(seen)
    catalogue = tacit.Catalogue(list(range(N)), public=True)
    ratings = tacit.Ratings.from_arrays(
        users, items, full[users, items], rating_range=(LO, HI), catalogue=catalogue
    )
    return full, seen, ratings


def dense_means(full: np.ndarray, seen: np.ndarray, beta_m: float, noise: np.ndarray) -> np.ndarray:
    """Step 1: the global mean and the shrunk item means, on the scale of the ratings."""
    weight = seen / np.sqrt(seen.sum(1, keepdims=True))
    sums = (weight * (full - MIDDLE) / HALF).sum(0) + noise[0]
    counts = weight.sum(0) + noise[1]
    overall = min(1, max(-1, sums.sum() / max(counts.sum(), 1)))
    means = (sums + beta_m * overall) / (np.maximum(counts, 0) + beta_m)
    return MIDDLE + HALF * np.clip(means, -1, 1)


def dense_factors(
    full: np.ndarray,
    seen: np.ndarray,
    offsets: np.ndarray,
    settings: dict[str, Any],
    noises: tuple[np.ndarray, np.ndarray],
    counts_noise: np.ndarray,
) -> np.ndarray:
    """Steps 2 to 4: centre and clip, sum weighted outer products, clean; return F, C = F F^T."""
    cov, wgt = ((noise + noise.T) / 2 for noise in noises)
    for ratings, mask in zip(full, seen.astype(bool), strict=True):
        z = np.where(mask, ratings - offsets, 0.0)
        own = z.sum() / (mask.sum() + settings["beta_p"])
        z = np.where(mask, np.clip(z - own, -settings["clip"], settings["clip"]), 0.0)
        cov = cov + np.outer(z, z) / mask.sum()
        wgt = wgt + np.outer(mask, mask) / mask.sum()
    wgt = np.maximum(wgt, 0)
    if settings.get("cleaning") == "mm09":
        return dense_mm09(cov, wgt, settings, dense_counts(seen, counts_noise))
    mean = cov.sum() / max(wgt.sum(), 1)
    values, vectors = np.linalg.eigh((cov + settings["beta"] * mean) / (wgt + settings["beta"]))
    order = np.argsort(values)[::-1][: settings["rank"]]
    return vectors[:, order] * np.sqrt(np.maximum(values[order], 0))


def dense_counts(seen: np.ndarray, noise: np.ndarray) -> np.ndarray:
    return np.maximum((seen / np.sqrt(seen.sum(1, keepdims=True))).sum(0) + noise, 0)


def dense_mm09(
    cov: np.ndarray, wgt: np.ndarray, settings: dict[str, Any], counts: np.ndarray
) -> np.ndarray:
    """Step 4 as [MM09] has it, entry by entry."""
    off = [(j, k) for j in range(N) for k in range(N) if j != k]
    average = [sum(each[j, k] for j, k in off) / len(off) for each in (cov, wgt)]
    beta, diagonal = settings["beta"], settings["beta_diagonal"]
    cleaned = np.empty((N, N))
    for j, k in off:
        cleaned[j, k] = (cov[j, k] + beta * average[0]) / (wgt[j, k] + beta * average[1])
    traces = cov.trace() / N, wgt.trace() / N
    for j in range(N):
        cleaned[j, j] = (cov[j, j] + diagonal * traces[0]) / (wgt[j, j] + diagonal * traces[1])
    spread = np.diag(np.sqrt(counts + settings["beta_m"]))
    values, vectors = np.linalg.eigh(spread @ cleaned @ spread)
    order = np.argsort(values)[::-1][: settings["rank"]]
    return np.linalg.inv(spread) @ vectors[:, order] * np.sqrt(np.maximum(values[order], 0))


def by_factors(z: np.ndarray, rated: np.ndarray, F: np.ndarray) -> np.ndarray:
    """Step 5: ridge regression of one's own centred ratings on the factors."""
    ridge = ((HI - LO) / 5) ** 2
    own = F[rated]
    return F @ np.linalg.solve(own.T @ own + ridge * np.eye(F.shape[1]), own.T @ z)


def by_neighbours(z: np.ndarray, rated: np.ndarray, F: np.ndarray, nearest: int) -> np.ndarray:
    """Step 5: the weighted mean over the most correlated items that she has rated."""
    C = F @ F.T
    scores = np.zeros(N)
    for j in range(N):
        similarity = {int(k): C[j, k] / math.sqrt(C[j, j] * C[k, k]) for k in rated}
        near = sorted(rated.tolist(), key=lambda k: -abs(similarity[k]))[:nearest]
        total = sum(similarity[k] * z[rated == k][0] / math.sqrt(C[k, k]) for k in near)
        scores[j] = math.sqrt(C[j, j]) * total / (sum(abs(similarity[k]) for k in near) + 1)
    return scores


def dense_cleansing(
    full: np.ndarray,
    seen: np.ndarray,
    settings: dict[str, Any],
    noises: tuple[np.ndarray, np.ndarray, np.ndarray],
) -> np.ndarray:
    """Return everyone's scores."""
    offsets = dense_means(full, seen, settings["beta_m"], noises[0])
    F = dense_factors(full, seen, offsets, settings, noises[1:], noises[0][1])
    scores = np.empty_like(full)
    for i in range(M):
        rated = np.nonzero(seen[i])[0]
        z = full[i, rated] - offsets[rated]
        own = z.sum() / (rated.size + settings["beta_p"])
        if settings["local"] == "factors":
            filled = by_factors(z - own, rated, F)
        else:
            filled = by_neighbours(z - own, rated, F, settings["nearest"])
        scores[i] = offsets + own + filled
    return np.clip(scores, LO, HI)


def noises_of(
    budget: tacit.PrivacyBudget, drawn: list[np.ndarray]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scale the drawn noise: means sqrt2 or 2, covariance B^2, co-ratings 1 (sqrt2 on replace)."""
    replaced = math.sqrt(2) if budget.neighbours == "replace" else 1.0
    sensitivities = (math.sqrt(2) * replaced, SETTINGS["clip"] ** 2 * replaced, replaced)
    shapes = ((2, N), (N, N), (N, N))
    means, covariance, weights = (
        (sensitivity / (math.sqrt(share) * budget.mu) * noise).reshape(shape)
        for sensitivity, share, noise, shape in zip(
            sensitivities, SETTINGS["shares"], drawn, shapes, strict=True
        )
    )
    return means, covariance, weights


def furthest(model: tacit.Model, ratings: tacit.Ratings, expected: np.ndarray) -> float:
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - expected)))


@pytest.mark.parametrize(
    ("local", "rank"),
    [("factors", 1), ("factors", 4), ("factors", 12), ("neighbours", 3), ("neighbours", 12)],
)
@pytest.mark.parametrize("epsilon", [1.0, 50.0, 2000.0])
@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_it_is_the_cleansing_of_five_steps(
    local: str, rank: int, epsilon: float, relation: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    settings = SETTINGS | {"local": local, "rank": rank, "nearest": 3}
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon, neighbours=relation)
    config = tacit.Cleansing(**settings, max_ratings=None)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    expected = dense_cleansing(full, seen, settings, noises_of(budget, drawn))
    # Under add_remove sums keep room for 2^26 users, so their grid is coarser on a small problem.
    assert furthest(model, ratings, expected) < (1e-5 if relation == "replace" else 1e-3)


MM09 = SETTINGS | {"cleaning": "mm09", "beta": 5.0, "beta_diagonal": 2.0}


@pytest.mark.parametrize("local", ["factors", "neighbours"])
@pytest.mark.parametrize("epsilon", [1.0, 50.0])
def test_it_is_the_cleaning_of_2009(
    local: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    settings = MM09 | {"local": local, "rank": 3, "nearest": 3}
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon)
    config = tacit.Cleansing(**settings, max_ratings=None)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    expected = dense_cleansing(full, seen, settings, noises_of(budget, drawn))
    assert furthest(model, ratings, expected) < 1e-5


def test_wrong_constants_of_2009_would_be_noticed() -> None:
    """The twin: another beta for the diagonal, or our own cleaning, is seen at once."""
    full, seen, ratings = problem(2)
    settings = MM09 | {"local": "factors", "rank": 3, "nearest": 3}
    model = tacit.fit(ratings, tacit.Cleansing(**settings, max_ratings=None), budget=None)
    assert furthest(model, ratings, dense_cleansing(full, seen, settings, SILENCE)) < 1e-5
    for change in ({"beta": 5.1}, {"beta_diagonal": 2.05}, {"cleaning": "constant"}):
        scores = dense_cleansing(full, seen, settings | change, SILENCE)
        assert furthest(model, ratings, scores) > 1e-4, change


def test_cleaning_of_noise_alone_divides_by_nothing() -> None:
    """No weight above zero: every entry is 0/0, and counts as zero."""
    zeros = np.zeros((3, 3))
    assert not _shrunk_to_averages(np.ones((3, 3)), zeros, 5.0, 5.0).any()
    one = _shrunk_to_averages(np.ones((1, 1)), np.ones((1, 1)), 5.0, 5.0)
    assert one.tolist() == [[1.0]]


SILENCE = (np.zeros((2, N)), np.zeros((N, N)), np.zeros((N, N)))


@pytest.mark.parametrize("local", ["factors", "neighbours"])
def test_without_noise_it_is_the_same(local: str) -> None:
    full, seen, ratings = problem(2)
    settings = SETTINGS | {"local": local, "rank": 3, "nearest": 4}
    model = tacit.fit(ratings, tacit.Cleansing(**settings, max_ratings=None), budget=None)
    assert furthest(model, ratings, dense_cleansing(full, seen, settings, SILENCE)) < 1e-5
    assert not model.private


@pytest.mark.parametrize("local", ["factors", "neighbours"])
def test_a_wrong_constant_would_be_noticed(local: str) -> None:
    """The twin: each constant, 2 % off or one off, is seen at once."""
    full, seen, ratings = problem(2)
    settings = SETTINGS | {"local": local, "rank": 3, "nearest": 4}
    model = tacit.fit(ratings, tacit.Cleansing(**settings, max_ratings=None), budget=None)
    wrong = [{name: 1.02 * settings[name]} for name in ("beta_m", "beta_p", "beta", "clip")]
    wrong.append({"rank": 2})
    if local == "neighbours":
        wrong.append({"nearest": 3})
    for change in wrong:
        scores = dense_cleansing(full, seen, settings | change, SILENCE)
        assert furthest(model, ratings, scores) > 1e-4, change


def test_the_default_clip_and_shares_are_what_the_certificate_says() -> None:
    _, _, ratings = problem(3)
    model = tacit.fit(ratings, tacit.Cleansing(), epsilon=1.0)
    assert model.certificate.public["cleansing clip"] == "1.0"  # (hi - lo)/4
    mus = np.array([entry.mu for entry in model.certificate.releases])
    assert mus**2 / np.sum(mus**2) == pytest.approx([0.1, 0.6, 0.3])
    names = [entry.name for entry in model.certificate.releases]
    assert names == ["item sums", "covariance 1", "co-ratings 1"]
