"""How many factors of choice are found without noise, where there are few people and many items."""

import numpy as np
import pytest

from tacit.estimation import choice
from tacit.estimation.choice import choice_factors

USERS, ITEMS, FACTORS = 600, 500, 12
Floats = np.ndarray


def chosen(strength: float, seed: int) -> Floats:
    """Return rows x = e / sqrt(d) of people who choose by popularity and by twelve tastes."""
    rng = np.random.default_rng(seed)
    popularity = np.exp(rng.normal(size=ITEMS))
    loadings = strength * rng.normal(size=(ITEMS, FACTORS))
    weights = popularity * np.exp(rng.normal(size=(USERS, FACTORS)) @ loadings.T)
    chances = np.minimum(60 * weights / weights.sum(axis=1, keepdims=True), 1)
    rows = (rng.random((USERS, ITEMS)) < chances).astype(float)
    return rows / np.sqrt(rows.sum(axis=1, keepdims=True))


def found(rows: Floats) -> int:
    pairs, counts = (rows.T @ rows, 0.0), (rows.sum(axis=0), 0.0)
    every = choice_factors(pairs, counts, np.arange(ITEMS), float(len(rows)), (200, 0))
    return every.loadings.shape[1]


@pytest.mark.parametrize("seed", range(3))
def test_factors_that_are_there_are_found_and_no_others(seed: int) -> None:
    assert found(chosen(0.0, seed)) == 0
    assert FACTORS - 2 <= found(chosen(0.3, seed)) <= FACTORS


@pytest.mark.parametrize(("single", "most"), [(1.0, 5), (0.0, 100)])
def test_another_threshold_misses_factors_or_finds_chance(
    monkeypatch: pytest.MonkeyPatch, single: float, most: int
) -> None:
    """The twin: a factor may have to pass what three usual users add, or noise only."""
    monkeypatch.setattr(choice, "_SINGLE", single)
    assert not FACTORS - 2 <= found(chosen(0.3, 0)) <= FACTORS
    assert found(chosen(0.3, 0)) <= most
