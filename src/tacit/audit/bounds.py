"""From counts of right and wrong guesses to a lower bound on epsilon that holds with confidence.

A game is played many times in either of two worlds. A guesser says "with her" when its score
passes a threshold. (epsilon, delta)-privacy limits every such guesser, whatever it computes:

    true positives <= e^epsilon false positives + delta,
    true negatives <= e^epsilon false negatives + delta.

The rates are not known, but the counts of independent games bound them from both sides (Clopper
and Pearson 1934, exact for every number of games).

Gaussian releases of total cost mu promise more: no guesser passes
Phi^-1(true positives) - Phi^-1(false positives) = mu (Dong, Roth and Su 2022). A cost that was
passed there is a certificate that is wrong, and `epsilon_of` says which epsilon it would be.
That needs far fewer games than the first form, whose delta is too small to be seen in any
number of games that a person waits for.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import epsilon_of

Floats = NDArray[np.float64]
Bound = Callable[["GuessCounts"], float]

_THRESHOLDS = 100  # tried when one is chosen


class GuessCounts(NamedTuple):
    """How often a guesser said "with her": in games without her, and in games with her."""

    false_positives: int
    without: int
    true_positives: int
    with_her: int


def rate_at_least(successes: int, trials: int, miss: float) -> float:
    """Return a lower bound on a rate that is wrong with a probability of at most `miss`.

    >>> round(rate_at_least(60, 100, 0.025), 4)
    0.4972
    """
    from scipy.stats import beta

    if successes <= 0:
        return 0.0
    return float(beta.ppf(miss, successes, trials - successes + 1))


def rate_at_most(successes: int, trials: int, miss: float) -> float:
    """Return an upper bound on a rate that is wrong with a probability of at most `miss`."""
    return 1.0 - rate_at_least(trials - successes, trials, miss)


def epsilon_at_least(counts: GuessCounts, delta: float, miss: float) -> float:
    """Return an epsilon below which no (epsilon, delta)-private process gives such counts.

    Both directions follow from the same two bounds, each of which takes half of `miss`.
    """
    low, high = _rates(counts, miss)
    forward = _log_ratio(low - delta, high)
    backward = _log_ratio(1.0 - high - delta, 1.0 - low)
    return max(0.0, forward, backward)


def mu_at_least(counts: GuessCounts, miss: float) -> float:
    """Return a cost mu below which no process that is private in Gaussian terms gives them."""
    from scipy.special import ndtri

    low, high = _rates(counts, miss)
    if low <= 0.0 or high >= 1.0:
        return 0.0
    return max(0.0, float(ndtri(low) - ndtri(high)))


def gaussian_epsilon_at_least(counts: GuessCounts, delta: float, miss: float) -> float:
    """Return the epsilon that the cost of `mu_at_least` has at this delta."""
    return epsilon_of(mu_at_least(counts, miss), delta)


def _rates(counts: GuessCounts, miss: float) -> tuple[float, float]:
    """Bound the true positives from below and the false positives from above."""
    low = rate_at_least(counts.true_positives, counts.with_her, miss / 2)
    high = rate_at_most(counts.false_positives, counts.without, miss / 2)
    return low, high


def _log_ratio(above: float, below: float) -> float:
    return math.log(above / below) if above > 0.0 and below > 0.0 else 0.0


def count(without: Floats, with_her: Floats, threshold: float) -> GuessCounts:
    """Count the scores that pass a threshold, in either world."""
    false, true = int(np.sum(without > threshold)), int(np.sum(with_her > threshold))
    return GuessCounts(false, without.size, true, with_her.size)


def best_threshold(without: Floats, with_her: Floats, bound: Bound) -> float:
    """Return the threshold with the largest bound; to be used on other games than these."""
    pooled = np.sort(np.concatenate([without, with_her]))
    places = np.linspace(0, pooled.size - 1, min(_THRESHOLDS, pooled.size)).astype(int)
    tried = np.unique(pooled[places])
    return float(max(tried, key=lambda threshold: bound(count(without, with_her, threshold))))
