"""Inner products in four partial sums, as one vector of four: the same bits as four by hand.

Partial sum k has the products at the places k, k + 4, k + 8, ...; what is left over at the end goes
to the first. Compilers do not find the vector by themselves, since they may not change the order of
a sum of floating-point numbers. Here the order is written down.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit
from numba.core import cgutils, types
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic

__all__ = ["dot", "two_dots"]

_FOUR = ir.VectorType(ir.DoubleType(), 4)


def _loaded(builder: Any, pointer: Any, index: Any) -> Any:
    """Return four numbers from an index on, as doubles."""
    place = builder.gep(pointer, [index])
    kind = pointer.type.pointee
    size = 4 if isinstance(kind, ir.FloatType) else 8
    four = ir.VectorType(kind, 4)
    loaded = builder.load(builder.bitcast(place, four.as_pointer()), align=size)
    return builder.fpext(loaded, _FOUR) if size == 4 else loaded


def _codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    """Sum products of the last array with each of the others, four at a time."""
    arrays = [
        context.make_array(kind)(context, builder, value)
        for kind, value in zip(signature.args, arguments, strict=True)
    ]
    *ones, other = [array.data for array in arrays]
    size = builder.extract_value(arrays[-1].shape, 0)
    zero = ir.Constant(_FOUR, [0.0] * 4)
    sums = [cgutils.alloca_once_value(builder, zero) for _ in ones]
    with cgutils.for_range(builder, builder.udiv(size, size.type(4))) as loop:
        index = builder.mul(loop.index, size.type(4))
        shared = _loaded(builder, other, index)
        for one, total in zip(ones, sums, strict=True):
            product = builder.fmul(_loaded(builder, one, index), shared)
            builder.store(builder.fadd(builder.load(total), product), total)
    place = ir.IntType(32)
    lanes = [
        builder.extract_element(builder.load(total), place(k)) for total in sums for k in range(4)
    ]
    made = context.make_tuple(builder, signature.return_type, lanes)
    return impl_ret_untracked(context, builder, signature.return_type, made)


def _signature(*arrays: Any) -> Any:
    """Return the type of the partial sums; numbers that do not lie side by side are refused."""
    if any(array.layout != "C" or array.ndim != 1 for array in arrays):
        raise TypingError("arrays must be contiguous, of one dimension")
    return types.UniTuple(types.float64, 4 * (len(arrays) - 1))(*arrays)


@intrinsic
def _one_sum(_typing: Any, one: Any, other: Any) -> Any:
    return _signature(one, other), _codegen


@intrinsic
def _two_sums(_typing: Any, one: Any, two: Any, other: Any) -> Any:
    return _signature(one, two, other), _codegen


@njit(cache=True, nogil=True)
def dot(one, other):
    """Return one . other; both are contiguous, of single or double precision."""
    first, second, third, fourth = _one_sum(one, other)
    for p in range(one.size - one.size % 4, one.size):
        first += np.float64(one[p]) * other[p]
    return (first + second) + (third + fourth)


@njit(cache=True, nogil=True)
def two_dots(one, two, other):
    """Return one . other and two . other, in the same order as `dot`."""
    a, b, c, d, e, f, g, h = _two_sums(one, two, other)
    for p in range(one.size - one.size % 4, one.size):
        a += np.float64(one[p]) * other[p]
        e += np.float64(two[p]) * other[p]
    return (a + b) + (c + d), (e + f) + (g + h)
