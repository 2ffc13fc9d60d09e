"""Linear algebra of one user: her own factors by ridge regression on item factors.

A user with the ratings o solves u = (G^T G + ridge I)^-1 G^T t with G = R_o F_o and t = R_o y_o,
where R = diag(roots) and roots are one over the sd of the ratings' noise. With fewer ratings than
factors it is u = G^T (G G^T + ridge I)^-1 t, the same in a smaller system. Only upper halves of
symmetric matrices are formed, and inner loops run along rows.

Nothing here raises: an error that depends on someone's row would tell of it. Where arithmetic
breaks down a user has u = 0 and knows what she knew before.
"""

import numpy as np
from numba import njit

from tacit.kernels.rows import clipped


@njit(cache=True, nogil=True)
def target(rows, i, p):
    """Return what user i's rating p is regressed as."""
    return clipped(rows, p, rows.means[i]) * rows.scales[i]


@njit(cache=True, nogil=True)
def add_multiple(sums, weight, vector):
    """Add weight x vector to the sums, in place."""
    for l in range(sums.size):
        sums[l] += weight * vector[l]


@njit(cache=True, nogil=True)
def add_combination(sums, weights, block):
    """Add weights @ block to the sums."""
    for p in range(weights.size):
        add_multiple(sums, weights[p], block[p])


@njit(cache=True, nogil=True)
def dot(one, other):
    """Return the inner product, in one order; that of BLAS may depend on where numbers lie."""
    total = 0.0
    for k in range(one.size):
        total += one[k] * other[k]
    return total


@njit(cache=True, nogil=True)
def _divide(vector, divisor):
    """Divide by a number, in place."""
    for l in range(vector.size):
        vector[l] /= divisor


@njit(cache=True, nogil=True)
def put(vector, room):
    """Write a vector to the first places of the room.

    Assigned to a slice or a row, it would take seconds more to compile: the words of an error.
    """
    for k in range(vector.size):
        room[k] = vector[k]


@njit(cache=True, nogil=True)
def _add_products(block, gram):
    """Add the upper half of block^T block, four rows of the block at a time."""
    count, size = block.shape
    whole = count - count % 4
    for p in range(0, whole, 4):
        for k in range(size):  # slices of rows, so that the loop below becomes vector code
            first, second = block[p, k], block[p + 1, k]
            third, fourth = block[p + 2, k], block[p + 3, k]
            sums, one, two = gram[k, k:], block[p, k:], block[p + 1, k:]
            three, four = block[p + 2, k:], block[p + 3, k:]
            for l in range(sums.size):
                pair = first * one[l] + second * two[l]
                sums[l] += pair + (third * three[l] + fourth * four[l])
    for p in range(whole, count):
        for k in range(size):
            add_multiple(gram[k, k:], block[p, k], block[p, k:])


@njit(cache=True, nogil=True)
def gram_of(block, ridge):
    """Return the upper half of block^T block + ridge I."""
    gram = np.zeros((block.shape[1], block.shape[1]))
    for k in range(block.shape[1]):
        gram[k, k] = ridge
    _add_products(block, gram)
    return gram


@njit(cache=True, nogil=True)
def subtract_rows(sums, weights, matrix, first, start):
    """Subtract weights @ matrix[first : first + weights.size, start:] from the sums, row by row.

    Four rows at a time, since a processor spends as long on reading and writing sums as on some
    products; one after the other, so that bits are those of one row at a time.
    """
    whole = weights.size - weights.size % 4
    for k in range(0, whole, 4):
        at = first + k
        one, two = matrix[at, start:], matrix[at + 1, start:]
        three, four = matrix[at + 2, start:], matrix[at + 3, start:]
        a, b, c, d = weights[k], weights[k + 1], weights[k + 2], weights[k + 3]
        for l in range(sums.size):
            pair = (sums[l] - a * one[l]) - b * two[l]
            sums[l] = (pair - c * three[l]) - d * four[l]
    for k in range(whole, weights.size):
        add_multiple(sums, -weights[k], matrix[first + k, start:])


