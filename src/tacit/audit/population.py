"""Synthetic people for attacks: nobody in here exists, and everyone's ratings are public.

A `World` holds everyone but one person, whose row is the auditor's to choose. A `Law` draws people
in a way that the attacker knows, and an `Insider` is what she knows of them. A row of a law holds
one whole number for every item: 0 where it was not rated, else a level from 1 to 5 that stands for
a rating from the lowest to the highest.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget
from tacit.audit.target import Target
from tacit.data.build import stored_range
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.engines import ThreadEngine
from tacit.fitting.fit import fit
from tacit.models import Model
from tacit.models.rules import Floats, OwnRows

Row = NDArray[np.float64]
"""One person's ratings, an entry for each item; NaN where she rated nothing."""

USERS, ITEMS = 30, 8


@dataclass(frozen=True, eq=False)
class World:
    """Everyone but one person, whose row is the auditor's to choose.

    Attributes:
        others: the other people's rows, people by items; NaN where nothing was rated.
        rating_range: the lowest and the highest rating.
        implicit: whether there are no ratings, only who touched what.
    """

    others: NDArray[np.float64]
    rating_range: tuple[float, float]
    implicit: bool = False

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return int(self.others.shape[1])

    @cached_property
    def catalogue(self) -> Catalogue:
        """The public list of items."""
        return Catalogue(pl.Series("item", np.arange(self.n_items)), public=True)

    @cached_property
    def ends(self) -> tuple[float, float]:
        """The lowest and the highest value that can be stored."""
        low, high = stored_range(*self.rating_range)
        return (1.0, 1.0) if self.implicit else (float(low), float(high))

    def ratings(self, row: Row | None) -> Ratings:
        """Return the world with her row, the last one; None: she is not there at all."""
        rows = self.others if row is None else np.vstack([self.others, row])
        rated = ~np.isnan(rows)
        indptr = np.concatenate([[0], np.cumsum(rated.sum(axis=1))])
        return Ratings(
            self.rating_range,
            self.catalogue,
            self._ids[: len(rows)],
            indptr.astype(np.int64),
            np.nonzero(rated)[1].astype(np.uint16),
            np.clip(rows[rated], *self.ends).astype(np.float32),
            self.implicit,
        )

    @cached_property
    def _ids(self) -> pl.Series:
        return pl.Series("user", np.arange(len(self.others) + 1))


def synthetic_world(subject: Target, seed: int, users: int = USERS, items: int = ITEMS) -> World:
    """Draw synthetic people of two tastes, each of whom rated about half of the items."""
    rng = np.random.default_rng(seed)
    low, high = subject.rating_range
    tastes = rng.standard_normal((users, 2)) @ rng.standard_normal((2, items))
    rows = np.clip((low + high) / 2 + (high - low) / 5 * tastes, low, high)
    if subject.implicit:
        rows = np.ones_like(rows)
    rows[rng.random(rows.shape) < 0.5] = np.nan
    return World(rows, (0.0, 1.0) if subject.implicit else (low, high), subject.implicit)


Levels = NDArray[np.int64]

LEVELS = 5
_RATED = (0.45, 0.8)  # the least and the most often rated item
_TASTE, _LOOSENESS = 1.3, 1.2  # how far tastes lie from the middle, and how ratings scatter
_KIND = 0.4  # people rate a little above the middle


def stream(seed: int, purpose: int) -> np.random.Generator:
    """Return random numbers for one purpose: who people are and how coins fall, never noise."""
    return np.random.default_rng([seed, purpose])


