"""Products of matrices, a tile of their numbers at a time.

A tile stays in the processor's registers while it is summed up, so that each number that is read is
used many times. Compilers keep such a tile in memory; here its registers are written down. The
order of a sum is that of the rows. Each product is fused with its sum, which rounds once, on every
processor: a column of the right matrix gives the same bits whatever stands beside it.

Numbers are in single precision. Whole numbers are in double precision: their sums are exact up to
2^53, whatever the order, so that their tiles may be as large as the processor has registers for.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.codegen import get_host_cpu_features
from numba.extending import intrinsic
from numpy.typing import NDArray

TALL, WIDE, BROAD = 8, 16, 32  # rows of a tile; columns of one of a matrix, and of one of panels
_TALL_WHOLE, _WIDE_WHOLE = (8, 16) if "+avx512f" in get_host_cpu_features() else (4, 8)
_LANES = 8
_VECTORS = 8 if "+avx512f" in get_host_cpu_features() else 4
COLUMNS = _LANES * _VECTORS  # of a row of sums that stays in registers
_DEEP = 64  # so many rows of whole numbers stay in the cache while they are multiplied


def panels_of(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the columns of a matrix in panels of TALL, with zeros after the last.

    >>> panels_of(np.ones((3, 10), np.float32)).shape
    (2, 3, 8)
    """
    rows, columns = matrix.shape
    count = -(-columns // TALL)
    padded = np.zeros((rows, count * TALL), np.float32)
    padded[:, :columns] = matrix
    return np.ascontiguousarray(padded.reshape(rows, count, TALL).swapaxes(0, 1))


def room_for_whole(rows: int, columns: int) -> NDArray[np.float64]:
    """Return zeros for whole numbers, with more columns so that tiles fit.

    These are an odd number of times 16: if it were a power of two, the numbers of a column would
    take each other's place in the cache.

    >>> room_for_whole(2, 1000).shape, room_for_whole(2, 1024).shape
    ((2, 1008), (2, 1040))
    """
    return np.zeros((rows, 16 * (-(-columns // 16) | 1)))


@njit(cache=True, nogil=True)
def tiled(size):
    """Return the next number of columns that fill tiles."""
    return (size + WIDE - 1) // WIDE * WIDE


def _tile(lanes: int, sign: int, by_row: bool, whole: bool) -> Any:
    """Return what writes a tile's instructions: TALL rows, and a number of columns.

    `sign` is 1 to add to the sums, -1 to take off, and 0 to write. `whole` is for numbers in double
    precision, _TALL_WHOLE rows of them.
    """
    tall, bits, kind = (_TALL_WHOLE, 64, ir.DoubleType()) if whole else (TALL, 32, ir.FloatType())
    align = bits // 8
    vector = ir.VectorType(kind, lanes)
    nothing, zeros = ir.Constant(vector, ir.Undefined), ir.Constant(vector, [0.0] * lanes)
    first = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    fused = ir.FunctionType(vector, [vector] * 3)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        left, right, sums = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in range(3)
        )
        start, stop, side, column, row = arguments[3:]
        fma = cgutils.get_or_insert_function(builder.module, fused, f"llvm.fma.v{lanes}f{bits}")

        def place(array: Any, i: Any, j: Any) -> Any:
            width = builder.extract_value(array.shape, 1)
            return builder.gep(array.data, [builder.add(builder.mul(i, width), j)])

        def across(array: Any, i: Any) -> Any:
            return builder.bitcast(place(array, i, column), vector.as_pointer())

        def everywhere(number: Any) -> Any:
            one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
            return builder.shuffle_vector(one, nothing, first)

        steps = [row.type(k) for k in range(tall)]
        where = [across(sums, builder.add(row, k)) for k in steps]
        begin = [builder.load(at, align=align) if sign else zeros for at in where]
        tile = [cgutils.alloca_once_value(builder, each) for each in begin]
        with cgutils.for_range(builder, stop, start) as loop:
            shared = builder.load(across(right, loop.index), align=align)
            for k, held in zip(steps, tile, strict=True):
                at = [loop.index, builder.add(side, k)]
                number = builder.load(place(left, *(at[::-1] if by_row else at)))
                factor = everywhere(builder.fneg(number) if sign < 0 else number)
                builder.store(builder.call(fma, [factor, shared, builder.load(held)]), held)
        for at, held in zip(where, tile, strict=True):
            builder.store(builder.load(held), at, align=align)
        return context.get_dummy_value()

    return codegen


def _intrinsic(lanes: int, sign: int = 1, by_row: bool = False, whole: bool = False) -> Any:
    """Return what adds left^T right (`by_row`: left right) to a tile of sums, in compiled code.

    Its arguments after the matrices: the first row of the right one to sum over and where rows
    end, the first column (`by_row`: row) of the left one, the first column of the right one and of
    the sums, and the first row of the sums.
    """

    @intrinsic
    def tile(
        _typing: Any, left: Any, right: Any, sums: Any,
        _start: Any, _stop: Any, _side: Any, _column: Any, _row: Any,
    ) -> Any:  # fmt: skip
        return types.none(left, right, sums, *[types.intp] * 5), _tile(lanes, sign, by_row, whole)

    return tile


_add_tile = _intrinsic(WIDE)
_subtract_tile = _intrinsic(WIDE, -1)
_put_tile = _intrinsic(WIDE, 0)
_put_tile_by_row = _intrinsic(WIDE, 0, by_row=True)
_add_broad_tile = _intrinsic(BROAD)
_add_whole_tile = _intrinsic(_WIDE_WHOLE, whole=True)


@intrinsic
def _put_columns(
    _typing: Any, sums: Any, filled: Any, owners: Any, units: Any, _start: Any, _stop: Any,
    _row: Any,
) -> Any:  # fmt: skip
    """Write sum_p units[p] * filled[row + owners[p]], start <= p < stop."""
    kind = ir.VectorType(ir.DoubleType(), _LANES)
    narrow = ir.VectorType(ir.FloatType(), _LANES)
    nothing, zeros = ir.Constant(kind, ir.Undefined), ir.Constant(kind, [0.0] * _LANES)
    first = ir.Constant(ir.VectorType(ir.IntType(32), _LANES), [0] * _LANES)
    fused = ir.FunctionType(kind, [kind] * 3)

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, rows, whose, numbers = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in range(4)
        )
        start, stop, row = arguments[4:]
        name = f"llvm.fma.v{_LANES}f64"
        fma = cgutils.get_or_insert_function(builder.module, fused, name)
        steps = [row.type(k * _LANES) for k in range(_VECTORS)]
        tile = [cgutils.alloca_once_value(builder, zeros) for _ in steps]
        with cgutils.for_range(builder, stop, start) as loop:
            number = builder.load(builder.gep(numbers.data, [loop.index]))
            one = builder.insert_element(nothing, number, ir.Constant(ir.IntType(32), 0))
            many = builder.shuffle_vector(one, nothing, first)
            owner = builder.load(builder.gep(whose.data, [loop.index]))
            begin = builder.mul(builder.add(builder.zext(owner, row.type), row), row.type(COLUMNS))
            for step, held in zip(steps, tile, strict=True):
                at = builder.gep(rows.data, [builder.add(begin, step)])
                line = builder.load(builder.bitcast(at, narrow.as_pointer()), align=4)
                line = builder.fpext(line, kind)
                builder.store(builder.call(fma, [many, line, builder.load(held)]), held)
        for step, held in zip(steps, tile, strict=True):
            at = builder.bitcast(builder.gep(out.data, [step]), kind.as_pointer())
            builder.store(builder.load(held), at, align=8)
        return context.get_dummy_value()

    signature = types.none(sums, filled, owners, units, types.intp, types.intp, types.intp)
    return signature, codegen


@intrinsic
def _count_columns(
    _typing: Any, counts: Any, words: Any, _start: Any, _stop: Any, _place: Any, _column: Any
) -> Any:  # fmt: skip
    """Write how many bits words[w, place] & words[w, column + k] have, start <= w < stop."""
    kind, narrow = ir.VectorType(ir.IntType(64), _LANES), ir.IntType(32)
    nothing, zeros = ir.Constant(kind, ir.Undefined), ir.Constant(kind, [0] * _LANES)
    first = ir.Constant(ir.VectorType(narrow, _LANES), [0] * _LANES)
    counting = ir.FunctionType(kind, [kind])

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        out, bits = (
            context.make_array(signature.args[k])(context, builder, arguments[k]) for k in range(2)
        )
        start, stop, place, column = arguments[2:]
        ctpop = cgutils.get_or_insert_function(builder.module, counting, "llvm.ctpop.v8i64")
        width = builder.extract_value(bits.shape, 1)
        steps = [column.type(k * _LANES) for k in range(_VECTORS)]
        tile = [cgutils.alloca_once_value(builder, zeros) for _ in steps]
        with cgutils.for_range(builder, stop, start) as loop:
            begin = builder.mul(loop.index, width)
            word = builder.load(builder.gep(bits.data, [builder.add(begin, place)]))
            one = builder.insert_element(nothing, word, ir.Constant(narrow, 0))
            many = builder.shuffle_vector(one, nothing, first)
            begin = builder.add(begin, column)
            for step, held in zip(steps, tile, strict=True):
                at = builder.gep(bits.data, [builder.add(begin, step)])
                line = builder.load(builder.bitcast(at, kind.as_pointer()), align=8)
                both = builder.call(ctpop, [builder.and_(many, line)])
                builder.store(builder.add(builder.load(held), both), held)
        for step, held in zip(steps, tile, strict=True):
            at = builder.bitcast(builder.gep(out.data, [step]), kind.as_pointer())
            builder.store(builder.load(held), at, align=8)
        return context.get_dummy_value()

    return types.none(counts, words, *[types.intp] * 4), codegen


@njit(cache=True, nogil=True)
def put_combination(sums, filled, owners, units, start, stop, row):
    """Write sum_p units[p] * filled[row + owners[p]], start <= p < stop, to COLUMNS sums."""
    _put_columns(sums, filled, owners, units, start, stop, row)


@njit(cache=True, nogil=True)
def count_pairs(counts, words, start, stop, place, column):
    """Write how many bits words[w, place] & words[w, column + k] have, start <= w < stop."""
    _count_columns(counts, words, start, stop, place, column)


@njit(cache=True, nogil=True)
def add_products(matrix, count, sums, size, width):
    """Add the upper half of M^T M, M the first rows of a matrix; some is added below it too.

    `size` rows of the sums are needed, and `width` columns, which fill tiles.
    """
    for row in range(0, size, TALL):
        for column in range(row // WIDE * WIDE, width, WIDE):
            _add_tile(matrix, matrix, sums, 0, count, row, column, row)


@njit(cache=True, nogil=True)
def add_whole_products(matrix, count, total):
    """Add the upper half of M^T M, M the first rows of a matrix of whole numbers in doubles.

    The total is of integers; the matrix is `room_for_whole` for as many columns. No sum over these
    rows may exceed 2^53.
    """
    size, width = len(total), matrix.shape[1]
    sums = np.zeros((width, width))
    for start in range(0, count, _DEEP):
        stop = min(start + _DEEP, count)
        for row in range(0, size, _TALL_WHOLE):
            for column in range(row // _WIDE_WHOLE * _WIDE_WHOLE, size, _WIDE_WHOLE):
                _add_whole_tile(matrix, matrix, sums, start, stop, row, column, row)
    for row in range(size):
        for column in range(row, size):
            total[row, column] += np.int64(sums[row, column])


@njit(cache=True, nogil=True)
def subtract_products(matrix, row, width):
    """Subtract U^T U from the rows row ... row + 7 of a matrix, with U the rows before them."""
    for column in range(row // WIDE * WIDE, width, WIDE):
        _subtract_tile(matrix, matrix, matrix, 0, row, row, column, row)


@njit(cache=True, nogil=True)
def subtract_solved(upper, solved, row, width):
    """Subtract U^T V from rows of V, with V the rows before them, a lower triangle."""
    for column in range(0, width, WIDE):
        _subtract_tile(upper, solved, solved, column, row, row, column, row)


@njit(cache=True, nogil=True)
def put_squared(lower, size, width, product):
    """Write V^T V, V a lower triangle."""
    for row in range(0, size, TALL):
        for column in range(0, width, WIDE):
            _put_tile(lower, lower, product, max(row, column), size, row, column, row)


@njit(cache=True, nogil=True)
def put_product(left, right, count, inner, width, by_row, product):
    """Write so many rows of left^T right (`by_row`: left right), summed over `inner` rows."""
    for row in range(0, count, TALL):
        for column in range(0, width, WIDE):
            if by_row:
                _put_tile_by_row(left, right, product, 0, inner, row, column, row)
            else:
                _put_tile(left, right, product, 0, inner, row, column, row)


@njit(cache=True, nogil=True)
def multiply(panels, right, product):
    """Write left^T right, with the columns of left in panels, and BROAD columns of right."""
    product[:] = 0.0
    for panel in range(len(panels)):
        _add_broad_tile(panels[panel], right, product, 0, len(right), 0, 0, TALL * panel)
