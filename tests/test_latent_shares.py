"""How LatentFactors divides its budget: every release has a share, however dense ratings are."""

import itertools

import numpy as np
import pytest

import tacit
from tacit.algorithms.base import Facts
from tacit.algorithms.latent_factors import by_density, shares_of
from tacit.estimation.cooccurrence import CoRatings
from tests.conftest import ratings_for


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
        for shares in (shares_of(facts), by_density(shares_of(facts), rated)):
            assert min(shares) > 0
            assert sum(shares) == pytest.approx(1.0)


def test_ratings_of_all_items_can_be_fitted() -> None:
    """Nothing was left for the rounds there, and a fit ended after half of its releases."""
    ratings = ratings_for(1, users=3000, items=12, per_user=12)
    model = tacit.fit(ratings, tacit.LatentFactors(), epsilon=5.0, noise_seed_unsafe=1)
    assert model.certificate.exact_epsilon == pytest.approx(5.0, rel=1e-6)
