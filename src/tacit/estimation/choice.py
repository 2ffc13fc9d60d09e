"""Choice factors from noisy co-occurrences: which items are chosen together beyond popularity.

All of it is post-processing. The release is S = sum_i e_i e_i^T / d_i + noise, e_i the 0/1 row of
user i and d_i its sum. If she chooses item j with mean d_i p_j (1 + f_j . u_i), with u_i of mean 0
and variance I, then off its diagonal E S_jk = total p_j p_k (1 + f_j . f_k).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.estimation.popularity import popularity, positive
from tacit.estimation.spiked_covariance import NoiseModel, factors_of_matrix

Floats = NDArray[np.float64]

_WIDTH = 5.0  # makes 1/4 what a factor's entries typically are (estimation.spiked_covariance)
_SINGLE = 1 / 3  # a factor passes noise and what one usual user adds (spiked_covariance: three)
_LEAST_OWN = 0.2  # of an item's second moment: what is its own at the least


class ChoiceFactors(NamedTuple):
    """How choices are shared among items, and what goes together.

    Attributes:
        shares: p, for each item; they add up to 1.
        loadings: f, items by factors, zero on average.
        total: how many choices all users make together, as far as pairs tell.
    """

    shares: Floats
    loadings: Floats
    total: float

    @property
    def strength(self) -> float:
        """Return the variance that factors make of choices, over what popularity makes of them."""
        return float(self.shares @ np.sum(self.loadings**2, axis=1))

    def second_moment(self, users: float) -> tuple[Floats, Floats]:
        r"""Return V and delta with $E[x x^T] \approx V V^T + diag(delta)$, $x = e/\sqrt{d}$."""
        scale = math.sqrt(self.total / users) * self.shares
        ones = np.ones((self.shares.size, 1))
        factors = scale[:, None] * np.hstack([ones, self.loadings])
        own = self.shares - np.sum(factors**2, axis=1)
        return factors, np.maximum(own, _LEAST_OWN * self.shares)


def choice_factors(
    pairs: tuple[Floats, float],
    counts: tuple[Floats, float],
    known: NDArray[np.int64],
    users: float,
    limits: tuple[int, int],
    alone: bool = False,
) -> ChoiceFactors:
    """Return what released pairs of the items `known` and counts of all items tell.

    `pairs` and `counts` come with the sd of their noise; `limits` are the most factors, and the
    seed of noise to compare with. Items outside of `known` have no loadings. Where pairs are
    `alone`, d_i counts choices of `known` only, and p_j is their share of these: factors f are the
    same, and of all choices `total` there are as many times more as popularity says.
    """
    matrix, noise_sd = pairs
    every = positive(*counts)
    every /= every.sum()
    part = float(every[known].sum())
    shares = popularity(counts[0][known], counts[1], matrix, noise_sd)
    among = shares if alone else part * shares
    found, total = _loadings(matrix, noise_sd, among, users, limits)
    every[known] = part * shares
    loadings = np.zeros((every.size, found.shape[1]))
    loadings[known] = found
    return ChoiceFactors(every, loadings, total / part if alone else total)


def _loadings(
    pairs: Floats, noise_sd: float, shares: Floats, users: float, limits: tuple[int, int]
) -> tuple[Floats, float]:
    """Return what goes together beyond popularity, centred, and how many choices there are.

    All that is along p is taken off from both sides, so that errors of p do not pass for factors.
    """
    expected = np.outer(shares, shares)
    np.fill_diagonal(pairs, 0.0)
    fitted = float(np.sum(pairs * expected))
    fitted /= max(float(np.sum(expected**2) - np.sum(shares**4)), 1e-300)
    total = possible_total(fitted, users, shares.size)
    noise_model = choice_noise_model(shares, total, users, noise_sd / math.sqrt(2.0), limits)
    excess = pairs - total * expected
    np.fill_diagonal(excess, 0.0)
    test = projection_weights(shares, noise_model)
    along = excess @ test
    excess -= np.outer(shares, along) + np.outer(along, shares)
    excess += float(test @ along) * expected
    return centred(factors_of_matrix(excess, noise_model).loadings, shares), total


def choice_noise_model(
    shares: Floats, total: float, users: float, noise_sd: float, limits: tuple[int, int]
) -> NoiseModel:
    """Return the numbers of the estimate; S_jk varies by chance by about users p_j p_k."""
    most, seed = limits
    return NoiseModel(
        shares * math.sqrt(total),
        noise_sd=noise_sd,
        sampling_sd=math.sqrt(users) * shares,
        users=users,
        width=_WIDTH,
        single=_SINGLE,
        most=min(most, shares.size),
        seed=seed,
    )


def centred(loadings: Floats, shares: Floats) -> Floats:
    """Move loadings so that they are zero on average."""
    return np.asarray(loadings - shares @ loadings / shares.sum())


def possible_total(total: float, users: float, items: int) -> float:
    """Return a number of choices as far as it is possible: everyone chooses one item, or all."""
    return min(max(total, users), users * items)


def projection_weights(shares: Floats, noise_model: NoiseModel) -> Floats:
    """Return a with a.p = 1 such that I - p a^T is a projection in the weights of the estimate."""
    test = noise_model.weights() ** 2 * shares
    return np.asarray(test / max(float(test @ shares), 1e-300))
