"""A user's term is computed in an order of its own, wherever its numbers lie in memory."""

import ast
from pathlib import Path

import numpy as np

import tacit
from tacit.kernels.factors import factor_gradient
from tacit.kernels.residuals import Quanta
from tacit.kernels.rows import RowArrays

KERNELS = Path(tacit.__file__).parent / "kernels"
BLAS = {"dot", "vdot", "inner", "matmul", "tensordot", "einsum", "linalg"}


def blas_calls(source: str) -> list[str]:
    """Where a module hands numbers to BLAS or LAPACK."""
    nodes = list(ast.walk(ast.parse(source)))
    named = [node.attr for node in nodes if isinstance(node, ast.Attribute) and node.attr in BLAS]
    signs = [node for node in nodes if isinstance(node, ast.MatMult)]
    return [*named, *("@" for _ in signs)]


def test_no_loop_over_users_calls_blas() -> None:
    """BLAS may add in another order for another alignment, and so for other people beside her."""
    for path in sorted(KERNELS.glob("*.py")):
        assert not blas_calls(path.read_text()), path.name
    assert blas_calls("a = np.dot(b, c)\nd = b @ c\n") == ["dot", "@"]


def shifted(array: np.ndarray, by: int) -> np.ndarray:
    """The same numbers, so many bytes further on."""
    room = np.zeros(array.nbytes + by + 64, dtype=np.uint8)
    begin = (-room.ctypes.data) % 64 + by
    moved = room[begin : begin + array.nbytes].view(array.dtype).reshape(array.shape)
    moved[...] = array
    return moved


def test_gradients_do_not_depend_on_where_factors_lie() -> None:
    rng = np.random.default_rng(0)
    n_items, rank = 40, 7
    indptr = np.arange(0, 201, 20, dtype=np.int64)
    items = np.concatenate([np.sort(rng.choice(n_items, 20, replace=False)) for _ in range(10)])
    values, factors = rng.uniform(1, 5, 200).astype(np.float32), rng.normal(size=(n_items, rank))
    own = (np.zeros(10), np.ones(10), np.inf)
    rows = RowArrays(indptr, items.astype(np.uint16), values, np.full(n_items, 3.0), *own)
    quanta = Quanta(1e9, 1e-9, 2**62)
    totals = []
    for by in (0, 8, 16, 24, 40):
        total = np.zeros((n_items, rank), dtype=np.int64)
        factor_gradient(rows, shifted(factors, by), 0.5, quanta, 0, 10, total)
        totals.append(total)
    assert totals[0].any()
    assert all(np.array_equal(total, totals[0]) for total in totals)
