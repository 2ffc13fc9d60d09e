"""The norm L from a noisy histogram: it fades into the public rule where noise drowns it."""

import math

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.release import Release, ReleaseKind

NORMS = Release(ReleaseKind.ROW_NORMS)
"""The release."""
NORM_SHARE = 0.05
"""Its share of the budget."""
_QUANTILE = 0.9  # of the rows are to be shorter than L
_BINS, _BINS_PER_DOUBLING = 48, 6


def default_row_norm(ratings: int, rating_range: tuple[float, float]) -> float:
    """Return a bound on a row's norm from public numbers only: (hi - lo)/4 sqrt(ratings)."""
    return (rating_range[1] - rating_range[0]) / 4 * math.sqrt(ratings)


def norm_edges(ratings: int, rating_range: tuple[float, float]) -> NDArray[np.float64]:
    """Return the upper edges of public bins: 48 up to (hi - lo) sqrt(ratings), 12 % apart.

    No row is longer, since offsets lie in the range and taking the own mean off shortens.
    """
    longest = (rating_range[1] - rating_range[0]) * math.sqrt(ratings)
    return longest * 2.0 ** (np.arange(1 - _BINS, 1) / _BINS_PER_DOUBLING)


def row_norm_of(
    counts: NDArray[np.float64], noise_sd: float, edges: NDArray[np.float64], rule: float
) -> float:
    """Return L: the edge under which 90 % of the rows are, drawn towards the public rule by noise.

    With N rows in all, the 10 % beyond the edge are told from noise if N/10 is well above the
    noise of a sum over all bins, s sqrt(bins). So with r the ratio of the latter to the former,
    L = edge^w rule^(1 - w), w = 1/(1 + r^2). Post-processing: it reads nothing but the release.

    >>> edges = np.array([1.0, 2.0, 4.0])
    >>> row_norm_of(np.array([500.0, 450.0, 50.0]), 0.0, edges, 8.0)
    2.0
    >>> round(row_norm_of(np.array([500.0, 450.0, 50.0]), 1e6, edges, 8.0), 3)
    8.0
    """
    sums = np.cumsum(counts)
    total = float(sums[-1])
    if total <= 0:
        return rule
    edge = float(edges[int(np.argmax(sums >= _QUANTILE * total))])
    ratio = noise_sd * math.sqrt(edges.size) / ((1 - _QUANTILE) * total)
    return float(rule * (edge / rule) ** (1 / (1 + ratio**2)))
