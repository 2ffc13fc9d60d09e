"""Loops over users of the latent factor model: choice, posterior mean, and what a fit sums of it.

User i with d ratings at the items o has x_i = e_i / sqrt(d), e_i her 0/1 row. Her choice factors
are c = choice_o^T x, and her latent factors have the prior N(prior^T c, I). With ratings
y_j = offset_j + f_j . u + N(0, noise_j) her posterior has

    S = (F_o^T D_o^-1 F_o + I)^-1,
    u = prior^T c + S F_o^T D_o^-1 (y_o - offset_o - F_o prior^T c).

Nothing here raises: an error that depends on someone's row would tell of it. Where arithmetic
breaks down a user adds nothing, and predicts what she knew before.
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.counting import without_counting
from tacit.kernels.lanes import dot as quick_dot
from tacit.kernels.lines import (
    BATCH,
    add_outer,
    add_units,
    clear_line,
    combine,
    filled_by_four,
    put_multiples,
    put_terms,
)
from tacit.kernels.own_system import explained, room_for, solve, spread, tables_of
from tacit.kernels.quantise import clip_factor, norm_of, quantise
from tacit.kernels.rows import longest_row
from tacit.kernels.solving import (
    add_combination,
    add_multiple,
    cholesky,
    dot,
    gram_of,
    inverse_of,
    own_block,
    put,
    solve_rows,
    substitute,
    subtract_rows,
    target,
)
from tacit.kernels.tiles import WIDE, tiled


class LatentArrays(NamedTuple):
    """The published numbers of the model; offsets are with the rows.

    Attributes:
        factors: F, items by factors.
        roots: one over the sd of the ratings' noise, for each item.
        choice: items by choice factors.
        prior: choice factors by factors.
    """

    factors: NDArray[np.float64]
    roots: NDArray[np.float64]
    choice: NDArray[np.float64]
    prior: NDArray[np.float64]


@njit(cache=True, nogil=True)
def _choice_factors(rows, i, choice):
    """Return c of user i; someone without ratings is taken to be average."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    found = np.zeros(choice.shape[1])
    if start == stop:
        found[0] = 1.0
        return found
    share = 1.0 / np.sqrt(stop - start)
    for p in range(start, stop):
        add_multiple(found, share, choice[rows.items[p]])
    return found


@njit(cache=True, nogil=True)
def _posterior(rows, i, model):
    """Return c, u, G = R_o F_o, a Cholesky factor U, and whether all is finite.

    With at least as many ratings as factors U^T U = I + G^T G = S^-1, otherwise the smaller
    I + G G^T, with S = I - G^T (I + G G^T)^-1 G.
    """
    found = _choice_factors(rows, i, model.choice)
    own = np.zeros(model.prior.shape[1])
    add_combination(own, found, model.prior)
    block, start = own_block(rows, i, model.factors, model.roots), rows.indptr[i]
    gaps = np.empty(block.shape[0])
    for p in range(gaps.size):
        gaps[p] = target(rows, i, start + p) * model.roots[rows.items[start + p]]
        gaps[p] -= dot(block[p], own)
    wide = _is_wide(block)
    upper = gram_of(block.T.copy() if wide else block, 1.0)
    fine = cholesky(upper)
    if fine and wide:
        substitute(upper, gaps)
        add_combination(own, gaps, block)
    elif fine:
        right = np.zeros(own.size)
        add_combination(right, gaps, block)
        substitute(upper, right)
        add_multiple(own, 1.0, right)
    for k in range(own.size):
        fine = fine and np.abs(own[k]) < np.inf
    return found, own, block, upper, fine


@njit(cache=True, nogil=True)
def _is_wide(block):
    """Return whether there are fewer ratings than factors."""
    return block.shape[0] < block.shape[1]


@njit(cache=True, nogil=True)
def posterior_means(rows, model, solved, lo, hi):
    """Write every user's posterior mean; zero where arithmetic breaks down."""
    for i in range(lo, hi):
        _, own, _, _, fine = _posterior(rows, i, model)
        if fine:
            put(own, solved[i])


@njit(cache=True, nogil=True)
def _residuals(rows, i, model, own):
    """Return what is left of user i's ratings at her posterior mean."""
    start = rows.indptr[i]
    left = np.empty(rows.indptr[i + 1] - start)
    for p in range(left.size):
        left[p] = target(rows, i, start + p) - dot(model.factors[rows.items[start + p]], own)
    return left


@njit(cache=True, nogil=True)
def _explained(upper):
    """Return sum_o f^T S f / noise, from either Cholesky factor: its size less |U^-1|^2.

    It is the number of factors less the trace of S, or that of ratings less that of
    (I + G G^T)^-1: both matrices have the same eigenvalues but for ones.
    """
    inverse, total = inverse_of(upper), float(upper.shape[0])
    for k in range(upper.shape[0]):
        total -= dot(inverse[k, k:], inverse[k, k:])
    return total


