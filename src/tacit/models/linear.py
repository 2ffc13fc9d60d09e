"""Local rules that are linear algebra on one's own ratings: projection and ridge regression."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError
from tacit.models.rules import (
    Floats,
    OwnRows,
    Pairs,
    PublishedRule,
    centred,
    check_shapes,
    cosines,
    less_mean,
    missing_parts,
    own_arrays,
)


@dataclass(frozen=True, eq=False)
class ProjectionRule(PublishedRule):
    """Projects one's own row on a published subspace, Y = scale P(y) V V^T.

    y is the row without offsets and own mean. With more than `max_ratings` ratings, they count
    for max_ratings.

    *Paper:* Algorithm 4, local computation; scale = m n / |Omega|.
    """

    kind: ClassVar[str] = "projection"

    basis: Floats
    offsets: Floats
    scale: float
    max_ratings: int | None
    centre: bool

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from scipy.sparse import csr_array

        values, means = centred(own, self.offsets, self.centre)
        lengths = np.diff(own.indptr)
        if self.max_ratings is not None:
            values *= np.repeat(np.minimum(1.0, self.max_ratings / np.maximum(lengths, 1)), lengths)
        shape = (lengths.size, self.offsets.size)
        rows = csr_array((values, own.items.astype(np.int32), own.indptr), shape=shape)
        filled = self.scale * (rows @ self.basis) @ self.basis.T
        return np.asarray(filled + means[:, None] + self.offsets)

    def similarities(self, item: int) -> Floats:
        """Return the cosines of the items' rows of the basis."""
        return cosines(self.basis, item)

    def contributions(self, own: OwnRows, items: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the offsets, and what each rating adds by the subspace and the own mean."""
        weights = self.scale * (self.basis[items] @ self.basis[own.items].T)
        if self.max_ratings is not None:
            weights *= min(1.0, self.max_ratings / max(own.items.size, 1))
        if self.centre:
            weights = _with_own_mean(weights, 0.0)
        gaps = own.values.astype(np.float64) - self.offsets[own.items]
        return self.offsets[items], weights * gaps

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        check_shapes(self, basis=(self.offsets.size, self.basis.shape[-1]))
        if not 0 < self.scale < np.inf:
            raise ModelFileError("the settings of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """The subspace comes from at least one covariance or product."""
        kinds = (ReleaseKind.COVARIANCE, ReleaseKind.PRODUCT)
        return missing_parts(releases, self.offsets, kinds, 1)


@dataclass(frozen=True, eq=False)
class RidgeRule(PublishedRule):
    """Ridge regression of one's own ratings on published item factors.

    u = (F_o^T D_o^-1 F_o + I)^-1 F_o^T D_o^-1 y_o on the rated items o, D = diag(noise); scores
    are offsets + own mean + F u. `noise` has, for each item, the variance of a rating about its
    prediction by factors. It is the posterior mean of u for u ~ N(0, I) and such noise; with the
    same noise for all items it is ridge regression with ridge = noise. Post-processing, and free:
    it uses all of a person's ratings.

    `spread` is the sd of the error of each prediction if ratings are y_j = offset_j + b + f_j . u
    + e_j with u ~ N(0, I), e_j ~ N(0, noise_j) and, with `centre` only, a user bias b:

        variance_j = f_j^T A^-1 f_j + noise_j + h_j^2 v,    A = F_o^T D_o^-1 F_o + I.

    With no centre, v = 0, and this is the Gaussian posterior. With it, the own mean of d ratings
    misses b by an error of the variance v = (shrink^2 t + |F_o^T 1|^2 + sum_o noise) / (d +
    shrink)^2, of which h_j = 1 - f_j^T A^-1 F_o^T D_o^-1 1 stays. The two errors are uncorrelated:
    u - E[u | y] is uncorrelated with everything rated. b has the variance t for which the shrunk
    mean is the best one if ratings of a person differ independently: the mean of |f_j|^2 + noise_j
    over all items, by shrink. Without shrinking the prior on the user bias b is flat: infinite
    variance without ratings. Offsets, factors and noise are taken as exact: the noise of
    the releases counts only where the algorithm put it into `noise`.
    """

    kind: ClassVar[str] = "ridge"

    factors: Floats
    offsets: Floats
    noise: Floats
    centre: bool
    shrink: float
    source: ReleaseKind

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        from tacit.kernels.factors import solve_factors

        people = own.indptr.size - 1
        rows = own_arrays(own, self.offsets, (self.centre, self.shrink, np.inf, np.inf))
        solved = np.zeros((people, self.factors.shape[1]))
        if solved.size:
            solve_factors(rows, self.factors, 1.0 / np.sqrt(self.noise), solved, 0, people)
        scores = np.asarray(solved @ self.factors.T)
        scores += rows.means[:, None]
        scores += self.offsets
        return scores

    def spread(self, own: OwnRows) -> Floats:
        """Return the sd of the error of everyone's prediction of every item."""
        from tacit.kernels.posterior_variance import factor_variances

        people = own.indptr.size - 1
        rows = own_arrays(own, self.offsets, (self.centre, self.shrink, np.inf, np.inf))
        variances = np.empty((people, self.offsets.size))
        doubts = self._doubts(own) if self.centre else np.zeros(people)
        factor_variances(rows, self.factors, self.noise, doubts, variances, 0, people)
        np.copyto(variances, np.inf, where=np.isnan(variances))  # beyond what arithmetic can bear
        return np.sqrt(variances, out=variances)

    def pair_scores(self, own: OwnRows, pairs: Pairs, spread: bool) -> tuple[Floats, Floats]:
        """Return the predicted rating of each pair, and the sd of its error if `spread`."""
        from tacit.kernels.pairs import ridge_pairs

        people, count = own.indptr.size - 1, pairs.items.size
        rows = own_arrays(own, self.offsets, (self.centre, self.shrink, np.inf, np.inf))
        published = (self.factors, 1.0 / np.sqrt(self.noise))
        doubts = self._doubts(own) if self.centre and spread else np.zeros(people)
        scores, variances = np.empty(count), np.empty(count if spread else 0)
        ridge_pairs(rows, published, doubts, tuple(pairs), scores, variances, 0, people)
        scores += rows.means[pairs.people] + self.offsets[pairs.items]
        if not spread:
            return scores, variances
        variances += self.noise[pairs.items]
        np.copyto(variances, np.inf, where=np.isnan(variances))  # beyond what arithmetic can bear
        return scores, np.sqrt(variances, out=variances)

    def similarities(self, item: int) -> Floats:
        """Return the cosines of the items' factors, less the mean factors of all items."""
        return cosines(less_mean(self.factors), item)

    def contributions(self, own: OwnRows, items: NDArray[np.int64]) -> tuple[Floats, Floats]:
        """Return the offsets, and what each rating adds by the regression and the own mean."""
        weights = ridge_weights(self.factors, self.noise, own, items)
        if self.centre:
            weights = _with_own_mean(weights, self.shrink)
        gaps = own.values.astype(np.float64) - self.offsets[own.items]
        return self.offsets[items], weights * gaps

    def _doubts(self, own: OwnRows) -> Floats:
        """Return v, the variance of the error of everyone's own mean."""
        from scipy.sparse import csr_array

        lengths = np.diff(own.indptr)
        shape = (lengths.size, self.offsets.size)
        rated = csr_array((np.ones(own.items.size), own.items.astype(np.int32), own.indptr), shape)
        shared = np.asarray(rated @ self.factors)
        errors = np.sum(shared**2, axis=1) + np.asarray(rated @ self.noise)
        level = self.shrink * float(np.mean(np.sum(self.factors**2, axis=1) + self.noise))
        counted = (lengths + self.shrink) ** 2
        doubts = np.full(lengths.size, np.inf)
        np.divide(level + errors, counted, out=doubts, where=counted > 0)
        return doubts

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        items = self.offsets.size
        check_shapes(self, factors=(items, self.factors.shape[-1]), noise=(items,))
        if not (np.all(self.noise > 0) and 0 <= self.shrink < np.inf):
            raise ModelFileError("the settings of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Factors come from at least one release of the kind named as their source."""
        wanted = 1 if self.factors.size else 0
        return missing_parts(releases, self.offsets, (self.source,), wanted)


def ridge_weights(factors: Floats, noise: Floats, own: OwnRows, items: NDArray[np.int64]) -> Floats:
    r"""Return $F_j (F_o^T D_o^{-1} F_o + I)^{-1} F_o^T D_o^{-1}$ of some items j: items by ratings.

    It is what a rating that is 1 above its expectation adds to each prediction.
    """
    rated = factors[own.items]
    scaled = rated / noise[own.items, None]
    inner = np.eye(factors.shape[1]) + rated.T @ scaled
    return np.asarray(factors[items] @ np.linalg.solve(inner, scaled.T))


def _with_own_mean(weights: Floats, shrink: float) -> Floats:
    """Return the weights of ratings from those of ratings less the own mean, which is added too."""
    share = 1.0 / max(weights.shape[1] + shrink, 1e-12)
    return np.asarray(weights + share * (1.0 - weights.sum(axis=1, keepdims=True)))
