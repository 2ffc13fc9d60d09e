r"""Releases of the same statistic at different times, combined by their noise and by the drift.

All of it is post-processing. A statistic per person, $x_t$, wanders: $x_t = x_{t-1} + N(0, q)$, and
each release shows it with known noise: $y_t = x_t + N(0, R_t)$. The best linear estimate is the
Kalman filter, entry by entry:

$$p^- = p + q, \quad K = p^-/(p^- + R_t), \quad \hat x \gets \hat x + K (y_t - \hat x), \quad
  p \gets K R_t.$$

How fast people change, $q$, is estimated from the releases themselves, by maximum likelihood over
many entries, with a preference for remembering: the smallest $q$ that explains them about as well.
"""

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["MOST_SEEN", "combined", "drift_variance", "gain"]

Floats = NDArray[np.float64]

MOST_SEEN = 104
"""How many of the newest releases the drift is estimated from."""
_GRID = np.concatenate([[0.0], np.logspace(-5, 1.5, 27)])  # of q, in units of R
_AS_GOOD = 2.0  # log-likelihood: what is explained so much less well is explained as well


def gain(variances: Floats, noise: float) -> Floats:
    """Return K for entries of these variances before a release; an infinite one is a new entry."""
    if noise <= 0:
        return np.ones_like(variances)
    return np.asarray(1.0 / (1.0 + noise / np.maximum(variances, 1e-300)))


def combined(
    values: Floats, variances: Floats, seen: Floats, noise: float
) -> tuple[Floats, Floats]:
    """Return estimates and their variances after a release; `variances` are those before it."""
    share = gain(variances, noise)
    return values + share * (seen - values), share * noise


def drift_variance(seen: Floats, noises: Floats) -> float:
    """Return q for releases in rows, missing entries nan, each row with the variance of its noise.

    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(0, 0.1, (20, 500)), axis=0)
    >>> round(drift_variance(walk + rng.normal(0, 1.0, (20, 500)), np.ones(20)), 3)
    0.01
    """
    if len(seen) < 2 or not np.any(noises > 0):
        return 0.0
    unit = float(np.median(noises))
    likely = np.array([_log_likelihood(seen, noises, scale * unit) for scale in _GRID])
    return float(_GRID[np.argmax(likely >= likely.max() - _AS_GOOD)] * unit)


def _log_likelihood(seen: Floats, noises: Floats, drift: float) -> float:
    """Return how likely releases are if every entry wanders by itself; the first one is given."""
    values, variances = np.zeros(seen.shape[1]), np.full(seen.shape[1], math.inf)
    total = 0.0
    for row, noise in zip(seen, noises, strict=True):
        variances = variances + drift
        there = ~np.isnan(row)
        known = there & np.isfinite(variances)
        spread = variances[known] + noise
        gaps = row[known] - values[known]
        total -= 0.5 * float(np.sum(np.log(spread) + gaps**2 / spread))
        moved, less = combined(values[there], variances[there], row[there], float(noise))
        values[there], variances[there] = moved, less
    return total