@njit(cache=True, nogil=True)
def _solve_in_double(rows, i, model, room):
    """Write what `solve` and `spread` write, in double precision.

    Return whether all is finite, and sum_o f^T S f / noise.
    """
    found, own, block, upper, fine = _posterior(rows, i, model)
    if not fine:
        return False, 0.0
    put(found, room.found[0])
    put(own, room.own[0])
    left, across = _residuals(rows, i, model, own), _spread(block, upper)
    for p in range(left.size):
        room.left[p] = left[p] * model.roots[rows.items[rows.indptr[i] + p]]
        clear_line(room.product, p, room.product.shape[1])
        put(across[:, p], room.product[p])
    return True, _explained(upper)


@without_counting
def _put_moment(room, count, fitted, choices, vector):
    """Write v = (c, u, fit error) of a user with so many ratings; `fitted` is `explained`."""
    total = fitted + quick_dot(room.left[:count], room.left[:count])
    for k in range(choices):
        vector[k] = room.found[0, k]
    for k in range(choices, vector.size - 1):
        vector[k] = room.own[0, k - choices]
    vector[vector.size - 1] = np.sqrt(total / count)


@njit(cache=True, nogil=True)
def factor_moments(rows, model, quanta, lo, hi, total):
    """Add the upper halves of v v^T, v = (c, u, fit error) clipped and rounded, in integers."""
    size = total.shape[0]
    (choices, rank), filled, tables = model.prior.shape, tiled(size), tables_of(model)
    room = room_for(tables, longest_row(rows.indptr, lo, hi))
    vector, batch = np.empty(size), np.zeros((BATCH, filled), dtype=np.int32)
    sums, waiting = np.zeros((filled, filled), dtype=np.int64), 0
    for i in range(lo, hi):
        count = rows.indptr[i + 1] - rows.indptr[i]
        if count == 0:
            continue
        fine, fitted = solve(rows, i, tables, room, rank), explained(room, count, rank)
        if not fine:
            fine, fitted = _solve_in_double(rows, i, model, room)
        if not fine:
            continue
        _put_moment(room, count, fitted, choices, vector)
        factor = clip_factor(norm_of(vector), quanta.bound) / quanta.quantum
        quantise(vector, factor, quanta.most_squared, batch[waiting])
        waiting += 1
        if waiting == BATCH:
            add_outer(batch, size, sums)
            waiting = 0
    batch[waiting:] = 0
    add_outer(batch, size, sums)
    for k in range(size):
        for l in range(k, size):
            total[k, l] += sums[k, l]


@without_counting
def _put_gradient(rows, i, tables, room, rank, shape, terms):
    """Write user i's gradient over its bound, a row of the sum after the other; return its norm.

    `shape` are the bound, the weight of rows of choice factors, and how many of these there are.
    """
    bound, choice_weight, choices = shape
    start, count = rows.indptr[i], rows.indptr[i + 1] - rows.indptr[i]
    weight, step = 1.0 / (np.sqrt(count) * bound), filled_by_four(rank + 1)
    width = tables.prior.shape[1]
    combine(room.found[0], tables.prior, choices, width, room.moved)
    for k in range(rank):
        room.moved[0, k] = room.own[0, k] - room.moved[0, k]
    room.own[0, rank], room.moved[0, rank] = 1.0, 0.0
    for p in range(count):
        room.backs[p] = weight * tables.sds[rows.items[start + p]]
    squares = put_terms(room.own, room.left, room.product, room.backs, count, terms, step)
    much = np.float32(choice_weight / bound)
    squares += put_multiples(room.moved, room.found, much, choices, terms, count * step, step)
    return np.sqrt(squares)


@without_counting
def _add_terms(terms, length, items, choices, quanta, integers, sums):
    """Add a user's terms, clipped as one vector and rounded, to her items and choice factors."""
    step, first = sums.shape[1], sums.shape[0] - choices
    factor = clip_factor(length, 1.0) * quanta.bound / quanta.quantum
    size = (items.size + choices) * step
    quantise(terms[0, :size], factor, quanta.most_squared, integers)
    for p in range(items.size):
        add_units(integers, p * step, sums, items[p])
    for k in range(choices):
        add_units(integers, (items.size + k) * step, sums, first + k)


