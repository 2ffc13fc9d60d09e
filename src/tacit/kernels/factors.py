"""Loops over users who solve for their own factors."""

import numpy as np
from numba import njit

from tacit.kernels.quantise import clip_factor, quantise
from tacit.kernels.solving import dot, own_solution, put, target


@njit(cache=True, nogil=True)
def solve_factors(rows, factors, roots, solved, lo, hi):
    """Write every user's own factors, with ridge 1: the prior spread is in the factors."""
    for i in range(lo, hi):
        put(own_solution(rows, i, factors, roots, 1.0), solved[i])


@njit(cache=True, nogil=True)
def factor_gradient(rows, factors, ridge, quanta, lo, hi, total):
    """Add the users' gradients sum_j (u . v_j - y_j) u, each clipped as one vector, in integers."""
    roots = np.ones(factors.shape[0])
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        own = own_solution(rows, i, factors, roots, ridge)
        errors = np.empty(stop - start)
        for p in range(start, stop):
            errors[p - start] = dot(own, factors[rows.items[p]]) - target(rows, i, p)
        _add_clipped(errors, own, rows.items[start:stop], quanta, total)


@njit(cache=True, nogil=True)
def _add_clipped(errors, own, items, quanta, total):
    """Add errors x own, an items-by-rank vector that is clipped as one."""
    norm = np.sqrt(np.sum(errors * errors) * np.sum(own * own))
    rank = own.size
    terms = np.empty(errors.size * rank)
    integers = np.empty(terms.size, dtype=np.int64)
    for p in range(errors.size):
        for k in range(rank):
            terms[p * rank + k] = errors[p] * own[k]
    factor = clip_factor(norm, quanta.bound) / quanta.quantum
    quantise(terms, factor, quanta.most_squared, integers)
    for p in range(errors.size):
        for k in range(rank):
            total[items[p], k] += integers[p * rank + k]
