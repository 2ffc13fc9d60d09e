"""A user's term is computed in an order of its own, wherever its numbers lie in memory."""

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tests.support.rows import frozen

import tacit
from tacit.kernels.alike import co_occurrences
from tacit.kernels.factors import factor_gradient
from tacit.kernels.filled import map_rows
from tacit.kernels.latent import (
    LatentArrays,
    expected_equations,
    expected_gradient,
    factor_moments,
)
from tacit.kernels.outer import BATCH
from tacit.kernels.quantise import Quanta
from tacit.kernels.residuals import StepArrays, covariance
from tacit.kernels.rows import RowArrays
from tacit.kernels.tiles import panels_of

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
    given = frozen(indptr, items.astype(np.uint16), values)
    rows = RowArrays(*given, np.full(n_items, 3.0), *own)
    quanta = Quanta(1e9, 1e-9, 2**62)
    totals = []
    for by in (0, 8, 16, 24, 40):
        total = np.zeros((n_items, rank), dtype=np.int64)
        factor_gradient(rows, shifted(factors, by), 0.5, quanta, 0, 10, total)
        totals.append(total)
    assert totals[0].any()
    assert all(np.array_equal(total, totals[0]) for total in totals)


def by_root(rows, model, *rest):  # type: ignore[no-untyped-def]
    expected_equations(rows, model, True, *rest)


def weighed(rows, model, *rest):  # type: ignore[no-untyped-def]
    expected_gradient(rows, model, 0.5, *rest)


def test_posteriors_do_not_depend_on_where_numbers_lie_or_who_comes_before() -> None:
    """Published numbers lie elsewhere, and users are summed by themselves or together."""
    rng = np.random.default_rng(3)
    n_items, rank, choices = 40, 7, 3
    indptr = np.arange(0, 201, 20, dtype=np.int64)
    items = np.concatenate([np.sort(rng.choice(n_items, 20, replace=False)) for _ in range(10)])
    values, own = rng.uniform(1, 5, 200).astype(np.float32), (np.zeros(10), np.ones(10), np.inf)
    given = frozen(indptr, items.astype(np.uint16), values)
    rows = RowArrays(*given, np.full(n_items, 3.0), *own)
    shapes = ((n_items, rank), (n_items,), (n_items, choices), (choices, rank))
    published = [rng.normal(size=shape) for shape in shapes]
    sizes = ((choices + rank + 1,) * 2, (n_items + choices, rank + 1), (n_items, 36 + rank + 2))
    loops: list[Any] = [factor_moments, weighed, by_root]
    for loop, size in zip(loops, sizes, strict=True):
        totals = []
        for by, edges in ((0, (0, 10)), (8, (0, 10)), (24, (0, 1, 4, 10)), (40, range(11))):
            model = LatentArrays(*(shifted(part, by) for part in published))
            total = np.zeros(size, dtype=np.int64)
            for lo, hi in pairwise(edges):
                loop(rows, model, Quanta(1e9, 1e-6, 2**52), lo, hi, total)
            totals.append(total)
        assert totals[0].any()
        assert all(np.array_equal(total, totals[0]) for total in totals)


def test_a_mapped_row_does_not_depend_on_the_rows_beside_it() -> None:
    rng = np.random.default_rng(1)
    for n_items, rank in ((1, 1), (6, 0), (6, 6), (43, 3), (64, 17)):
        vectors = rng.normal(size=(n_items, rank)).astype(np.float32)
        back = rng.normal(size=(rank, n_items)).astype(np.float32)
        filled = rng.normal(size=(50, n_items)).astype(np.float32)
        together, expected = filled.copy(), filled.astype(float) @ vectors @ back
        panels = panels_of(vectors), panels_of(back)
        map_rows(together, *panels, 0, 50)
        assert np.allclose(together, expected, rtol=1e-4, atol=1e-3)
        for lo, hi in ((0, 1), (15, 18), (30, 50), (49, 50)):
            apart = filled.copy()
            map_rows(apart, *panels, lo, hi)
            assert np.array_equal(apart[lo:hi], together[lo:hi])
            assert np.array_equal(apart[:lo], filled[:lo])
            assert np.array_equal(apart[hi:], filled[hi:])


def test_outer_products_are_of_one_user_each_however_many_are_added_together() -> None:
    """Rows are added in batches: pairs of two people's ratings, or a lost row, would show."""
    rng = np.random.default_rng(2)
    n_items, many = 70, np.full(1200, 40)
    lengths = np.concatenate([rng.integers(0, 60, 1500), many, [0, 70, 70, 1, 0]])
    items = [np.sort(rng.choice(n_items, length, replace=False)) for length in lengths]
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    assert indptr[-1] > 2 * BATCH
    people = lengths.size
    alike = rng.random(people) < 0.8  # one number a person, and mostly that of her length
    numbers = np.where(rng.random(people) < 0.9, lengths % 7 - 9, rng.integers(-9, 10, people))
    values = rng.integers(-9, 10, indptr[-1]).astype(np.float32)
    values[np.repeat(alike, lengths)] = np.repeat(numbers, lengths)[np.repeat(alike, lengths)]
    own = (np.zeros(n_items), np.zeros(people), np.ones(people), np.inf)
    rows = RowArrays(*frozen(indptr, np.concatenate(items).astype(np.uint16), values), *own)
    dense = np.zeros((people, n_items), dtype=np.int64)
    dense[np.repeat(np.arange(people), lengths), rows.items] = values
    still = StepArrays(np.zeros(n_items), 0.0, 1.0, np.inf)
    for part in (slice(None), slice(3, 68, 3)):
        places = np.full(n_items, -1, dtype=np.int32)
        places[part] = np.arange(places[part].size)
        seen = dense[1:-1, part]
        for most_squared in (2**60, 2**40):  # long rows are added one by one, or together
            for loop in (covariance, co_occurrences):
                total = np.zeros((places.max() + 1,) * 2, dtype=np.int64)
                quanta = Quanta(1e9, 1.0, most_squared)
                loop(rows, np.zeros_like(values), still, quanta, places, 1, people - 1, total)
                assert np.array_equal(total, np.triu(seen.T @ seen))


def test_sums_of_outer_products_are_exact_up_to_the_largest_rows() -> None:
    """As many as are added together, all the same and as long as may be; beyond, one by one."""
    n_items, people = 200, 600
    indptr = np.arange(people + 1, dtype=np.int64) * n_items
    items = np.tile(np.arange(n_items, dtype=np.uint16), people)
    own = (np.zeros(n_items), np.zeros(people), np.ones(people), np.inf)
    still = StepArrays(np.zeros(n_items), 0.0, 1.0, np.inf)
    for bits in (45, 48, 49, 52):
        largest = int(np.sqrt(2.0**bits / n_items)) | 1
        units = np.full(people * n_items, largest - 2, dtype=np.float32)
        units[::n_items] += 1  # odd and even
        rows = RowArrays(*frozen(indptr, items, units), *own)
        total = np.zeros((n_items, n_items), dtype=np.int64)
        places = np.arange(n_items, dtype=np.int32)
        quanta = Quanta(np.inf, 1.0, 2**bits)
        covariance(rows, np.zeros_like(units), still, quanta, places, 0, people, total)
        row = units[:n_items].astype(np.int64)
        assert np.array_equal(total, np.triu(people * np.outer(row, row)))
