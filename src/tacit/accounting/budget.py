"""What may be spent: privacy budgets and the exact accounting of Gaussian releases.

Every release of this package is Gaussian, so composition is exact and in closed form.
A release of sensitivity D with noise sd s costs mu = D / s; costs add as squares; and the
total mu gives, for every epsilon, the smallest delta that holds (Balle and Wang 2018;
Dong, Roth and Su 2022):

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2)

This module knows public numbers only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import Annotated, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Range, check
from tacit.errors import ConfigError

_SQRT2 = math.sqrt(2.0)
_BISECTIONS = 200
_MARGIN = 1e-11  # what the rounding of delta may come to, and more; it is below 1e-12
_RELATIVE_SLACK = 1e-10  # calibration stops this much on the private side
_LEAST_DELTA = 1e-30  # about 2^-100; a generator's words are random up to chances not far below

LARGEST_EPSILON = 1e4
LARGEST_MU = 150.0
"""What releases may cost: no budget with epsilon <= LARGEST_EPSILON and delta < 1 allows more.

Up to these numbers the theorem of docs/privacy/proofs.md holds for the noise as it is drawn.
"""
Epsilon = Annotated[float, Range(0, LARGEST_EPSILON, "(]")]
Delta = Annotated[float, Range(_LEAST_DELTA, 1, "[)")]

_Word = TypeVar("_Word", bound=StrEnum)


class Neighbours(StrEnum):
    """Which two datasets must be hard to tell apart."""

    REPLACE = "replace"
    """One user's row is exchanged for any other; the number of users is public."""
    ADD_REMOVE = "add_remove"
    """One user's row is emptied or filled; the number of users is protected too."""


class Accounting(StrEnum):
    """How noise is calibrated to epsilon and delta."""

    EXACT = "exact"
    """The closed form above: the least Gaussian noise that keeps the promise."""
    PAPER = "paper"
    """Alg. 1's sigma = L^2 sqrt(64 T ln(1/delta)) / epsilon, for comparison.

    That is sqrt(4 ln(1/delta) T) / epsilon times its add_remove sensitivity, 4 L^2. The same factor
    is used for other algorithms, whose printed sigmas are larger than their sensitivities need.
    """


@dataclass(frozen=True)
class Sensitivity:
    """How far one user can move a statistic (L2 norm), for either relation."""

    add_remove: float
    replace: float

    def under(self, neighbours: Neighbours) -> float:
        """Return the bound that holds for this relation."""
        return self.replace if neighbours is Neighbours.REPLACE else self.add_remove


def _erfcx(x: float) -> float:
    from scipy.special import erfcx

    return float(erfcx(x))


@cache
def _quadrature() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return Gauss-Legendre points and weights for the interval from 0 to 1."""
    points, weights = np.polynomial.legendre.leggauss(16)
    return (points + 1) / 2, weights / 2


def _erfcx_fall(a: float, width: float) -> float:
    """Return erfcx(a) - erfcx(a + width) as an integral of -erfcx'(t) = 2/sqrt(pi) - 2t erfcx(t).

    The terms are positive and smooth, so that a small width costs no digits.
    """
    from scipy.special import erfcx

    points, weights = _quadrature()
    t = a + width * points
    return width * float(weights @ (2 / math.sqrt(math.pi) - 2 * t * erfcx(t)))


def _ends(epsilon: float, mu: float) -> tuple[float, float]:
    return (epsilon / mu - mu / 2) / _SQRT2, (epsilon / mu + mu / 2) / _SQRT2


def _one_minus_delta(epsilon: float, mu: float) -> float:
    """Return 1 - delta_of(epsilon, mu) with all its digits, also where it is small."""
    a, b = _ends(epsilon, mu)
    return (math.erfc(-a) + math.exp(-a * a) * _erfcx(b)) / 2


def delta_of(epsilon: float, mu: float) -> float:
    """Return the smallest delta for which a total cost of mu is (epsilon, delta)-DP.

    With a = (epsilon/mu - mu/2)/sqrt2 and b = (epsilon/mu + mu/2)/sqrt2, b^2 - a^2 = epsilon, so
    delta = e^(-a^2) (erfcx(a) - erfcx(b)) / 2: no overflow, and no cancellation of exponentials.
    For mu < 1 the difference is an integral, and for a < 0 the complement is computed. The
    relative error is below 1e-12 for epsilon up to LARGEST_EPSILON and delta down to 1e-280.
    """
    if mu <= 0.0:
        return 0.0
    if math.isinf(mu):
        return 1.0
    a, b = _ends(epsilon, mu)
    if a < 0.0 and mu >= 1.0:
        return 1.0 - _one_minus_delta(epsilon, mu)
    scale = math.exp(-a * a) / 2
    if scale == 0.0:
        return 0.0
    return scale * (_erfcx_fall(a, mu / _SQRT2) if mu < 1.0 else _erfcx(a) - _erfcx(b))


def _covers(epsilon: float, delta: float, mu: float) -> bool:
    """Whether a total cost of mu is (epsilon, delta)-DP; rounding cannot make it so."""
    if delta <= 0.5:
        return delta_of(epsilon, mu) * (1 + _MARGIN) <= delta
    return _one_minus_delta(epsilon, mu) * (1 - _MARGIN) >= 1 - delta


def _last_true(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Bisect geometrically between `low`, where it holds, and `high`, where it does not."""
    for _ in range(_BISECTIONS):
        middle = math.sqrt(low) * math.sqrt(high)
        if not low < middle < high:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@lru_cache  # of public numbers; a fit asks for the same one at every release
