"""Loops over users who predict some items only: each solves once, then a dot product an item.

`pairs` are (starts, items): user i asks for the items starts[i] ... starts[i + 1] - 1.
"""

import numpy as np
from numba import njit

from tacit.kernels.solving import (
    add_combination,
    add_multiple,
    cholesky,
    dot,
    gram_of,
    own_block,
    put,
    target,
)


@njit(cache=True, nogil=True)
def _half_solved(upper, right):
    """Solve U^T z = right in place."""
    for k in range(right.size):
        right[k] /= upper[k, k]
        add_multiple(right[k + 1 :], -right[k], upper[k, k + 1 :])


@njit(cache=True, nogil=True)
def _solved(rows, i, factors, roots):
    """Return U with U^T U = A = G^T G + I, U^-T G^T t and U^-T G^T R_o 1 of user i.

    Where arithmetic breaks down U is the identity, and the others are zero.
    """
    block, start = own_block(rows, i, factors, roots), rows.indptr[i]
    upper, size = gram_of(block, 1.0), factors.shape[1]
    right, ones = np.zeros(size), np.zeros(size)
    weights = np.empty(block.shape[0])
    for p in range(weights.size):
        weights[p] = roots[rows.items[start + p]]
    add_combination(ones, weights, block)
    for p in range(weights.size):
        weights[p] *= target(rows, i, start + p)
    add_combination(right, weights, block)
    if not cholesky(upper):
        return np.eye(size), np.zeros(size), np.zeros(size)
    _half_solved(upper, right)
    _half_solved(upper, ones)
    return upper, right, ones


@njit(cache=True, nogil=True)
def ridge_pairs(rows, published, doubts, pairs, scores, variances, lo, hi):
    """Write f_j . u, and f_j^T A^-1 f_j + doubts_i h_j^2 with h_j = 1 - f_j^T A^-1 G^T R_o 1.

    `published` are (factors, roots); no variances if there is no room for them.
    """
    (factors, roots), (starts, items) = published, pairs
    vector = np.empty(factors.shape[1])
    for i in range(lo, hi):
        if starts[i] == starts[i + 1]:
            continue
        upper, right, ones = _solved(rows, i, factors, roots)
        for q in range(starts[i], starts[i + 1]):
            put(factors[items[q]], vector)
            _half_solved(upper, vector)
            score = dot(vector, right)
            scores[q] = score if np.abs(score) < np.inf else 0.0
            if variances.size:
                left = 1.0 - dot(vector, ones)
                doubt = doubts[i] * left * left if left != 0.0 else 0.0
                variances[q] = dot(vector, vector) + doubt
