"""Moments: item means and one second moment are released once; users then solve locally."""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Count, Range, Seed, Validated
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import default_ridge, public_settings
from tacit.estimation.cooccurrence import CoRatings, activity_strata, co_ratings
from tacit.estimation.drift import averaged
from tacit.estimation.empirical_bayes import drawn_to_popularity, shrunk
from tacit.estimation.spiked_covariance import (
    MOST_DIRECTIONS,
    Factors,
    NoiseModel,
    best_known,
    debias,
    factors_by_products,
    factors_of_matrix,
    form_of,
    of_all_items,
    start_of_products,
)
from tacit.models.linear import RidgeRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    ItemCounts,
    ResidualCovariance,
    ResidualProduct,
    RowSums,
    UserMoments,
    product_sensitivity,
)

Floats = NDArray[np.float64]

_SPREADS, _WEIGHTS, _EFFECTS = (
    Release(kind)
    for kind in (ReleaseKind.SPREADS, ReleaseKind.ITEM_WEIGHTS, ReleaseKind.ITEM_EFFECTS)
)
MOMENT = Release(ReleaseKind.COVARIANCE, (1,))
_VAGUE = 100.0  # prior variance of the overall mean, in half ranges squared
_LEGIBLE = 0.1  # of the users: noise in the weight of a class that is no more than that
MOST_LOST = 4.0  # cap on the clipping-bias correction
HEADROOM = 0.7  # rows are scaled down if their mean square passes so many times the average
WIDE_HEADROOM = 1.0  # where the clipping bias cannot be corrected: in sums, and in products


class Spreads(NamedTuple):
    """The overall mean, variances of levels and of ratings about them, and how many users."""

    overall: float
    level: float
    rating: float
    users: float


class Items(NamedTuple):
    """What is known of the items: means, the doubt about them, and how often they were rated.

    `effects` are the means as they were measured, before shrinking, and the variances of that.
    """

    means: Floats
    doubt: Floats
    rated: CoRatings
    effects: tuple[Floats, Floats]


class Learned(NamedTuple):
    """What the releases tell: G = [tau 1, F], and the variance that is left of each item."""

    spreads: Spreads
    items: Items
    factors: Floats
    noise: Floats
    doubt: Floats  # of F, a part of the noise, where some items have no loadings yet; else zeros


_Share = Annotated[float, Range(0, 0.3, "(]")]


