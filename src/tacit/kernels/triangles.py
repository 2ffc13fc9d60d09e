"""Systems with an upper triangle in single precision, a tile of eight unknowns at a time.

What stands outside of a tile is taken off along lines (kernels.lines), in sums that do not wait for
each other; only the unknowns of one tile do. The diagonal of U is that of its inverse, as
`factorise` of kernels.own_system leaves it. A vector is the one row of a matrix whose columns fill
tiles, with zeros after its end.
"""

from tacit.kernels.counting import without_counting
from tacit.kernels.lines import _everywhere, _fused, _load, _store, clear_line, line_dot
from tacit.kernels.tiles import TALL, WIDE


@without_counting
def solve_lower(upper, right, solved, size, width):
    """Solve U^T z = right; the right side is used up."""
    clear_line(solved, 0, width)
    for start in range(0, size, TALL):
        end = min(start + TALL, size)
        for k in range(start, end):
            value = right[0, k]
            for j in range(start, k):
                value -= upper[j, k] * solved[0, j]
            solved[0, k] = value * upper[k, k]
        for l in range(end // WIDE * WIDE, width, WIDE):
            sums = _load(right, 0, l)
            for j in range(start, end):
                sums = _fused(_everywhere(-solved[0, j]), _load(upper, j, l), sums)
            _store(right, 0, l, sums)


@without_counting
def solve_upper(upper, right, solved, size, width):
    """Solve U x = right; the right side is used up."""
    clear_line(solved, 0, width)
    for start in range((size - 1) // TALL * TALL, -1, -TALL):
        end = min(start + TALL, size)
        for k in range(start, end):
            right[0, k] -= line_dot(upper, k, solved, width)
        for k in range(end - 1, start - 1, -1):
            value = right[0, k]
            for j in range(k + 1, end):
                value -= upper[k, j] * solved[0, j]
            solved[0, k] = value * upper[k, k]
