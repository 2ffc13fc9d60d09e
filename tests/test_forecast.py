"""Forecasts of the default method: by hand, against real fits, and at the ends of their range."""

import math
import os
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import Moments
from tacit.algorithms.base import Facts
from tacit.errors import ConfigError
from tacit.research.experiments import simulated
from tacit.research.experiments.simulated import family_tastes, simulate
from tacit.research.theory import Case, Tastes, expect, forecast
from tacit.research.theory.forecast import Regression, ridge_errors
from tacit.research.theory.spiked import Noise
from tacit.research.theory.tastes import make_audience
from tests.support.cases import slow

STARS = (0.5, 5.0)
CASE = Case(
    users=20_000,
    items=300,
    per_user=50,
    rating_range=STARS,
    budget=PrivacyBudget(1.0),
    tastes=Tastes.usual(STARS),
)
TOLERANCE = 0.03
"""Of the gain over one's own mean, as docs/theory.md promises."""


def test_even_noise_is_a_spiked_wigner_matrix() -> None:
    noise = Noise(np.full((2, 2), 4.0), np.array([150.0, 250.0]))
    assert noise.edge == pytest.approx(2 * 2 * 20, rel=2e-3)
    profile = np.full(2, 1 / 400)
    assert noise.spike(profile, 38.0) is None
    for size in (50.0, 120.0, 1e9):
        spike = noise.spike(profile, size)
        assert spike is not None
        assert spike.value == pytest.approx(size + 1600 / size, rel=3e-3)
        overlap = (noise._sizes @ (spike.signal * size / 400)) ** 2 / size
        assert overlap == pytest.approx(1 - 1600 / size**2, rel=0.02)
        assert noise.size_at(profile, spike.value) == pytest.approx(size, rel=0.02)


def test_uneven_noise_agrees_with_a_drawn_matrix() -> None:
    """Fixed seed; a spike far beyond the edge moves by less than 2 % of itself, 5 sd or more."""
    rng = np.random.default_rng(5)
    sizes, variances = np.array([300.0, 500.0]), np.array([[9.0, 2.0], [2.0, 0.5]])
    noise, group = Noise(variances, sizes), np.repeat([0, 1], [300, 500])
    drawn = np.triu(rng.standard_normal((800, 800)) * np.sqrt(variances)[np.ix_(group, group)], 1)
    drawn = drawn + drawn.T
    assert np.linalg.eigvalsh(drawn)[-1] == pytest.approx(noise.edge, rel=0.05)
    profile = np.array([1.0, 3.0])
    spike = noise.spike(profile, 0.25)
    assert spike is not None
    vector = rng.choice([-1.0, 1.0], 800) * np.sqrt(0.25 * profile)[group]
    values, vectors = np.linalg.eigh(drawn + np.outer(vector, vector))
    assert values[-1] == pytest.approx(spike.value, rel=0.02)
    part = vectors[:, -1][group == 0]
    assert np.sum(part**2) == pytest.approx(300 * spike.energy[0], rel=0.15)


def test_ridge_errors_by_hand_and_by_drawing() -> None:
    """Fixed seed; 4,000 users, so the mean square is within 3 % but for one time in 10^3."""
    none = Regression(np.zeros((1, 0)), np.zeros((1, 0)), np.array([2.0]), np.array([2.0]))
    by_hand = 2.0 + 1 / (1 / 3.0 + 10 / 2.0)
    assert ridge_errors(np.array([10.0]), none, (3.0, 3.0))[0] == pytest.approx(by_hand)
    variances = np.array([0.5, 0.3, 0.2])
    known = Regression(variances[None], variances[None], np.array([1.0]), np.array([1.0]))
    told = ridge_errors(np.array([12.0]), known, (0.25, 0.25))[0]
    rng, prior, errors = np.random.default_rng(1), np.append(variances, 0.25), []
    for _ in range(4000):
        features = rng.standard_normal((13, 4)) * np.sqrt(prior)
        features[:, 3] = math.sqrt(0.25)
        ratings = features @ rng.standard_normal(4) + rng.standard_normal(13)
        seen = features[:12]
        found = np.linalg.solve(seen.T @ seen + np.eye(4), seen.T @ ratings[:12])
        errors.append((features[12] @ found - ratings[12]) ** 2)
    assert float(np.mean(errors)) == pytest.approx(told, rel=0.06)