@dataclass(frozen=True, kw_only=True)
class Moments(Validated):
    """One release of item means, one of the residuals' second moment; ridge regression locally.

    1. Spreads: the overall mean g, the variance tau^2 of users' levels, that of a rating.
    2. Item weights sum_i e_ij/sqrt(d_i), e_ij = 1 where user i rated j, by classes of d_i where
       noise leaves them legible: the items' shares of all ratings, and how often pairs of items
       are rated together, N_jk = sum_i e_ij e_ik / d_i (estimation.cooccurrence).
    3. Item effects sum_i (y_ij - g - b_i)/sqrt(d_i), b_i the user's own shrunk level: over their
       weights, and shrunk as their noise asks to what popularity predicts, they give the item
       means m_j.
    4. The second moment. z_ij = y_ij - m_j - b_i, and

           S = sum_i z_i z_i^T / d_i + noise,   rows with mean square above s scaled down to it.

       of the 4000 items that are rated most, by their weights, if there are more. Its trace tells
       how much was lost by scaling down, and that bias is corrected. In expectation
       S_jk = N_jk (F F^T)_jk off the diagonal. F is what noise cannot have made
       (estimation.spiked_covariance); the noise decides how many factors. The diagonal tells how
       far each item's ratings vary beyond F.
    5. Locally, all of a person's ratings count: u = (G_o^T D^-1 G_o + I)^-1 G_o^T D^-1 (y_o - m_o)
       with G = [tau 1, F], and scores are m + G u. D has what is not explained: the variance of
       an item's ratings, and the doubt about m_j and F_j.

    No cap on d_i is needed: the weights bound what a user adds, whatever d_i is. Where nothing can
    be told from noise F has no columns, m_j is the same for all items and tau is large: what is
    left is the user's own mean.

    *Paper:* none; it is this package's own method.
    *Guarantee:* UserMoments; ItemCounts; RowSums and then a ResidualCovariance with rows z/sqrt(d)
    of norm at most sqrt(s), or ResidualProducts of them.
    """

    name: ClassVar[str] = "moments"

    spread_share: _Share = 0.03
    """The share of the budget for spreads."""
    weight_share: _Share = 0.05
    """The share of the budget for item weights."""
    effect_share: _Share = 0.12
    """The share of the budget for item effects."""
    rank: Count | None = None
    """At most this many directions; None: the noise decides."""
    eigen: Literal["auto", "exact", "block"] = "auto"
    """Whether S is released, of all items ("exact") or of the 4000 rated most ("auto"), or products
    with S of all items ("block")."""
    columns: Annotated[int, Range(1, 1000)] = 16
    """The columns of that block, for "block"."""
    steps: Annotated[int, Range(1, 100)] = 3
    """Noisy products, for "block"."""
    level_shrink: Annotated[float, Range(0, 1e6, "[)")] = 5.0
    r"""Cap on the bias shrinkage $\kappa = \min(\text{level\_shrink}, \sigma^2/\tau^2)$: a user's
    bias is the sum of her $d$ centred ratings over $d + \kappa$."""
    max_ratings: Count | None = None
    """At most this many ratings of a user count in the releases; None: all."""
    sampling_seed: Seed = 0
    """The random seed for choosing at most max_ratings ratings of a user."""
    start_seed: Seed = 0
    """The random seed of the public numbers: first block, and noise to compare eigenvalues with."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve spreads, item weights and effects, and the second moment."""
        left = 1.0 - self.spread_share - self.weight_share - self.effect_share
        self.reserve_with(ledger, facts, left)

    def reserve_with(self, ledger: Ledger, facts: Facts, moment_share: float) -> None:
        """Reserve all of it, with this share for the second moment."""
        bounds = self._bounds(np.zeros(facts.n_items), 1.0)
        ledger.reserve(_SPREADS, UserMoments(bounds, 1.0, 1.0, 1.0).sensitivity, self.spread_share)
        weights = ItemCounts(facts.n_items).sensitivity
        ledger.reserve(_WEIGHTS, weights, self.weight_share)
        effects = RowSums(bounds).sensitivity
        ledger.reserve(_EFFECTS, effects, self.effect_share, scaled=True)
        if self._by_pairs:
            moment = ResidualCovariance(bounds, (), 1.0).sensitivity
            ledger.reserve(MOMENT, moment, moment_share, scaled=True)
            return
        moment = product_sensitivity(1.0, min(self.columns, facts.n_items))
        for step in range(1, self.steps + 1):
            ledger.reserve(_product(step), moment, moment_share / self.steps, scaled=True)

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule:
        """Make the releases; users solve on the factors that come out."""
        learned = self.learn(mechanism, facts)
        return RidgeRule(
            factors=learned.factors,
            offsets=learned.items.means,
            noise=learned.noise,
            centre=False,
            shrink=0.0,
            source=ReleaseKind.COVARIANCE if self._by_pairs else ReleaseKind.PRODUCT,
        )

    def learn(
        self,
        mechanism: Mechanism,
        facts: Facts,
        before_moment: Callable[[CoRatings, float], None] | None = None,
        second_look: Callable[[int], Release | None] | None = None,
        alone: Callable[[CoRatings], NDArray[np.int64] | None] | None = None,
    ) -> Learned:
        """Make the releases and return what they tell.

        `before_moment` is called with how often items were rated, and the number of users, before
        the second moment is released: it may make releases, and divide what is left of the budget.
        `second_look` is called with how many factors it shows; it is released once more if that
        returns a release. It is of the items that `alone` returns, and of rows of their ratings.
        """
        spreads = self._spreads(mechanism, facts)
        items = self._items(mechanism, facts, spreads)
        told = float(items.rated.shares @ (items.means - spreads.overall) ** 2)
        spreads = spreads._replace(rating=max(spreads.rating - told, 0.05 * spreads.rating))
        noise_model = NoiseModel(
            item_scale=items.rated.weights / math.sqrt(spreads.users),
            noise_sd=0.0,  # known once the release is made
            sampling_sd=math.sqrt(spreads.users) * spreads.rating * items.rated.shares,
            users=spreads.users,
            single=self._headroom * spreads.rating,
            width=facts.width,
            most=min(self.rank or MOST_DIRECTIONS, facts.n_items),
            seed=self.start_seed,
        )
        if before_moment is not None:
            before_moment(items.rated, spreads.users)
        if self._by_pairs:
            few = alone and alone(items.rated)
            found = self._by_matrix(mechanism, items, spreads, noise_model, second_look, few)
        else:
            found = self._by_products(mechanism, items, spreads, noise_model)
        return _learned(items, spreads, *found)

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        used["eigen"] = form_of(self.eigen, facts.n_items)
        return public_settings(self.name, used)

    def _spreads(self, mechanism: Mechanism, facts: Facts) -> Spreads:
        """Return what the release of spreads tells."""
        lo, hi = facts.rating_range
        half, middle = (hi - lo) / 2, (lo + hi) / 2
        usual = default_ridge(facts.rating_range)
        statistic = UserMoments(
            self._bounds(np.full(facts.n_items, middle)), half, half**2 / 2, usual
        )
        sums = mechanism.release(_SPREADS, statistic)
        noise_sd = mechanism.noise_sd(_SPREADS)
        users = _users(float(sums[3]), noise_sd, facts.n_users)
        return spreads_from(sums[:3] / users, noise_sd / users, users, facts.rating_range)

    def _items(self, mechanism: Mechanism, facts: Facts, spreads: Spreads) -> Items:
        """Return the items' means and scales from their weights and effects."""
        noise_sd = mechanism.noise_sd(_WEIGHTS)
        edges = self._strata(noise_sd, facts, spreads.users)
        counts = mechanism.release(_WEIGHTS, ItemCounts(facts.n_items, edges))
        noise_sd = mechanism.noise_sd(_WEIGHTS)  # with a memory it may have become more
        rated = co_ratings(np.atleast_2d(counts), noise_sd, edges, spreads.users)
        overall = np.full(facts.n_items, spreads.overall)
        statistic = RowSums(self._residuals(overall, spreads, WIDE_HEADROOM))
        effects = mechanism.release(_EFFECTS, statistic)
        noise_sd = mechanism.noise_sd(_EFFECTS, statistic.sensitivity)
        variances = (noise_sd**2 + spreads.rating * spreads.users * rated.shares) / rated.weights**2
        measured, fine = effects / rated.weights, 0.005 * facts.width
        found = drawn_to_popularity(measured, variances, rated.weights, fine)
        means = np.clip(overall + found.estimates, *facts.rating_range)
        return Items(means, found.doubt, rated, (overall + measured, variances))

    def _by_matrix(
        self,
        mechanism: Mechanism,
        items: Items,
        spreads: Spreads,
        noise_model: NoiseModel,
        second_look: Callable[[int], Release | None] | None,
        alone: NDArray[np.int64] | None,
    ) -> tuple[Factors, Floats]:
        """Release the second moment; return factors, and how items' own variances differ."""
        known = best_known(self.eigen, items.rated.weights) if alone is None else alone
        rated = items.rated.among(known) if alone is None else items.rated.alone(known)
        bounds = replace(self._residuals(items.means, spreads, self._headroom), items=alone)
        statistic = ResidualCovariance(bounds, (), bounds.norm, known)

        def look(release: Release) -> tuple[Floats, float]:
            found = mechanism.release(release, statistic)
            return found, mechanism.noise_sd(release, statistic.sensitivity)

        first = look(MOMENT)
        factors, own = self._from_matrix(first, rated, spreads, noise_model)
        if more := second_look and second_look(factors.loadings.shape[1]):
            both = averaged(first, look(more))
            factors, own = self._from_matrix(both, rated, spreads, noise_model)
        return of_all_items(factors, own, known, items.rated)

    def _from_matrix(
        self,
        look: tuple[Floats, float],
        rated: CoRatings,
        spreads: Spreads,
        noise_model: NoiseModel,
    ) -> tuple[Factors, Floats]:
        """Return what a second moment of the items `rated`, with the sd of its noise, tells."""
        moment, noise_sd = look
        part = float(rated.inverse_counts.sum() / rated.stratum_sizes.sum())
        lost = self._lost(float(np.trace(moment)) / part, rated, spreads)
        moment, noise_sd = lost * moment, lost * noise_sd
        swollen = np.diag(moment).copy()
        chance = max(1.0, HEADROOM * lost) * spreads.rating**2  # people differ in how they vary
        noise_model = noise_model._replace(
            item_scale=rated.weights / math.sqrt(spreads.users),
            noise_sd=noise_sd / math.sqrt(2.0),
            sampling_sd=math.sqrt(spreads.users) * spreads.rating * rated.shares,
            single=lost * noise_model.single,
            most=min(noise_model.most, rated.weights.size),
            uneven=noise_sd**2 / 2 + chance * rated.squares(),
        )
        factors = debias(
            factors_of_matrix(moment, noise_model), noise_model.item_scale, rated.pairs()
        )
        return factors, _own(swollen, noise_sd, rated, spreads.rating, factors)

    def _by_products(
        self, mechanism: Mechanism, items: Items, spreads: Spreads, noise_model: NoiseModel
    ) -> tuple[Factors, Floats]:
        """Release products with the second moment; return factors. Own variances stay unknown."""
        bounds = self._residuals(items.means, spreads, self._headroom)
        columns = min(self.columns, items.means.size)

        def product(block: Floats, step: int) -> Floats:
            statistic = ResidualProduct(bounds, (), bounds.norm, block)
            return mechanism.release(_product(step), statistic)

        moment = product_sensitivity(bounds.norm, columns)
        noise_model = noise_model._replace(noise_sd=mechanism.noise_sd(_product(1), moment))
        start = start_of_products(noise_model, columns)
        factors = factors_by_products(product, start, self.steps, noise_model)
        return factors, np.zeros(items.means.size)

    def _lost(self, trace: float, rated: CoRatings, spreads: Spreads) -> float:
        """Return by how much a second moment of this trace is too small: rows were scaled down."""
        expected = float(rated.stratum_sizes @ self._left(rated.lengths, spreads))
        return min(max(expected / max(trace, 1e-300), 1.0), MOST_LOST)

    def _left(self, lengths: Floats, spreads: Spreads) -> Floats:
        """Return the variance that is left of a rating when a user's bias is taken off.

        Her level is the sum of her d ratings over d + k.
        """
        k = self._shrink(spreads)
        every = lengths + k
        rating = (1 - 1 / every) ** 2 + (lengths - 1) / every**2
        return np.asarray(spreads.rating * rating + spreads.level * (k / every) ** 2)

    def _residuals(self, offsets: Floats, spreads: Spreads, headroom: float) -> RowBounds:
        """Return how rows are bounded once it is known how far they spread."""
        norm = math.sqrt(headroom * spreads.rating)
        return replace(self._bounds(offsets, norm), bias_shrinkage=self._shrink(spreads))

    @property
    def _headroom(self) -> float:
        """Over how many times the average mean square rows of the second moment are scaled down.

        Products do not tell the trace, so the clipping bias cannot be corrected: less is taken off.
        """
        return HEADROOM if self._by_pairs else WIDE_HEADROOM

    def _shrink(self, spreads: Spreads) -> float:
        return min(self.level_shrink, spreads.rating / spreads.level)

    def _bounds(self, offsets: Floats, norm: float = math.inf) -> RowBounds:
        return RowBounds(
            self.max_ratings, offsets, True, norm, self.sampling_seed,
            bias_shrinkage=self.level_shrink, by_sqrt_count=True,
        )  # fmt: skip

    def _strata(self, noise_sd: float, facts: Facts, users: float) -> tuple[int, ...]:
        """Return the activity strata: as many as noise leaves legible."""
        if not self._by_pairs:
            return ()
        noise = noise_sd * math.sqrt(facts.n_items)
        return activity_strata(facts.n_items, _LEGIBLE * users / max(noise, 1e-300))

    @property
    def _by_pairs(self) -> bool:
        """Whether a matrix is released, not products with it."""
        return self.eigen != "block"