@njit(cache=True, nogil=True)
def cholesky(gram):
    """Turn the upper half into U with gram = U^T U, in place; False if that cannot be done."""
    for k in range(gram.shape[0]):
        row = gram[k, k:]
        subtract_rows(row, gram[:k, k], gram, 0, k)
        if not 0.0 < row[0] < np.inf:
            return False
        _divide(row, np.sqrt(row[0]))
    return True


@njit(cache=True, nogil=True)
def substitute(upper, right):
    """Solve U^T U x = right in place."""
    size = right.size
    for k in range(size):
        right[k] /= upper[k, k]
        add_multiple(right[k + 1 :], -right[k], upper[k, k + 1 :])
    for k in range(size - 1, -1, -1):
        for l in range(k + 1, size):
            right[k] -= upper[k, l] * right[l]
        right[k] /= upper[k, k]


@njit(cache=True, nogil=True)
def inverse_of(upper):
    """Return U^-1, upper triangular; with gram = U^T U, gram^-1 = U^-1 U^-T."""
    size = upper.shape[0]
    inverse = np.zeros((size, size))
    for k in range(size - 1, -1, -1):
        row = inverse[k, k + 1 :]
        subtract_rows(row, upper[k, k + 1 :], inverse, k + 1, k + 1)
        inverse[k, k] = 1.0 / upper[k, k]
        for l in range(row.size):
            row[l] *= inverse[k, k]
    return inverse


@njit(cache=True, nogil=True)
def solve_rows(upper, matrix):
    """Solve U^T U X = matrix in place."""
    size = upper.shape[0]
    for k in range(size):
        subtract_rows(matrix[k], upper[:k, k], matrix, 0, 0)
        _divide(matrix[k], upper[k, k])
    for k in range(size - 1, -1, -1):
        subtract_rows(matrix[k], upper[k, k + 1 :], matrix, k + 1, 0)
        _divide(matrix[k], upper[k, k])


@njit(cache=True, nogil=True)
def own_block(rows, i, factors, roots):
    """Return G of user i, ratings by factors."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    block = np.empty((stop - start, factors.shape[1]))
    for p in range(start, stop):
        vector, row = factors[rows.items[p]], block[p - start]
        for k in range(vector.size):
            row[k] = roots[rows.items[p]] * vector[k]
    return block


@njit(cache=True, nogil=True)
def _tall_solution(block, targets, ridge):
    """Return (G^T G + ridge I)^-1 G^T t."""
    gram = gram_of(block, ridge)
    right = np.zeros(block.shape[1])
    add_combination(right, targets, block)
    if not cholesky(gram):
        return np.zeros(right.size)
    substitute(gram, right)
    return right


@njit(cache=True, nogil=True)
def _wide_solution(block, targets, ridge):
    """Return G^T (G G^T + ridge I)^-1 t."""
    across = block.T.copy()
    gram = gram_of(across, ridge)
    solved = np.zeros(block.shape[1])
    if not cholesky(gram):
        return solved
    substitute(gram, targets)
    add_combination(solved, targets, block)
    return solved


@njit(cache=True, nogil=True)
def own_solution(rows, i, factors, roots, ridge):
    """Return user i's factors: argmin sum roots_j^2 (y_j - u . f_j)^2 + ridge |u|^2."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    block = own_block(rows, i, factors, roots)
    targets = np.empty(stop - start)
    for p in range(start, stop):
        targets[p - start] = roots[rows.items[p]] * target(rows, i, p)
    if targets.size < factors.shape[1]:
        solved = _wide_solution(block, targets, ridge)
    else:
        solved = _tall_solution(block, targets, ridge)
    for k in range(solved.size):
        if not np.abs(solved[k]) < np.inf:
            return np.zeros(solved.size)
    return solved
