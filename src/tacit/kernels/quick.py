"""Posterior means of the latent factor model, solved in single precision and refined in double.

Only the local rule of a published model uses these loops; a fit does not. The matrix of a user's
system is formed and factorised in single precision, which is most of the work. Then, in double
precision, what is left of the right side is solved for again until a correction is below a part in
10^4: each is smaller than the one before by the error of the factorisation, so that the next one
would be below 10^-8.
Where that does not happen she solves in double precision from the start (`kernels.latent`).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.latent import LatentArrays, _choice_factors, _posterior
from tacit.kernels.solving import add_combination, add_multiple, put, target
from tacit.kernels.tiles import TALL, WIDE, add_products, subtract_products, tiled

__all__ = ["QuickArrays", "quick_arrays", "quick_means", "quick_pairs"]

_TRIES = 4
_SMALL = 1e-8  # of the squared length: after such a correction none is needed


class QuickArrays(NamedTuple):
    """Items' factors over the sd of their noise: by item in both precisions, and by factor."""

    scaled: NDArray[np.float64]
    single: NDArray[np.float32]
    across: NDArray[np.float32]


def quick_arrays(model: LatentArrays) -> QuickArrays:
    """Return what `quick_means` takes besides the model."""
    scaled = np.ascontiguousarray(model.factors * model.roots[:, None])
    items, rank = scaled.shape
    single = np.zeros((items, tiled(rank)), np.float32)
    single[:, :rank] = scaled
    return QuickArrays(scaled, single, np.ascontiguousarray(scaled.T.astype(np.float32)))


@njit(cache=True, nogil=True, fastmath={"contract", "reassoc", "nsz"})
def _dot(one, other):
    """Return the inner product, summed in whatever order is quick."""
    total = one.dtype.type(0.0)
    for k in range(one.size):
        total += one[k] * other[k]
    return total


