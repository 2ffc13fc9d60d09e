"""Lemma 32: fits whose costs are chosen by what earlier fits released keep to the lifetime budget.

An adversary watches releases y_t ~ N(theta mu_t, 1), theta 0 or 1, and chooses every mu_t by the
log-likelihood ratio so far: small steps while it is undecided, all that is left once it leans
towards 1. A guess by the sign of the ratio is right, more often than wrong, by at most
2 Phi(mu/2) - 1. With 40,000 games on either side the frequency is above the bound plus 4 standard
errors in less than one run of 10,000; the seed is fixed.
"""

import math

import numpy as np
import pytest

from tacit.accounting.budget import guessing_chance

GAMES, MU = 40_000, 1.0


def advantage(limit: float, seed: int = 0) -> float:
    """Return how much more often the adversary guesses 1 if it is 1, under a filter of `limit`."""
    rng = np.random.default_rng(seed)
    rates = []
    for theta in (0.0, 1.0):
        ratio, spent = np.zeros(GAMES), np.zeros(GAMES)
        for _ in range(12):
            left = np.maximum(limit**2 - spent, 0.0)
            greedy = np.where(ratio > 0.3, left, 0.15 * limit**2)
            cost = np.where(ratio < -0.5, 0.02 * limit**2, greedy)
            cost = np.minimum(cost, left)  # the book refuses what would pass the limit
            mu = np.sqrt(cost)
            seen = theta * mu + rng.standard_normal(GAMES)
            ratio += mu * seen - cost / 2
            spent += cost
        rates.append(float(np.mean(ratio > 0)))
    return rates[1] - rates[0]


BOUND = 2 * guessing_chance(MU) - 1
ERROR = 4 * math.sqrt(0.5 / GAMES)


@pytest.mark.parametrize("seed", [0, 1])
def test_costs_chosen_on_the_way_keep_to_the_bound(seed: int) -> None:
    assert 0.6 * BOUND < advantage(MU, seed) <= BOUND + ERROR


def test_a_filter_that_lets_a_third_more_pass_is_noticed() -> None:
    """The twin: a book that forgets a part of what was spent."""
    assert advantage(1.35 * MU) > BOUND + ERROR