def test_the_noise_is_that_of_a_real_ledger() -> None:
    ledger = Ledger(CASE.budget)
    Moments().reserve(ledger, Facts(CASE.items, STARS, CASE.users, CASE.budget))
    reserved = {entry.release.kind: entry.noise_sd for entry in ledger.reserved}
    found = forecast(CASE).noise
    assert list(found) == list(reserved)
    assert found[ReleaseKind.SPREADS] == reserved[ReleaseKind.SPREADS]
    assert found[ReleaseKind.ITEM_WEIGHTS] == reserved[ReleaseKind.ITEM_WEIGHTS]
    assert found[ReleaseKind.ITEM_EFFECTS] == pytest.approx(
        reserved[ReleaseKind.ITEM_EFFECTS] * math.sqrt(CASE.tastes.within), rel=0.02
    )


def test_users_rate_as_many_items_as_the_case_says() -> None:
    audience = make_audience(300, 50, CASE.tastes)
    assert audience.rated @ audience.sizes == pytest.approx(audience.lengths, rel=1e-6)
    assert float(audience.parts @ audience.lengths) == pytest.approx(50, rel=1e-6)
    assert (np.diff(audience.rated, axis=1) <= 0).all()
    assert audience.sizes.sum() == 300


def test_more_users_or_a_larger_epsilon_never_hurt() -> None:
    users = [forecast(replace(CASE, users=m)).rmse for m in (300, 3000, 30_000, 300_000)]
    budgets = [PrivacyBudget(epsilon) for epsilon in (0.01, 0.1, 1.0, 10.0)]
    epsilons = [forecast(replace(CASE, budget=budget)).rmse for budget in budgets]
    for curve in (users, epsilons):
        assert all(after <= before + 1e-3 for before, after in pairwise(curve))
        assert curve[-1] < 0.9 * curve[0]
    free = forecast(replace(CASE, budget=None))
    assert free.rmse < epsilons[-1] < free.biases < free.own_mean


def test_users_needed_are_where_things_begin() -> None:
    expected = expect(CASE)
    needed = expected.needed
    assert needed.item_effects is not None
    assert needed.first_factor is not None
    assert needed.most_of_gain is not None
    assert needed.item_effects < needed.first_factor < needed.most_of_gain
    fewer = forecast(replace(CASE, users=round(needed.first_factor / 1.05)))
    enough = forecast(replace(CASE, users=needed.first_factor))
    assert (fewer.factors_found, enough.factors_found) == (0, 1)
    assert forecast(replace(CASE, users=needed.item_effects)).item_effects >= 0.1


def test_nothing_to_gain_is_said() -> None:
    flat = Tastes(item_sd=0.01, user_sd=1.0, noise_sd=0.8, factor_share=0.01)
    expected = expect(replace(CASE, tastes=flat))
    assert "there is next to nothing to gain" in expected.verdict()


def test_cutting_off_at_the_range_agrees_with_drawing() -> None:
    """Fixed seed; a million draws, so sds are within 0.5 % but for one time in 10^6."""
    rng = np.random.default_rng(2)
    tastes = Tastes(item_sd=0.5, user_sd=0.4, noise_sd=0.9)
    cut = tastes.within_range(STARS, 3.5)
    items = 0.5 * rng.standard_normal(1_000_000)
    rest = math.sqrt(tastes.within + 0.16 - 0.25) * rng.standard_normal(1_000_000)
    ratings = np.clip(3.5 + items + rest, *STARS)
    slope = np.cov(ratings, items)[0, 1] / 0.25
    assert cut.item_sd == pytest.approx(0.5 * slope, rel=0.01)
    assert cut.within + cut.user_sd**2 == pytest.approx(ratings.var(), rel=0.01)


