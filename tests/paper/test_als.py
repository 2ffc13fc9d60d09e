"""Private alternating least squares (after DPALS), written a second time.

Dense, from the formulas on its page; it shares no code with the package. Given the same noise,
both must agree to 1e-4: users' factors and weights are integers of up to 17 bits.
"""

import math
from typing import Any

import numpy as np
import pytest
from tests.paper.test_algorithm_1 import problem
from tests.support.recorded import recorded_noise

import tacit

M, N, T = 60, 12, 3
WIDTH = 2.0  # ratings lie in [-1, 1]
SETTINGS: dict[str, Any] = {
    "rank": 3, "start_rank": 5, "rounds": T, "means_share": 0.2, "clip": 0.7, "reach": 0.8,
    "ratio": 1.2, "alpha": 0.3, "frequent": 2.0, "pooling": True, "ridge": 0.3, "shrink": 2.0,
    "start_seed": 4,
}  # fmt: skip


def shrunk_means(x: np.ndarray, c: np.ndarray, sd: float) -> np.ndarray:
    """Item means on [-1, 1] by empirical Bayes (item_means has its own tests)."""
    from tacit.estimation.empirical_bayes import item_means

    return item_means(np.stack([x, c]), sd, (-1.0, 1.0))


def own_factors(y: np.ndarray, V: np.ndarray, ridge: float) -> np.ndarray:
    """The posterior mean of u ~ N(0, I) given y = V u + N(0, ridge)."""
    return np.linalg.solve(V.T @ V / ridge + np.eye(V.shape[1]), V.T @ y / ridge)


def residuals(full: np.ndarray, mask: np.ndarray, offsets: np.ndarray, shrink: float) -> Any:
    """One user's ratings less offsets and own mean; and that mean."""
    y = full[mask] - offsets[mask]
    mean = y.sum() / (mask.sum() + shrink)
    return y - mean, mean


def shrink_values(s: np.ndarray, n: int, r: int, sd: float, last: bool) -> np.ndarray:
    """Singular values of an n x r matrix (n >= r), less what noise of this sd adds."""
    if sd == 0:
        return s
    if not last:
        return np.maximum(s - n * sd**2 / s, 0)
    beta, y = r / n, s / (sd * math.sqrt(n))
    best = np.sqrt(np.maximum((y**2 - beta - 1) ** 2 - 4 * beta, 0)) / y
    return sd * math.sqrt(n) * np.where(y > 1 + math.sqrt(beta), best, 0)


def dense_als(
    full: np.ndarray,
    seen: np.ndarray,
    c: dict[str, Any],
    sds: list[float],
    noises: list[np.ndarray],
) -> np.ndarray:
    """Return everyone's scores. `sds` and `noises` are of item sums and of each round."""
    masks = seen.astype(bool)
    lengths = seen.sum(axis=1)
    x = (full * seen / np.sqrt(lengths)[:, None]).sum(axis=0)
    counts = (seen / np.sqrt(lengths)[:, None]).sum(axis=0)
    x, counts = np.stack([x, counts]) + sds[0] * noises[0].reshape(2, N)
    offsets = shrunk_means(x, counts, sds[0])
    astray = WIDTH / 2 * min(sds[0] * math.sqrt(N) / max(counts.sum(), 1e-300), 1)
    shrink = c["shrink"] / (1 + c["shrink"] * astray**2 / c["ridge"])
    chosen = counts > c["frequent"] * sds[0]
    counts = np.maximum(counts, max(sds[0], 1e-9))
    w = np.where(chosen, (counts / counts.max()) ** -c["alpha"], 0)
    expected = counts * w / math.sqrt((counts * w**2).sum() / counts.sum())
    d = min(max((counts.sum() / M) ** 2, 1), N)
    r = c["start_rank"]
    start = np.linalg.qr(np.random.default_rng(c["start_seed"]).standard_normal((N, r)))[0]
    V = 0.12 * WIDTH * math.sqrt(N / r) * start
    for t in range(1, T + 1):
        r = V.shape[1]
        h = np.linalg.eigvalsh(d / c["ridge"] * (V.T * (counts / counts.sum())) @ V)
        C = c["reach"] * math.sqrt(max(np.sum(h / (1 + h)), 1e-12))
        G, b = np.zeros((N, r, r)), np.zeros((N, r))
        for row, mask in zip(full, masks, strict=True):
            y = np.clip(residuals(row, mask, offsets, shrink)[0], -c["clip"], c["clip"])
            u = own_factors(y, V[mask], c["ridge"])
            u = u * min(1, C / np.linalg.norm(u))
            own = w[mask] / max(np.linalg.norm(w[mask]), 1e-300)
            for j, weight, value in zip(np.flatnonzero(mask), own, y, strict=True):
                G[j] += weight * np.outer(u, u)
                b[j] += weight * value * u
        noise = sds[t] * noises[t].reshape(N, r, r + 1)
        G += C**2 * (noise[:, :, :r] + noise[:, :, :r].transpose(0, 2, 1)) / 2
        sG, sb = C**2 * sds[t], C * c["clip"] / c["ratio"] * sds[t]
        b += C * c["clip"] / c["ratio"] * noise[:, :, r]
        V = dense_solve(G, b, (sG, sb), expected, c["pooling"], last=t == T)
        V = V * min(1, 0.25 * WIDTH / max(math.sqrt((V**2).sum() / N), 1e-300))
        V = V[:, : c["rank"]]
    scores = np.empty_like(full)
    for i, mask in enumerate(masks):
        y, mean = residuals(full[i], mask, offsets, shrink)
        scores[i] = offsets + mean + V @ own_factors(y, V[mask], c["ridge"])
    return np.clip(scores, -1, 1)


