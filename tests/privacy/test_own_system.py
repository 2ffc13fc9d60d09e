"""A user's system in single precision: its parts, when it does not do, and whose numbers it reads.

The sums that follow from it are compared with dense matrices in test_latent_loops.py.
"""

from typing import Any

import numpy as np
import pytest
from tests.support.rows import frozen

from tacit.kernels import latent
from tacit.kernels.latent import LatentArrays, expected_gradient, factor_moments
from tacit.kernels.lines import (
    BATCH,
    add_outer,
    add_units,
    combine,
    line_dot,
    put_multiples,
    put_terms,
    squared_length,
    sum_at_items,
    zeros,
)
from tacit.kernels.own_system import factorise, invert, room_for, solve, tables_of
from tacit.kernels.quantise import Quanta
from tacit.kernels.rows import RowArrays
from tacit.kernels.tiles import WIDE, tiled

RNG = np.random.default_rng(5)
FINE = Quanta(1e3, 1e-6, 2**52)
SIZES = (1, 7, 8, 15, 16, 17, 40)


def singles(*shape: int) -> np.ndarray:
    found = zeros(*shape)
    found[:] = RNG.standard_normal(shape)
    return found


def test_matrices_begin_where_a_line_of_the_cache_does() -> None:
    for shape in ((1, 16), (5, 32), (0, 16)):
        found = zeros(*shape)
        assert found.shape == shape
        assert found.ctypes.data % 64 == 0
        assert not found.any()


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_rows_are_summed_and_combined(count: int) -> None:
    table, sums = singles(9, 48), zeros(1, 48)
    items = np.array([3, 8, 0, 4, 8, 1, 7], dtype=np.uint16)
    sum_at_items(table, items, 1, 1 + count, sums)
    assert np.allclose(sums[0], table[items[1 : 1 + count]].sum(axis=0), atol=1e-5)
    weights = RNG.standard_normal(9).astype(np.float32)
    combine(weights, table, count, 32, sums)
    assert np.allclose(sums[0, :32], weights[:count] @ table[:count, :32], atol=1e-5)
    assert squared_length(table, count, 48) == pytest.approx(np.sum(table[:count] ** 2), rel=1e-5)
    assert line_dot(table, 4, sums, 32) == pytest.approx(table[4, :32] @ sums[0, :32], abs=1e-4)


@pytest.mark.parametrize("step", [4, 8, 20, 32])
def test_terms_and_their_length(step: int) -> None:
    """Lines are longer than rows of terms, and what they write too much is written over."""
    count, width = 5, tiled(step)
    own, product, terms = zeros(1, width), zeros(count, width), zeros(1, count * step + WIDE)
    own[0, :step], product[:, :step] = singles(1, step)[0], singles(count, step)
    left, backs = singles(1, count)[0], singles(1, count)[0]
    squares = put_terms(own, left, product, backs, count, terms, step)
    expected = backs[:, None] * (left[:, None] * own[:, :step] - product[:, :step])
    found = terms[0, : count * step].reshape(count, step)
    assert np.allclose(found, expected, atol=1e-5)
    assert squares == pytest.approx(np.sum(expected**2), rel=1e-5)


@pytest.mark.parametrize("step", [4, 20, 32])
def test_multiples_of_a_row_follow_from_a_place_on(step: int) -> None:
    count, first, row, numbers = 3, 8, zeros(1, tiled(step)), singles(1, 16)
    row[0, :step], terms = singles(1, step)[0], zeros(1, 8 + 3 * step + WIDE)
    terms[:] = 7.0
    squares = put_multiples(row, numbers, np.float32(0.5), count, terms, first, step)
    expected = 0.5 * np.outer(numbers[0, :count], row[0, :step])
    found = terms[0, first : first + count * step].reshape(count, step)
    assert np.allclose(found, expected, atol=1e-6)
    assert np.all(terms[0, :first] == 7.0)
    assert squares == pytest.approx(np.sum(expected**2), rel=1e-5)


def test_integers_are_added_exactly() -> None:
    """Products of 26 bits each: 32-bit products would wrap around."""
    units = np.zeros((BATCH, 16), np.int32)
    units[:, :11] = RNG.integers(-(2**26), 2**26, (BATCH, 11))
    sums = np.ones((16, 16), np.int64)
    add_outer(units, 11, sums)
    wide = units.astype(np.int64)
    assert np.array_equal(np.triu(sums)[:11, :11], np.triu(wide.T @ wide + 1)[:11, :11])
    for size in (1, 4, 7):
        total = np.arange(3 * size, dtype=np.int64).reshape(3, size)
        expected = total.copy()
        expected[1] += wide[0, 2 : 2 + size]
        add_units(units[0], 2, total, 1)
        assert np.array_equal(total, expected)


