"""What most algorithms do first: choose, centre and bound rows, and pay for item means."""

import math
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Count, Positive, Range, Seed, Validated
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.estimation.empirical_bayes import item_means
from tacit.estimation.row_norms import (
    NORM_SHARE,
    NORMS,
    default_row_norm,
    norm_edges,
    row_norm_of,
)
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ItemSums, RowNorms, UserCount

_USERS, _SUMS = Release(ReleaseKind.USER_COUNT), Release(ReleaseKind.ITEM_SUMS)
_COUNT_SHARE = 0.02
BudgetShare = Annotated[float, Range(0, 0.9, "[)")]


@dataclass(frozen=True, kw_only=True)
class Preparation(Validated):
    """Settings that bound what one user contributes. All are public."""

    name: ClassVar[str]

    row_norm: Positive | Literal["private"] | None = None
    """L, the norm that a user's row is scaled down to; None: (hi - lo)/4 sqrt(max_ratings);
    "private": nearly all rows are shorter, by a histogram that takes a twentieth of the budget."""
    max_ratings: Count | None = 80
    """At most this many ratings of a user count; None: all."""
    centre: bool = True
    """Whether users take their own mean off their ratings."""
    item_means: BudgetShare = 0.0
    """Share of the budget for item means, taken off before all else; 0: none, as in the paper."""
    sampling_seed: Seed = 0
    """The random seed for choosing at most max_ratings ratings of a user."""

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        paid = f"paid for by the release '{NORMS.name}'"
        norm = paid if self._norm_is_paid else self._norm(facts)
        used |= {"row_norm": norm, "max_ratings": self._most(facts)}
        return public_settings(self.name, used)

    def sources(self) -> dict[str, Release]:
        """Name the settings that a release decides, and that release."""
        return {f"{self.name} row_norm": NORMS} if self._norm_is_paid else {}

    def _reserve_preparation(self, ledger: Ledger, facts: Facts, *, users: bool) -> float:
        """Reserve the user count, if `users` are needed and protected, item means and row norms.

        What depends on L must be reserved as scaled where L is paid for (`_norm_is_paid`).
        Returns the share of the budget that is left.
        """
        left = 1.0 - (reserve_user_count(ledger, facts) if users else 0.0)
        if self.item_means:
            bound = ItemSums(self._bounds(facts), facts.rating_range).sensitivity
            ledger.reserve(_SUMS, bound, self.item_means)
            left -= self.item_means
        if self._norm_is_paid:
            ledger.reserve(NORMS, self._row_norms(facts, None).sensitivity, NORM_SHARE)
            left -= NORM_SHARE
        return left

    def _users(self, mechanism: Mechanism, facts: Facts) -> int:
        """Return the number of users, paying for it where it is protected."""
        return round(user_count(mechanism, facts))

    def _radius(self, given: float | None, mechanism: Mechanism, facts: Facts) -> float:
        """Return k: the given one, or the default for the number of users."""
        if given is not None:
            return given
        users = self._users(mechanism, facts)
        return default_nuclear_norm(users, facts.n_items, facts.rating_range)

    def _offsets(self, mechanism: Mechanism, facts: Facts) -> NDArray[np.float64]:
        """Return what is taken off each item: its released mean, or the middle of the range."""
        if not self.item_means:
            return np.full(facts.n_items, sum(facts.rating_range) / 2)
        noisy = mechanism.release(_SUMS, ItemSums(self._bounds(facts), facts.rating_range))
        return item_means(noisy, mechanism.noise_sd(_SUMS), facts.rating_range)

    def _prepared(self, mechanism: Mechanism, facts: Facts) -> RowBounds:
        """Return how rows are bounded, paying for item means and for L where that is asked for."""
        bounds = self._bounds(facts, self._offsets(mechanism, facts))
        if not self._norm_is_paid:
            return bounds
        statistic = self._row_norms(facts, bounds.offsets)
        counts = mechanism.release(NORMS, statistic)
        noise_sd = mechanism.noise_sd(NORMS)
        return replace(bounds, norm=row_norm_of(counts, noise_sd, statistic.edges, bounds.norm))

    def _row_norms(self, facts: Facts, offsets: NDArray[np.float64] | None) -> RowNorms:
        unscaled = replace(self._bounds(facts, offsets), norm=math.inf)
        return RowNorms(unscaled, norm_edges(self._most(facts), facts.rating_range))

    @property
    def _norm_is_paid(self) -> bool:
        return self.row_norm == "private"

    def _bounds(self, facts: Facts, offsets: NDArray[np.float64] | None = None) -> RowBounds:
        """Return how rows are bounded, once the offsets are known."""
        if offsets is None:
            offsets = np.zeros(facts.n_items)
        norm = self._norm(facts)
        return RowBounds(self.max_ratings, offsets, self.centre, norm, self.sampling_seed)

    def _norm(self, facts: Facts) -> float:
        """Return L as far as it is public: the given one, or the rule's."""
        if isinstance(self.row_norm, int | float):
            return self.row_norm
        return default_row_norm(self._most(facts), facts.rating_range)

    def _most(self, facts: Facts) -> int:
        """Return how many ratings a user can have at the most."""
        return min(self.max_ratings or facts.n_items, facts.n_items)


def reserve_user_count(ledger: Ledger, facts: Facts) -> float:
    """Reserve the number of users where it is protected; return the share that this takes."""
    if facts.n_users is not None:
        return 0.0
    ledger.reserve(_USERS, UserCount().sensitivity, _COUNT_SHARE)
    return _COUNT_SHARE


def user_count(mechanism: Mechanism, facts: Facts) -> float:
    """Return the number of users; where it is protected, as it is released, and at least 1."""
    if facts.n_users is not None:
        return float(facts.n_users)
    return max(1.0, float(mechanism.release(_USERS, UserCount())[0]))


def default_nuclear_norm(users: int, items: int, rating_range: tuple[float, float]) -> float:
    """Return a nuclear-norm bound from public numbers only.

    A quarter of (hi - lo) sqrt(users items): a rank-one matrix whose factors are uniform has
    two thirds of that. With a k that is too large, late rounds fit noise.
    """
    return 0.25 * (rating_range[1] - rating_range[0]) * math.sqrt(users * items)


def default_ridge(rating_range: tuple[float, float]) -> float:
    """Return the variance of rating noise that users' own regressions assume: ((hi - lo)/5)^2."""
    return ((rating_range[1] - rating_range[0]) / 5) ** 2


def public_settings(algorithm: str, used: dict[str, Any]) -> dict[str, str]:
    """Name settings for a certificate; None stands for a rule that is written down."""
    texts = {name: "by rule" if value is None else str(value) for name, value in used.items()}
    return {f"{algorithm} {name}": text for name, text in texts.items()}
