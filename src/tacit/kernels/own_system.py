"""A user's posterior in single precision, a tile at a time: most of the work of a fit's rounds.

With G = R_o F_o (kernels.latent) and t = R_o y_o, a user with at least as many ratings as factors
has the system A = I + G^T G with the right side b = G^T t + mean, mean that of her prior, and
u = A^-1 b. Otherwise the system is A = I + G G^T with b = t - G mean, its solution is what is left
of her ratings, and u = mean + G^T A^-1 b. The right side is one more column of A: U^T U = A turns
it into U^-T b. With V = U^-T the solution is V^T times that, and A^-1 = V^T V.

Products are made in tiles of registers (kernels.tiles) and along lines (kernels.lines), each fused
with its sum: they round alike on every processor, and the order of a sum does not depend on other
users. Who has a system so badly conditioned that single precision may not do solves in double
precision (kernels.latent).
"""

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit.kernels.counting import without_counting
from tacit.kernels.lines import (
    clear_line,
    combine,
    copy_line,
    line_dot,
    scale_line,
    squared_length,
    subtract_lines,
    sum_at_items,
    zeros,
)
from tacit.kernels.tiles import (
    TALL,
    WIDE,
    add_products,
    put_product,
    put_squared,
    subtract_products,
    subtract_solved,
    tiled,
)

Singles = NDArray[np.float32]
Doubles = NDArray[np.float64]

_LEAST = np.float32(1e-3)  # of a corner must be left when its turn comes: or digits are lost


class Tables(NamedTuple):
    """What is published, in single precision and with zeros that fill tiles.

    `scaled` are factors over the sd of their noise, `choice` and `prior` as in LatentArrays.
    """

    scaled: Singles
    choice: Singles
    prior: Singles
    roots: Doubles
    sds: Doubles


class Room(NamedTuple):
    """Room for one user's numbers, used by one after the other; `Room.own` and others are one row.

    Attributes:
        block: G, and t in the column after it.
        across: G^T, where she has fewer ratings than factors.
        gram: A and its right side, then U.
        lower: V.
        both: A^-1.
        product: G S.
        corners: the diagonal of A.
        weights: U^-T b.
        found: c.
        own: u, and one number after it.
        left: what is left of her ratings at u, over the sd of their noise.
        moved: one row more.
        backs: what a rating's gradient is multiplied by.
    """

    block: Singles
    across: Singles
    gram: Singles
    lower: Singles
    both: Singles
    product: Singles
    corners: Singles
    weights: Singles
    found: Singles
    own: Singles
    left: Singles
    moved: Singles
    backs: Singles


@njit(cache=True, nogil=True)
def _filled(matrix):
    """Return a matrix in single precision, with columns of zeros that fill tiles, one or more."""
    count, size = matrix.shape
    filled = zeros(count, tiled(size + 1))
    for k in range(count):
        for l in range(size):
            filled[k, l] = matrix[k, l]
    return filled


@njit(cache=True, nogil=True)
def tables_of(model):
    """Return the published numbers as users read them."""
    scaled = np.empty(model.factors.shape)
    for item in range(len(scaled)):
        for k in range(scaled.shape[1]):
            scaled[item, k] = model.factors[item, k] * model.roots[item]
    roots = model.roots
    return Tables(_filled(scaled), _filled(model.choice), _filled(model.prior), roots, 1.0 / roots)


@njit(cache=True, nogil=True)
def room_for(tables, longest):
    """Return room for users with at most so many ratings."""
    width, choices, count = tables.scaled.shape[1], tables.choice.shape[1], tiled(longest)
    squares = zeros(width, width), zeros(width, width), zeros(width, width), zeros(width, width)
    across, gram, lower, both = squares
    block, product = zeros(count, width), zeros(count, width)
    corners, weights, left = zeros(1, width)[0], zeros(1, width)[0], zeros(1, count)[0]
    found, own, moved = zeros(1, choices), zeros(1, width), zeros(1, width)
    backs = zeros(1, count)[0]
    return Room(
        block, across, gram, lower, both, product, corners, weights, found, own, left, moved, backs
    )


@without_counting
def _prior(rows, i, tables, room):
    """Write the choice factors of user i, who has ratings, and the mean of her prior."""
    start, stop = rows.indptr[i], rows.indptr[i + 1]
    sum_at_items(tables.choice, rows.items, start, stop, room.found)
    scale_line(room.found, 0, 0, tables.choice.shape[1], np.float32(1.0 / np.sqrt(stop - start)))
    combine(room.found[0], tables.prior, len(tables.prior), tables.prior.shape[1], room.own)


@without_counting
def _load(rows, i, tables, room, rank):
    """Write G, and t beside it."""
    start, block, width = rows.indptr[i], room.block, tables.scaled.shape[1]
    mean, scale, most = rows.means[i], rows.scales[i], rows.clip
    for p in range(rows.indptr[i + 1] - start):
        item = rows.items[start + p]
        copy_line(tables.scaled, item, block, p, width)
        centred = rows.values[start + p] - rows.offsets[item] - mean  # `target` written out
        block[p, rank] = min(most, max(-most, centred)) * scale * tables.roots[item]


