"""The local rule of the latent factor model: what a person chose and how she rated it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError
from tacit.models.linear import ridge_weights
from tacit.models.rules import (
    Bools,
    Floats,
    Lists,
    OwnRows,
    Pairs,
    PublishedRule,
    check_shapes,
    cosines,
    kinds_paid,
    less_mean,
    own_arrays,
)

if TYPE_CHECKING:
    from tacit.kernels.latent import LatentArrays
    from tacit.kernels.quick import QuickArrays

_LARGEST = 1e9  # of any number of the choice model; beyond it arithmetic would fail
_VAST = 1e30  # of anything measured: an item that nobody rated may have any noise
_SOFT = 0.1  # of the mean share: scores of choice below it fade to zero, and keep their order
_LEAST_POWER = 0.5  # of the chance to like an item, beside the score of choice


@dataclass(frozen=True, eq=False)
class LatentFactorRule(PublishedRule):
    r"""Posterior means in a linear Gaussian model of what a person chooses and how she rates it.

    Someone with ratings of the d items o has $x = e_o/\sqrt{d}$. Choice: $x = V c + N(0, \Delta)$,
    $c \sim N(0, I)$, with V = `choice_factors` and $\Delta$ = `choice_noise`, so that

    $$c = H^T x, \qquad H = \Delta^{-1} V (I + V^T \Delta^{-1} V)^{-1},$$

    and the score of choice of item j is $V_j c'$, the $x_j$ to expect, with $c'$ from
    $(I/s + V^T \Delta^{-1} V)^{-1}$ instead, $s = \sqrt{d/\bar d}$: $\Delta$ is for people with
    about the mean number $\bar d$ of ratings, and those with more tell more. Ratings:
    $y_j = m_j + F_j u + N(0, D_j)$ with $u \sim N(W^T c, I)$, W = `prior`, so that the predicted
    rating of j is $m_j + F_j \hat u$,

    $$\hat u = W^T c + (F_o^T D_o^{-1} F_o + I)^{-1} F_o^T D_o^{-1} (y_o - m_o - F_o W^T c).$$

    Without ratings c is that of an average person, (1, 0, ...). Lists are ordered by the product of
    the score of choice and a power of the probability
    $\Phi((m_j + F_j \hat u - t)/\sqrt{D_j})$ that she likes item j, rates it above t = `liked`. The
    power is $|V_{:0}|^2/|V|^2$, the part of scores of choice that is the same for everyone, and at
    least 1/2: people choose what they like, so that choices that differ between people tell a part
    of liking already, and those that are popularity alone tell none of it.

    `measured` are the factors and, in the last column, the means of the first items as they were
    measured, before any shrinking, and `measured_noise` the variances of that. Predictions do not
    use them; item features do (models.item_regression). A model may have none.

    `spread` is the sd of the error of a predicted rating, $F_j S F_j^T + D_j$ with S the posterior
    covariance of u. Published numbers are taken as exact; their doubt is in D.
    """

    kind: ClassVar[str] = "latent-factors"

    factors: Floats
    offsets: Floats
    noise: Floats
    choice_factors: Floats
    choice_noise: Floats
    prior: Floats
    liked: float
    measured: Floats | None = None
    measured_noise: Floats | None = None

    def scores(self, own: OwnRows) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        scores = np.asarray(self._solved(own) @ self.factors.T)
        scores += self.offsets
        return scores

    def spread(self, own: OwnRows) -> Floats:
        """Return the sd of the error of everyone's predicted rating of every item."""
        from tacit.kernels.posterior_variance import factor_variances

        people = own.indptr.size - 1
        rows = own_arrays(own, self.offsets, (False, 0.0, np.inf, np.inf))
        variances = np.empty((people, self.offsets.size))
        factor_variances(rows, self.factors, self.noise, np.zeros(people), variances, 0, people)
        np.copyto(variances, np.inf, where=np.isnan(variances))  # beyond what arithmetic can bear
        return np.sqrt(variances, out=variances)

    def pair_scores(self, own: OwnRows, pairs: Pairs, spread: bool) -> tuple[Floats, Floats]:
        """Return the predicted rating of each pair, and the sd of its error if `spread`."""
        from tacit.kernels.quick import quick_pairs

        people, count = own.indptr.size - 1, pairs.items.size
        rows = own_arrays(own, self.offsets, (False, 0.0, np.inf, np.inf))
        scores, variances = np.empty(count), np.empty(count if spread else 0)
        published = (self._arrays, self._quick)
        quick_pairs(rows, published, tuple(pairs), scores, variances, 0, people)
        scores += self.offsets[pairs.items]
        return scores, np.sqrt(variances + self.noise[pairs.items]) if spread else variances

    def choice(self, own: OwnRows) -> Floats:
        """Return everyone's score of choice of every item: positive, and comparable for one person.

        Below a tenth of an item's mean share scores fade to zero, so that all are positive.
        """
        from tacit.kernels.choosing import softplus

        scores, soft = self._choice_scores(own), self._choice_axes[3]
        softplus(scores)
        scores *= soft
        return scores

    def ranking(self, own: OwnRows) -> Floats:
        """Return what lists are ordered by: choice times a power of the chance to be liked."""
        return self.ranked(self.scores(own), self.choice(own))

    def ranked(self, scores: Floats, choice: Floats) -> Floats:
        """Return what lists are ordered by, from everyone's `scores` and `choice`."""
        chance = scores - self.liked
        chance /= np.sqrt(self.noise)
        ndtr(chance, out=chance)
        chance **= self._liking_power
        chance *= choice
        return chance

    def lists(self, own: OwnRows, rated: OwnRows, allowed: Bools, count: int) -> Lists:
        """Return everyone's best items by `ranking`, with predicted ratings and shares of choice.

        None is of her row in `rated`; see models.rules.
        """
        from tacit.kernels.choosing import best_chosen

        scores = np.asarray(self._solved(own) @ self.factors.T)
        people, count = len(scores), min(count, self.offsets.size)
        shape = people, count
        found = Lists(np.empty(shape, np.int64), np.empty(shape), np.empty(shape))
        liking = (self.offsets, self._arrays.roots, self.liked, self._liking_power)
        rows = (rated.indptr, rated.items)
        best_chosen(scores, self._choice_scores(own), liking, allowed, rows, tuple(found))
        return found

    def similarities(self, item: int) -> Floats:
        r"""Return the mean of two cosines: of choice factors, and of factors less their mean.

        Of choice factors the first, which is popularity, is left out. Where one of the two is zero
        for an item, it is the other one.
        """
        chosen = cosines(self.choice_factors[:, 1:], item)
        rated = cosines(less_mean(self.factors), item)
        both = 0.5 * (chosen + rated)
        return np.where(np.isnan(chosen), rated, np.where(np.isnan(rated), chosen, both))

    def contributions(self, own: OwnRows, items: NDArray[np.int64]) -> tuple[Floats, Floats]:
        r"""Return what is expected of her choice alone, and what each of her ratings adds.

        The first is $m_j + F_j W^T c$. A rating of k adds its distance from $m_k + F_k W^T c$ times
        the weight of the regression (`ridge_weights`).
        """
        means = self.offsets + self.factors @ (self.prior.T @ self._choice_means(own)[0])
        gaps = own.values.astype(np.float64) - means[own.items]
        return means[items], ridge_weights(self.factors, self.noise, own, items) * gaps

    def check(self) -> None:
        """Refuse arrays that do not fit together, and settings that are impossible."""
        items, rank, choices = self.offsets.size, self.factors.shape[-1], self.prior.shape[0]
        check_shapes(
            self,
            factors=(items, rank),
            noise=(items,),
            choice_factors=(items, choices),
            choice_noise=(items,),
            prior=(choices, rank),
        )
        _check_measured(self)
        usable = all(np.all(np.abs(part) < _LARGEST) for part in (self.choice_factors, self.prior))
        positive = np.all(self.noise > 0) and np.all(self.choice_noise > 0)
        if not (usable and positive and choices > 0 and np.isfinite(self.liked)):
            raise ModelFileError("the arrays of the local rule are impossible")

    def missing_releases(self, releases: Iterable[Release]) -> list[str]:
        """Say which of its parts no release pays for."""
        paid = kinds_paid(releases)
        steps = paid[ReleaseKind.GRADIENT] + paid[ReleaseKind.EQUATIONS]
        wanted = {
            "popularity of items": (np.ptp(self.choice_factors[:, 0]), ReleaseKind.ITEM_WEIGHTS),
            "choice factors": (self.choice_factors.shape[1] > 1, ReleaseKind.CO_OCCURRENCES),
        }
        missing = [
            f"it has {part}, and no release of {kind.value}"
            for part, (there, kind) in wanted.items()
            if there and not paid[kind]
        ]
        told = paid[ReleaseKind.FACTOR_MOMENTS] + paid[ReleaseKind.GRADIENT]
        if np.any(self.prior) and not told:
            missing.append("it has a prior from choice, and no release that it follows from")
        if self.factors.shape[1] > 1 and not steps + paid[ReleaseKind.COVARIANCE]:
            missing.append("it has more factors than a user bias, and no release they come from")
        if np.ptp(self.offsets) > 0 and not steps + paid[ReleaseKind.ITEM_EFFECTS]:
            missing.append("it has item means, and no release of item effects")
        return missing

    def _solved(self, own: OwnRows) -> Floats:
        """Return everyone's u."""
        from tacit.kernels.quick import quick_means

        people = own.indptr.size - 1
        rows = own_arrays(own, self.offsets, (False, 0.0, np.inf, np.inf))
        solved = np.zeros((people, self.factors.shape[1]))
        quick_means(rows, self._arrays, self._quick, solved, 0, people)
        return solved

    def _choice_means(self, own: OwnRows) -> Floats:
        """Return everyone's c; someone without ratings is taken to be average."""
        found = _share_sums(own, self._choice_weights)
        found[np.diff(own.indptr) == 0, 0] = 1.0
        return found

    def _choice_scores(self, own: OwnRows) -> Floats:
        """Return $V c'$ of everyone, over what it fades to zero below."""
        weights, values, across, soft = self._choice_axes
        found = _share_sums(own, weights)
        found /= values + 1.0 / self._certainty(np.diff(own.indptr))[:, None]
        unknown = np.diff(own.indptr) == 0
        scores = np.asarray(found @ across)
        scores[unknown] = self.choice_factors[:, 0] / soft
        return scores

    def _certainty(self, lengths: NDArray[np.int64]) -> Floats:
        r"""Return $\sqrt{d/\bar d}$, clipped; V's first column adds up to $\sqrt{\bar d}$."""
        usual = max(float(np.sum(self.choice_factors[:, 0])) ** 2, 1.0)
        return np.clip(np.sqrt(lengths / usual), 0.1, 10.0)

    @cached_property
    def _liking_power(self) -> float:
        """Return the power of the chance to be liked: 1 where choices are popularity alone."""
        squares = np.sum(self.choice_factors**2, axis=0)
        return max(_LEAST_POWER, float(squares[0] / max(float(squares.sum()), 1e-300)))

    @cached_property
    def _choice_axes(self) -> tuple[Floats, Floats, Floats, float]:
        r"""Return $\Delta^{-1} V Q$, q, $(V Q)^T/s$ and s, with $V^T \Delta^{-1} V = Q q Q^T$.

        q is diagonal, and s is where scores of choice fade to zero.
        """
        scaled = self.choice_factors / self.choice_noise[:, None]
        values, axes = np.linalg.eigh(self.choice_factors.T @ scaled)
        soft = _SOFT * max(float(np.mean(self.choice_factors[:, 0])), 1e-12)
        across = np.ascontiguousarray((self.choice_factors @ axes).T / soft)
        return np.ascontiguousarray(scaled @ axes), np.maximum(values, 0.0), across, soft

    @cached_property
    def _arrays(self) -> "LatentArrays":
        from tacit.kernels.latent import LatentArrays

        roots = 1.0 / np.sqrt(self.noise)
        return LatentArrays(self.factors, roots, self._choice_weights, self.prior)

    @cached_property
    def _quick(self) -> "QuickArrays":
        from tacit.kernels.quick import quick_arrays

        return quick_arrays(self._arrays)

    @cached_property
    def _choice_weights(self) -> Floats:
        return choice_weights(self.choice_factors, self.choice_noise)


