"""Products in tiles of registers are products, and a Cholesky factor in blocks is one."""

import numpy as np
import pytest

from tacit.kernels.quick import _cholesky, _padded, _substitute
from tacit.kernels.tiles import TALL, add_products, subtract_products


@pytest.mark.parametrize("count", [0, 1, 7, 80])
@pytest.mark.parametrize("width", [16, 48, 128])
def test_upper_halves_are_those_of_numpy(count: int, width: int) -> None:
    rng = np.random.default_rng(count + width)
    matrix = rng.standard_normal((count, width)).astype(np.float32)
    before = rng.standard_normal((width, width)).astype(np.float32)
    sums = before.copy()
    add_products(matrix, sums)
    exact = before + matrix.T.astype(float) @ matrix
    assert np.allclose(np.triu(sums), np.triu(exact), rtol=0, atol=1e-4)


@pytest.mark.parametrize("row", range(0, 48, TALL))
def test_rows_before_are_taken_off(row: int) -> None:
    before = np.random.default_rng(row).standard_normal((48, 48)).astype(np.float32)
    matrix = before.copy()
    subtract_products(matrix, row)
    exact = before.astype(float)
    exact[row : row + TALL] -= exact[:row, row : row + TALL].T @ exact[:row]
    rows = slice(row, row + TALL)
    assert np.allclose(matrix[rows, row:], exact[rows, row:], rtol=0, atol=2e-5)
    others = np.delete(np.arange(48), np.arange(row, row + TALL))
    assert np.array_equal(matrix[others], before[others])


@pytest.mark.parametrize("size", [1, 7, 8, 9, 16, 31, 73, 126])
def test_factors_are_those_of_numpy(size: int) -> None:
    block = np.random.default_rng(size).standard_normal((size + 3, size))
    exact = np.eye(size) + block.T @ block
    gram = np.zeros((_padded(size), _padded(size)), np.float32)
    gram[:size, :size] = exact
    assert _cholesky(gram, size)
    upper = np.triu(gram[:size, :size], 1) + np.diag(1 / np.diag(gram[:size, :size]))
    assert np.allclose(upper, np.linalg.cholesky(exact).T, rtol=0, atol=2e-4)
    right = np.zeros(len(gram), np.float32)
    right[:size] = np.random.default_rng(1).standard_normal(size)
    solved = right.copy()
    _substitute(gram, solved)
    assert np.allclose(exact @ solved[:size], right[:size], rtol=0, atol=1e-3)
    assert not solved[size:].any()
    for corner in (-1.0, 0.0, np.inf, np.nan):
        gram[:size, :size] = exact
        gram[size // 2, size // 2] = corner
        assert not _cholesky(gram, size)
