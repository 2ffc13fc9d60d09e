"""Loops over users who say how far off their own predictions may be."""

import numpy as np
from numba import njit

from tacit.kernels.solving import add_multiple, cholesky, gram_of, own_block, put, substitute


@njit(cache=True, nogil=True)
def factor_variances(rows, factors, noise, doubts, variances, lo, hi):
    """Write the variance of the error of every user's prediction of every item.

    It is f_j^T A^-1 f_j + noise_j + doubts_i h_j^2, with A = G^T G + I, doubts_i the variance of
    the error of user i's own mean, and h_j = 1 - f_j^T A^-1 G^T R_o 1: what is left of that error
    once it has gone into her factors too.
    """
    roots, across = 1.0 / np.sqrt(noise), factors.T.copy()
    spread, left = np.empty(across.shape), np.empty(noise.size)
    for i in range(lo, hi):
        items = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        block = own_block(rows, i, factors, roots)
        upper, ones = gram_of(block, 1.0), np.zeros(factors.shape[1])
        for p in range(items.size):
            add_multiple(ones, roots[items[p]], block[p])
        if not cholesky(upper):  # then her factors are zero too, and this is the prior
            upper, ones = np.eye(ones.size), np.zeros(ones.size)
        substitute(upper, ones)
        left[:] = 1.0
        own = variances[i]
        put(noise, own)
        for k in range(ones.size):
            put(across[k], spread[k])
        for k in range(ones.size):
            add_multiple(left, -ones[k], across[k])
            row = spread[k]
            for j in range(row.size):
                row[j] /= upper[k, k]
            for l in range(k + 1, ones.size):
                add_multiple(spread[l], -upper[k, l], row)
            for j in range(row.size):
                own[j] += row[j] * row[j]
        for j in range(left.size):
            own[j] += doubts[i] * left[j] * left[j]
