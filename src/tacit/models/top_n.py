"""The best items by their scores, without sorting all of them."""

import numpy as np
from numpy.typing import NDArray

from tacit.models.rules import Floats, OwnRows

__all__ = ["best_items", "without_rated"]


def without_rated(scores: Floats, own: OwnRows) -> Floats:
    """Return the scores, in place, with minus infinity for what a person has rated herself."""
    people = np.repeat(np.arange(own.indptr.size - 1), np.diff(own.indptr))
    scores[people, own.items] = -np.inf
    return scores


def best_items(scores: Floats, count: int) -> NDArray[np.int64]:
    """Return the positions of each row's `count` best scores, best first.

    Equal scores come in the order of the catalogue. Minus infinity and NaN are no scores: where
    too few are left, the list ends in -1.
    """
    scores = np.where(np.isnan(scores), -np.inf, scores)
    people, items = scores.shape
    count = min(count, items)
    if not people:
        return np.empty((0, count), np.int64)
    edge = np.partition(scores, items - count, axis=1)[:, items - count, None]
    above, level = scores > edge, scores == edge
    wanted = count - np.count_nonzero(above, axis=1, keepdims=True)
    crowded = np.flatnonzero(np.count_nonzero(level, axis=1, keepdims=True) > wanted)
    level[crowded] &= np.cumsum(level[crowded], axis=1) <= wanted[crowded]
    chosen = np.nonzero(above | level)[1].reshape(people, count)
    values = np.take_along_axis(scores, chosen, axis=1)
    order = np.argsort(-values, axis=1, kind="stable")
    best = np.take_along_axis(chosen, order, axis=1)
    return np.where(np.take_along_axis(values, order, axis=1) > -np.inf, best, -1)
