"""Vectors of four numbers, and inner products in a fixed order of summation.

An inner product is summed in four partial sums. Partial sum k has the products at the places k,
k + 4, k + 8, ...; what is left over at the end goes to the first. That order is part of every
release's bits. Compilers do not find the vector by themselves, since they may not change the order
of a sum of floating-point numbers. Here the order is written down: `Four` is a type of compiled
code whose values are a processor's vectors, in double precision. Each operation is that of doubles,
one by one, and rounds as theirs do.
"""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.extending import intrinsic, models, overload, register_model

_FOUR = ir.VectorType(ir.DoubleType(), 4)
_EIGHT = ir.VectorType(ir.DoubleType(), 8)
_NOTHING = ir.Constant(_FOUR, ir.Undefined)


class Four(types.Type):
    """The type of a vector of four doubles."""

    def __init__(self) -> None:
        super().__init__(name="four doubles")


@register_model(Four)
class _Model(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FOUR)


class Eight(types.Type):
    """The type of a vector of eight doubles."""

    def __init__(self) -> None:
        super().__init__(name="eight doubles")


@register_model(Eight)
class _WideModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _EIGHT)


_four, _eight = Four(), Eight()


def _place(number: int) -> Any:
    return ir.Constant(ir.IntType(32), number)


def _mask(*places: int) -> Any:
    return ir.Constant(ir.VectorType(ir.IntType(32), 4), list(places))


def _each(builder: Any, vector: Any) -> list[Any]:
    return [builder.extract_element(vector, _place(k)) for k in range(4)]


def _array(context: Any, builder: Any, kind: Any, value: Any) -> Any:
    return context.make_array(kind)(context, builder, value)


def _pointer(builder: Any, array: Any, index: Any, size: int = 4) -> Any:
    """Return where so many numbers that lie side by side begin."""
    kind = ir.VectorType(array.data.type.pointee, size)
    return builder.bitcast(builder.gep(array.data, [index]), kind.as_pointer())


def _one_by_one(context: Any, builder: Any, kind: Any, array: Any, index: Any) -> list[Any]:
    """Return four numbers of an array of any layout."""
    places = [builder.add(index, index.type(k)) for k in range(4)]
    return [
        builder.load(cgutils.get_item_pointer(context, builder, kind, array, [place]))
        for place in places
    ]


@intrinsic
def four(_typing: Any, number: Any) -> Any:
    """Return a number four times."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        first = builder.insert_element(_NOTHING, arguments[0], _place(0))
        return builder.shuffle_vector(first, _NOTHING, _mask(0, 0, 0, 0))

    return (_four(types.float64), codegen) if isinstance(number, types.Number) else None


@intrinsic
def parts(_typing: Any, vector: Any) -> Any:
    """Return the four numbers."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return context.make_tuple(builder, signature.return_type, _each(builder, arguments[0]))

    return types.UniTuple(types.float64, 4)(vector), codegen


