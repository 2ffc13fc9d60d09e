"""The advantage of an attacker, with confidence limits, and its limit under a budget."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget, guessing_chance, mu_of
from tacit.audit.bounds import rate_at_least, rate_at_most
from tacit.audit.finding import Interval

_MISS = 0.05  # how often a bound may be wrong


@dataclass(frozen=True)
class Guesses:
    """Guesses between two worlds, each chosen by a fair coin: how many were right.

    `area` is the area under the curve of true against false alarms: the chance that a score from
    one world is above one from the other.
    """

    right: int
    trials: int
    area: float

    @property
    def advantage(self) -> float:
        """Right less wrong guesses, as a share: 0 for a coin, 1 for certainty."""
        return 2 * self.right / self.trials - 1

    @property
    def interval(self) -> Interval:
        """Confidence limits of the advantage, 95 % each (Clopper-Pearson)."""
        low = 2 * rate_at_least(self.right, self.trials, _MISS) - 1
        high = 2 * rate_at_most(self.right, self.trials, _MISS) - 1
        return Interval(low, high, 1 - _MISS)


def epsilon_limit(budget: PrivacyBudget) -> float:
    """Return the largest advantage under (epsilon, delta): (e^eps - 1 + 2 delta)/(e^eps + 1).

    >>> round(epsilon_limit(PrivacyBudget(epsilon=1.0)), 3)
    0.462
    """
    shift = math.tanh(budget.epsilon / 2)  # (e^eps - 1)/(e^eps + 1), without overflow
    return min(1.0, shift + budget.delta * (1 - shift))


def exact_limit(budget: PrivacyBudget) -> float:
    """Return the largest advantage against Gaussian releases that the budget pays for.

    It is 2 Phi(mu/2) - 1, smaller than `epsilon_limit`: releases whose worst delta is reached at
    this epsilon give away far less than epsilon allows at delta = 0.

    >>> round(exact_limit(PrivacyBudget(epsilon=1.0)), 3)
    0.094
    """
    return 2 * guessing_chance(mu_of(budget.epsilon, budget.delta)) - 1


def area_under_curve(inside: NDArray[np.float64], outside: NDArray[np.float64]) -> float:
    """Return the chance that a score from inside is above one from outside; ties count half."""
    order = np.sort(outside)
    below = np.searchsorted(order, inside, side="left")
    not_above = np.searchsorted(order, inside, side="right")
    return float(np.mean(below + not_above) / (2 * outside.size))
