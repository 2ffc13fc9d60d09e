"""Empirical Bayes: noisy estimates shrunk by a prior variance that is estimated from them."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_CHANCE = 9.0  # a slope counts by how far its square is above so many times its variance
_RARE = 0.05  # of the mean weight: items below it are about equally rare


class Shrunk(NamedTuple):
    """Estimates drawn to zero by their noise, and the variance of what they still miss."""

    estimates: Floats
    doubt: Floats


def item_means(sums: Floats, noise_sd: float, rating_range: tuple[float, float]) -> Floats:
    """Return the shrunk mean rating of every item, from released (weighted sums x, weights c).

    On the scale [-1, 1] the overall mean g = sum x / sum c carries noise of variance
    e = n s^2 (1 + g^2)/(sum c)^2, and is drawn towards the middle by 1/(1 + e), as if its prior
    variance were 1. An item's deviation x_j/c_j - g carries noise of variance s^2 (1 + g^2)/c_j^2,
    and is drawn towards zero by `shrunk`. Post-processing: it reads nothing but the release.
    """
    middle, half = sum(rating_range) / 2, (rating_range[1] - rating_range[0]) / 2
    overall = _overall(sums, noise_sd)
    weights = np.maximum(sums[1], max(noise_sd, 1e-12))
    variances = noise_sd**2 * (1 + overall**2) / weights**2
    deviations = shrunk(sums[0] / weights - overall, variances, 0.01).estimates
    return np.asarray(middle + half * np.clip(overall + deviations, -1.0, 1.0))


def shrunk(measured: Floats, variances: Floats, fine: float, doubt: Floats | float = 1.0) -> Shrunk:
    """Shrink measured numbers, each with noise of its own variance, to zero.

    Each is multiplied by t^2/(t^2 + its variance), with t^2 a moment estimate of the prior
    variance, less three standard errors: what noise could have made does not count. The prior
    variances are in proportion to `doubt`. `fine` is the sd of the prior that does not matter any
    more.

    >>> shrunk(np.array([1.0, -1.0]), np.array([0.0, 1e9]), 0.01).estimates.round(3)
    array([ 1., -0.])
    """
    spread = _spread(measured, variances, fine, doubt)
    if spread <= 0:
        return Shrunk(np.zeros_like(measured), np.zeros_like(measured))
    prior = spread * doubt
    keep = prior / (prior + variances)
    return Shrunk(np.asarray(keep * measured), np.asarray(prior * (1 - keep)))


def drawn_to_popularity(
    measured: Floats, variances: Floats, weights: Floats, fine: float, doubt: Floats | float = 1.0
) -> Shrunk:
    """Shrink measured numbers of items to what their popularity predicts, where it tells anything.

    The prediction is a multiple of the logarithm of the item weights (with a floor), 0 on average
    over ratings: what many people choose is often rated higher. What chance could have made of its
    slope does not count. It reads nothing but releases.
    """
    along = np.log(weights + _RARE * float(np.mean(weights)))
    along -= float(weights @ along / weights.sum())
    every = variances + max(_spread(measured, variances, fine, doubt), 0.0) * doubt
    information = float(np.sum(along**2 / every))
    slope = float(np.sum(along * measured / every)) / max(information, 1e-300)
    predicted = along * slope * max(1.0 - _CHANCE / max(slope**2 * information, 1e-300), 0.0)
    rest = shrunk(measured - predicted, variances, fine, doubt)
    doubt_of_slope = along**2 / information if np.any(predicted) else 0.0
    return Shrunk(predicted + rest.estimates, rest.doubt + doubt_of_slope)


def _spread(measured: Floats, variances: Floats, fine: float, doubt: Floats | float) -> float:
    """Return t^2 of `shrunk`; it is not positive where noise could have made all."""
    precision = doubt / (variances + fine**2)
    total = float(np.sum(precision * doubt))
    spread = float(np.sum(precision * (measured**2 - variances))) / total
    return spread - 3 * float(np.sqrt(2 * np.sum((precision * variances) ** 2))) / total


def _overall(sums: Floats, noise_sd: float) -> float:
    """Return the overall mean on the scale [-1, 1]."""
    noise = noise_sd * float(np.sqrt(sums.shape[1]))
    weight = max(float(sums[1].sum()), noise, 1e-12)
    raw = float(np.clip(sums[0].sum() / weight, -1.0, 1.0))
    return raw / (1 + (noise / weight) ** 2 * (1 + raw**2))
