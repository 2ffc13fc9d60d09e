"""Rows of matrices in single precision, sixteen numbers at a time.

Compilers write loops along a row for rows of any length, and for those of some dozens of numbers
spend most of the time on what is left over. Here rows fill tiles (kernels.tiles), and nothing is
left over. Each product is fused with its sum, which rounds once, on every processor.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

from tacit.kernels.counting import without_counting
from tacit.kernels.tiles import WIDE

BATCH = 4  # rows of integers whose outer products are added together
_LINE = ir.VectorType(ir.FloatType(), WIDE)
_NOTHING = ir.Constant(_LINE, ir.Undefined)
_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), WIDE), [0] * WIDE)


class Line(types.Type):
    """The type of so many numbers side by side."""

    def __init__(self) -> None:
        super().__init__(name="a line of singles")


@register_model(Line)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _LINE)


_line = Line()


def _pointer(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Return where numbers of a row of a matrix begin."""
    array = context.make_array(signature.args[0])(context, builder, arguments[0])
    row = builder.mul(arguments[1], builder.extract_value(array.shape, 1))
    at = builder.gep(array.data, [builder.add(row, arguments[2])])
    return builder.bitcast(at, _LINE.as_pointer())


@intrinsic
def _load(_typing: Any, matrix: Any, _row: Any, _column: Any) -> Any:
    """Return a line of a row; nothing checks that it is there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.load(_pointer(context, builder, signature, arguments), align=4)

    return _line(matrix, types.intp, types.intp), codegen


@intrinsic
def _store(_typing: Any, matrix: Any, _row: Any, _column: Any, line: Any) -> Any:
    """Write a line to a row."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        builder.store(arguments[3], _pointer(context, builder, signature, arguments), align=4)
        return context.get_dummy_value()

    return types.none(matrix, types.intp, types.intp, line), codegen


@intrinsic
def _everywhere(_typing: Any, number: Any) -> Any:
    """Return a number sixteen times."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        one = builder.insert_element(_NOTHING, arguments[0], ir.Constant(ir.IntType(32), 0))
        return builder.shuffle_vector(one, _NOTHING, _FIRST)

    return (_line(number), codegen) if number == types.float32 else None


@intrinsic
def _fused(_typing: Any, one: Any, other: Any, sums: Any) -> Any:
    """Return one * other + sums, rounded once."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_LINE, [_LINE] * 3)
        name = f"llvm.fma.v{WIDE}f32"
        return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)

    return _line(one, other, sums), codegen


@intrinsic
def _added(_typing: Any, one: Any, other: Any) -> Any:
    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.fadd(*arguments)

    return _line(one, other), codegen


