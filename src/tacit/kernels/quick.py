"""Posterior means of the latent factor model, solved in single precision and refined in double.

Only the local rule of a published model uses these loops; a fit does not. With G = R_o F_o, t =
R_o y_o and her prior's mean p (kernels.latent), a user's u is where the gradient

    g(u) = G^T (t - G u) - (u - p)

is zero. Her system I + G^T G is made and factorised in single precision, in tiles of registers as
in a fit (kernels.own_system), and gives a first u. Then g(u) in double precision, from G in double
precision, is solved for again and added, until a correction is below a part in 10^4 of u: each is
smaller than the one before by the error of the factorisation, so that the next one would be below
10^-8. Where that does not happen she solves in double precision from the start (`kernels.latent`).

With fewer ratings than factors the same is done with the smaller system (I + G G^T) s = t - G p, of
which u = p + G^T s.
"""

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.counting import without_counting
from tacit.kernels.latent import LatentArrays, _posterior
from tacit.kernels.lines import clear_line, copy_line, line_dot, zeros
from tacit.kernels.own_system import factorise
from tacit.kernels.rows import longest_row
from tacit.kernels.solving import put
from tacit.kernels.tiles import WIDE, add_products, tiled
from tacit.kernels.triangles import solve_lower, solve_upper

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]

_TRIES = 4
_SMALL = 1e-8  # of the squared length: after such a correction none is needed

_quickly: Any = njit(  # sums in whatever order is quick; without counts of references
    cache=True, nogil=True, _nrt=False, fastmath={"contract", "reassoc", "nsz"}
)  # type: ignore[call-overload]


class QuickArrays(NamedTuple):
    """What is published, with zeros that fill tiles, at least one.

    `scaled` are factors over the sd of their noise, in double and in single precision.
    """

    scaled: Doubles
    single: Singles
    choice: Doubles
    prior: Doubles
    roots: Doubles


class _Room(NamedTuple):
    """Room for one user's numbers, used by one after the other; vectors are one row.

    Attributes:
        block: G; where she has as many ratings as factors, t in the column after it.
        across: G^T, where she has fewer.
        gram: the system, then U.
        corners: the diagonal of the system.
        right: a right side.
        half: U^-T of it.
        solved: what solves it.
        moved: one vector more.
        found: c.
        mean: p.
        own: u.
        slope: g(u).
        targets: t.
        shares: s.
    """

    block: Singles
    across: Singles
    gram: Singles
    corners: Singles
    right: Singles
    half: Singles
    solved: Singles
    moved: Singles
    found: Doubles
    mean: Doubles
    own: Doubles
    slope: Doubles
    targets: Doubles
    shares: Doubles


