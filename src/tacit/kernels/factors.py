"""Loops over users who solve for their own factors."""

import numpy as np
from numba import njit

from tacit.kernels.rows import clipped

__all__ = ["factor_gradient", "solve_factors"]


@njit(cache=True, nogil=True)
def _cholesky_solve(normal, right):
    """Return the solution of a positive definite system, in place; zeros if it is not one.

    It raises nothing: an error that depends on someone's row would tell of it.
    """
    rank = right.size
    for j in range(rank):
        for k in range(j):
            normal[j, j] -= normal[j, k] ** 2
        if not 0.0 < normal[j, j] < np.inf:
            return np.zeros(rank)
        normal[j, j] = np.sqrt(normal[j, j])
        for i in range(j + 1, rank):
            for k in range(j):
                normal[i, j] -= normal[i, k] * normal[j, k]
            normal[i, j] /= normal[j, j]
    for j in range(rank):
        for k in range(j):
            right[j] -= normal[j, k] * right[k]
        right[j] /= normal[j, j]
    for j in range(rank - 1, -1, -1):
        for k in range(j + 1, rank):
            right[j] -= normal[k, j] * right[k]
        right[j] /= normal[j, j]
    for j in range(rank):
        if not np.abs(right[j]) < np.inf:
            return np.zeros(rank)
    return right.copy()


@njit(cache=True, nogil=True)
def _solve(rows, i, factors, ridge, normal, right):
    """Return user i's factors: argmin sum (y_j - u . v_j)^2 + ridge ||u||^2."""
    rank = factors.shape[1]
    normal[:] = 0.0
    right[:] = 0.0
    for k in range(rank):
        normal[k, k] = ridge
    for p in range(rows.indptr[i], rows.indptr[i + 1]):
        vector = factors[rows.items[p]]
        target = clipped(rows, p, rows.means[i]) * rows.scales[i]
        for k in range(rank):
            right[k] += target * vector[k]
            for l in range(rank):
                normal[k, l] += vector[k] * vector[l]
    return _cholesky_solve(normal, right)


@njit(cache=True, nogil=True)
def solve_factors(rows, factors, ridge, solved, lo, hi):
    """Write every user's own factors."""
    rank = factors.shape[1]
    normal, right = np.empty((rank, rank)), np.empty(rank)
    for i in range(lo, hi):
        solved[i] = _solve(rows, i, factors, ridge, normal, right)


@njit(cache=True, nogil=True)
def factor_gradient(rows, factors, ridge, quanta, lo, hi, total):
    """Add the users' gradients sum_j (u . v_j - y_j) u, each clipped as one vector, in integers."""
    rank = factors.shape[1]
    normal, right = np.empty((rank, rank)), np.empty(rank)
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        own = _solve(rows, i, factors, ridge, normal, right)
        errors = np.empty(stop - start)
        for p in range(start, stop):
            target = clipped(rows, p, rows.means[i]) * rows.scales[i]
            errors[p - start] = np.dot(own, factors[rows.items[p]]) - target
        _add_clipped(errors, own, rows.items[start:stop], quanta, total)


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
