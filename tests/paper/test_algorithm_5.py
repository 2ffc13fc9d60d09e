"""Algorithm 5 (private projected gradient), written a second time: dense, from the paper's box.

The step is the descent that the box means, Y <- Y + eta P(Y* - Y), and with a budget filled rows
are clipped. It shares no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.paper.test_algorithm_1 import problem
from tests.support.recorded import recorded_noise

import tacit
from tacit.algorithms.projected_gradient import longest_filled_rows, project_on_ball
from tacit.errors import ModelFileError
from tacit.models.filling import FillingRule
from tacit.models.rules import OwnRows

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
    clips: list[float] | None = None,
) -> np.ndarray:
    """Return Y^(T); filled rows are scaled down to `clips`, or not at all."""
    lengths = np.linalg.norm(target * seen, axis=1)
    Y_star = target * np.minimum(1, L / np.maximum(lengths, 1e-300))[:, None]
    Y = np.zeros_like(target)
    for eta, noise, clip in zip(etas, noises, clips or [np.inf] * len(etas), strict=True):
        Y = Y + eta * seen * (Y_star - Y)
        lengths = np.linalg.norm(Y, axis=1)
        Y = Y * np.minimum(1, clip / np.maximum(lengths, 1e-300))[:, None]
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


def longest(L: float, etas: list[float]) -> list[float]:
    """Return how long filled rows can be, by trying how much of one lies on Omega."""
    found, norm = [], 0.0
    for eta in etas:
        on = np.linspace(0.0, norm, 100_001)
        norm = float(np.sqrt(np.max(((1 - eta) * on + eta * L) ** 2 + norm**2 - on**2)))
        found.append(norm)
    return found


def clips_of(L: float, etas: list[float], most: int, filled: float | None = None) -> list[float]:
    return [min(filled or L * math.sqrt(N / most), norm) for norm in longest(L, etas)]


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
    clips = clips_of(norm, RATES[rate], N)
    sigma = math.sqrt(2) * math.sqrt(T) / budget.mu
    noises = [sigma * b**2 * z.reshape(N, N) for b, z in zip(clips, drawn, strict=True)]
    expected = dense_algorithm_5(
        full, seen, k=radius, L=norm, etas=RATES[rate], noises=noises, clips=clips
    )
    assert furthest(model, ratings, expected) < 1e-5


@pytest.mark.parametrize(("most", "filled"), [(3, None), (3, 0.7), (None, 0.3)])
def test_a_filled_row_has_a_bound_of_its_own(
    most: int | None, filled: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """L sqrt(items/max_ratings) by the rule, or what was given: never L of what was rated."""
    full, seen, ratings = problem(1, most or 5)
    drawn = recorded_noise(monkeypatch)
    budget, etas = tacit.PrivacyBudget(50.0), [1.0] * T
    config = config_of(row_norm=0.6, max_ratings=most, filled_norm=filled, rate=1.0)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    clips = clips_of(0.6, etas, most or N, filled)
    sigma = math.sqrt(2) * math.sqrt(T) / budget.mu
    noises = [sigma * b**2 * z.reshape(N, N) for b, z in zip(clips, drawn, strict=True)]
    wanted = {"k": 6.0, "L": 0.6, "etas": etas, "noises": noises}
    expected = dense_algorithm_5(full, seen, **wanted, clips=clips)
    assert furthest(model, ratings, expected) < 1e-5
    wrong = dense_algorithm_5(full, seen, **wanted, clips=[0.9 * clip for clip in clips])
    assert furthest(model, ratings, wrong) > 1e-4


@pytest.mark.parametrize("rate", [0.05, 0.3, 0.5, 0.9, 1.0])
def test_no_filled_row_is_longer_than_the_rule_says_and_one_comes_close(rate: float) -> None:
    """An attack: the map keeps a direction, and what she rates changes from round to round.

    The rated entries always are those where the row is as long as the bound's proof has it.
    """
    rounds, L = 12, 2.0
    bounds = longest_filled_rows(L, (rate,) * rounds)
    assert bounds == pytest.approx(longest(L, [rate] * rounds), rel=1e-6)
    on, off = 0.0, 0.0
    for bound in bounds:
        norm = math.hypot(on, off)
        on = min(norm, L * (1 - rate) / (2 - rate))  # a map may turn a row, not lengthen it
        off = math.sqrt(norm**2 - on**2)
        on = (1 - rate) * on + rate * L
        assert math.hypot(on, off) == pytest.approx(bound)
    rng = np.random.default_rng(4)
    for _ in range(200):
        row = np.zeros(N)
        seen = rng.random(N) < 0.5
        target = seen * rng.standard_normal(N)
        target *= L / max(np.linalg.norm(target), 1e-9)
        for bound in bounds:
            row = row + rate * seen * (target - row)
            assert np.linalg.norm(row) <= bound * (1 + 1e-12)
            vectors = np.linalg.qr(rng.standard_normal((N, N)))[0]
            row = row @ (vectors * rng.random(N)) @ vectors.T


def test_without_a_budget_nothing_is_cut() -> None:
    """A bound on what was rated is no bound on the filled row: it made the baseline worse."""
    full, seen, ratings = problem(2, 3)
    given = {"rounds": 30, "rate": 1.0, "nuclear_norm": 12.0, "max_ratings": 3}
    silence = [np.zeros((N, N))] * 30
    for norm in (2.0, 50.0):
        model = tacit.fit(ratings, config_of(row_norm=norm, **given), budget=None)
        wanted = {"k": 12.0, "L": norm, "etas": [1.0] * 30, "noises": silence}
        assert furthest(model, ratings, dense_algorithm_5(full, seen, **wanted)) < 1e-4
        cut = dense_algorithm_5(full, seen, **wanted, clips=[0.8] * 30)
        assert furthest(model, ratings, cut) > 1e-2


def test_it_is_so_under_add_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    full, seen, ratings = problem(1)
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(50.0, neighbours="add_remove")
    model = tacit.fit(ratings, config_of(row_norm=0.6), budget=budget, noise_seed_unsafe=3)
    etas = [0.5] * T
    clips = clips_of(0.6, etas, N)
    sigma = math.sqrt(T) / budget.mu
    noises = [sigma * b**2 * z.reshape(N, N) for b, z in zip(clips, drawn, strict=True)]
    expected = dense_algorithm_5(full, seen, k=6.0, L=0.6, etas=etas, noises=noises, clips=clips)
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
    arrays, settings = model.rule.parts()
    assert len(settings["ranks"]) == T
    assert 0 < sum(settings["ranks"]) < T * N  # what is mapped to zero is not published
    assert arrays["vectors"].shape == (N, sum(settings["ranks"]))
    assert arrays["shrinkage"].min() > 0
    assert arrays["shrinkage"].max() < 1 + 1e-12
    end = 0
    for rank in settings["ranks"]:
        vectors = arrays["vectors"][:, end : end + rank]
        assert np.allclose(vectors.T @ vectors, np.eye(rank), atol=1e-12)
        end += rank


def test_a_file_with_whole_maps_still_loads() -> None:
    """Version 0.1.0 published n x n matrices and one norm."""
    rule = tacit.fit(problem(3)[2], config_of(row_norm=0.6), epsilon=5.0).rule
    arrays, settings = rule.parts()
    ends = np.cumsum([0, *settings["ranks"]])
    pieces = [slice(a, b) for a, b in pairwise(ends)]
    V, z = arrays.pop("vectors"), arrays.pop("shrinkage")
    arrays["maps"] = np.array([V[:, p] * z[p] @ V[:, p].T for p in pieces])
    arrays["norms"][:] = 1e9
    del settings["ranks"]
    old = FillingRule.from_parts(
        {name: a for name, a in arrays.items() if name != "norms"}, settings | {"row_norm": 0.6}
    )
    again = FillingRule.from_parts(*old.parts())
    own = OwnRows(np.array([0, 3]), np.array([0, 4, 7]), np.array([0.1, -0.2, 0.1], np.float32))
    unclipped = replace(rule, norms=np.full(T, 0.6))
    assert np.allclose(old.scores(own), unclipped.scores(own), atol=1e-6)
    assert np.allclose(old.scores(own), again.scores(own), atol=1e-6)
    with pytest.raises(ModelFileError):
        FillingRule.from_parts(arrays | {"maps": arrays["maps"][:, :3]}, settings)


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
