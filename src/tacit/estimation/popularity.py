"""How interactions are shared among items, from releases that each carry some noise."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

Floats = NDArray[np.float64]

_MISFIT = 0.1  # pairs tell an item's share to a tenth of it at best: tastes move them
_ROUNDS = 2


def positive(measured: Floats, noise_sd: Floats | float) -> Floats:
    """Return what numbers that cannot be negative are, on average, when measured with noise.

    x + s phi(x/s)/Phi(x/s): the mean of N(x, s^2) cut off below zero. It keeps the order of
    numbers with the same noise, and takes the large ones as they are.

    >>> positive(np.array([5.0, 0.0, -5.0]), 1.0).round(2)
    array([5.  , 0.8 , 0.19])
    """
    sd = np.maximum(noise_sd, 1e-12)
    measured = np.maximum(measured, -30 * sd)  # further down the arithmetic fails
    ratio = measured / sd
    hazard = np.exp(-(ratio**2) / 2 - np.log(2 * np.pi) / 2 - log_ndtr(ratio))
    return np.asarray(np.maximum(measured + sd * hazard, 1e-12 * sd))


def popularity(weights: Floats, weight_sd: float, pairs: Floats, pair_sd: float) -> Floats:
    """Return the share p_j of all interactions that each item has; they add up to 1.

    Two noisy measurements are combined, each by its known variance. Item weights are p times a
    number. So is S p, for the matrix S of pairs without its diagonal, which is about |Omega| p p^T:
    where people touch many items, and there is much noise, it tells popularity better.

    Post-processing: it reads nothing but the two releases.
    """
    rough = positive(weights, weight_sd)
    scale = max(float(weights.sum()), 0.2 * float(rough.sum()))
    first, first_variance = weights / scale, (weight_sd / scale) ** 2 + 1e-18
    shares: Floats = rough / rough.sum()
    along = shares / np.linalg.norm(shares)
    off = pairs @ along - np.diag(pairs) * along
    for _ in range(_ROUNDS):
        sums = off + _missing_diagonal(shares, along, off)
        total = float(sums.sum())
        if total <= 0:
            return shares
        second_variance = 0.5 * (pair_sd / total) ** 2 + (_MISFIT * shares) ** 2
        both = first_variance + second_variance
        mean = (second_variance * first + first_variance * sums / total) / both
        found = positive(mean, np.sqrt(first_variance * second_variance / both))
        shares = found / found.sum()
    return shares


def _missing_diagonal(shares: Floats, along: Floats, off: Floats) -> Floats:
    """Return what the diagonal of |Omega| p p^T adds to its product with a vector."""
    products = shares * (float(shares @ along) - shares * along)
    size = float(products @ off) / max(float(products @ products), 1e-300)
    return np.asarray(max(size, 0.0) * shares**2 * along)


def follow_popularity(pairs: Floats, weights: Floats, amount: float) -> Floats:
    """Return pairs S whose popularity, `amount` of it, is that of item weights w.

    Off the diagonal S is c w w^T and something beyond popularity. Its part along w, from either
    side, is what S tells of popularity; `amount` of that is taken off, but for c. What goes
    together beyond popularity stays.

    >>> weights = np.array([1.0, 2.0, 3.0])
    >>> follow_popularity(np.outer(weights, weights), weights, 1.0)
    array([[1., 2., 3.],
           [2., 4., 6.],
           [3., 6., 9.]])
    """
    squares = float(weights @ weights)
    if not amount > 0 or not squares > 0:
        return pairs
    expected = np.outer(weights, weights)
    off = pairs - np.diag(np.diag(pairs))
    level = popularity_level(pairs, weights)
    excess = off - level * (expected - np.diag(weights**2))
    along = excess @ weights / squares
    change = np.outer(along, weights)
    change += change.T - float(along @ weights) / squares * expected
    np.fill_diagonal(change, 0.0)
    return np.asarray(pairs - amount * change)


def popularity_level(pairs: Floats, weights: Floats) -> float:
    """Return c, for which c w w^T is nearest to pairs off the diagonal."""
    expected = np.outer(weights, weights)
    np.fill_diagonal(expected, 0.0)
    return float(np.sum(pairs * expected)) / max(float(np.sum(expected**2)), 1e-300)