def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest total cost mu that is (epsilon, delta)-DP, rounded to the private side.

    2 delta is always allowed: delta(epsilon) <= delta(0) <= mu/sqrt(2 pi).
    """
    low, _ = _last_true(lambda mu: _covers(epsilon, delta, mu), 2 * delta, 1e9)
    return low * (1.0 - _RELATIVE_SLACK)


def epsilon_of(mu: float, delta: float) -> float:
    """Return the smallest epsilon that a total cost of mu gives at this delta, rounded up.

    >>> round(epsilon_of(1.0, 1e-6), 3)
    4.887
    """
    if math.isinf(mu):
        return math.inf
    if mu <= 0.0 or _covers(0.0, delta, mu):
        return 0.0
    _, high = _last_true(
        lambda epsilon: not _covers(epsilon, delta, mu), 1e-300, mu * mu / 2 + 40 * mu + 1.0
    )
    return high * (1.0 + _RELATIVE_SLACK)


def guessing_chance(mu: float) -> float:
    """Return how often the best guesser between two equally likely rows is right: Phi(mu/2)."""
    return 0.5 * math.erfc(-mu / (2 * _SQRT2))


@dataclass(frozen=True)
class PrivacyBudget:
    """What may be spent on a fit, and how it is counted.

    Attributes:
        epsilon: the privacy loss that may not be exceeded, except with probability delta.
        delta: that probability; below one over the number of users, and at least 1e-30.
        neighbours: which two datasets must be hard to tell apart.
        accounting: how noise is calibrated.

    >>> budget = PrivacyBudget(epsilon=1.0)
    >>> round(budget.mu, 4)
    0.2367
    """

    epsilon: Epsilon
    delta: Delta = 1e-6
    neighbours: Neighbours = Neighbours.REPLACE
    accounting: Accounting = Accounting.EXACT

    def __post_init__(self) -> None:
        """Check the values and turn words into their enums."""
        object.__setattr__(self, "epsilon", float(check("epsilon", self.epsilon, Epsilon)))
        object.__setattr__(self, "delta", float(check("delta", self.delta, Delta)))
        object.__setattr__(self, "neighbours", _member("neighbours", self.neighbours, Neighbours))
        object.__setattr__(self, "accounting", _member("accounting", self.accounting, Accounting))
        if self.accounting is Accounting.PAPER and self.epsilon > 2 * math.log(1 / self.delta):
            raise ConfigError(
                f"accounting='paper' needs epsilon <= 2 ln(1/delta) = "
                f"{2 * math.log(1 / self.delta):.4g}, and epsilon is {self.epsilon:g}; "
                "use accounting='exact'"
            )

    @property
    def mu(self) -> float:
        """The total cost that may be spent, in the budget's own accounting.

        Paper: sigma = 4 L^2 sqrt(4 T ln(1/delta)) / epsilon is a cost of
        epsilon / sqrt(4 ln(1/delta)) over T rounds of sensitivity 4 L^2.
        """
        if self.accounting is Accounting.PAPER:
            return self.epsilon / math.sqrt(4 * math.log(1 / self.delta))
        return mu_of(self.epsilon, self.delta)

    def noise_sd(self, sensitivity: Sensitivity, share: float) -> float:
        """Return the noise sd of a release that may use `share` of the budget's mu^2.

        The paper's formula states its sensitivity for add_remove, whatever the relation.
        """
        paper = self.accounting is Accounting.PAPER
        bound = sensitivity.add_remove if paper else sensitivity.under(self.neighbours)
        return bound / (math.sqrt(share) * self.mu)


def _member(name: str, value: str, kind: type[_Word]) -> _Word:
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(repr(member.value) for member in kind)
        raise ConfigError(f"{name}={value!r}: expected one of {words}") from None
