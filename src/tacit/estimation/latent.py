r"""Steps of the latent factor model from releases: prior from choice, item factors, noise.

All of it is post-processing. In symbols: $u_i \sim N(W^T c_i, I)$, $y_{ij} \sim N(m_j + F_j u_i,
D_j)$; see models.latent for $c_i$. Steps are those of expectation maximisation, shrunk by how much
of them is noise or chance (estimation.empirical_bayes).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.empirical_bayes import drawn_to_popularity, shrunk

Floats = NDArray[np.float64]

_FINE = 1e-4  # differences of loadings that do not matter, in half ranges
_FURTHER = 1.2  # gradient steps are taken further: clipping made gradients shorter
_LEAST_KNOWN = 0.3  # of a factor is taken to be known however few ratings tell it: steps stay short
_FROM_CHOICE = 2  # factors at the most that begin as choice factors
_CHANCE = 0.5  # of the noise of ratings that a gradient has by chance: u is shrunk
_ALONE = 20.0  # ratings: an item with so many has half of its own noise variance, half the average
_RATINGS = 3.0  # as many are added, at the mean so far, to what corrects an item's mean


class LatentEstimate(NamedTuple):
    """What is known so far: F, m, D and W."""

    factors: Floats
    offsets: Floats
    noise: Floats
    prior: Floats


class Doubt(NamedTuple):
    """The variance of a rating that comes from what means and factors miss; D includes both.

    Zeros where it is not known.
    """

    means: Floats
    factors: Floats


class FactorMoments(NamedTuple):
    """Released second moments of (c, u, fit error), their noise, and how many users there are."""

    sums: Floats
    noise_sd: float
    users: float

    def choice(self, count: int) -> tuple[Floats, Floats]:
        """Return the eigenpairs of the block of c that noise cannot have made, for `count` c's."""
        values, vectors = np.linalg.eigh(self.sums[:count, :count])
        floor = max(3 * self.noise_sd * math.sqrt(count), 1e-9 * float(np.abs(values).max()))
        keep = values > floor
        return values[keep], vectors[:, keep]


def known(estimate: LatentEstimate, rated: CoRatings) -> Floats:
    r"""Return K = E[I - S], how much of u people's ratings tell, from public numbers.

    With d ratings it has the eigenvalues $d g/(1 + d g)$, g those of $F^T diag(p/D) F$.
    """
    weighed = estimate.factors * (rated.shares / estimate.noise)[:, None]
    values, axes = np.linalg.eigh(estimate.factors.T @ weighed)
    moved = np.outer(rated.lengths, np.maximum(values, 0.0))
    told = rated.stratum_sizes @ (moved / (1 + moved)) / rated.stratum_sizes.sum()
    return np.asarray((axes * np.maximum(told, _LEAST_KNOWN)) @ axes.T)


def expected_norm(estimate: LatentEstimate, rated: CoRatings, spread: Floats) -> float:
    r"""Return $E|\hat u|^2$; `spread` is the second moment of $W^T c$."""
    return float(np.trace(known(estimate, rated)) + np.trace(spread))


def prior_step(
    estimate: LatentEstimate, moments: FactorMoments, gain: float
) -> tuple[LatentEstimate, Floats]:
    """Regress posterior means on choice factors; return the estimate, and E[(W^T c)(W^T c)^T].

    Posterior means are shrunk towards the prior that they were computed with, so W moves by `gain`
    times the difference. What noise or chance can have made of it is left out.
    """
    count = estimate.prior.shape[0]
    values, axes = moments.choice(count)
    if values.size == 0:
        rank = estimate.prior.shape[1]
        return estimate._replace(prior=np.zeros_like(estimate.prior)), np.zeros((rank, rank))
    found = axes.T @ moments.sums[:count, count:-1] / values[:, None]
    change = gain * (found - axes.T @ estimate.prior)
    variances = gain**2 * ((moments.noise_sd**2 / 2) / values**2 + 1 / values)
    every = np.repeat(variances, change.shape[1])
    kept = shrunk(change.ravel(), every, _FINE).estimates.reshape(change.shape)
    prior = estimate.prior + axes @ kept
    along = (axes.T @ prior) * np.sqrt(values / moments.users)[:, None]
    return estimate._replace(prior=np.ascontiguousarray(prior)), along.T @ along