def _learned(items: Items, spreads: Spreads, factors: Factors, own: Floats) -> Learned:
    """Return G = [tau 1, F] and, for each item, the variance that is left."""
    energy, shares = np.sum(factors.loadings**2, axis=1), items.rated.shares
    told = shares * (energy > 0)  # items without loadings have as much of it in their doubt
    explained = float(told @ energy / max(float(told.sum()), 1e-300))
    left = max(spreads.rating - explained, 0.05 * spreads.rating)
    bias = np.full((own.size, 1), math.sqrt(spreads.level))
    return Learned(
        spreads=spreads,
        items=items,
        factors=np.ascontiguousarray(np.hstack([bias, factors.loadings])),
        noise=np.maximum(left + own, 0.2 * left) + factors.doubt + items.doubt,
        doubt=factors.doubt * (0 < np.count_nonzero(energy) < own.size),
    )


def _product(step: int) -> Release:
    return Release(ReleaseKind.PRODUCT, (step,))


def spreads_from(
    means: Floats, error: float, users: float, rating_range: tuple[float, float]
) -> Spreads:
    """Return what the means over users of `UserMoments` tell, drawn to public values by noise.

    Those are the middle of the range, with a prior so vague that people's own ratings decide,
    (hi - lo)/7 for tau and (hi - lo)/5 for a rating, with prior sds as large as the variances
    themselves. What is not known of the overall mean counts as spread of levels, and these spread
    by at least half the sd of their noise: if they are taken to be alike and are not, people's own
    ratings count for too little. `error` is the sd of the noise in each mean.
    """
    lo, hi = rating_range
    half, middle, usual = (hi - lo) / 2, (lo + hi) / 2, default_ridge(rating_range)
    cap = half**2 / 2
    place, square, variance = means
    shift = min(1.0, max(-1.0, 2 * place - 1))
    known = _VAGUE / (_VAGUE + (2 * error) ** 2)
    doubt = 3 * error * half**2
    level = _drawn(half**2 * (square - shift**2), doubt, (half * 2 / 7) ** 2)
    level = max(level, min(doubt, (half * 2 / 7) ** 2) / 2)
    level += half**2 * known * (2 * error) ** 2
    rating = _drawn(cap * variance, cap * error, usual)
    return Spreads(middle + half * known * shift, level, rating, users)