@intrinsic
def _total(_typing: Any, line: Any) -> Any:
    """Return the sum of a line: of its halves, until one number is left."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        (line,), size = arguments, WIDE
        while size > 1:
            size //= 2
            kind = ir.VectorType(ir.IntType(32), size)
            low, high = (ir.Constant(kind, [k + by for k in range(size)]) for by in (0, size))
            nothing = ir.Constant(line.type, ir.Undefined)
            halves = [builder.shuffle_vector(line, nothing, each) for each in (low, high)]
            line = builder.fadd(*halves)
        return builder.extract_element(line, ir.Constant(ir.IntType(32), 0))

    return types.float32(line), codegen


@without_counting
def copy_line(source, i, room, j, width):
    """Write a row of one matrix to a row of another."""
    for l in range(0, width, WIDE):
        _store(room, j, l, _load(source, i, l))


@without_counting
def clear_line(matrix, k, width):
    """Write zeros to a row."""
    for l in range(0, width, WIDE):
        _store(matrix, k, l, _everywhere(np.float32(0.0)))


@without_counting
def scale_line(matrix, k, start, stop, factor):
    """Multiply a row between two columns."""
    many, nothing = _everywhere(factor), _everywhere(np.float32(-0.0))
    for l in range(start, stop, WIDE):
        _store(matrix, k, l, _fused(_load(matrix, k, l), many, nothing))


@without_counting
def subtract_lines(matrix, weights, first, k, start, stop):
    """Subtract weights[j, k] times row j, for first <= j < k, from row k between two columns."""
    for l in range(start, stop, WIDE):
        sums = _load(matrix, k, l)
        for j in range(first, k):
            sums = _fused(_everywhere(-weights[j, k]), _load(matrix, j, l), sums)
        _store(matrix, k, l, sums)


@without_counting
def line_dot(one, i, other, width):
    """Return row i of one matrix times the one row of another."""
    sums = _everywhere(np.float32(0.0))
    for l in range(0, width, WIDE):
        sums = _fused(_load(one, i, l), _load(other, 0, l), sums)
    return _total(sums)


@without_counting
def sum_at_items(table, items, start, stop, sums):
    """Write the sum of the rows of some items, in two sums that do not wait for each other."""
    half = start + (stop - start) // 2
    for l in range(0, table.shape[1], WIDE):
        one, two = _everywhere(np.float32(0.0)), _everywhere(np.float32(0.0))
        for p in range(half - start):
            one = _added(one, _load(table, items[start + p], l))
            two = _added(two, _load(table, items[half + p], l))
        if (stop - start) % 2:
            one = _added(one, _load(table, items[stop - 1], l))
        _store(sums, 0, l, _added(one, two))


@without_counting
def combine(weights, matrix, count, width, sums):
    """Write weights @ M, M the first `count` rows of a matrix, to the one row of sums.

    In two sums that do not wait for each other.
    """
    half = count // 2
    for l in range(0, width, WIDE):
        one, two = _everywhere(np.float32(0.0)), _everywhere(np.float32(0.0))
        for p in range(half):
            one = _fused(_everywhere(weights[p]), _load(matrix, p, l), one)
            two = _fused(_everywhere(weights[half + p]), _load(matrix, half + p, l), two)
        if count % 2:
            one = _fused(_everywhere(weights[count - 1]), _load(matrix, count - 1, l), one)
        _store(sums, 0, l, _added(one, two))


@without_counting
def squared_length(matrix, count, width):
    """Return the sum of squares of the first rows of a matrix."""
    one, two = _everywhere(np.float32(0.0)), _everywhere(np.float32(0.0))
    for k in range(count):
        for l in range(0, width, WIDE):
            line = _load(matrix, k, l)
            one, two = two, _fused(line, line, one)
    return _total(_added(one, two))


@without_counting
def filled_by_four(size):
    """Return the next multiple of four."""
    return (size + 3) // 4 * 4


@without_counting
def put_terms(own, left, product, backs, count, terms, step):
    """Write back_p (left_p own - product_p) for all ratings p; return the sum of squares.

    Rows of terms are `step` long, and there is room for a whole line after the last.
    """
    squares = _everywhere(np.float32(0.0))
    none = _everywhere(np.float32(-0.0))
    minus = _everywhere(np.float32(-1.0))
    for p in range(count):
        back, much = _everywhere(backs[p]), _everywhere(left[p])
        for l in range(0, step, WIDE):
            less = _fused(_load(product, p, l), minus, none)
            line = _fused(_fused(much, _load(own, 0, l), less), back, none)
            _store(terms, 0, p * step + l, line)
            squares = _fused(line, line, squares)
    return _total(squares)


@without_counting
def put_multiples(row, numbers, much, count, terms, first, step):
    """Write much * number_k * row for all k from `first` on; return the sum of squares.

    As with `put_terms`, there is room for a whole line after the last.
    """
    squares = _everywhere(np.float32(0.0))
    none = _everywhere(np.float32(-0.0))
    for k in range(count):
        back = _everywhere(much * numbers[0, k])
        for l in range(0, step, WIDE):
            line = _fused(_load(row, 0, l), back, none)
            _store(terms, 0, first + k * step + l, line)
            squares = _fused(line, line, squares)
    return _total(squares)


def _at(context: Any, builder: Any, kind: Any, value: Any, row: Any, column: Any) -> Any:
    """Return where a number of a matrix is."""
    array = context.make_array(kind)(context, builder, value)
    begin = builder.mul(row, builder.extract_value(array.shape, 1))
    return builder.gep(array.data, [builder.add(begin, column)])


def _widened(builder: Any, at: Any, lanes: int) -> Any:
    """Return 32-bit integers that lie side by side as 64-bit ones."""
    narrow = ir.VectorType(ir.IntType(32), lanes)
    loaded = builder.load(builder.bitcast(at, narrow.as_pointer()), align=4)
    return builder.sext(loaded, ir.VectorType(ir.IntType(64), lanes))


def _repeated(builder: Any, at: Any, lanes: int) -> Any:
    """Return a 32-bit integer so many times, as 64-bit ones."""
    narrow = ir.VectorType(ir.IntType(32), lanes)
    nothing, first = ir.Constant(narrow, ir.Undefined), ir.Constant(narrow, [0] * lanes)
    one = builder.insert_element(nothing, builder.load(at), ir.Constant(ir.IntType(32), 0))
    many = builder.shuffle_vector(one, nothing, first)
    return builder.sext(many, ir.VectorType(ir.IntType(64), lanes))


def _adding(lanes: int) -> Any:
    """Return what adds so many 32-bit integers, side by side, to a row of 64-bit sums."""

    @intrinsic
    def adding(_typing: Any, sums: Any, _row: Any, _column: Any, units: Any, _index: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            where = _at(context, builder, signature.args[0], *arguments[:3])
            where = builder.bitcast(where, ir.VectorType(ir.IntType(64), lanes).as_pointer())
            array = context.make_array(signature.args[3])(context, builder, arguments[3])
            units = _widened(builder, builder.gep(array.data, [arguments[4]]), lanes)
            more = builder.add(builder.load(where, align=8), units)
            builder.store(more, where, align=8)
            return context.get_dummy_value()

        return types.none(sums, types.intp, types.intp, units, types.intp), codegen

    return adding


_add_four, _add_eight = _adding(4), _adding(8)


@intrinsic
def _add_eight_products(_typing: Any, sums: Any, _row: Any, _column: Any, units: Any) -> Any:
    """Add, for each row of 32-bit integers, that in column `row` times eight from `column` on."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        where = _at(context, builder, signature.args[0], *arguments[:3])
        where = builder.bitcast(where, ir.VectorType(ir.IntType(64), 8).as_pointer())
        total = builder.load(where, align=8)
        for k in range(BATCH):
            row, kind = arguments[1].type(k), signature.args[3]
            one = _at(context, builder, kind, arguments[3], row, arguments[1])
            others = _at(context, builder, kind, arguments[3], row, arguments[2])
            products = builder.mul(_repeated(builder, one, 8), _widened(builder, others, 8))
            total = builder.add(total, products)
        builder.store(total, where, align=8)
        return context.get_dummy_value()

    return types.none(sums, types.intp, types.intp, units), codegen


@without_counting
def add_outer(units, size, sums):
    """Add the upper half of M^T M, M a matrix of BATCH rows of 32-bit integers.

    Columns of both fill tiles. Some of what is below the diagonal is added too.
    """
    for k in range(size):
        for l in range(k // 8 * 8, size, 8):
            _add_eight_products(sums, k, l, units)


@without_counting
def add_units(units, start, sums, row):
    """Add 32-bit integers, from `start` on, to a row of sums."""
    size = sums.shape[1]
    eights, fours = size - size % 8, size - size % 4
    for l in range(0, eights, 8):
        _add_eight(sums, row, l, units, start + l)
    if eights < fours:
        _add_four(sums, row, eights, units, start + eights)
    for l in range(fours, size):
        sums[row, l] += units[start + l]


@njit(cache=True, nogil=True)
def zeros(rows, columns):
    """Return a matrix of zeros in single precision, whose lines do not cross those of the cache."""
    room = np.zeros(rows * columns + WIDE, dtype=np.float32)
    first = -(room.ctypes.data // 4) % WIDE
    return room[first : first + rows * columns].reshape((rows, columns))