def dense_solve(
    G: np.ndarray, b: np.ndarray, sd: tuple[float, float], expected: np.ndarray,
    pooling: bool, *, last: bool,
) -> np.ndarray:  # fmt: skip
    """Return V from noisy normal equations, principal columns first."""
    r = b.shape[1]
    left, s, right = np.linalg.svd(b, full_matrices=False)
    s = shrink_values(s, N, r, sd[1], last)
    b = left @ np.diag(s) @ right
    values, vectors = np.linalg.eigh(G.sum(axis=0) / expected.sum())
    floor = max(1e-3 * values[-1], sd[0] * math.sqrt(N * r) / expected.sum())
    values = np.maximum(values, floor)
    mean = vectors @ np.diag(values) @ vectors.T
    half = vectors @ np.diag(values**-0.5) @ vectors.T
    phi = sum(((G[j] - expected[j] * mean) ** 2).mean() - sd[0] ** 2 / 2 for j in range(N))
    phi = max(phi / (expected**2).sum(), 0)
    V = np.zeros((N, r))
    for j in range(N):
        if expected[j] == 0:
            continue
        trust = 1.0
        if pooling:
            trust = phi * expected[j] ** 2 / (phi * expected[j] ** 2 + sd[0] ** 2 / 2)
        mixed = half @ (trust * G[j] + (1 - trust) * expected[j] * mean) @ half
        g, q = np.linalg.eigh(mixed)
        V[j] = q @ ((q.T @ (half @ b[j])) / np.maximum(g, 0.3 * expected[j]))
    left, sizes, _ = np.linalg.svd(V, full_matrices=False)
    return (left * sizes)[:, : max(int((s > 0).sum()), 1)]


def furthest(model: tacit.Model, ratings: tacit.Ratings, expected: np.ndarray) -> float:
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - expected)))


def sds_of(model: tacit.Model) -> list[float]:
    return [entry.noise_sd for entry in model.certificate.releases]


@pytest.mark.parametrize("ratio", [0.8, 1.2, 2.5])
@pytest.mark.parametrize("pooling", [True, False])
@pytest.mark.parametrize("epsilon", [20.0, 100.0, 1000.0])
def test_it_is_alternating_least_squares(
    ratio: float, pooling: bool, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(1)
    settings = SETTINGS | {"ratio": ratio, "pooling": pooling}
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon)
    model = tacit.fit(ratings, tacit.ALS(**settings), budget=budget, noise_seed_unsafe=3)
    assert drawn[1].size == N * 5 * 6
    bound = math.sqrt(2) * (1 + ratio**2 / 2) if ratio**2 <= 2 else 2 * ratio
    sigma = bound / (math.sqrt(0.8 / T) * budget.mu)
    sds = [2 / (math.sqrt(0.2) * budget.mu), *[sigma] * T]
    assert sds_of(model) == pytest.approx(sds)
    assert furthest(model, ratings, dense_als(full, seen, settings, sds, drawn)) < 1e-4


SILENCE = [np.zeros(2 * N), np.zeros(N * 5 * 6), *[np.zeros(N * 3 * 4)] * (T - 1)]


def test_without_noise_it_is_alternating_least_squares() -> None:
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, tacit.ALS(**SETTINGS), budget=None)
    expected = dense_als(full, seen, SETTINGS, [0.0] * (T + 1), SILENCE)
    assert furthest(model, ratings, expected) < 1e-4
    assert not model.private


@pytest.mark.parametrize(
    "change",
    [{name: 1.05 * SETTINGS[name]} for name in ("clip", "reach", "ridge", "shrink")]
    + [{"alpha": 0.8}, {"start_seed": 5}, {"rank": 2}],
    ids=str,
)
def test_a_wrong_constant_would_be_noticed(change: dict[str, Any]) -> None:
    """The twin: each constant, 5 % or one off, is seen at once."""
    full, seen, ratings = problem(2)
    model = tacit.fit(ratings, tacit.ALS(**SETTINGS), budget=None)
    noises = [SILENCE[0], SILENCE[1], *[np.zeros(N * 12)] * (T - 1)]
    wrong = SETTINGS | change
    if wrong["rank"] == 2:
        noises[2:] = [np.zeros(N * 2 * 3)] * (T - 1)
    expected = dense_als(full, seen, wrong, [0.0] * (T + 1), noises)
    assert furthest(model, ratings, expected) > 2e-3


def test_more_rounds_fit_better() -> None:
    """Without noise, what everyone rated is hit better and better."""
    full, seen, ratings = problem(2)
    errors = []
    for rounds in (1, 3, 9):
        config = tacit.ALS(rank=2, rounds=rounds, ridge=0.01, clip=1.0)
        (_, found), = tacit.fit(ratings, config, budget=None).predict_rows(ratings)  # fmt: skip
        errors.append(float(np.linalg.norm(seen * (found - full))))
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 0.95 * errors[0]