def choice_step(
    estimate: LatentEstimate, gradient: Floats, noise_sd: float, moment: Floats, rated: CoRatings
) -> tuple[Floats, Floats]:
    r"""Return W moved by a released $\sum_i c_i (\hat u_i - W^T c_i)^T$, and E[(W^T c)(W^T c)^T].

    Of what W misses, posterior means show $K$ (`known`): with m users and M = `moment`, $E[c c^T]$,
    W is off by $M^{-1}$ gradient $K^{-1}/m$. What noise or chance can have made is left out. The
    first of c, popularity, is about the same for everyone: what goes with it moves the means m in
    the same step, and would be made up for twice.
    """
    values, axes = np.linalg.eigh(float(rated.stratum_sizes.sum()) * moment)
    values = np.maximum(values, 1e-9 * values[-1])
    back = np.linalg.inv(known(estimate, rated))
    change = axes.T @ gradient @ back / values[:, None]
    variances = np.outer(noise_sd**2 / values**2 + 1 / values, np.sum(back**2, axis=0))
    kept = shrunk(change.ravel(), variances.ravel(), _FINE).estimates.reshape(change.shape)
    moved = axes @ kept
    moved[0] = 0.0
    prior = np.ascontiguousarray(estimate.prior + moved)
    return prior, prior.T @ moment @ prior


def from_choice(
    estimate: LatentEstimate, moment: Floats, most: int | None
) -> tuple[LatentEstimate, Floats]:
    r"""Add factors whose prior mean is a choice factor and whose loadings are 0; E[W^T c c^T W].

    Where the covariance of ratings shows no factor, how ratings go with choice can still be told
    from noise: it has items x factors numbers, not items x items. M = `moment` is $E[c c^T]$. W has
    the leading axes of M without popularity, the first of c, scaled so that $W^T c$ has variance 1.
    """
    values, axes = np.linalg.eigh((moment[1:, 1:] + moment[1:, 1:].T) / 2)
    count = min(_FROM_CHOICE if most is None else min(most, _FROM_CHOICE), values.size)
    values, axes = values[values.size - count :], axes[:, values.size - count :]
    prior = np.zeros((len(moment), count))
    prior[1:] = axes / np.sqrt(np.maximum(values, 1e-300))
    items, found = estimate.factors.shape
    moved = _with_factors(estimate, np.zeros((items, count)), prior)
    return moved, np.diag(np.append(np.zeros(found), np.ones(count)))


def rescaled(estimate: LatentEstimate, moments: FactorMoments) -> LatentEstimate:
    """Multiply D by the mean squared fit error, drawn to 1 by its noise, if that is more than 1.

    It is measured on ratings that people's own factors are fitted to: where it is less, the doubt
    about F, which D includes, is what other ratings show.
    """
    measured = float(moments.sums[-1, -1]) / moments.users
    weight = 1.0 / (1.0 + (moments.noise_sd / moments.users) ** 2)
    scale = min(max(weight * measured + (1 - weight), 1.0), 4.0)
    return estimate._replace(noise=estimate.noise * scale)


def gradient_step(
    estimate: LatentEstimate, step: tuple[Floats, Floats], weights: Floats, doubt: Doubt
) -> tuple[LatentEstimate, Doubt]:
    """Move factors and means by a `newton_step`, as far as noise and chance leave it.

    Prior variances of a step are in proportion to what is in doubt. What is missed after the step
    is returned with the estimate.
    """
    (steps, variances), rank = step, estimate.factors.shape[1]
    each = np.repeat(_in_doubt(doubt.factors), rank)
    loadings = shrunk(steps[:, :rank].ravel(), variances[:, :rank].ravel(), _FINE, each)
    means = drawn_to_popularity(
        steps[:, rank], variances[:, rank], weights, _FINE, _in_doubt(doubt.means)
    )
    missed = loadings.doubt.reshape(-1, rank).sum(axis=1)
    left = Doubt(_no_more(means.doubt, doubt.means), _no_more(missed, doubt.factors))
    moved = estimate._replace(
        factors=np.ascontiguousarray(estimate.factors + loadings.estimates.reshape(-1, rank)),
        offsets=estimate.offsets + means.estimates,
        noise=estimate.noise - sum(doubt) + sum(left),
    )
    return moved, left


def _in_doubt(doubt: Floats) -> Floats:
    """Return the doubt; if there is none, the same for all items."""
    return doubt if np.any(doubt) else np.ones_like(doubt)


def _no_more(missed: Floats, doubt: Floats) -> Floats:
    """Return what is missed after a step; as before if nothing of it could be told from noise."""
    return np.minimum(missed, doubt) if np.any(missed) else doubt