@njit(cache=True, nogil=True, fastmath={"contract"})
def _cholesky(gram, size):
    """Turn the upper half into U with gram = U^T U, in place; rows and columns fill tiles.

    The diagonal becomes that of U^-1, which solving multiplies by; a tile has zeros below it.
    """
    for start in range(0, size, TALL):
        subtract_products(gram, start, gram.shape[1])
        first = start // WIDE * WIDE
        for k in range(start, min(start + TALL, size)):
            sums = gram[k, first:]
            for j in range(start, k):
                row, weight = gram[j, first:], gram[j, k]
                for l in range(sums.size):
                    sums[l] -= weight * row[l]
            if not 0.0 < sums[k - first] < np.inf:
                return False
            inverse = np.float32(1.0) / np.sqrt(sums[k - first])
            for l in range(sums.size):
                sums[l] *= inverse
    for k in range(len(gram)):  # what solving reads, and a factor has not
        for l in range(k // WIDE * WIDE, k):
            gram[k, l] = 0.0
        gram[k, k] = np.float32(1.0) / gram[k, k] if k < size else np.float32(0.0)
    return True


@njit(cache=True, nogil=True, fastmath={"contract"})
def _half_solved(upper, right):
    """Solve U^T z = right in place, in the precision of U; right is padded with zeros."""
    for k in range(right.size):
        first = k // WIDE * WIDE
        row, rest, value = upper[k, first:], right[first:], right[k] * upper[k, k]
        for l in range(rest.size):
            rest[l] -= value * row[l]
        right[k] = value


@njit(cache=True, nogil=True, fastmath={"contract"})
def _substitute(upper, right):
    """Solve U^T U x = right in place, in the precision of U; right is padded with zeros."""
    _half_solved(upper, right)
    for k in range(right.size - 1, -1, -1):
        first, value = k // WIDE * WIDE, right[k]
        right[k] = 0.0
        right[k] = (value - _dot(upper[k, first:], right[first:])) * upper[k, k]


@njit(cache=True, nogil=True)
def _system(quick, items, wide):
    """Return U of I + G G^T or I + G^T G in single precision, its size, and whether it is sound."""
    rank, count = quick.scaled.shape[1], items.size
    size = count if wide else rank
    rows = np.zeros((rank if wide else count, tiled(size)), dtype=np.float32)
    if wide:
        for k in range(rank):
            row, across = rows[k], quick.across[k]
            for p in range(count):
                row[p] = across[items[p]]
    else:
        for p in range(count):
            put(quick.single[items[p]], rows[p])
    gram = np.zeros((rows.shape[1], rows.shape[1]), dtype=np.float32)
    for k in range(size):
        gram[k, k] = 1.0
    add_products(rows, len(rows), gram, size, gram.shape[1])
    return gram, _cholesky(gram, size)


@njit(cache=True, nogil=True)
def _left(block, gaps, solved, moved):
    """Return what is left of the right side: gaps - solved - G G^T solved, given G^T solved."""
    left = np.empty(gaps.size)
    for p in range(gaps.size):
        left[p] = gaps[p] - solved[p] - _dot(block[p], moved)
    return left


@njit(cache=True, nogil=True)
def _add_errors(block, gaps, solved, left):
    """Add G^T (gaps - G solved), each row of G read once."""
    for p in range(gaps.size):
        add_multiple(left, gaps[p] - _dot(block[p], solved), block[p])


@njit(cache=True, nogil=True)
def _corrected(upper, left, solved):
    """Add the correction to the solution; return the squares of its length and the solution's."""
    single = np.zeros(len(upper), np.float32)
    put(left, single)
    _substitute(upper, single)
    length, whole = 0.0, 0.0
    for k in range(solved.size):
        solved[k] += single[k]
        length += np.float64(single[k]) ** 2
        whole += solved[k] ** 2
    return length, whole


@njit(cache=True, nogil=True)
def _refined(upper, block, gaps, wide):
    """Return G^T (I + G G^T)^-1 gaps, and whether corrections became small."""
    rank = block.shape[1]
    solved = np.zeros(gaps.size if wide else rank)
    right, moved = np.zeros(rank), np.zeros(rank)
    add_combination(right, gaps, block)
    for turn in range(_TRIES):
        if wide:
            left = _left(block, gaps, solved, moved) if turn else gaps
        else:
            left = right.copy()
            if turn:
                left = -solved
                _add_errors(block, gaps, solved, left)
        length, whole = _corrected(upper, left, solved)
        if wide:
            moved[:] = 0.0
            add_combination(moved, solved, block)
        if length <= _SMALL * whole:
            return (moved if wide else solved), True
    return right, False


@njit(cache=True, nogil=True)
def quick_posterior(rows, i, model, quick):
    """Return u, G, the Cholesky factor in single precision, and whether all is finite."""
    rank = model.factors.shape[1]
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    items, wide = rows.items[start:stop], stop - start < rank
    own, block, gaps = np.zeros(rank), np.empty((stop - start, rank)), np.empty(stop - start)
    add_combination(own, _choice_factors(rows, i, model.choice), model.prior)
    for p in range(gaps.size):
        put(quick.scaled[items[p]], block[p])
        gaps[p] = target(rows, i, start + p) * model.roots[items[p]] - _dot(block[p], own)
    upper, fine = _system(quick, items, wide)
    if fine:
        more, fine = _refined(upper, block, gaps, wide)
        for k in range(rank):
            own[k] += more[k]
            fine = fine and np.abs(own[k]) < np.inf
    return own, block, upper, fine


@njit(cache=True, nogil=True)
def quick_means(rows, model, quick, solved, lo, hi):
    """Write every user's posterior mean; zero where arithmetic breaks down."""
    for i in range(lo, hi):
        own, _, _, fine = quick_posterior(rows, i, model, quick)
        if not fine:
            _, own, _, _, fine = _posterior(rows, i, model)
        if fine:
            put(own, solved[i])


@njit(cache=True, nogil=True)
def _variance(vector, block, upper):
    """Return f^T S f, from either Cholesky factor: to a part in 10^5 of the prior's."""
    count, rank = block.shape
    left = np.zeros(len(upper), dtype=np.float32)
    for p in range(min(count, rank)):
        left[p] = _dot(block[p], vector) if count < rank else vector[p]
    _half_solved(upper, left)
    squared = 0.0
    for p in range(left.size):
        squared += np.float64(left[p]) ** 2
    return max(_dot(vector, vector) - squared, 0.0) if count < rank else squared


@njit(cache=True, nogil=True)
def quick_pairs(rows, published, pairs, scores, variances, lo, hi):
    """Write f_j . u and f_j^T S f_j of the pairs; no variances if there is no room for them.

    `published` are (model, quick); `pairs` are (starts, items): user i asks for the items
    starts[i] ... starts[i + 1] - 1. Where arithmetic breaks down u is zero and S the identity.
    """
    (model, quick), (starts, items) = published, pairs
    for i in range(lo, hi):
        if starts[i] == starts[i + 1]:
            continue
        own, block, upper, sound = quick_posterior(rows, i, model, quick)
        fine = sound
        if not sound:
            _, own, _, _, fine = _posterior(rows, i, model)
        for q in range(starts[i], starts[i + 1]):
            vector = model.factors[items[q]]
            scores[q] = _dot(vector, own) if fine else 0.0
            if variances.size:
                prior = _dot(vector, vector)
                variances[q] = _variance(vector, block, upper) if sound else prior