@pytest.mark.parametrize("users", [2, 10**10])
@pytest.mark.parametrize(("items", "per_user"), [(2, 1), slow(2, 2), slow(5000, 1), (5000, 700)])
@pytest.mark.parametrize("epsilon", [1e-6, slow(50.0), None])
def test_the_ends_of_the_range_give_numbers(
    users: int, items: int, per_user: int, epsilon: float | None
) -> None:
    budget = None if epsilon is None else PrivacyBudget(epsilon)
    size = replace(CASE, users=users, items=items, per_user=per_user, budget=budget)
    plain = Tastes(item_sd=0, user_sd=0, noise_sd=1, factor_share=0)
    steep = replace(CASE.tastes, skew=3.0, activity_spread=2.0, factors=1, noise_sd=0.1)
    steep = replace(steep, factor_share=0.99)
    for tastes in (CASE.tastes, plain, steep):
        found = forecast(replace(size, tastes=tastes))
        assert 0 < found.rmse < 1.2 * found.own_mean
        assert 0 <= found.item_effects <= 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": 1}, "users=1: expected"),
        ({"items": 10**7}, "items=10000000: expected"),
        ({"per_user": 301}, "per_user=301: expected"),
        ({"per_user": math.nan}, "per_user=nan: expected"),
        ({"rating_range": (0.0, 1.0)}, "rating_range=.*the assumed sds add up to"),
    ],
)
def test_a_bad_case_names_what_is_wrong(change: dict[str, int], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(CASE, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("change", [{"factors": 2.5}, {"noise_sd": True}, {"factor_decay": 0.0}])
def test_a_bad_guess_names_what_is_wrong(change: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(change))}=.*: expected a"):
        replace(CASE.tastes, **change)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "users", "epsilon"),
    [("popular", 10_000, 0.3), ("few", 2000, 5.0), ("sparse", 10_000, 1.0), ("wide", 5000, 2.0)],
)
def test_forecasts_agree_with_real_fits(
    family: str, users: int, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ratings have a fixed seed; noise is drawn anew, and its sd in the gain is below 0.005.

    With 400 items, how good the drawn items are moves the gain by about 0.01 from seed to seed.
    `Moments` stands in for the default, which the forecast is not about.
    """

    def quick(rows: tacit.Ratings, method: Any = None, **how: Any) -> tacit.Model:
        return tacit.fit(rows, method or Moments(), **how)

    monkeypatch.setattr(simulated, "fit", quick)
    per_user = 8 if family == "sparse" else 40
    case = replace(CASE, users=users, items=400, per_user=per_user, budget=PrivacyBudget(epsilon))
    found = simulate(case, family, seed=4)
    assert found.forecast_gain == pytest.approx(found.gain, abs=TOLERANCE)
    assert found.gain > 0.02
    wrong = replace(case, tastes=family_tastes(family, STARS), users=users // 10)
    assert abs(forecast(wrong).gain - found.gain) > TOLERANCE  # a tenth of the users is noticed


@pytest.mark.slow
@pytest.mark.realdata
@pytest.mark.skipif(
    not os.environ.get("TACIT_DATA") or not (Path(os.environ["TACIT_DATA"]) / "jester").is_dir(),
    reason="TACIT_DATA does not name a folder with Jester",
)
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
def test_the_forecast_for_jester_agrees_with_a_fit(epsilon: float) -> None:
    """The guesses are those of docs/theory.md; the measured gain varies by less than 0.002."""
    from tacit.datasets import load
    from tacit.evaluation import evaluate, split, user_mean_accuracy
    from tacit.fitting.fit import fit

    train, test = split(load("jester"), 0.02, np.random.default_rng(1))
    jester = Tastes(
        item_sd=0.4, user_sd=0.65, noise_sd=0.94, factor_decay=0.8, skew=0.5, noise_spread=0.3
    )
    case = Case(
        users=73_421,
        items=100,
        per_user=55,
        rating_range=(0.0, 5.0),
        budget=PrivacyBudget(epsilon),
        tastes=jester,
    )
    own = user_mean_accuracy(train, test).rmse
    gain = 1 - evaluate(fit(train, epsilon=epsilon), train, test).rmse / own
    assert forecast(case).gain == pytest.approx(gain, abs=TOLERANCE)
