"""Item means from noisy weighted sums: they fade into the overall mean where noise drowns them."""

import numpy as np
from numpy.typing import NDArray

__all__ = ["item_means"]


def item_means(
    sums: NDArray[np.float64], noise_sd: float, rating_range: tuple[float, float]
) -> NDArray[np.float64]:
    """Return the shrunk mean rating of every item, from released (weighted sums, weights).

    On the scale [-1, 1], with overall mean g = sum x / sum c, an item's deviation
    x_j/c_j - g carries noise of variance s^2 (1 + g^2)/c_j^2. It is multiplied by
    t^2/(t^2 + that variance), where t^2 is the spread of deviations beyond what noise explains.
    Post-processing: it reads nothing but the release.
    """
    middle, half = sum(rating_range) / 2, (rating_range[1] - rating_range[0]) / 2
    totals, weights = sums[0], np.maximum(sums[1], 1e-12)
    floor = noise_sd * np.sqrt(weights.size)  # below it even the overall sums are noise
    overall = float(np.clip(sums[0].sum() / max(sums[1].sum(), floor, 1e-12), -1.0, 1.0))
    deviations = totals / weights - overall
    variances = noise_sd**2 * (1 + overall**2) / weights**2
    precision = 1.0 / (variances + 1e-4)
    spread = np.sum(precision * (deviations**2 - variances)) / np.sum(precision)
    spread = max(float(spread), 0.0)
    shrink = spread / (spread + variances) if spread > 0 else np.zeros_like(weights)
    means = np.clip(overall + shrink * deviations, -1.0, 1.0)
    return np.asarray(middle + half * means)
