"""Loops over users who add their own factors to the normal equations of the items they rated."""

from typing import NamedTuple

import numpy as np
from numba import njit

from tacit.kernels.quantise import norm_of, quantise
from tacit.kernels.solving import add_multiple, own_solution, target


class EquationQuanta(NamedTuple):
    """How a user's weights, factors and targets become integers.

    Factors are multiplied by `factor` and targets by `target`; weights are as long as they may be.
    Then all are rounded. Weights and factors have squared norms of at most `most_squared`; targets
    are at most `most` in size.
    """

    factor: float
    target: float
    most_squared: int
    most: int


@njit(cache=True, nogil=True)
def _full_length(vector, most_squared):
    """Return the factor that makes a vector sqrt(most_squared) long; 0 if there is none."""
    norm = norm_of(vector)
    return np.sqrt(most_squared) / norm if 0.0 < norm < np.inf else 0.0


@njit(cache=True, nogil=True)
def _pack(own, packed):
    """Write the upper half of own own^T, row by row."""
    at = 0
    for k in range(own.size):
        for l in range(k, own.size):
            packed[at] = own[k] * own[l]
            at += 1


@njit(cache=True, nogil=True)
def normal_equations(rows, model, quanta, lo, hi, total):
    """Let users solve for their own factors u and add w_j u u^T, w_j y_j u to their items.

    `model` are (factors, roots, weights of items), roots as in kernels.solving. A user's weights w
    are those of her items, made one vector of norm 1. All are integers. An item's row of `total`
    has the upper half of u u^T, row by row, then y_j u.
    """
    factors, roots, item_weights = model
    rank = factors.shape[1]
    own = np.empty(rank, dtype=np.int64)
    grams = total.shape[1] - rank
    packed = np.empty(grams, dtype=np.int64)
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        if stop == start:
            continue
        solved = own_solution(rows, i, factors, roots, 1.0)
        factor = min(quanta.factor, _full_length(solved, quanta.most_squared))
        quantise(solved, factor, quanta.most_squared, own)
        _pack(own, packed)
        items = rows.items[start:stop]
        weights = np.empty(stop - start, dtype=np.int64)
        hers = item_weights[items]
        factor = _full_length(hers, quanta.most_squared)
        quantise(hers, factor, quanta.most_squared, weights)
        for p in range(stop - start):
            if weights[p] != 0:
                place = np.rint(target(rows, i, start + p) * quanta.target)
                place = min(quanta.most, max(-quanta.most, place))
                sums = total[items[p]]
                add_multiple(sums[:grams], weights[p], packed)
                add_multiple(sums[grams:], weights[p] * np.int64(place), own)
