"""The loops that make lists: of the best scores, and the same for everyone without what she has."""

import numpy as np
from numba import njit

from tacit.kernels.counting import without_counting


@njit(cache=True, nogil=True)
def first_others(order, indptr, items, lists):
    """Write the first items of `order` that are not in a row, for each row; -1 where none is left.

    `indptr` and `items` are rows that need not begin at 0.
    """
    seen_by = np.full(order.size, -1, dtype=np.int64)
    for i in range(len(lists)):
        for p in range(indptr[i], indptr[i + 1]):
            seen_by[items[p]] = i
        at = 0
        for item in order:
            if at == lists.shape[1]:
                break
            if seen_by[item] != i:
                lists[i, at] = item
                at += 1
        for rest in range(at, lists.shape[1]):
            lists[i, rest] = -1


@without_counting
def keep_sorted(best, places, held, value, place):
    """Put a value and its place into a list of the best; return how many it holds.

    Where it is full (`held` is its size), the value is above the last one, which goes.
    """
    at = min(held, best.size - 1)
    while at > 0 and best[at - 1] < value:
        best[at], places[at] = best[at - 1], places[at - 1]
        at -= 1
    best[at], places[at] = value, place
    return min(held + 1, best.size)


@njit(cache=True, nogil=True)
def best_scores(scores, lists):
    """Write the positions of each row's best scores, best first; -1 where none is left.

    Equal scores come in their order. Minus infinity and NaN are no scores. What is best so far is
    kept sorted, so that short lists are quick: most scores are compared with the last one only.
    """
    count = lists.shape[1]
    best = np.empty(count)
    for i in range(len(lists)):
        held, last = 0, -np.inf
        for item in range(scores.shape[1]):
            score = scores[i, item]
            if not score > last:
                continue
            held = keep_sorted(best, lists[i], held, score, item)
            if held == count:
                last = best[count - 1]
        lists[i, held:] = -1
