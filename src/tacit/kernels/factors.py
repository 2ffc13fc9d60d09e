"""Loops over users who solve for their own factors."""

import numpy as np
from numba import njit

from tacit.kernels.solving import own_solution, target

__all__ = ["factor_gradient", "solve_factors"]


@njit(cache=True, nogil=True)
def solve_factors(rows, factors, roots, solved, lo, hi):
    """Write every user's own factors, with ridge 1: the prior spread is in the factors."""
    for i in range(lo, hi):
        solved[i] = own_solution(rows, i, factors, roots, 1.0)


@njit(cache=True, nogil=True)
def factor_gradient(rows, factors, ridge, quanta, lo, hi, total):
    """Add the users' gradients sum_j (u . v_j - y_j) u, each clipped as one vector, in integers."""
    roots = np.ones(factors.shape[0])
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        own = own_solution(rows, i, factors, roots, ridge)
        errors = np.empty(stop - start)
        for p in range(start, stop):
            errors[p - start] = _product(own, factors[rows.items[p]]) - target(rows, i, p)
        _add_clipped(errors, own, rows.items[start:stop], quanta, total)


@njit(cache=True, nogil=True)
def _product(own, vector):
    """Return own . vector, in one order; that of BLAS may depend on where the numbers lie."""
    total = 0.0
    for k in range(own.size):
        total += own[k] * vector[k]
    return total


@njit(cache=True, nogil=True)
def _add_clipped(errors, own, items, quanta, total):
    """Add errors x own, an items-by-rank vector, scaled so that its integer norm holds."""
    norm = np.sqrt(np.sum(errors * errors) * np.sum(own * own))
    if not 0.0 < norm < np.inf:
        return
    factor = min(1.0, quanta.bound / norm) / quanta.quantum
    while True:
        squared = 0.0
        for p in range(errors.size):
            for k in range(own.size):
                squared += np.rint(errors[p] * own[k] * factor) ** 2
        if squared <= quanta.most_squared:
            break
        factor *= np.sqrt(quanta.most_squared / squared) * (1.0 - 1e-9)
    for p in range(errors.size):
        for k in range(own.size):
            total[items[p], k] += np.int64(np.rint(errors[p] * own[k] * factor))
