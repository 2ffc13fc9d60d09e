"""How LatentFactors divides its budget: every release has a share, however dense ratings are."""

import itertools
import math
from contextlib import suppress

import numpy as np
import pytest

import tacit
from tacit import PrivacyBudget, PrivacyError
from tacit.accounting.budget import Sensitivity
from tacit.accounting.ledger import Ledger
from tacit.algorithms.base import Facts
from tacit.algorithms.latent_factors import by_density, shares_of
from tacit.estimation.cooccurrence import CoRatings
from tests.conftest import named, ratings_for

BOUND = Sensitivity(add_remove=1.0, replace=2.0)


class Rated:
    """What is known of ratings of this density, as far as shares depend on it."""

    def __init__(self, density: float, items: int) -> None:
        self.stratum_sizes, self.weights = np.ones(1), np.ones(items)
        self.lengths = np.array([density * items])


@pytest.mark.parametrize("users", [1, 1000, 10**9])
def test_every_share_is_positive_and_they_add_up(users: int) -> None:
    for density, epsilon in itertools.product((1e-4, 0.3, 0.8, 1.0, 3.0), (0.01, 1.0, 50.0)):
        facts = Facts(100, (1.0, 5.0), users, tacit.PrivacyBudget(epsilon))
        rated: CoRatings = Rated(density, 100)  # type: ignore[assignment]
        for shares in (shares_of(facts), by_density(facts, rated)):
            assert min(shares) > 0
            assert sum(shares) == pytest.approx(1.0)


def test_ratings_of_all_items_can_be_fitted() -> None:
    """Nothing was left for the rounds there, and a fit ended after half of its releases."""
    ratings = ratings_for(1, users=3000, items=12, per_user=12)
    model = tacit.fit(ratings, tacit.LatentFactors(), epsilon=5.0, noise_seed_unsafe=1)
    assert model.certificate.exact_epsilon == pytest.approx(5.0, rel=1e-6)


def scaled_thirds(epsilon: float = 1.0) -> Ledger:
    """A whole budget in three scaled reservations."""
    ledger = Ledger(PrivacyBudget(epsilon))
    for turn in range(3):
        ledger.reserve(named(f"r {turn}"), BOUND, 1 / 3, scaled=True)
    return ledger


def cost_of(ledger: Ledger) -> float:
    return math.fsum(entry.mu**2 for entry in ledger.reserved)


def test_what_was_given_up_and_reserved_by_another_does_not_come_back() -> None:
    ledger = scaled_thirds()
    ledger.redivide({named("r 0"): 0.1})
    ledger.reserve(named("late"), BOUND, 1 / 3 - 0.1)
    with pytest.raises(PrivacyError, match="more together"):
        ledger.redivide({named("r 0"): 1 / 3})


@pytest.mark.parametrize("epsilon", [1.0, 15.0])
def test_rounding_does_not_add_up_however_often_shares_are_divided(epsilon: float) -> None:
    """Each time a little more, within what rounding is forgiven: it is forgiven once."""
    ledger, share = scaled_thirds(epsilon), 1 / 3
    limit = cost_of(ledger)
    for _ in range(1000):
        share *= 1 + 0.9e-12
        with suppress(PrivacyError):
            ledger.redivide({named(f"r {turn}"): share for turn in range(3)})
    assert cost_of(ledger) <= limit * (1 + 3e-12)