def newton_step(
    estimate: LatentEstimate, gradient: Floats, noise_sd: float, rated: CoRatings, spread: Floats
) -> tuple[Floats, Floats]:
    """Return how far factors and means are off by a released gradient, and the variance of that.

    Fisher's information on item j is about weight_j E[u u^T] = weight_j (K + spread), u posterior
    means, K as in `known` and spread = E[(W^T c)(W^T c)^T]. (I + spread, of the expected
    log-likelihood, makes steps that are too short, the more the less is known of people.)
    """
    rank = estimate.factors.shape[1]
    scale = np.zeros((rank + 1, rank + 1))
    scale[:rank, :rank] = np.linalg.inv(known(estimate, rated) + spread)
    scale[rank, rank] = 1.0
    steps = _FURTHER * (gradient @ scale) / rated.weights[:, None]
    chance = _CHANCE * estimate.noise * rated.inverse_counts
    doubt = _FURTHER**2 * (noise_sd**2 + chance) / rated.weights**2
    return steps, np.outer(doubt, np.sum(scale**2, axis=0))


def padded(estimate: LatentEstimate, rank: int, seed: int) -> LatentEstimate:
    """Add small random factors, so that there are `rank`: the likelihood decides on them."""
    items, found = estimate.factors.shape
    if found >= rank:
        return estimate
    rng = np.random.default_rng(seed)
    size = 0.1 * math.sqrt(float(np.mean(estimate.noise)))
    more = size * rng.standard_normal((items, rank - found))
    return _with_factors(estimate, more, np.zeros((estimate.prior.shape[0], rank - found)))


def _with_factors(estimate: LatentEstimate, factors: Floats, prior: Floats) -> LatentEstimate:
    """Append factors, and the columns of W that are theirs."""
    return estimate._replace(
        factors=np.hstack([estimate.factors, factors]), prior=np.hstack([estimate.prior, prior])
    )


def initial_variances(estimate: LatentEstimate, shares: Floats) -> Floats:
    """Return the prior variances of an item's loadings and of a correction of its mean."""
    gaps = estimate.factors - _usual(estimate.factors, shares)
    average = float(shares @ estimate.noise) / shares.sum()
    spread = np.maximum(shares @ gaps**2, 1e-3 * average)
    return np.append(spread, average / _RATINGS)


def equations_step(
    estimate: LatentEstimate,
    released: tuple[Floats, float],
    variances: Floats,
    least: float,
) -> tuple[LatentEstimate, Floats]:
    r"""Solve each item's expected least squares with a prior; return the estimate and the priors.

    $F_j \sim N((t, 0, ...), diag(v))$, t the mean loading on the user bias; v is fitted to the
    items, weighted by how often they were rated. D_j is what is left, the doubt about F_j included,
    shrunk to the average, and at least `least`. `released` comes with the sd of its noise.
    """
    rank, noise_sd = estimate.factors.shape[1], released[1]
    grams, right, squares = _unpacked(released[0], rank)
    floor = 3 * noise_sd * math.sqrt(rank + 1)  # noise makes no gram indefinite
    grams += max(floor, 0.0) * np.eye(rank + 1)
    counts = np.maximum(grams[:, rank, rank], 1e-9 * float(np.abs(grams[:, rank, rank]).max()))
    usual = np.append(_usual(estimate.factors, counts / counts.sum()), 0.0)
    precision = grams / estimate.noise[:, None, None] + np.diag(1 / variances)
    wanted = right / estimate.noise[:, None] + usual / variances
    covariances = np.linalg.inv(precision)
    found = np.einsum("jkl,jl->jk", covariances, wanted)
    left = squares - 2 * np.sum(found * right, axis=1)
    left += np.einsum("jk,jkl,jl->j", found, grams, found)
    left += np.einsum("jkl,jlk->j", covariances, grams)
    average = max(float(left.sum() / counts.sum()), least)
    noise = np.maximum((left + _ALONE * average) / (counts + _ALONE), 0.1 * average)
    spread = np.einsum("jkk->jk", covariances) + (found - usual) ** 2
    fitted = np.maximum(counts @ spread / counts.sum(), 1e-12 * average)
    fitted[rank] = average / _RATINGS
    moved = LatentEstimate(
        factors=np.ascontiguousarray(found[:, :rank]),
        offsets=estimate.offsets + found[:, rank],
        noise=noise,
        prior=estimate.prior,
    )
    return moved, fitted


def _usual(factors: Floats, shares: Floats) -> Floats:
    """Return the prior mean of an item's loadings: those on the user bias are all about t."""
    usual = np.zeros(factors.shape[1])
    usual[0] = float(shares @ factors[:, 0]) / float(shares.sum())
    return usual


def _unpacked(released: Floats, rank: int) -> tuple[Floats, Floats, Floats]:
    """Return each item's matrix of E[(u, 1)(u, 1)^T], products with ratings, and their squares."""
    above, beside = np.triu_indices(rank + 1)
    grams = np.empty((len(released), rank + 1, rank + 1))
    grams[:, above, beside] = released[:, : above.size]
    grams[:, beside, above] = released[:, : above.size]
    return grams, released[:, above.size : -1], released[:, -1]
