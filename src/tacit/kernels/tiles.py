"""Products of matrices in single precision, a tile of 8 x 16 numbers at a time.

A tile stays in the processor's registers while it is summed up, so that each number that is read is
used eight times. Compilers keep such a tile in memory; here its registers are written down. The
order of a sum is that of the rows, and products may be fused with it.
"""

from typing import Any

from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic

__all__ = ["TALL", "WIDE", "add_products", "subtract_products"]

TALL, WIDE = 8, 16
_LANES = ir.VectorType(ir.FloatType(), WIDE)
_NOTHING = ir.Constant(_LANES, ir.Undefined)
_FUSED = ("contract",)


def _everywhere(builder: Any, pointer: Any) -> Any:
    """Return the number at a place, in all lanes."""
    first = ir.Constant(ir.IntType(32), 0)
    vector = builder.insert_element(_NOTHING, builder.load(pointer), first)
    mask = ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE)
    return builder.shuffle_vector(vector, _NOTHING, mask)


def _codegen(name: str) -> Any:
    """Return what writes a tile's instructions; `name` is that of the sum or the difference."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        matrix, sums = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in (0, 4)
        )
        _, count, row, column, _ = arguments

        def place(array: Any, i: Any, j: Any) -> Any:
            width = builder.extract_value(array.shape, 1)
            return builder.gep(array.data, [builder.add(builder.mul(i, width), j)])

        def lanes(array: Any, i: Any, j: Any) -> Any:
            return builder.bitcast(place(array, i, j), _LANES.as_pointer())

        rows = [builder.add(row, row.type(k)) for k in range(TALL)]
        where = [lanes(sums, k, column) for k in rows]
        tile = [cgutils.alloca_once_value(builder, builder.load(at, align=4)) for at in where]
        with cgutils.for_range(builder, count) as loop:
            vector = builder.load(lanes(matrix, loop.index, column), align=4)
            for k, held in zip(rows, tile, strict=True):
                number = _everywhere(builder, place(matrix, loop.index, k))
                product = builder.fmul(number, vector, flags=_FUSED)
                total = getattr(builder, name)(builder.load(held), product, flags=_FUSED)
                builder.store(total, held)
        for at, held in zip(where, tile, strict=True):
            builder.store(builder.load(held), at, align=4)
        return context.get_dummy_value()

    return codegen


def _signature(matrix: Any, sums: Any) -> Any:
    whole = types.intp
    return types.none(matrix, whole, whole, whole, sums)


@intrinsic
def _add_tile(_typing: Any, matrix: Any, _count: Any, _row: Any, _column: Any, sums: Any) -> Any:
    return _signature(matrix, sums), _codegen("fadd")


@intrinsic
def _subtract_tile(
    _typing: Any, matrix: Any, _count: Any, _row: Any, _column: Any, sums: Any
) -> Any:
    return _signature(matrix, sums), _codegen("fsub")


@njit(cache=True, nogil=True)
def add_products(matrix, sums):
    """Add the upper half of matrix^T matrix; columns of both, and rows of sums, fill tiles.

    Some of what is below the diagonal is added too.
    """
    for row in range(0, len(sums), TALL):
        for column in range(row // WIDE * WIDE, sums.shape[1], WIDE):
            _add_tile(matrix, len(matrix), row, column, sums)


@njit(cache=True, nogil=True)
def subtract_products(matrix, row):
    """Subtract U^T U from the rows row ... row + 7 of a matrix, with U the rows before them."""
    for column in range(row // WIDE * WIDE, matrix.shape[1], WIDE):
        _subtract_tile(matrix, row, row, column, matrix)