@pytest.mark.parametrize("size", SIZES)
def test_a_factor_its_inverse_and_a_right_side(size: int) -> None:
    half, width = RNG.standard_normal((size + 4, size)), tiled(size + 1)
    exact, right = np.eye(size) + half.T @ half, RNG.standard_normal(size)
    gram, lower = zeros(64, 64), zeros(64, 64)
    gram[:] = np.nan  # below the diagonal nothing is read
    gram[:size, :width] = np.triu(np.pad(exact, ((0, 0), (0, width - size))))
    gram[:size, size] = right
    lower[:] = np.nan
    assert factorise(gram, zeros(1, 64)[0], size, width)
    invert(gram, lower, size, width)
    V = np.linalg.inv(np.linalg.cholesky(exact))
    assert np.allclose(lower[:size, :size], V, atol=1e-4)
    assert not lower[:size, size:width].any()
    assert np.allclose(gram[:size, size], V @ right, atol=1e-4)


@pytest.mark.parametrize("bad", [-1.0, 0.0, np.inf, np.nan, 1.0005])
def test_where_digits_would_be_lost_there_is_no_factor(bad: float) -> None:
    """Of the corner `bad` 0.0005 would be left after the first row, or nothing that is a number."""
    gram = zeros(16, 16)
    gram[:2, :2] = [[1.0, 1.0], [1.0, bad]]
    assert not factorise(gram, zeros(1, 16)[0], 2, 16)
    gram[:2, :2] = [[1.0, 1.0], [1.0, 1.01]]
    assert factorise(gram, zeros(1, 16)[0], 2, 16)


def people(scale: float, rank: int = 6) -> tuple[RowArrays, LatentArrays]:
    """Rows of 1 to 20 ratings, and factors that are so long beside the noise."""
    rng, n_items = np.random.default_rng(8), 40
    lengths = np.arange(1, 21)
    items = np.concatenate([np.sort(rng.choice(n_items, d, replace=False)) for d in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.uniform(1, 5, items.size).astype(np.float32)
    own = np.zeros(lengths.size), np.ones(lengths.size), np.inf
    rows = RowArrays(*frozen(indptr, items.astype(np.uint16), values), np.full(n_items, 3.0), *own)
    factors, choice = rng.normal(size=(n_items, rank)), rng.normal(size=(n_items, 3))
    factors[:, 1] = factors[:, 0] + 0.01 * factors[:, 1]  # nearly the same column
    return rows, LatentArrays(factors, np.full(n_items, scale), choice, rng.normal(size=(3, rank)))


def in_single(rows: RowArrays, model: LatentArrays) -> list[bool]:
    tables = tables_of(model)
    room = room_for(tables, 20)
    return [solve(rows, i, tables, room, model.factors.shape[1]) for i in range(20)]


def summed(
    loop: Any, shape: tuple[int, int], rest: tuple[float, ...], rows: RowArrays, model: LatentArrays
) -> np.ndarray:
    total = np.zeros(shape, dtype=np.int64)
    loop(rows, model, *rest, FINE, 0, 20, total)
    return total.astype(float)


@pytest.mark.parametrize("scale", [0.01, 1.0, 1e3, 1e25])
def test_sums_are_those_of_double_precision_however_badly_systems_are_conditioned(
    scale: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With ratings a thousand times as exact as usual some people solve in double precision."""
    rows, model = people(scale)
    loops = (factor_moments, (10, 10), ()), (expected_gradient, (43, 7), (0.5,))
    found = [summed(*each, rows, model) for each in loops]
    monkeypatch.setattr(latent, "solve", lambda *_: False)
    exact = [summed(loop.py_func, *rest, rows, model) for loop, *rest in loops]
    for one, other in zip(found, exact, strict=True):
        assert other.any()
        assert np.linalg.norm(one - other) <= 2e-5 * np.linalg.norm(other)
    assert all(in_single(rows, model)) == (scale < 10)
    assert any(in_single(rows, model)) == (scale < 1e9)


def test_whoever_comes_before_leaves_nothing_behind() -> None:
    """Room is used again: by someone with fewer ratings, or after numbers that are no numbers."""
    rows, model = people(1.0)
    tables, rank = tables_of(model), model.factors.shape[1]
    for i in (0, 3, 5, 19):
        fresh, used = room_for(tables, 20), room_for(tables, 20)
        for part in used:
            part[:] = np.nan
        assert solve(rows, i, tables, fresh, rank)
        assert solve(rows, i, tables, used, rank)
        for name in ("found", "own", "left"):
            one, other = getattr(fresh, name), getattr(used, name)
            size = {"found": 3, "own": rank, "left": i + 1}[name]
            assert np.array_equal(one.ravel()[:size], other.ravel()[:size]), name
