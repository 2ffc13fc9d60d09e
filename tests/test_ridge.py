"""Ridge regression on published factors: against Gaussian laws worked out with dense matrices."""

import time
from typing import Any

import numpy as np
import pytest

from tacit.errors import ModelFileError
from tacit.models.linear import RidgeRule
from tacit.models.rules import OwnRows

ITEMS = 9


def rule_of(rng: np.random.Generator, rank: int, **changes: Any) -> RidgeRule:
    parts: dict[str, Any] = {
        "factors": rng.standard_normal((ITEMS, rank)),
        "offsets": rng.uniform(-1, 1, ITEMS),
        "noise": rng.uniform(0.2, 2.0, ITEMS),
        "centre": False,
        "shrink": 0.0,
        "source": "covariance",
    }
    return RidgeRule(**(parts | changes))


def own_rows(*rows: dict[int, float]) -> OwnRows:
    lengths = [len(row) for row in rows]
    items = np.concatenate([sorted(row) for row in rows]).astype(np.uint32)
    values = np.concatenate([[row[item] for item in sorted(row)] for row in rows])
    indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    return OwnRows(indptr, items, values.astype(np.float32))


def random_row(rng: np.random.Generator, rated: int) -> dict[int, float]:
    items = rng.choice(ITEMS, rated, replace=False).tolist()
    return {item: float(np.float32(rng.normal())) for item in items}


def conditioned(rule: RidgeRule, row: dict[int, float]) -> tuple[np.ndarray, np.ndarray]:
    """Condition the joint Gaussian law of ratings y and of new ratings y' on the rated items.

    cov(y') = F F^T + D, cov(y', y) = F F^T, cov(y) = F F^T + D.
    """
    rated = sorted(row)
    seen = np.array([row[item] for item in rated]) - rule.offsets[rated]
    shared = rule.factors @ rule.factors.T
    inner = np.linalg.inv((shared + np.diag(rule.noise))[np.ix_(rated, rated)])
    gain = shared[:, rated] @ inner
    left = shared + np.diag(rule.noise) - gain @ shared[rated, :]
    return rule.offsets + gain @ seen, np.sqrt(np.diag(left))


@pytest.mark.parametrize("rank", [1, 3, 4, 8])
@pytest.mark.parametrize("rated", [1, 3, 4, 5, 9])
def test_scores_and_spread_are_the_gaussian_posterior(rank: int, rated: int) -> None:
    rng = np.random.default_rng(100 * rank + rated)
    rule = rule_of(rng, rank)
    rows = [random_row(rng, rated) for _ in range(3)]
    scores, spread = rule.scores(own_rows(*rows)), rule.spread(own_rows(*rows))
    for person, row in enumerate(rows):
        mean, std = conditioned(rule, row)
        assert np.allclose(scores[person], mean, rtol=1e-10)
        assert np.allclose(spread[person], std, rtol=1e-10)
    wrong = rule_of(np.random.default_rng(100 * rank + rated), rank, noise=np.full(ITEMS, 1.0))
    assert not np.allclose(wrong.scores(own_rows(*rows)), scores, rtol=1e-3)  # the twin


def test_with_equal_noise_it_is_plain_ridge_regression() -> None:
    rng = np.random.default_rng(1)
    rule = rule_of(rng, 3, noise=np.full(ITEMS, 0.7))
    row = random_row(rng, 5)
    F = rule.factors[sorted(row)]
    y = np.array([row[item] for item in sorted(row)]) - rule.offsets[sorted(row)]
    u = np.linalg.solve(F.T @ F + 0.7 * np.eye(3), F.T @ y)
    assert np.allclose(rule.scores(own_rows(row))[0], rule.offsets + rule.factors @ u, rtol=1e-12)


def exact_errors(rule: RidgeRule, rated: list[int], level: float) -> np.ndarray:
    """The sd of rating - score under y = offset + b + F u + e, b ~ N(0, level), with no theory.

    Scores are linear in what was rated; their weights are read off unit vectors.
    """
    zero = dict.fromkeys(rated, 0.0)
    start = rule.scores(own_rows(zero))[0]
    ones = [rule.scores(own_rows({**zero, item: 1.0}))[0] - start for item in rated]
    weights = np.array(ones).T
    law = level + rule.factors @ rule.factors.T
    seen = law[np.ix_(rated, rated)] + np.diag(rule.noise[rated])
    cross = law[:, rated]
    variances = np.diag(law) + rule.noise - 2 * np.sum(weights * cross, axis=1)
    return np.sqrt(variances + np.sum((weights @ seen) * weights, axis=1))


