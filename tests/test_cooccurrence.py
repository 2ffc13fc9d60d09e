"""What counts by item and by length of list tell of pairs of items."""

import numpy as np
import pytest

from tacit.estimation.cooccurrence import CoRatings, activity_strata, co_ratings
from tacit.estimation.spiked_covariance import Factors, debias

ITEMS, USERS = 30, 4000


def lists(seed: int) -> np.ndarray:
    """Half the people rate ten popular items out of twelve; the others rate nearly everything."""
    rng = np.random.default_rng(seed)
    chance = np.where(np.arange(USERS)[:, None] % 2, 0.9, np.where(np.arange(ITEMS) < 12, 0.8, 0.0))
    return rng.random((USERS, ITEMS)) < chance


def released(seen: np.ndarray, edges: tuple[int, ...], noise_sd: float) -> np.ndarray:
    """Return the counts as they would be released, with noise."""
    lengths = seen.sum(axis=1)
    rows = np.searchsorted(edges, lengths, side="right")
    counts = np.random.default_rng(9).normal(0, noise_sd, (len(edges) + 1, ITEMS))
    np.add.at(counts, rows, seen / np.sqrt(np.maximum(lengths, 1))[:, None])
    return counts


def found(seen: np.ndarray, edges: tuple[int, ...], noise_sd: float = 0.0) -> CoRatings:
    """Return the co-ratings that such counts give."""
    return co_ratings(released(seen, edges, noise_sd), noise_sd, edges, USERS)


def worst(found: np.ndarray, seen: np.ndarray, power: int) -> float:
    """Return how far, at the most, weights of pairs are from the truth."""
    lengths = np.maximum(seen.sum(axis=1), 1)[:, None]
    truth = (seen / lengths**power).T @ seen.astype(float)
    apart = ~np.eye(ITEMS, dtype=bool)
    return float(np.abs(found / truth - 1)[apart].max())


@pytest.mark.parametrize("noise_sd", [0.0, 0.5])
def test_classes_tell_who_rates_together(noise_sd: float) -> None:
    """Rare items are rated by the same people: with one class for all, pairs are off by half."""
    seen = lists(1)
    edges = activity_strata(ITEMS, 100.0)
    fine = found(seen, edges, noise_sd)
    assert worst(fine.pairs(), seen, 1) < 0.1
    assert worst(fine.squares(), seen, 2) < 0.2
    assert worst(found(seen, (), noise_sd).pairs(), seen, 1) > 0.3


def test_weights_singles_and_people_are_those_of_the_counts() -> None:
    seen = lists(2)
    lengths = np.maximum(seen.sum(axis=1), 1)[:, None]
    fine = found(seen, activity_strata(ITEMS, 100.0))
    assert fine.weights == pytest.approx((seen / np.sqrt(lengths)).sum(axis=0), rel=1e-6)
    assert fine.inverse_counts == pytest.approx((seen / lengths).sum(axis=0), rel=0.05)
    assert float(fine.stratum_sizes.sum()) == pytest.approx(USERS)
    assert float(fine.shares.sum()) == pytest.approx(1.0)


def test_weights_that_noise_drowns_are_as_large_as_the_noise() -> None:
    """They never are negative or next to nothing, which would make an item's effect huge."""
    rated = found(np.zeros((USERS, ITEMS), dtype=bool), (), noise_sd=5.0)
    assert np.all(rated.weights >= 5.0)
    assert np.all(rated.error <= 1.0)
    assert np.all(np.isfinite(rated.pairs()))


def test_nobody_who_rated_anything_is_no_reason_to_divide_by_zero() -> None:
    for edges in ((), activity_strata(ITEMS, 100.0)):
        rated = found(np.zeros((USERS, ITEMS), dtype=bool), edges)
        for part in rated:
            assert np.all(np.isfinite(part))


def test_there_are_no_more_classes_than_affordable() -> None:
    for most in (1, 2, 7, 100, 4000):
        for affordable in (0.5, 1.0, 2.0, 5.0, 9.0, 30.0):
            edges = activity_strata(most, affordable)
            assert not edges or len(edges) + 1 <= affordable
            assert list(edges) == sorted(set(edges))
            assert all(2 <= edge <= most for edge in edges)


def test_pairs_that_nobody_rated_together_make_no_factor_infinite() -> None:
    """Their estimated number can be zero; a factor is divided by it."""
    rng = np.random.default_rng(0)
    scale, loadings = rng.uniform(1.0, 3.0, 8), rng.standard_normal((8, 2))
    pairs = np.outer(scale, scale)
    pairs[0, 1] = pairs[1, 0] = 0.0
    found = debias(Factors(loadings, np.zeros(8)), scale, pairs).loadings
    assert found.shape == (8, 2)
    assert np.all(np.abs(found) < 10)
    exact = debias(Factors(loadings, np.zeros(8)), scale, np.outer(scale, scale)).loadings
    assert exact @ exact.T == pytest.approx(loadings @ loadings.T)
