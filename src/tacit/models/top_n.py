"""The items with the highest scores."""

import numpy as np
from numpy.typing import NDArray

from tacit.models.rules import Floats, OwnRows

SHORT = 200  # lists that are kept sorted while scores are looked at; for longer ones all are sorted


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
    from tacit.kernels.lists import best_scores

    people, items = scores.shape
    lists = np.empty((people, min(count, items)), np.int64)
    if not lists.size:
        return lists
    if lists.shape[1] <= SHORT:
        best_scores(np.ascontiguousarray(scores, dtype=np.float64), lists)
        return lists
    scores = np.where(np.isnan(scores), -np.inf, scores)
    lists[:] = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    lists[np.take_along_axis(scores, lists, axis=1) == -np.inf] = -1
    return lists
