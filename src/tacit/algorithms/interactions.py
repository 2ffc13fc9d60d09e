"""Interactions: implicit feedback. Popularity, and a factorisation of co-occurrences."""

import math
from dataclasses import dataclass, fields, replace
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Count, Range, Seed, Validated
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import public_settings, reserve_user_count, user_count
from tacit.estimation.choice import (
    centred,
    choice_factors,
    choice_noise_model,
    possible_total,
    projection_weights,
)
from tacit.estimation.popularity import positive
from tacit.estimation.spiked_covariance import (
    MOST_DIRECTIONS,
    best_known,
    factors_by_products,
    form_of,
    readable_items,
    start_of_products,
)
from tacit.models.implicit import InteractionRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    ItemCounts,
    ResidualCovariance,
    ResidualProduct,
    product_sensitivity,
)

Floats = NDArray[np.float64]

_WEIGHTS = Release(ReleaseKind.ITEM_WEIGHTS)
_PAIRS = Release(ReleaseKind.CO_OCCURRENCES, (1,))
_READABLE = 300.0  # of users x mu / sqrt(items), so that S can be read; else it is of fewer items
_CLEAR = 1000.0  # from here on S is clear, and of all items
_POPULAR = 0.75  # of the items, before that: what S is of at the most


@dataclass(frozen=True, kw_only=True)
class Interactions(Validated):
    """Popularity once, what is touched together once; weighted ridge regression locally.

    User i touched d_i items; e_i is her 0/1 row.

    1. Item weights sum_i e_ij / sqrt(d_i).
    2. Pairs S = sum_i e_i e_i^T / d_i + noise, of the 4000 items that are touched most, by their
       weights, if there are more. With few users S is of the popular items of which it can be
       read, and d_i counts these only. If user i touches item j with mean d_i p_j (1 + f_j . u_i),
       with tastes u_i of mean 0 and variance I, then off its diagonal

           E S_jk = |Omega| p_j p_k (1 + f_j . f_k).

    3. Both tell the shares p, combined by their noise (estimation.popularity).
    4. S - |Omega| p p^T, with all that is along p taken off from both sides, so that errors of p
       do not pass for tastes; then F is what neither noise nor chance can have made
       (estimation.spiked_covariance, with q_j = p_j sqrt|Omega|), moved so that
       sum_j p_j f_j = 0. Items that S is not of have no tastes.
    5. Locally: models.implicit.InteractionRule.

    No cap on d_i is needed. Where nothing stands out from noise, F has no columns, and everyone
    gets the most popular items that she has not touched.

    *Paper:* none; it is this package's own method, in the manner of Moments. Weights for what was
    not touched are after Hu, Koren and Volinsky (2008).
    *Guarantee:* ItemCounts; a ResidualCovariance, or ResidualProducts, of e/sqrt(d), whose norm is
    exactly 1; and a UserCount where the number of users is protected.
    """

    name: ClassVar[str] = "interactions"
    implicit: ClassVar[bool] = True

    weight_share: Annotated[float, Range(0, 0.9, "(]")] = 0.25
    """The share of the budget for item weights."""
    rank: Count | None = None
    """At most this many directions; None: the noise decides."""
    eigen: Literal["auto", "exact", "block"] = "auto"
    """Whether S is released, of all items ("exact") or of the 4000 touched most ("auto"), or
    products with S of all items ("block")."""
    columns: Annotated[int, Range(1, 1000)] = 16
    """The columns of that block, for "block"."""
    steps: Annotated[int, Range(1, 100)] = 3
    """Noisy products, for "block"."""
    max_ratings: Count | None = None
    """At most this many interactions of a user count as pairs; None: all."""
    sampling_seed: Seed = 0
    """The random seed for choosing at most max_ratings interactions of a user."""
    start_seed: Seed = 0
    """The random seed of the public numbers: first block, and noise to compare eigenvalues with."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve the user count if it is protected, item weights, and pairs or products."""
        left = 1.0 - self.weight_share - reserve_user_count(ledger, facts)
        ledger.reserve(_WEIGHTS, ItemCounts(facts.n_items).sensitivity, self.weight_share)
        if self.eigen != "block":
            pairs = ResidualCovariance(self._bounds(facts), (), 1.0)
            ledger.reserve(_PAIRS, pairs.sensitivity, left)
            return
        bound = product_sensitivity(1.0, self._columns(facts))
        for step in range(1, self.steps + 1):
            ledger.reserve(_product(step), bound, left / self.steps)

    def run(self, mechanism: Mechanism, facts: Facts) -> InteractionRule:
        """Make the releases; users solve on the factors that come out."""
        users = user_count(mechanism, facts)
        weights = mechanism.release(_WEIGHTS, ItemCounts(facts.n_items))
        find = self._from_products if self.eigen == "block" else self._from_pairs
        shares, loadings = find(mechanism, facts, weights, users)
        return InteractionRule(np.ascontiguousarray(loadings), shares)

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        return public_settings(self.name, used | {"eigen": form_of(self.eigen, facts.n_items)})

    def _from_pairs(
        self, mechanism: Mechanism, facts: Facts, weights: Floats, users: float
    ) -> tuple[Floats, Floats]:
        """Release S; return shares and tastes, of all items."""
        alone = self._readable(facts, weights, users)
        known = best_known(self.eigen, weights) if alone is None else alone
        bounds = replace(self._bounds(facts), items=alone)
        statistic = ResidualCovariance(bounds, (), 1.0, known)
        pairs = mechanism.release(_PAIRS, statistic), mechanism.noise_sd(_PAIRS)
        counts = weights, mechanism.noise_sd(_WEIGHTS)
        found = choice_factors(pairs, counts, known, users, self._limits, alone is not None)
        return found.shares, found.loadings

    def _readable(self, facts: Facts, weights: Floats, users: float) -> NDArray[np.int64] | None:
        """Return popular items of which S can be read, where it cannot be of all items."""
        if facts.budget is None or facts.paper_accounting or self.eigen != "auto":
            return None
        signal = users * facts.budget.mu / math.sqrt(facts.n_items)
        if signal >= _CLEAR:
            return None
        counts = np.maximum(weights, 0.0)
        part = min((signal / _READABLE) ** 2, _POPULAR)
        length = (float(counts.sum()) / users) ** 2  # the mean root of a length, squared: no more
        return readable_items(counts, length, int(part * facts.n_items))

    def _from_products(
        self, mechanism: Mechanism, facts: Facts, weights: Floats, users: float
    ) -> tuple[Floats, Floats]:
        """Release products with S; return shares, which weights alone tell, and tastes."""
        shares = positive(weights, mechanism.noise_sd(_WEIGHTS))
        total = possible_total(float(shares.sum()) ** 2 / users, users, facts.n_items)
        shares /= shares.sum()
        noise_model = choice_noise_model(
            shares, total, users, mechanism.noise_sd(_product(1)), self._limits
        )
        test = projection_weights(shares, noise_model)
        bounds = self._bounds(facts)

        def product(block: Floats, step: int) -> Floats:
            statistic = ResidualProduct(bounds, (), 1.0, block)
            found = mechanism.release(_product(step), statistic)
            diagonal = users * shares[:, None] * block  # taken off again by the caller
            found = found - diagonal - total * np.outer(shares, shares @ block)
            return np.asarray(found - np.outer(shares, test @ found) + diagonal)

        start = start_of_products(noise_model, self._columns(facts))
        factors = factors_by_products(product, start, self.steps, noise_model)
        return shares, centred(factors.loadings, shares)

    @property
    def _limits(self) -> tuple[int, int]:
        """The most factors, and the seed of the noise to compare with."""
        return self.rank or MOST_DIRECTIONS, self.start_seed

    def _bounds(self, facts: Facts) -> RowBounds:
        return RowBounds(
            self.max_ratings, np.zeros(facts.n_items), False, 1.0, self.sampling_seed,
            by_sqrt_count=True, binarise=True,
        )  # fmt: skip

    def _columns(self, facts: Facts) -> int:
        return min(self.columns, facts.n_items)


def _product(step: int) -> Release:
    return Release(ReleaseKind.CO_OCCURRENCE_PRODUCT, (step,))