@pytest.mark.parametrize("shrink", [0.0, 2.5])
@pytest.mark.parametrize("rated", [1, 2, 6])
def test_the_spread_with_an_own_mean_is_that_of_its_errors(shrink: float, rated: int) -> None:
    rng = np.random.default_rng(rated)
    rule = rule_of(rng, 3, centre=True, shrink=shrink)
    row = random_row(rng, rated)
    typical = float(np.mean(np.sum(rule.factors**2, axis=1) + rule.noise))
    level = typical / shrink if shrink else 123.0  # without shrinking any level gives the same
    wanted = exact_errors(rule, sorted(row), level)
    assert np.allclose(rule.spread(own_rows(row))[0], wanted, rtol=1e-6)
    assert not np.allclose(rule.spread(own_rows(row))[0], conditioned(rule, row)[1], rtol=1e-2)


def test_someone_without_ratings_knows_what_is_published_and_no_more() -> None:
    rng = np.random.default_rng(2)
    nobody = OwnRows(np.zeros(2, np.int64), np.empty(0, np.uint32), np.empty(0, np.float32))
    rule = rule_of(rng, 3)
    prior = np.sqrt(np.sum(rule.factors**2, axis=1) + rule.noise)
    assert np.array_equal(rule.scores(nobody)[0], rule.offsets)
    assert np.allclose(rule.spread(nobody)[0], prior)
    assert np.all(rule_of(rng, 3, centre=True).spread(nobody) == np.inf)  # her level is anything
    level = rule_of(rng, 3, centre=True, shrink=4.0).spread(nobody)
    assert np.all(np.isfinite(level))


def test_without_factors_only_noise_and_the_own_mean_are_left() -> None:
    rule = rule_of(np.random.default_rng(3), 1, factors=np.zeros((ITEMS, 0)), centre=True)
    row = {0: 1.0, 4: 3.0}
    own = np.mean([row[item] - rule.offsets[item] for item in row])
    spread = np.sqrt(rule.noise + rule.noise[[0, 4]].sum() / 4)
    assert np.allclose(rule.scores(own_rows(row))[0], rule.offsets + own)
    assert np.allclose(rule.spread(own_rows(row))[0], spread)


@pytest.mark.parametrize("size", [1e-200, 1e160, 1e300])
@pytest.mark.parametrize("rated", [2, 8])
def test_factors_beyond_arithmetic_raise_nothing_about_anyone(size: float, rated: int) -> None:
    rng = np.random.default_rng(4)
    rule = rule_of(rng, 4)
    wild = rule_of(rng, 4, factors=rule.factors * size, centre=True)
    with np.errstate(all="ignore"):
        own = own_rows(random_row(rng, rated))
        assert not np.isnan(wild.spread(own)).any()
        assert np.isfinite(wild.scores(own)).all()


@pytest.mark.parametrize(
    "noise",
    [
        np.ones(ITEMS - 1),
        np.ones((ITEMS, 1)),
        np.zeros(ITEMS),
        np.full(ITEMS, -1.0),
        np.full(ITEMS, np.nan),
        np.full(ITEMS, np.inf),
    ],
)
def test_a_model_file_with_impossible_noise_is_refused(noise: np.ndarray) -> None:
    arrays, settings = rule_of(np.random.default_rng(5), 2).parts()
    again = RidgeRule.from_parts(arrays, settings)
    assert np.array_equal(again.noise, arrays["noise"])
    with pytest.raises(ModelFileError):
        RidgeRule.from_parts(arrays | {"noise": noise}, settings)


def test_one_person_is_served_in_a_millisecond() -> None:
    """80 ratings, 400 items, rank 30: best of many, so that a busy machine does not matter."""
    rng = np.random.default_rng(6)
    rule = RidgeRule(
        rng.standard_normal((400, 30)), np.zeros(400), np.ones(400), False, 0.0, "covariance"
    )
    row = OwnRows(
        np.array([0, 80]), np.arange(0, 400, 5, dtype=np.uint32), np.ones(80, dtype=np.float32)
    )
    best = np.inf
    for _ in range(50):
        started = time.perf_counter()
        rule.scores(row)
        best = min(best, time.perf_counter() - started)
    assert best < 1e-3
