"""How good lists are for users who were not in the fit. NOT PRIVATE: for owners of the ratings.

Of each new user's ratings a random fifth is held out; the rest is folded in: it is the own row that
her list is computed from. An item is relevant if it is held out and rated at least `relevant`.
Intervals say how much a figure would vary with other users of the same kind.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._validate import Seed, check
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError
from tacit.evaluation.accuracy import keep_ratings
from tacit.evaluation.notice import Measured
from tacit.evaluation.ranking import Recommender, lowest_relevant

Floats = NDArray[np.float64]
_HELD_OUT = 5  # one rating in so many is held out
_FEWEST = 3  # ratings of a user: one held out, two folded in
_RECALL, _NDCG, _LONGEST = 20, 10, 100
_MEANS = ("recall_20", "ndcg_10", "ndcg_100", "popularity_20", "popularity_held_out")
_RESAMPLES = 1000
_LEVEL = (0.025, 0.975)
_DRAWN = 1 << 20  # users drawn at a time for the intervals


class FoldIn(NamedTuple):
    """Ratings of new users, row by row the same users.

    Attributes:
        own: what is folded in.
        held_out: what lists are compared with.
        skipped: users with too few ratings, who are in neither.
    """

    own: Ratings
    held_out: Ratings
    skipped: int


@dataclass(frozen=True)
class Estimate:
    """A mean over users, with a 95 % interval: percentiles of the bootstrap over users."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, repr=False)
class NewUserRanking(Measured):
    """Quality of lists for new users. NOT PRIVATE.

    Attributes:
        recall_20: hits among the first 20 / min(20, number of relevant items). The best list has 1.
        ndcg_10: DCG of the first 10 / that of the best list. DCG is the sum of 1 / log2(1 + place)
            over the places of relevant items, from 1. Every relevant item has gain 1, whatever its
            rating; `rank` has gains that grow with it.
        ndcg_100: the same for the first 100.
        coverage_20: share of the catalogue among the first 20 of at least one user. It has no
            interval: a resample repeats users, so that its coverage is always smaller.
        popularity_20: mean popularity of the first 20. The popularity of an item is the share of
            new users who have it in their own rows.
        popularity_held_out: mean popularity of all that users have among the held-out items. Lists
            have a popularity bias if `popularity_20` is above it.
        users: those with a relevant item; all figures are of them.
        not_counted: those without a relevant item among the held-out ones.
        skipped: those with fewer than 3 ratings.
        relevant: the rating from which on an item is relevant.
    """

    recall_20: Estimate
    ndcg_10: Estimate
    ndcg_100: Estimate
    coverage_20: float
    popularity_20: Estimate
    popularity_held_out: Estimate
    users: int
    not_counted: int
    skipped: int
    relevant: float


def fold_in(ratings: Ratings, seed: int = 0) -> FoldIn:
    """Hold out a fifth of each user's ratings at random, rounded to the nearest whole number.

    The same ratings and seed give the same parts. Users with fewer than 3 ratings are left out.

    Raises:
        ConfigError: the seed is not a whole number from 0 on.
        DataError: nobody has 3 ratings.
    """
    check("seed", seed, Seed)
    lengths = np.diff(ratings.indptr)
    rows = np.flatnonzero(lengths >= _FEWEST)
    if not len(rows):
        raise DataError(
            f"ratings: no user has {_FEWEST} or more ratings of items in the catalogue; give "
            "ratings of the items that the model was fitted on, with several of each user"
        )
    kept = ratings.take_rows(rows)
    held = _held_out(kept, np.random.default_rng(seed))
    own, held_out = (keep_ratings(kept, part, everyone=True) for part in (~held, held))
    return FoldIn(own, held_out, len(lengths) - len(rows))


def rank_new_users(
    model: Recommender,
    ratings: Ratings,
    *,
    relevant: float | None = None,
    seed: int = 0,
    **how: Any,
) -> NewUserRanking:
    """Fold 80 % of each new user's ratings in, and compare her list with the rest. NOT PRIVATE.

    The users must not have been in the fit: a model file does not tell, so this is not checked.
    Lists leave out what is folded in. Users without a relevant held-out item do not count.

    Args:
        model: a published model, or anything else that recommends.
        ratings: all ratings of the new users, of the catalogue of the model.
        relevant: the lowest rating of an item that a user likes; None: seven tenths up the rating
            range, lo + 0.7 (hi - lo), which is 4 and 5 of 5 stars. Of interactions, all are
            relevant.
        seed: of what is held out (as in `fold_in`) and of the intervals. Models are compared on
            the same held-out ratings if the seed is the same.
        how: passed on to `model.recommend_rows`.

    Raises:
        ConfigError: ratings of another catalogue, or `relevant` is not in the rating range.
        DataError: nobody has 3 ratings, or no held-out rating is relevant.
    """
    threshold = lowest_relevant(relevant, ratings.rating_range)
    if not np.array_equal(ratings.catalogue.ids, model.catalogue.ids):
        raise ConfigError(
            "ratings are of another catalogue; read them with catalogue=model.catalogue"
        )
    own, held_out, skipped = fold_in(ratings, seed)
    liked = keep_ratings(held_out, held_out.values >= np.float32(threshold), everyone=True)
    counted = np.flatnonzero(np.diff(liked.indptr) > 0)
    if not len(counted):
        raise DataError(
            f"relevant={threshold:g}: the lowest rating that counts as liked, and no rating among "
            "the fifth that is held out of each user's is as high; give a lower one, or more users"
        )
    popularity = np.bincount(own.items, minlength=own.n_items) / own.n_users
    shown = _Shown(own.take_rows(counted), liked.take_rows(counted), popularity)
    parts, coverage = shown.compare(model, how)
    held = _row_means(held_out.take_rows(counted), popularity)
    estimates = _estimates(np.column_stack((parts, held)), seed)
    return NewUserRanking(
        **dict(zip(_MEANS, estimates, strict=True)),
        coverage_20=coverage,
        users=len(counted),
        not_counted=own.n_users - len(counted),
        skipped=skipped,
        relevant=threshold,
    )