def _own(
    swollen: Floats, noise_sd: float, rated: CoRatings, rating: float, factors: Factors
) -> Floats:
    """Return how far the variance that is left of each item's ratings is from the average.

    The diagonal of the second moment tells it, and is as uncertain as its noise and its weights.
    """
    measured = swollen / rated.inverse_counts
    gaps = measured - np.sum(factors.loadings**2, axis=1)
    gaps -= float(rated.shares @ gaps)
    alone = (1 / (rated.stratum_sizes * rated.lengths)) @ rated.stratum_weights**2  # diag(squares)
    variances = (noise_sd**2 + 2 * rating**2 * alone) / rated.inverse_counts**2
    variances += (measured * rated.error) ** 2
    return shrunk(gaps, variances, 0.02 * rating).estimates


def _users(counted: float, noise_sd: float, public: int | None) -> float:
    """Return how many users have ratings: as counted, drawn to their public number by the noise."""
    if public is None:
        return max(1.0, counted)
    weight = 1.0 / (1.0 + (noise_sd / public) ** 2)
    return min(max(1.0, weight * counted + (1 - weight) * public), float(public))


def _drawn(measured: float, error: float, public: float) -> float:
    """Return a measured variance drawn towards a public one by its noise, and kept positive."""
    weight = 1.0 / (1.0 + (error / public) ** 2)
    return float(max(weight * measured + (1 - weight) * public, 1e-4 * public))