def _filled(matrix: Doubles) -> Doubles:
    """Return a matrix with columns of zeros that fill tiles, one or more."""
    rows, columns = matrix.shape
    filled = np.zeros((rows, (columns // WIDE + 1) * WIDE))
    filled[:, :columns] = matrix
    return filled


def quick_arrays(model: LatentArrays) -> QuickArrays:
    """Return what `quick_means` takes besides the model."""
    scaled = _filled(model.factors * model.roots[:, None])
    single = scaled.astype(np.float32)
    return QuickArrays(scaled, single, _filled(model.choice), _filled(model.prior), model.roots)


@njit(cache=True, nogil=True)
def _room_for(quick, longest):
    """Return room for users with at most so many ratings."""
    width, count = quick.scaled.shape[1], tiled(longest + 1)
    most = min(width, count)
    return _Room(
        zeros(count, width),
        zeros(width, most),
        zeros(width, width),
        zeros(1, width)[0],
        zeros(1, width),
        zeros(1, width),
        zeros(1, width),
        zeros(1, width),
        np.zeros(quick.choice.shape[1]),
        np.zeros(width),
        np.zeros(width),
        np.zeros(width),
        np.zeros(count),
        np.zeros(count),
    )


@_quickly
def _add_rows(weights, matrix, count, sums):
    """Add weights @ M, M the first rows of a matrix, four rows at a time."""
    whole, size = count - count % 4, sums.size
    for p in range(0, whole, 4):
        a, b, c, d = weights[p], weights[p + 1], weights[p + 2], weights[p + 3]
        for l in range(size):
            pair = a * matrix[p, l] + b * matrix[p + 1, l]
            sums[l] += pair + (c * matrix[p + 2, l] + d * matrix[p + 3, l])
    for p in range(whole, count):
        for l in range(size):
            sums[l] += weights[p] * matrix[p, l]


@_quickly
def _put_prior(rows, i, quick, room):
    """Write the mean of user i's prior; someone without ratings is taken to be average."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    found, choice, mean = room.found, quick.choice, room.mean
    for l in range(found.size):
        found[l] = 0.0
    if start == stop:
        found[0] = 1.0
    whole = stop - (stop - start) % 4
    for p in range(start, whole, 4):
        a, b, c, d = rows.items[p], rows.items[p + 1], rows.items[p + 2], rows.items[p + 3]
        for l in range(found.size):
            found[l] += (choice[a, l] + choice[b, l]) + (choice[c, l] + choice[d, l])
    for p in range(whole, stop):
        for l in range(found.size):
            found[l] += choice[rows.items[p], l]
    share = 1.0 / np.sqrt(max(stop - start, 1))
    for l in range(found.size):
        found[l] *= share
    for l in range(mean.size):
        mean[l] = 0.0
    _add_rows(found, quick.prior, len(quick.prior), mean)


@_quickly
def _put_slope(items, start, count, quick, room):
    """Write g(u), ratings four at a time."""
    scaled, own, slope, targets = quick.scaled, room.own, room.slope, room.targets
    size, whole = own.size, count - count % 4
    for l in range(size):
        slope[l] = room.mean[l] - own[l]
    for p in range(0, whole, 4):
        at = start + p
        i, j, k, m = items[at], items[at + 1], items[at + 2], items[at + 3]
        a, b, c, d = targets[p], targets[p + 1], targets[p + 2], targets[p + 3]
        for l in range(size):
            a -= scaled[i, l] * own[l]
            b -= scaled[j, l] * own[l]
            c -= scaled[k, l] * own[l]
            d -= scaled[m, l] * own[l]
        for l in range(size):
            pair = a * scaled[i, l] + b * scaled[j, l]
            slope[l] += pair + (c * scaled[k, l] + d * scaled[m, l])
    for p in range(whole, count):
        i, a = items[start + p], targets[p]
        for l in range(size):
            a -= scaled[i, l] * own[l]
        for l in range(size):
            slope[l] += a * scaled[i, l]


@_quickly
def _put_own(items, start, count, quick, room):
    """Write u = p + G^T s, ratings four at a time."""
    scaled, own, shares = quick.scaled, room.own, room.shares
    size, whole = own.size, count - count % 4
    for l in range(size):
        own[l] = room.mean[l]
    for p in range(0, whole, 4):
        at = start + p
        i, j, k, m = items[at], items[at + 1], items[at + 2], items[at + 3]
        a, b, c, d = shares[p], shares[p + 1], shares[p + 2], shares[p + 3]
        for l in range(size):
            pair = a * scaled[i, l] + b * scaled[j, l]
            own[l] += pair + (c * scaled[k, l] + d * scaled[m, l])
    for p in range(whole, count):
        for l in range(size):
            own[l] += shares[p] * scaled[items[start + p], l]


@_quickly
def _put_left(items, start, count, quick, room):
    """Write what is left of t at u, less s, as a right side."""
    for p in range(count):
        left, item = room.targets[p] - room.shares[p], items[start + p]
        for l in range(room.own.size):
            left -= quick.scaled[item, l] * room.own[l]
        room.right[0, p] = left


@_quickly
def _add_correction(found, solved, size):
    """Add a correction; return the squares of its length and of what it is added to."""
    length, whole = 0.0, 0.0
    for k in range(size):
        more = np.float64(solved[0, k])
        found[k] += more
        length += more * more
        whole += found[k] * found[k]
    return length, whole


@without_counting
def _load(rows, i, quick, room):
    """Write G and t."""
    start, block, width = rows.indptr[i], room.block, quick.single.shape[1]
    mean, scale, most = rows.means[i], rows.scales[i], rows.clip
    for p in range(rows.indptr[i + 1] - start):
        item = rows.items[start + p]
        copy_line(quick.single, item, block, p, width)
        centred = rows.values[start + p] - rows.offsets[item] - mean  # `target` written out
        room.targets[p] = min(most, max(-most, centred)) * scale * quick.roots[item]


@without_counting
def _tall_system(room, count, rank, width):
    """Write I + G^T G, and G^T t + p in the column after it."""
    gram = room.gram
    for p in range(count):
        room.block[p, rank] = room.targets[p]
    for k in range(rank):
        clear_line(gram, k, width)
        gram[k, k] = 1.0
        gram[k, rank] = room.mean[k]
    add_products(room.block, count, gram, rank, width)


@without_counting
def _wide_system(room, count, rank, width):
    """Write I + G G^T, and t - G p in the column after it."""
    gram, across, block, moved = room.gram, room.across, room.block, room.moved
    clear_line(moved, 0, moved.shape[1])
    for k in range(rank):
        moved[0, k] = room.mean[k]
        clear_line(across, k, width)
    for p in range(count):
        clear_line(gram, p, width)
        gram[p, p] = 1.0
        gram[p, count] = room.targets[p] - line_dot(block, p, moved, block.shape[1])
        for k in range(rank):
            across[k, p] = block[p, k]
    add_products(across, rank, gram, count, width)


@without_counting
def _first(room, size, width, found):
    """Write what the factorised system has for u or s."""
    clear_line(room.half, 0, width)
    for k in range(size):
        room.half[0, k] = room.gram[k, size]
    solve_upper(room.gram, room.half, room.solved, size, width)
    for k in range(size):
        found[k] = room.solved[0, k]


@without_counting
def _corrected(room, size, width, found):
    """Solve for the right side and add that; return whether it was little."""
    solve_lower(room.gram, room.right, room.half, size, width)
    solve_upper(room.gram, room.half, room.solved, size, width)
    length, whole = _add_correction(found, room.solved, size)
    return length <= _SMALL * whole < np.inf


@without_counting
def _tall_solution(items, start, count, quick, room, rank):
    """Write u of someone with as many ratings as factors; return whether corrections got small."""
    width = tiled(rank + 1)
    _tall_system(room, count, rank, width)
    if not factorise(room.gram, room.corners, rank, width):
        return False
    _first(room, rank, width, room.own)
    for _ in range(_TRIES):
        _put_slope(items, start, count, quick, room)
        clear_line(room.right, 0, width)
        for k in range(rank):
            room.right[0, k] = room.slope[k]
        if _corrected(room, rank, width, room.own):
            return True
    return False


@without_counting
def _wide_solution(items, start, count, quick, room, rank):
    """Write s and u of someone with fewer; return whether corrections got small."""
    width = tiled(count + 1)
    _wide_system(room, count, rank, width)
    if not factorise(room.gram, room.corners, count, width):
        return False
    _first(room, count, width, room.shares)
    for _ in range(_TRIES):
        _put_own(items, start, count, quick, room)
        clear_line(room.right, 0, width)
        _put_left(items, start, count, quick, room)
        if _corrected(room, count, width, room.shares):
            _put_own(items, start, count, quick, room)
            return True
    return False


@without_counting
def _solve(rows, i, quick, room, rank):
    """Write p, G, U and u of user i; return whether u is as exact as it should be."""
    start, count = rows.indptr[i], rows.indptr[i + 1] - rows.indptr[i]
    _put_prior(rows, i, quick, room)
    _load(rows, i, quick, room)
    if count < rank:
        return _wide_solution(rows.items, start, count, quick, room, rank)
    return _tall_solution(rows.items, start, count, quick, room, rank)


@njit(cache=True, nogil=True)
def quick_means(rows, model, quick, solved, lo, hi):
    """Write every user's posterior mean; zero where arithmetic breaks down."""
    rank, room = model.factors.shape[1], _room_for(quick, longest_row(rows.indptr, lo, hi))
    for i in range(lo, hi):
        if _solve(rows, i, quick, room, rank):
            for k in range(rank):
                solved[i, k] = room.own[k]
            continue
        _, own, _, _, fine = _posterior(rows, i, model)
        if fine:
            put(own, solved[i])


@without_counting
def _variance(room, vector, count, rank):
    """Return f^T S f after `_solve`, f a line: to a part in 10^5 of the prior's."""
    size, right = min(count, rank), room.right
    width, filled = tiled(size + 1), right.shape[1]
    copy_line(vector, 0, right, 0, filled)
    prior = np.float64(line_dot(vector, 0, vector, filled))
    if count < rank:
        clear_line(right, 0, filled)
        for p in range(count):
            right[0, p] = line_dot(room.block, p, vector, filled)
    solve_lower(room.gram, right, room.half, size, width)
    squared = np.float64(line_dot(room.half, 0, room.half, width))
    return max(prior - squared, 0.0) if count < rank else squared


@_quickly
def _dot(one, j, other, size):
    """Return row j of a matrix times a vector, summed in whatever order is quick."""
    total = 0.0
    for k in range(size):
        total += one[j, k] * other[k]
    return total


@njit(cache=True, nogil=True)
def quick_pairs(rows, published, pairs, scores, variances, lo, hi):
    """Write f_j . u and f_j^T S f_j of the pairs; no variances if there is no room for them.

    `published` are (model, quick); `pairs` are (starts, items): user i asks for the items
    starts[i] ... starts[i + 1] - 1. Where arithmetic breaks down u is zero and S the identity.
    """
    (model, quick), (starts, items) = published, pairs
    rank, room = model.factors.shape[1], _room_for(quick, longest_row(rows.indptr, lo, hi))
    vector = zeros(1, quick.single.shape[1])
    for i in range(lo, hi):
        if starts[i] == starts[i + 1]:
            continue
        count = rows.indptr[i + 1] - rows.indptr[i]
        sound = _solve(rows, i, quick, room, rank)
        fine = sound
        if not sound:
            _, own, _, _, fine = _posterior(rows, i, model)
            put(own, room.own)
        for q in range(starts[i], starts[i + 1]):
            item = items[q]
            scores[q] = _dot(model.factors, item, room.own, rank) if fine else 0.0
            if variances.size and sound:
                for k in range(rank):
                    vector[0, k] = model.factors[item, k]
                variances[q] = _variance(room, vector, count, rank)
            elif variances.size:
                variances[q] = _dot(model.factors, item, model.factors[item], rank)
