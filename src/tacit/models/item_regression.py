r"""Empirical Bayes regression of item parameters on item features.

A parameter of the items (a mean, or one of the factors) was measured as $z_j$, with noise of the
variance $s_j^2$. With $x_j$ the features of item j, the model is

$$z_j = \theta_j + N(0, s_j^2), \quad \theta_j = a + x_j \beta + N(0, t^2), \quad
  \beta \sim N(0, b^2 I),$$

with a flat prior on a. $b^2$ is where the likelihood of all $z$ is largest, on a grid, and $t^2$ is
its posterior mean with a flat prior on $t$: where it is largest, $t^2$ is often 0, and variances
would be too small. $b^2 = 0$, and features are not used, unless they raise the log-likelihood by
`_EVIDENCE`. It reads published numbers only.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EVIDENCE = 3.0  # twice that is a chi-square of 6: by chance once in 70
_SIZES = 4.0 ** np.arange(1, -8, -1)  # values of b^2 that are tried, in variances of z
_SDS = np.linspace(0.0, 1.0, 13)  # values of t that are tried, in sds of z
_FINE = 1e-9  # of the variance of z: noise of less does not matter


class ItemRegression(NamedTuple):
    r"""The posterior of $a$ and $\beta$, and $t^2$.

    Attributes:
        level: the mean of $a + \bar x \beta$, $\bar x$ = `centre`, independent of $\beta$.
        level_variance: its variance.
        centre: the mean features, weighted by how well items are known.
        coefficients: the mean of $\beta$.
        covariance: of $\beta$.
        variance: $t^2$, of what features do not tell.
    """

    level: float
    level_variance: float
    centre: Floats
    coefficients: Floats
    covariance: Floats
    variance: float

    def predicted(self, features: Floats) -> tuple[Floats, Floats]:
        """Return the mean and the variance of a parameter of items by their features alone."""
        gaps = features - self.centre
        doubt = np.einsum("jk,kl,jl->j", gaps, self.covariance, gaps)
        return self.level + gaps @ self.coefficients, doubt + self.level_variance + self.variance

    def posterior(
        self, features: Floats, measured: Floats, noise: Floats, more: Floats | float = 0.0
    ) -> tuple[Floats, Floats]:
        """Return the mean and the variance of a parameter that was measured, as well.

        `more` is added to t^2, for items of which features are missing.
        """
        means, variances = self.predicted(features)
        own = self.variance + more
        keep = own / (own + noise)
        doubt = keep * noise + (1.0 - keep) ** 2 * (variances - self.variance)
        return means + keep * (measured - means), doubt


def fit_regressions(
    features: Floats, measured: Floats, noise: Floats
) -> tuple[ItemRegression, ItemRegression]:
    """Return the regression on features and the one without any, each with its own variances.

    They are the same where features do not tell enough.
    """
    average = float(np.average(measured, weights=1.0 / noise))
    largest = float(np.average((measured - average) ** 2, weights=1.0 / noise))
    noise = np.maximum(noise, max(_FINE * largest, 1e-300))
    tried = [_Trial.of(features, measured, noise, largest * part**2) for part in _SDS]
    best = {size: max(trial.likelihood(size) for trial in tried) for size in largest * _SIZES}
    size = max(best, key=lambda each: best[each])
    alone = max(trial.likelihood(0.0) for trial in tried)
    without = _expected(tried, features, measured, noise, 0.0)
    if best[size] - alone < _EVIDENCE:
        return without, without
    return _expected(tried, features, measured, noise, size), without


def _expected(
    tried: "list[_Trial]", features: Floats, measured: Floats, noise: Floats, size: float
) -> ItemRegression:
    """Return the regression with b^2 = size and the posterior mean of t^2."""
    logs = np.array([trial.likelihood(size) for trial in tried])
    weights = np.exp(logs - logs.max())
    variance = float(np.average([trial.variance for trial in tried], weights=weights))
    return _Trial.of(features, measured, noise, variance).regression(size)


class _Trial(NamedTuple):
    """What the likelihood needs for one value of t^2: the normal equations in their own axes."""

    weights: Floats
    level: float
    centre: Floats
    values: Floats
    axes: Floats
    along: Floats
    alone: float
    variance: float

    @classmethod
    def of(cls, features: Floats, measured: Floats, noise: Floats, variance: float) -> "_Trial":
        weights = 1.0 / (noise + variance)
        total = float(weights.sum())
        level, centre = float(weights @ measured) / total, weights @ features / total
        gaps, rest = features - centre, measured - level
        weighted = gaps * weights[:, None]
        values, axes = np.linalg.eigh(gaps.T @ weighted)
        along = axes.T @ (weighted.T @ rest)
        alone = float(np.sum(np.log(weights)) - np.log(total) - weights @ rest**2) / 2
        values = np.maximum(values, 0.0)
        return cls(weights, level, centre, values, axes, along, alone, variance)

    def likelihood(self, size: float) -> float:
        """Return the log-likelihood, but for a constant, with b^2 = size."""
        grown = 1.0 + size * self.values
        return self.alone + float(np.sum(size * self.along**2 / grown - np.log(grown))) / 2

    def regression(self, size: float) -> ItemRegression:
        """Return the posterior with b^2 = size."""
        scaled = self.axes * (size / (1.0 + size * self.values))
        return ItemRegression(
            level=self.level,
            level_variance=1.0 / float(self.weights.sum()),
            centre=self.centre,
            coefficients=scaled @ self.along,
            covariance=scaled @ self.axes.T,
            variance=self.variance,
        )
