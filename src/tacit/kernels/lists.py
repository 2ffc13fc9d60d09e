"""The loop that gives everyone the same list, without what she has."""

import numpy as np
from numba import njit

__all__ = ["first_others"]


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
