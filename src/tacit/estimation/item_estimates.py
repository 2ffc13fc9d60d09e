r"""Means and factors of items as they were measured, before any shrinking, and with what variance.

Shrunk estimates cannot be regressed on item features: where noise rules they are all alike. These
are the numbers that they were shrunk from. All of it is post-processing.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.latent import LatentEstimate

Floats = NDArray[np.float64]

_LEAST = 1e-6  # of an estimate that is kept when it is shrunk: then it is taken back no further


class ItemEstimates(NamedTuple):
    """Measured factors and, in the last column, means; the variances of their noise."""

    values: Floats
    variances: Floats


def moved(estimate: LatentEstimate, step: tuple[Floats, Floats]) -> ItemEstimates:
    """Return what one round measured: the estimate so far and a whole step from it."""
    before = np.hstack([estimate.factors, estimate.offsets[:, None]])
    return ItemEstimates(before + step[0], step[1])


def from_gradients(
    rounds: Sequence[ItemEstimates], effects: tuple[Floats, Floats]
) -> ItemEstimates:
    """Average the rounds, whose noise is independent; means were measured by `effects` as well."""
    values = np.mean([each.values for each in rounds], axis=0)
    variances = np.mean([each.variances for each in rounds], axis=0) / len(rounds)
    means, doubts = effects
    trust = variances[:, -1] / (variances[:, -1] + doubts)
    values[:, -1] += trust * (means - values[:, -1])
    variances[:, -1] *= 1.0 - trust
    return ItemEstimates(values, variances)


def from_equations(
    estimate: LatentEstimate, priors: Floats, rated: CoRatings, noise_sd: float
) -> ItemEstimates:
    r"""Take back the shrinking of the last M-step.

    Item j was rated $n_j$ times, so its loadings have noise of about $D_j/n_j$, and that of the
    release. They were drawn to their means over items by $v_k/(v_k + s_j^2)$, $v$ = `priors`. Means
    are not shrunk.
    """
    counts = rated.shares * float(rated.stratum_sizes @ rated.lengths)
    noise = estimate.noise / np.maximum(counts, 1e-3) + (noise_sd / rated.weights) ** 2
    usual = rated.shares @ estimate.factors / rated.shares.sum()
    keep = priors[:-1] / (priors[:-1] + noise[:, None])
    factors = usual + (estimate.factors - usual) / np.maximum(keep, _LEAST)
    values = np.hstack([factors, estimate.offsets[:, None]])
    return ItemEstimates(values, np.repeat(noise[:, None], values.shape[1], axis=1))
