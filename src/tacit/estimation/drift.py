r"""Releases of the same statistic at different times, combined by their noise and by the drift.

All of it is post-processing. A statistic per person, $x_t$, wanders, and each release shows it with
known noise. Entry e has a scale $s_e$ (1, or how often its items are rated):

$$x_{t,e} = x_{t-1,e} + N(0, q s_e^2), \quad y_{t,e} = x_{t,e} + N(0, R_t).$$

The best linear estimate is the Kalman filter, entry by entry:

$$p^- = p + q s_e^2, \quad K = p^-/(p^- + R_t), \quad \hat x \gets \hat x + K (y_t - \hat x), \quad
  p \gets K R_t.$$

How fast people change, $q$, is estimated from the releases themselves: the posterior median. The
prior is one half at no drift, and flat in log q otherwise, so that few releases say "slow".
"""

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_SEEN = 104
"""How many of the newest releases the drift is estimated from."""
_GRID = np.concatenate([[0.0], np.logspace(-5, 1.5, 27)])  # of q, in units of R
_PRIOR = np.concatenate([[0.5], np.full(27, 0.5 / 27)])


def gain(variances: Floats, noise: float | Floats) -> Floats:
    """Return K for entries of these variances before a release; an infinite one is a new entry."""
    return np.asarray(1.0 / (1.0 + noise / np.maximum(variances, 1e-300)))


def combined(
    values: Floats, variances: Floats, seen: Floats, noise: float | Floats
) -> tuple[Floats, Floats]:
    """Return estimates and their variances after a release; `variances` are those before it."""
    share = gain(variances, noise)
    return values + share * (seen - values), share * noise


def averaged(one: tuple[Floats, float], other: tuple[Floats, float]) -> tuple[Floats, float]:
    """Return two releases of the same numbers as one; each comes with the sd of its noise.

    >>> averaged((np.array([1.0]), 1.0), (np.array([4.0]), 1.0))[0]
    array([2.5])
    """
    values, variance = combined(one[0], np.asarray(one[1] ** 2), other[0], other[1] ** 2)
    return values, math.sqrt(variance)


def drift_variance(seen: Floats, noises: Floats, scales: Floats | None = None) -> float:
    """Return q for releases in rows, missing entries nan, and the variances of their noise.

    It is the drift variance of an entry of scale 1; `scales` are those of the columns. `noises` has
    a number for each row, or for each entry.

    >>> rng = np.random.default_rng(0)
    >>> walk = np.cumsum(rng.normal(0, 0.1, (20, 500)), axis=0)
    >>> round(drift_variance(walk + rng.normal(0, 1.0, (20, 500)), np.ones(20)), 3)
    0.01
    """
    squares = np.ones(seen.shape[1]) if scales is None else scales**2
    usual = float(squares.mean())
    if len(seen) < 2 or not np.any(noises > 0) or not usual > 0:
        return 0.0
    unit = float(np.median(noises)) / usual
    noises = np.broadcast_to(noises if noises.ndim == 2 else noises[:, None], seen.shape)
    likely = np.array([_log_likelihood(seen, noises, each * unit * squares) for each in _GRID])
    weights = np.cumsum(_PRIOR * np.exp(likely - likely.max()))
    return float(_GRID[np.searchsorted(weights, weights[-1] / 2)] * unit)


def _log_likelihood(seen: Floats, noises: Floats, drift: Floats) -> float:
    """Return how likely releases are if every entry wanders by itself; the first one is given."""
    values, variances = np.zeros(seen.shape[1]), np.full(seen.shape[1], math.inf)
    total = 0.0
    for row, noise in zip(seen, noises, strict=True):
        variances = variances + drift
        there = ~np.isnan(row)
        known = there & np.isfinite(variances)
        spread = variances[known] + noise[known]
        gaps = row[known] - values[known]
        total -= 0.5 * float(np.sum(np.log(spread) + gaps**2 / spread))
        moved, less = combined(values[there], variances[there], row[there], noise[there])
        values[there], variances[there] = moved, less
    return total
