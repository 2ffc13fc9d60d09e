"""Products in tiles of registers are products, and a Cholesky factor in blocks is one."""

import numpy as np
import pytest

from tacit.kernels.own_system import factorise
from tacit.kernels.tiles import (
    BROAD,
    TALL,
    add_products,
    add_whole_products,
    multiply,
    panels_of,
    put_product,
    put_squared,
    room_for_whole,
    subtract_products,
    subtract_solved,
    tiled,
)
from tacit.kernels.triangles import solve_lower, solve_upper


@pytest.mark.parametrize("count", [0, 1, 7, 80])
@pytest.mark.parametrize("width", [16, 48, 128])
def test_upper_halves_are_those_of_numpy(count: int, width: int) -> None:
    rng = np.random.default_rng(count + width)
    matrix = rng.standard_normal((count, width)).astype(np.float32)
    before = rng.standard_normal((width, width)).astype(np.float32)
    sums = before.copy()
    add_products(matrix, count, sums, width, width)
    exact = before + matrix.T.astype(float) @ matrix
    assert np.allclose(np.triu(sums), np.triu(exact), rtol=0, atol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 64, 65, 200])
@pytest.mark.parametrize("items", [1, 16, 43])
def test_products_of_whole_numbers_are_exact_and_of_the_rows_asked_for(
    count: int, items: int
) -> None:
    """Totals are beyond 2^53, and odd, so that a double could not hold them."""
    rng = np.random.default_rng(count + items)
    matrix = rng.integers(-(2**21), 2**21, (200, items), endpoint=True)
    total = rng.integers(2**60, 2**61, (items, items)) | 1
    exact = total + np.triu(matrix[:count].T @ matrix[:count])
    block = room_for_whole(200, items)
    block[:, :items] = matrix
    add_whole_products(block, count, total)
    assert np.array_equal(total, exact)


@pytest.mark.parametrize("row", range(0, 48, TALL))
def test_rows_before_are_taken_off(row: int) -> None:
    before = np.random.default_rng(row).standard_normal((48, 48)).astype(np.float32)
    matrix = before.copy()
    subtract_products(matrix, row, 48)
    exact = before.astype(float)
    exact[row : row + TALL] -= exact[:row, row : row + TALL].T @ exact[:row]
    rows = slice(row, row + TALL)
    assert np.allclose(matrix[rows, row:], exact[rows, row:], rtol=0, atol=2e-5)
    others = np.delete(np.arange(48), np.arange(row, row + TALL))
    assert np.array_equal(matrix[others], before[others])


def test_a_part_of_the_rows_is_summed_and_a_part_of_the_sums_written() -> None:
    rng = np.random.default_rng(4)
    matrix = rng.standard_normal((20, 32)).astype(np.float32)
    sums = np.zeros((32, 32), np.float32)
    add_products(matrix, 13, sums, 9, 16)
    exact = matrix[:13].T.astype(float) @ matrix[:13]
    assert np.allclose(np.triu(sums[:16, :16]), np.triu(exact[:16, :16]), rtol=0, atol=1e-5)
    assert not sums[16:].any()
    assert not sums[:, 16:].any()


@pytest.mark.parametrize("row", range(0, 40, TALL))
def test_what_was_solved_before_is_taken_off(row: int) -> None:
    rng, width = np.random.default_rng(row), tiled(row + 1)
    upper = rng.standard_normal((48, 48)).astype(np.float32)
    before = np.tril(rng.standard_normal((48, 48))).astype(np.float32)
    solved, exact = before.copy(), before.astype(float)
    subtract_solved(upper, solved, row, width)
    exact[row : row + TALL] -= upper[:row, row : row + TALL].T.astype(float) @ exact[:row]
    assert np.allclose(solved[:, :width], exact[:, :width], rtol=0, atol=2e-5)
    assert np.array_equal(solved[:, width:], before[:, width:])


@pytest.mark.parametrize("size", [1, 8, 15, 16, 17, 40])
def test_a_lower_triangle_is_squared(size: int) -> None:
    width = tiled(size + 1)
    lower = np.zeros((48, 48), np.float32)
    lower[:size, :size] = np.tril(np.random.default_rng(size).standard_normal((size, size)))
    product = np.full((48, 48), np.nan, np.float32)
    put_squared(lower, size, width, product)
    exact = lower.T.astype(float) @ lower
    assert np.allclose(product[:size, :width], exact[:size, :width], rtol=0, atol=1e-5)


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("count", [1, 8, 21])
def test_products_are_those_of_numpy_either_way(count: int, by_row: bool) -> None:
    rng = np.random.default_rng(count)
    left = rng.standard_normal((24, 32)).astype(np.float32)
    right = rng.standard_normal((32, 32)).astype(np.float32)
    product = np.full((24, 32), np.nan, np.float32)
    given = left if by_row else np.ascontiguousarray(np.pad(left, ((0, 8), (0, 0))).T)
    put_product(given, right, count, 30, 32, by_row, product)
    exact = left[:, :30].astype(float) @ right[:30]
    assert np.allclose(product[:count], exact[:count], rtol=0, atol=1e-5)


@pytest.mark.parametrize("columns", [0, 1, 8, 9, 43])
@pytest.mark.parametrize("rows", [0, 1, 50])
def test_products_of_panels_are_those_of_numpy(rows: int, columns: int) -> None:
    rng = np.random.default_rng(rows + columns)
    left = rng.standard_normal((rows, columns)).astype(np.float32)
    right = rng.standard_normal((rows, BROAD)).astype(np.float32)
    panels = panels_of(left)
    product = np.full((TALL * len(panels), BROAD), np.nan, np.float32)
    multiply(panels, right, product)
    assert np.allclose(product[:columns], left.T.astype(float) @ right, rtol=0, atol=1e-4)
    assert not product[columns:].any()


def test_a_product_is_fused_with_its_sum() -> None:
    """(1 + h)^2 - (1 + 2 h) is h^2 if products are not rounded first, and 0 if they are."""
    step = np.float32(2.0**-13)
    left = np.array([[1 + 2 * step], [1 + step]], np.float32)
    right = np.full((2, BROAD), 1 + step, np.float32)
    right[0] = -1.0
    product = np.empty((TALL, BROAD), np.float32)
    multiply(panels_of(left), right, product)
    assert (product[0] == step * step).all()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 15, 16, 31, 73, 126])
def test_triangles_solve_what_was_factorised(size: int) -> None:
    """What is below the diagonal, or beside the system, plays no part."""
    rng, width = np.random.default_rng(size), tiled(size + 1)
    block = rng.standard_normal((size + 3, size))
    exact = np.eye(size) + block.T @ block / size
    gram = np.full((width, width), 7.0, np.float32)
    gram[:size, :size] = np.triu(exact) + np.tril(gram[:size, :size], -1)
    corners = np.zeros(width, np.float32)
    assert factorise(gram, corners, size, width)
    right, half, solved = (np.full((1, width), 5.0, np.float32) for _ in range(3))
    right[0, :size] = wanted = rng.standard_normal(size).astype(np.float32)
    solve_lower(gram, right, half, size, width)
    assert np.allclose(np.linalg.cholesky(exact) @ half[0, :size], wanted, rtol=0, atol=1e-4)
    assert not half[0, size:].any()
    solve_upper(gram, half, solved, size, width)
    assert np.allclose(exact @ solved[0, :size], wanted, rtol=0, atol=1e-4)
    assert not solved[0, size:].any()