@njit(cache=True, nogil=True)
def expected_gradient(rows, model, choice_weight, quanta, lo, hi, total):
    """Add users' gradients in integers: for items (e_j u - S f_j, e_j) / sqrt d, and w c (u - v).

    The first are rows of the items, the others rows of the choice factors that come after these,
    v = prior^T c and w = `choice_weight`.
    """
    (choices, rank), longest = model.prior.shape, longest_row(rows.indptr, lo, hi)
    step = filled_by_four(rank + 1)
    size, sums = (longest + choices) * step + WIDE, np.zeros((len(total), step), dtype=np.int64)
    tables, shape = tables_of(model), (quanta.bound, choice_weight, choices)
    room = room_for(tables, longest)
    terms, integers = np.empty((1, size), dtype=np.float32), np.empty(size, dtype=np.int32)
    for i in range(lo, hi):
        count = rows.indptr[i + 1] - rows.indptr[i]
        if count == 0:
            continue
        fine = solve(rows, i, tables, room, rank)
        if fine:
            spread(room, count, rank)
        else:
            fine, _ = _solve_in_double(rows, i, model, room)
        if not fine:
            continue
        length = _put_gradient(rows, i, tables, room, rank, shape, terms)
        own = rows.items[rows.indptr[i] : rows.indptr[i + 1]]
        _add_terms(terms, length, own, choices, quanta, integers, sums)
    for k in range(len(total)):
        for l in range(rank + 1):
            total[k, l] += sums[k, l]


@njit(cache=True, nogil=True)
def _covariance(block, upper):
    """Return the upper half of S from G and the Cholesky factor."""
    rank = block.shape[1]
    found = np.zeros((rank, rank))
    if _is_wide(block):
        across, spread = block.T.copy(), block.copy()
        solve_rows(upper, spread)
        for k in range(rank):
            found[k, k] = 1.0
            subtract_rows(found[k, k:], across[k], spread, 0, k)
    else:
        across = inverse_of(upper).T.copy()
        for k in range(rank):
            subtract_rows(found[k, k:], across[k:, k], across, k, k)
            for l in range(k, rank):
                found[k, l] = -found[k, l]
    return found


@njit(cache=True, nogil=True)
def _spread(block, upper):
    """Return S G^T, factors by ratings: its columns are S f_j / sd_j.

    With fewer ratings than factors it is G^T (I + G G^T)^-1. Systems are solved for all ratings at
    once, as loops along a user's ratings are longer than those along her factors.
    """
    found = block.copy() if _is_wide(block) else block.T.copy()
    solve_rows(upper, found)
    return found.T.copy() if _is_wide(block) else found


@njit(cache=True, nogil=True)
def _second_moment(own, covariance):
    """Return the upper half, by rows, of E[(u, 1) (u, 1)^T] over the posterior."""
    rank = own.size
    found = np.empty((rank + 1) * (rank + 2) // 2)
    at = 0
    for k in range(rank):
        for l in range(k, rank):
            found[at] = own[k] * own[l] + covariance[k, l]
            at += 1
        found[at] = own[k]
        at += 1
    found[at] = 1.0
    return found


@njit(cache=True, nogil=True)
def _squared(integers):
    """Return the exact squared norm; the quantiser keeps it below 2^53."""
    total = 0
    for k in range(integers.size):
        total += integers[k] * integers[k]
    return total


@njit(cache=True, nogil=True)
def _add_equations(shared, terms, items, quanta, total):
    """Add, for each item, what all of a user's items share and then its own terms, in integers.

    As one vector it is clipped to norm `quanta.bound`: the shared part, which counts once for each
    of the d items, is rounded within its part of the squared norm M, and the terms get what is left
    of M, in integers. So d |shared|^2 + |terms|^2 <= M, whatever the parts are.
    """
    count, pairs, flat = items.size, shared.size, terms.reshape(terms.size)
    one, most = np.empty(pairs, dtype=np.int64), quanta.most_squared
    own = np.empty(flat.size, dtype=np.int64)
    length, others = norm_of(shared), norm_of(flat)
    factor = clip_factor(np.sqrt(count * length**2 + others**2), quanta.bound) / quanta.quantum
    wanted = 1.001 * (factor * length) ** 2 + pairs
    quantise(shared, factor, np.floor(min(wanted, most / count)) if wanted > 0 else 0, one)
    quantise(flat, factor, most - count * _squared(one), own)
    width = terms.shape[1]
    for p in range(count):
        sums = total[items[p]]
        for k in range(pairs):
            sums[k] += one[k]
        for k in range(width):
            sums[pairs + k] += own[p * width + k]


@njit(cache=True, nogil=True)
def expected_equations(rows, model, root, quanta, lo, hi, total):
    """Add what every item's least squares need: E[(u, 1) (u, 1)^T], t E[(u, 1)] and t^2.

    t is the rating without its offset. Divided by sqrt d if `root`; in integers.
    """
    rank = model.factors.shape[1]
    for i in range(lo, hi):
        start, stop = rows.indptr[i], rows.indptr[i + 1]
        _, own, block, upper, fine = _posterior(rows, i, model)
        if start == stop or not fine:
            continue
        weight = 1.0 / np.sqrt(stop - start) if root else 1.0
        shared = weight * _second_moment(own, _covariance(block, upper))
        terms = np.empty((stop - start, rank + 2))
        for p in range(stop - start):
            row, rating = terms[p], target(rows, i, start + p)
            for k in range(rank):
                row[k] = weight * rating * own[k]
            row[rank] = weight * rating
            row[rank + 1] = weight * rating * rating
        _add_equations(shared, terms, rows.items[start:stop], quanta, total)
