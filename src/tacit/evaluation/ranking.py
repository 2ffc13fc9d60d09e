"""How good lists of recommendations are. NOT PRIVATE: for people who own the ratings.

Each test user gets a list of the k best of all items that are not in her own training row. An item
of it counts if she rated it, held out, and at least `relevant`. Nothing is known of items that she
never rated: they count as nothing, though she might like some. So the figures compare models on
the same ratings, and say little by themselves.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._validate import Range, check
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError
from tacit.evaluation.held_out import HeldOut, match_held_out
from tacit.evaluation.notice import Measured

Floats = NDArray[np.float64]
_BLOCK = 1 << 16  # people at a time
_UPPER = 0.7  # of the rating range: 4 and 5 of 5 stars, above 4 on [-10, 10]


class Recommender(Protocol):
    """What can be ranked: a published model."""

    @property
    def catalogue(self) -> Catalogue:
        """The items that lists are made of."""
        ...

    def recommend_rows(self, ratings: Ratings, n: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (first row, positions of a block of users' n best items that they did not rate)."""
        ...


class ExactPopularity:
    """Recommends what most people in `train` have, without what a person has herself: NOT PRIVATE.

    A yardstick for `rank`: what recommendations gain over it is what they know of tastes.
    """

    def __init__(self, train: Ratings) -> None:
        """Count every item, without noise."""
        self.catalogue = train.catalogue
        counts = np.bincount(train.items, minlength=train.n_items)
        self._order = np.argsort(-counts, kind="stable")  # equal counts: as in the catalogue

    def recommend_rows(
        self, ratings: Ratings, n: int = 10
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (first row, positions of a block of users' n best items that they do not have)."""
        from tacit.kernels.lists import first_others

        for start in range(0, ratings.n_users, _BLOCK):
            stop = min(start + _BLOCK, ratings.n_users)
            lists = np.empty((stop - start, min(n, self._order.size)), np.int64)
            first_others(self._order, ratings.indptr[start : stop + 1], ratings.items, lists)
            yield start, lists


@dataclass(frozen=True, repr=False)
class Ranking(Measured):
    """Quality of lists of k items. NOT PRIVATE.

    Attributes:
        ndcg: mean over people of DCG / ideal DCG. DCG is the sum of gain / log2(1 + place) over
            the list, places from 1; the gain of a relevant held-out item is (rating - lo)/(hi -
            lo), that of any other item 0; the ideal list has the most relevant ones first.
        recall: mean over people of the share of their relevant held-out items that are in the
            list. Someone with more than k of them cannot reach 1.
        coverage: share of the catalogue that is in the list of at least one of `lists` people.
        people: those with a relevant held-out item, over whom NDCG and recall are means.
        lists: people with any held-out rating that can be predicted; each gets one list.
        k: length of the lists.
        relevant: the rating from which on an item is relevant.
    """

    ndcg: float
    recall: float
    coverage: float
    people: int
    lists: int
    k: int
    relevant: float


def rank(
    model: Recommender,
    train: Ratings,
    test: Ratings | pl.DataFrame,
    k: int = 10,
    relevant: float | None = None,
) -> Ranking:
    """Let each test user's own training row give her a list, and compare. NOT PRIVATE.

    Lists leave out what is in her training row, and have equal scores in the order of the
    catalogue. People without a relevant held-out item count for coverage only.

    Args:
        model: a published model.
        train: where test users' own rows are looked up, by user id.
        test: held-out ratings, as Ratings or as a frame with columns user, item and rating.
        k: length of the lists.
        relevant: the lowest rating of an item that she would like to see; None: seven tenths up
            the rating range, lo + 0.7 (hi - lo). Of interactions, all are relevant.

    Raises:
        ConfigError: k is not a whole number from 1 to the number of items, or `relevant` is not
            in the rating range, above its lower end.
        DataError: no held-out rating is relevant, they cannot be used, or some are in train.
    """
    items = len(model.catalogue)
    words = f"a whole number from 1 to the {items} items"
    k = check("k", k, Annotated[int, Range(1, items, words=words)])
    threshold = lowest_relevant(relevant, train.rating_range)
    held_out = match_held_out(train, test, model.catalogue)
    gains = _gains(held_out, threshold, train.rating_range)
    places, listed = _places(model, train, held_out, k)
    best = _places_by_gain(held_out, gains)
    people = len(held_out.people)
    wanted = np.bincount(held_out.person, gains > 0, people)
    found = np.bincount(held_out.person, (gains > 0) & (places < k), people)
    dcg = np.bincount(held_out.person, gains * _discounts(places, k), people)
    ideal = np.bincount(held_out.person, gains * _discounts(best, k), people)
    some = wanted > 0
    return Ranking(
        ndcg=float(np.mean(dcg[some] / ideal[some])),
        recall=float(np.mean(found[some] / wanted[some])),
        coverage=float(np.mean(listed)),
        people=int(np.sum(some)),
        lists=people,
        k=k,
        relevant=threshold,
    )


def lowest_relevant(relevant: Any, rating_range: tuple[float, float]) -> float:
    """Return the rating from which on an item is relevant: as given, or 0.7 up the range."""
    lo, hi = rating_range
    if relevant is None:
        return lo + _UPPER * (hi - lo)
    number = isinstance(relevant, int | float) and not isinstance(relevant, bool)
    if not number or not lo < relevant <= hi:
        raise ConfigError(
            f"relevant={relevant!r}: expected a rating above {lo:g}, and at most {hi:g}"
        )
    return float(relevant)


def _gains(held_out: HeldOut, threshold: float, rating_range: tuple[float, float]) -> Floats:
    """Return the gain of every held-out item, above zero where it is relevant."""
    lo, hi = rating_range
    liked = held_out.rating >= np.float32(threshold)
    if not liked.any():
        raise DataError(
            f"relevant={threshold:g}: no held-out rating that can be predicted is as high; lower it"
        )
    return np.where(liked, (held_out.rating.astype(np.float64) - lo) / (hi - lo), 0.0)


def _places(
    model: Recommender, train: Ratings, held_out: HeldOut, k: int
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the place of every held-out item in its list, k if none, and which are in any."""
    places = np.full(len(held_out.item), k, np.int64)
    listed = np.zeros(len(model.catalogue), np.bool_)
    for start, lists in model.recommend_rows(train.take_rows(held_out.people), k):
        low, high = np.searchsorted(held_out.person, (start, start + len(lists)))
        block = slice(low, high)
        hits = lists[held_out.person[block] - start] == held_out.item[block, None]
        np.copyto(places[block], np.argmax(hits, axis=1), where=hits.any(axis=1))
        listed[lists[lists >= 0]] = True
    return places, listed


def _places_by_gain(held_out: HeldOut, gains: Floats) -> NDArray[np.int64]:
    """Return the place of every held-out item in her ideal list."""
    order = np.lexsort((-gains, held_out.person))
    first = np.searchsorted(held_out.person, np.arange(len(held_out.people)))
    places = np.empty(len(gains), np.int64)
    places[order] = np.arange(len(gains)) - first[held_out.person]  # person is sorted already
    return places


def _discounts(places: NDArray[np.int64], k: int) -> Floats:
    """Return 1 / log2(1 + place), for places that count from zero; nothing from k on."""
    return np.where(places < k, 1.0 / np.log2(places + 2.0), 0.0)