@intrinsic
def rounded(_typing: Any, vector: Any) -> Any:
    """Return the four whole numbers that are nearest, ties to even."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = ir.FunctionType(_FOUR, [_FOUR])
        rint = cgutils.get_or_insert_function(builder.module, kind, "llvm.rint.v4f64")
        whole = ir.VectorType(ir.IntType(64), 4)
        vector = builder.fptosi(builder.call(rint, arguments), whole)
        return context.make_tuple(builder, signature.return_type, _each(builder, vector))

    return types.UniTuple(types.int64, 4)(vector), codegen


@intrinsic
def _put_nearest(_typing: Any, integers: Any, vector: Any, _index: Any, _factor: Any) -> Any:
    """Write vector[index : index + 8] * factor as the nearest whole numbers, ties to even.

    Return them as doubles; nothing checks that there are eight.
    """
    if not vector.layout == integers.layout == "C":
        raise TypingError("what is rounded, and what is written to, must be contiguous")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        to, source = signature.args[0].dtype, signature.args[1].dtype
        read = _array(context, builder, signature.args[1], arguments[1])
        written = _array(context, builder, signature.args[0], arguments[0])
        at = _pointer(builder, read, arguments[2], 8)
        given = builder.load(at, align=source.bitwidth // 8)
        given = builder.fpext(given, _EIGHT) if source == types.float32 else given
        nothing, first = ir.Constant(_EIGHT, ir.Undefined), ir.VectorType(ir.IntType(32), 8)
        one = builder.insert_element(nothing, arguments[3], _place(0))
        many = builder.shuffle_vector(one, nothing, ir.Constant(first, [0] * 8))
        kind = ir.FunctionType(_EIGHT, [_EIGHT])
        rint = cgutils.get_or_insert_function(builder.module, kind, "llvm.rint.v8f64")
        nearest = builder.call(rint, [builder.fmul(given, many)])
        whole, bits = nearest, to.bitwidth
        if isinstance(to, types.Integer):
            whole = builder.fptosi(nearest, ir.VectorType(ir.IntType(bits), 8))
        elif to == types.float32:
            whole = builder.fptrunc(nearest, ir.VectorType(ir.FloatType(), 8))
        at = _pointer(builder, written, arguments[2], 8)
        builder.store(whole, at, align=bits // 8)
        return nearest

    return _eight(integers, vector, types.intp, types.float64), codegen


@intrinsic
def _add_squares(_typing: Any, sums: Any, numbers: Any) -> Any:
    """Return sums + numbers^2, each of eight."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        sums, numbers = arguments
        return builder.fadd(sums, builder.fmul(numbers, numbers))

    return _eight(sums, numbers), codegen