def _check_measured(rule: LatentFactorRule) -> None:
    """Refuse measurements of a model file that do not fit; a file may have none."""
    if rule.measured is None and rule.measured_noise is None:
        return
    if rule.measured is None or rule.measured_noise is None:
        raise ModelFileError("the arrays of the local rule do not fit together")
    shape = len(rule.measured), rule.factors.shape[1] + 1
    check_shapes(rule, measured=shape, measured_noise=shape)
    usable = np.all(np.abs(rule.measured) < _VAST) and np.all(rule.measured_noise < _VAST)
    positive = np.all(rule.measured_noise > 0)
    if not (usable and positive and 0 < shape[0] <= rule.offsets.size):
        raise ModelFileError("the arrays of the local rule are impossible")


def _share_sums(own: OwnRows, table: Floats) -> Floats:
    """Return x times a table of items for the rows x; zeros for someone without ratings."""
    from tacit.kernels.choosing import share_sums

    sums = np.empty((own.indptr.size - 1, table.shape[1]))
    share_sums(own.indptr, own.items, table, sums)
    return sums


def choice_weights(factors: Floats, noise: Floats) -> Floats:
    r"""Return $H = \Delta^{-1} V (I + V^T \Delta^{-1} V)^{-1}$, items by choice factors."""
    scaled = factors / noise[:, None]
    inner = np.eye(factors.shape[1]) + factors.T @ scaled
    return np.ascontiguousarray(np.linalg.solve(inner, scaled.T).T)