@without_counting
def _tall_system(room, count, rank, width):
    """Write I + G^T G, and G^T t + mean in the column after it."""
    gram = room.gram
    for k in range(rank):
        clear_line(gram, k, width)
        gram[k, k] = 1.0
        gram[k, rank] = room.own[0, k]
    add_products(room.block, count, gram, rank, width)


@without_counting
def _wide_system(room, count, rank, width):
    """Write I + G G^T, and t - G mean in the column after it."""
    gram, across, block = room.gram, room.across, room.block
    room.own[0, rank] = -1.0
    for p in range(count):
        clear_line(gram, p, width)
        gram[p, p] = 1.0
        gram[p, count] = -line_dot(block, p, room.own, block.shape[1])
    for k in range(rank):
        clear_line(across, k, width)
        for p in range(count):
            across[k, p] = block[p, k]
    add_products(across, rank, gram, count, width)


@without_counting
def factorise(gram, corners, size, width):
    """Turn A and its right side into U and U^-T b, in place; False where digits would be lost.

    The diagonal becomes that of U^-1. Only the upper half is read.
    """
    for k in range(size):
        corners[k] = gram[k, k]
    for start in range(0, size, TALL):
        subtract_products(gram, start, width)
        first = start // WIDE * WIDE
        for k in range(start, min(start + TALL, size)):
            subtract_lines(gram, gram, start, k, first, width)
            if not (0.0 < gram[k, k] < np.inf and _LEAST * corners[k] <= gram[k, k]):
                return False
            inverse = np.float32(1.0) / np.sqrt(gram[k, k])
            scale_line(gram, k, first, width, inverse)
            gram[k, k] = inverse
    return True


@without_counting
def invert(upper, lower, size, width):
    """Write V = U^-T, given U with the diagonal of its inverse; the column after it is zero."""
    for start in range(0, size, TALL):
        end, stop = min(start + TALL, size), tiled(start + 1)
        for k in range(start, end):
            clear_line(lower, k, width)
            lower[k, k] = 1.0
        subtract_solved(upper, lower, start, stop)
        for k in range(start, end):
            subtract_lines(lower, upper, start, k, 0, stop)
            scale_line(lower, k, 0, stop, upper[k, k])


@without_counting
def _tall_finish(room, count, rank, width):
    """Write u = V^T U^-T b, and what is left of the ratings at u."""
    own, block = room.own, room.block
    combine(room.weights, room.lower, rank, width, own)
    own[0, rank] = -1.0
    for p in range(count):
        room.left[p] = -line_dot(block, p, own, width)


@without_counting
def _wide_finish(room, count, rank, width):
    """Write what is left of the ratings, V^T U^-T b, and u = mean + G^T of it."""
    combine(room.weights, room.lower, count, width, room.moved)
    for p in range(count):
        room.left[p] = room.moved[0, p]
    combine(room.left, room.block, count, room.block.shape[1], room.moved)
    for k in range(rank):
        room.own[0, k] += room.moved[0, k]


@without_counting
def solve(rows, i, tables, room, rank):
    """Write c, u and what is left of user i's ratings; she has some.

    Return whether single precision does.
    """
    count = rows.indptr[i + 1] - rows.indptr[i]
    wide = count < rank
    size = count if wide else rank
    width = tiled(size + 1)
    _prior(rows, i, tables, room)
    _load(rows, i, tables, room, rank)
    if wide:
        _wide_system(room, count, rank, width)
    else:
        _tall_system(room, count, rank, width)
    if not factorise(room.gram, room.corners, size, width):
        return False
    invert(room.gram, room.lower, size, width)
    for k in range(size):
        room.weights[k] = room.gram[k, size]
    if wide:
        _wide_finish(room, count, rank, width)
    else:
        _tall_finish(room, count, rank, width)
    fine = True
    for k in range(rank):
        fine = fine and np.isfinite(room.own[0, k])
    return fine


@without_counting
def explained(room, count, rank):
    """Return sum_o f^T S f / noise after `solve`: the size of A less the trace of its inverse.

    I + G^T G and I + G G^T have the same eigenvalues but for ones.
    """
    size = min(count, rank)
    return size - np.float64(squared_length(room.lower, size, tiled(size + 1)))


@without_counting
def spread(room, count, rank):
    """Write G S by rating, after `solve`, and zeros after it."""
    block, both, product, width = room.block, room.both, room.product, room.block.shape[1]
    size = min(count, rank)
    put_squared(room.lower, size, tiled(size + 1), both)
    if count < rank:
        for p in range(count):
            block[p, rank] = 0.0
        put_product(both, block, count, size, width, False, product)
    else:
        put_product(block, both, count, size, width, True, product)