class _Shown(NamedTuple):
    """Users who count: what they are shown lists for, what they like, and every item's share."""

    own: Ratings
    liked: Ratings
    popularity: Floats

    def compare(self, model: Recommender, how: dict[str, Any]) -> tuple[Floats, float]:
        """Return (users by recall, both NDCGs and popularity of lists), and the coverage."""
        figures = np.empty((self.own.n_users, 4))
        listed = np.zeros(self.own.n_items, np.bool_)
        for start, lists in _lists(model, self.own, how):
            rows = slice(start, start + len(lists))
            hits, wanted = self._hits(start, lists)
            figures[rows, :3] = _qualities(hits, wanted)
            first = lists[:, :_RECALL]
            figures[rows, 3] = _mean_share(first, self.popularity)
            listed[first[first >= 0]] = True
        return figures, float(np.mean(listed))

    def _hits(self, start: int, lists: NDArray[np.int64]) -> tuple[NDArray[np.bool_], Floats]:
        """Say of each place of a block's lists whether it is a hit; count relevant items."""
        bounds = self.liked.indptr[start : start + len(lists) + 1]
        wanted = np.diff(bounds)
        is_liked = np.zeros((len(lists), self.liked.n_items), np.bool_)
        people = np.repeat(np.arange(len(lists)), wanted)
        is_liked[people, self.liked.items[bounds[0] : bounds[-1]]] = True
        found = np.take_along_axis(is_liked, np.maximum(lists, 0), axis=1)
        return found & (lists >= 0), wanted.astype(np.float64)


def _held_out(ratings: Ratings, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Choose a fifth of each row at random: those with the smallest of independent numbers."""
    lengths = np.diff(ratings.indptr)
    users = np.repeat(np.arange(ratings.n_users), lengths)
    order = np.lexsort((rng.random(len(users)), users))
    place = np.arange(len(users)) - np.repeat(ratings.indptr[:-1], lengths)
    held = np.zeros(len(users), np.bool_)
    held[order] = place < np.repeat((2 * lengths + _HELD_OUT) // (2 * _HELD_OUT), lengths)
    return held


def _lists(
    model: Recommender, own: Ratings, how: dict[str, Any]
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Yield (first row, lists of a block of users), as long as the longest that is looked at."""
    recommend: Any = model.recommend_rows
    yield from recommend(own, min(_LONGEST, own.n_items), **how)


def _qualities(hits: NDArray[np.bool_], wanted: Floats) -> Floats:
    """Return users by (recall@20, NDCG@10, NDCG@100)."""
    recall = hits[:, :_RECALL].sum(axis=1) / np.minimum(wanted, _RECALL)
    return np.column_stack((recall, _ndcg(hits, wanted, _NDCG), _ndcg(hits, wanted, _LONGEST)))


def _ndcg(hits: NDArray[np.bool_], wanted: Floats, k: int) -> Floats:
    """Return DCG / best DCG of the first k places; a hit has gain 1."""
    discounts = 1.0 / np.log2(np.arange(k) + 2.0)
    best = np.cumsum(discounts)[np.minimum(wanted, k).astype(np.int64) - 1]
    first = hits[:, :k]
    return np.asarray((first @ discounts[: first.shape[1]]) / best)


def _mean_share(lists: NDArray[np.int64], popularity: Floats) -> Floats:
    """Return the mean popularity of each list; 0 for an empty one."""
    there = lists >= 0
    sums = np.sum(popularity[np.maximum(lists, 0)] * there, axis=1)
    return np.asarray(sums / np.maximum(there.sum(axis=1), 1))


def _row_means(ratings: Ratings, popularity: Floats) -> Floats:
    """Return the mean popularity of the items of each row; none is empty."""
    sums = np.add.reduceat(popularity[ratings.items], ratings.indptr[:-1])
    return np.asarray(sums / np.diff(ratings.indptr))


def _estimates(figures: Floats, seed: int) -> list[Estimate]:
    """Return the mean of each column with the percentiles of means over resampled users."""
    low, high = np.quantile(_resampled(figures, seed), _LEVEL, axis=0)
    means = figures.mean(axis=0)
    return [Estimate(*map(float, three)) for three in zip(means, low, high, strict=True)]


def _resampled(figures: Floats, seed: int) -> Floats:
    """Return the means of each column over users drawn with replacement, a row a resample."""
    rng = np.random.default_rng((seed, 1))  # not the numbers that chose what is held out
    users, means = len(figures), np.empty((_RESAMPLES, figures.shape[1]))
    together = max(1, _DRAWN // users)
    for first in range(0, _RESAMPLES, together):
        count = min(together, _RESAMPLES - first)
        drawn = rng.integers(users, size=(count, users))
        drawn += users * np.arange(count)[:, None]
        times = np.bincount(drawn.ravel(), minlength=count * users).reshape(count, users)
        means[first : first + count] = times @ figures / users
    return means