@dataclass(frozen=True, eq=False)
class Law:
    """What rows are drawn from: one of two tastes, and then each item by itself.

    `odds[t, j, r]` is the chance that someone of taste t gives item j the level r (0: none).
    """

    odds: Floats

    @cached_property
    def shares(self) -> Floats:
        """How often each item gets each level, whatever the taste: items by levels."""
        return np.asarray(self.odds.mean(axis=0))

    @property
    def best_guess(self) -> Levels:
        """The likeliest level of every item, for someone who sees nothing."""
        return np.asarray(np.argmax(self.shares, axis=1))

    @property
    def blind_share(self) -> float:
        """The share of entries that this guess gets right on average; nobody blind does better."""
        return float(self.shares.max(axis=1).mean())

    def log_chances(self, rows: Levels) -> Floats:
        """Return the logarithm of the chance of every row."""
        single = np.log(self.odds)[:, np.arange(rows.shape[1]), rows]
        return np.asarray(np.logaddexp(*single.sum(axis=2)) - np.log(2))

    def draw(self, people: int, rng: np.random.Generator) -> Levels:
        """Return so many people's rows."""
        odds = self.odds[rng.integers(2, size=people)]
        ladder = np.cumsum(odds, axis=2)[:, :, :-1]
        return np.asarray(np.sum(rng.random((*odds.shape[:2], 1)) >= ladder, axis=2))


def law_of(items: int, seed: int, *, implicit: bool = False) -> Law:
    """Return a law with two tastes that like opposite items, and items of their own fame.

    Without ratings there is one level, and tastes differ in what they touch.
    """
    rng = stream(seed, 1)
    fame = rng.uniform(*_RATED, size=items)
    liking = rng.choice([-_TASTE, _TASTE], size=items)
    likings = _KIND + np.array([liking, -liking])
    levels = np.zeros((1, 1, 1)) if implicit else np.arange(1, LEVELS + 1) - (LEVELS + 1) / 2
    weights = np.exp(-((levels - likings[:, :, None]) ** 2) / _LOOSENESS)
    given = weights / weights.sum(axis=2, keepdims=True) * fame[:, None]
    if implicit:
        given *= 1 + likings[:, :, None] / 8
    return Law(np.concatenate([1 - given.sum(axis=2, keepdims=True), given], axis=2))


@dataclass(frozen=True, eq=False)
class Insider:
    """Someone who knows the method, its settings, the budget, and everyone's row but Ada's."""

    subject: Target
    budget: PrivacyBudget | None
    others: Levels

    @cached_property
    def world(self) -> World:
        """Everyone else, with ratings for levels."""
        return World(self._ratings(self.others), self._range, self.subject.implicit)

    def fit(self, row: Levels, seed: int) -> Model:
        """Fit everyone else's rows and this one; the noise is that of the seed."""
        return fit(
            self.world.ratings(self._ratings(row)),
            self.subject.algorithm,
            budget=self.budget,
            engine=ThreadEngine(1),
            noise_seed_unsafe=seed,
        )

    def predictions(self, model: Model) -> Floats:
        """Return everyone else's predictions for every item, each from her own row."""
        ratings = self.world.ratings(None)
        own = OwnRows(ratings.indptr, ratings.items, ratings.values)
        return model.rule.scores(own)

    def without_noise(self) -> "Insider":
        """Return the same with no budget: fits that she makes for herself."""
        return Insider(self.subject, None, self.others)

    @property
    def _range(self) -> tuple[float, float]:
        return (0.0, 1.0) if self.subject.implicit else self.subject.rating_range

    def _ratings(self, rows: Levels) -> Floats:
        low, high = self._range
        if self.subject.implicit:
            return np.where(rows > 0, 1.0, np.nan)
        return np.where(rows > 0, low + (high - low) * (rows - 1) / (LEVELS - 1), np.nan)


def published(model: Model) -> Floats:
    """Return the numbers of a published model, in a form that does not depend on signs or rank.

    A vector stays as it is. Of a matrix with a row (or a column) for every item, it is the products
    of items: directions mean the same when they are turned round. Of a stack of matrices, that of
    each.
    """
    arrays, _ = model.rule.parts()
    items = len(model.catalogue)
    return np.concatenate([_unsigned(arrays[name], items) for name in sorted(arrays)])


def _unsigned(array: Floats, items: int) -> Floats:
    """Return a vector as it is, and of matrices the products of items."""
    if array.ndim == 1:
        return array
    if array.ndim == 2:
        if items not in array.shape:
            return np.empty(0)
        upright = array if array.shape[0] == items else array.T
        return np.asarray((upright @ upright.T)[np.triu_indices(items)])
    return np.concatenate([np.empty(0), *(_unsigned(each, items) for each in array)])