@intrinsic
def _eight_zeros(_typing: Any) -> Any:
    def codegen(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(_EIGHT, [0.0] * 8)

    return _eight(), codegen


@intrinsic
def _total(_typing: Any, numbers: Any) -> Any:
    """Return the sum of eight whole numbers."""

    def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        found = [builder.extract_element(arguments[0], _place(k)) for k in range(8)]
        while len(found) > 1:
            found = [builder.fadd(*found[k : k + 2]) for k in range(0, len(found), 2)]
        return found[0]

    return types.float64(numbers), codegen


@intrinsic
def load(_typing: Any, array: Any, _index: Any) -> Any:
    """Return array[index : index + 4], as doubles; nothing checks that they are there."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kind = signature.args[0]
        data, size = _array(context, builder, kind, arguments[0]), kind.dtype.bitwidth // 8
        if kind.layout == "C":
            loaded = builder.load(_pointer(builder, data, arguments[1]), align=size)
        else:
            loaded = ir.Constant(ir.VectorType(data.data.type.pointee, 4), ir.Undefined)
            for k, one in enumerate(_one_by_one(context, builder, kind, data, arguments[1])):
                loaded = builder.insert_element(loaded, one, _place(k))
        return builder.fpext(loaded, _FOUR) if size == 4 else loaded

    return _four(array, types.intp), codegen


@intrinsic
def store(_typing: Any, array: Any, _index: Any, vector: Any) -> Any:
    """Write a vector to array[index : index + 4], in the array's precision."""
    if array.layout != "C":
        raise TypingError("what is written to must be contiguous")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        data = _array(context, builder, signature.args[0], arguments[0])
        size, written = signature.args[0].dtype.bitwidth // 8, arguments[2]
        if size == 4:
            written = builder.fptrunc(written, ir.VectorType(ir.FloatType(), 4))
        builder.store(written, _pointer(builder, data, arguments[1]), align=size)
        return context.get_dummy_value()

    return types.none(array, types.intp, vector), codegen


@intrinsic
def at_items(_typing: Any, table: Any, items: Any, _index: Any) -> Any:
    """Return the first three columns of a table of four, at the items index ... index + 3.

    A row is read at once, and the four of them are turned into columns.
    """
    if table.layout != "C":
        raise TypingError("a table must be contiguous")

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        numbers, which = (
            _array(context, builder, kind, value)
            for kind, value in zip(signature.args[:2], arguments[:2], strict=True)
        )
        rows, word = [], ir.IntType(64)
        for item in _one_by_one(context, builder, signature.args[1], which, arguments[2]):
            start = builder.mul(builder.zext(item, word), word(4))
            rows.append(builder.load(_pointer(builder, numbers, start), align=8))
        mix = builder.shuffle_vector
        even = [mix(rows[k], rows[k + 1], _mask(0, 4, 2, 6)) for k in (0, 2)]
        odd = [mix(rows[k], rows[k + 1], _mask(1, 5, 3, 7)) for k in (0, 2)]
        front, back = _mask(0, 1, 4, 5), _mask(2, 3, 6, 7)
        columns = [mix(*even, front), mix(*odd, front), mix(*even, back)]
        return context.make_tuple(builder, signature.return_type, columns)

    return types.UniTuple(_four, 3)(table, items, types.intp), codegen


def _binary(emit: Callable[[Any, Any, Any], Any]) -> Any:
    """Return an operation on two vectors, from the instruction for it."""

    @intrinsic
    def operation(_typing: Any, one: Any, other: Any) -> Any:
        def codegen(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return emit(builder, *arguments)

        return _four(one, other), codegen

    return operation


def _operator(symbol: Any, emit: Callable[[Any, Any, Any], Any]) -> None:
    """Let compiled code write an operation on two vectors with Python's symbol for it."""
    operation = _binary(emit)

    def typed(one, other):
        if isinstance(one, Four) and isinstance(other, Four):
            return lambda one, other: operation(one, other)  # noqa: PLW0108
        return None

    overload(symbol)(typed)


smaller = _binary(lambda make, a, b: make.select(make.fcmp_ordered("<", b, a), b, a))
larger = _binary(lambda make, a, b: make.select(make.fcmp_ordered(">", b, a), b, a))
_operator(operator.add, lambda make, a, b: make.fadd(a, b))
_operator(operator.sub, lambda make, a, b: make.fsub(a, b))
_operator(operator.mul, lambda make, a, b: make.fmul(a, b))


@njit(cache=True, nogil=True)
def dot(one, other):
    """Return one . other; both are of single or double precision."""
    whole, sums = one.size - one.size % 4, four(0.0)
    for p in range(0, whole, 4):
        sums = sums + load(one, p) * load(other, p)
    first, second, third, fourth = parts(sums)
    for p in range(whole, one.size):
        first += np.float64(one[p]) * other[p]
    return (first + second) + (third + fourth)


@njit(cache=True, nogil=True)
def two_dots(one, two, other):
    """Return one . other and two . other, in the same order as `dot`."""
    whole, sums, more = one.size - one.size % 4, four(0.0), four(0.0)
    for p in range(0, whole, 4):
        shared = load(other, p)
        sums = sums + load(one, p) * shared
        more = more + load(two, p) * shared
    a, b, c, d = parts(sums)
    e, f, g, h = parts(more)
    for p in range(whole, one.size):
        a += np.float64(one[p]) * other[p]
        e += np.float64(two[p]) * other[p]
    return (a + b) + (c + d), (e + f) + (g + h)


@njit(cache=True, nogil=True)
def put_rounded(vector, factor, integers):
    """Write vector * factor as the nearest whole numbers; return the sum of their squares.

    It is of whole numbers, in sums that do not wait for each other: their order changes nothing.
    """
    one, two = _eight_zeros(), _eight_zeros()
    pairs, whole = vector.size - vector.size % 16, vector.size - vector.size % 8
    for p in range(0, pairs, 16):
        one = _add_squares(one, _put_nearest(integers, vector, p, factor))
        two = _add_squares(two, _put_nearest(integers, vector, p + 8, factor))
    if pairs < whole:
        one = _add_squares(one, _put_nearest(integers, vector, pairs, factor))
    total = _total(one) + _total(two)
    for p in range(whole, vector.size):
        last = np.rint(vector[p] * factor)
        integers[p] = last
        total += last * last
    return total
