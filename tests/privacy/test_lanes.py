"""Loops that are a processor's vectors have the bits of the numbers that they stand for."""

import numpy as np
import pytest

from tacit.kernels.lanes import dot, two_dots
from tacit.kernels.row_steps import add_rounded, item_table, load_row, move_row

SIZES = [*range(14), 80, 1001]


def by_hand(one: np.ndarray, other: np.ndarray) -> float:
    """Four partial sums in double precision; what is left over goes to the first."""
    size = min(one.size, other.size)
    sums, whole = [0.0] * 4, size - size % 4
    for p in range(whole):
        sums[p % 4] += float(one[p]) * float(other[p])
    for p in range(whole, size):
        sums[0] += float(one[p]) * float(other[p])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_they_are_four_sums_to_the_last_bit(kind: type) -> None:
    rng = np.random.default_rng(4)
    orders_differ = False
    for size in SIZES:
        one, two = (rng.standard_normal(size).astype(kind) for _ in range(2))
        other = rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)
        assert dot(one, other) == by_hand(one, other)
        assert two_dots(one, two, other) == (by_hand(one, other), by_hand(two, other))
        orders_differ |= by_hand(one, other) != sum(
            float(a) * b for a, b in zip(one, other, strict=True)
        )
    assert orders_differ  # a sum in another order would have been noticed


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_numbers_need_not_lie_side_by_side(kind: type) -> None:
    rng = np.random.default_rng(5)
    for size in SIZES:
        one, other = rng.standard_normal(2 * size).astype(kind)[::2], rng.standard_normal(size)
        assert dot(one, other) == by_hand(one, other)
        once = np.broadcast_to(kind(0.1), size)
        assert dot(once, other) == by_hand(once, other)


class Row:
    """A row that begins at place 3 of its arrays, among 2,000 items."""

    def __init__(self, size: int, kind: type = np.uint16) -> None:
        rng = np.random.default_rng(size)
        self.size, self.span = size, (3, size)
        self.items = np.zeros(size + 7, kind)
        self.items[3 : 3 + size] = np.sort(rng.permutation(2000)[:size])
        self.values = rng.uniform(1.0, 5.0, size + 7).astype(np.float32)
        self.fitted = rng.standard_normal(size + 7).astype(np.float32)
        self.vectors = rng.standard_normal((3, 2000))
        self.table = item_table(*self.vectors)
        self.scratch = [np.full(size + 2, np.nan) for _ in range(4)]

    def own(self, array: np.ndarray) -> np.ndarray:
        return array[3 : 3 + self.size]

    def load(self, values: np.ndarray, own: tuple[float, float, float]) -> tuple[float, float]:
        target, picked, along, _ = self.scratch
        found = load_row(
            self.table, self.items, values, self.fitted, self.span, own, target, picked, along
        )
        return tuple(found)


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
@pytest.mark.parametrize("clip", [0.7, np.inf])
def test_targets_are_clipped_and_scaled_to_the_last_bit(
    clip: float, kind: type, once: bool
) -> None:
    clips = False
    for size in SIZES:
        row = Row(size, kind)
        values = np.broadcast_to(np.float32(1.0), row.values.shape) if once else row.values
        found = row.load(values, (0.25, 0.3, clip))
        offsets, direction, other = (vector[row.own(row.items)] for vector in row.vectors)
        centred = row.own(values).astype(float) - offsets - 0.25
        target = np.minimum(clip, np.maximum(-clip, centred)) * 0.3
        assert np.array_equal(row.scratch[0][:size], target)
        assert np.array_equal(row.scratch[1][:size], direction)
        assert np.array_equal(row.scratch[2][:size], other)
        assert all(np.isnan(one[size:]).all() for one in row.scratch)
        fitted = row.own(row.fitted)
        assert found == (by_hand(fitted, direction), by_hand(target, direction))
        clips |= bool((np.abs(centred) > clip).any())
    assert clips == (clip < np.inf)


@pytest.mark.parametrize("moves", [False, True])
def test_fitted_values_move_in_their_own_precision(moves: bool) -> None:
    precision_matters = False
    for size in SIZES:
        row = Row(size)
        row.load(row.values, (0.25, 0.3, np.inf))
        target, picked, along, residual = row.scratch
        before, change = row.fitted.copy(), (moves, 0.9, -0.37)
        found = move_row(row.fitted, row.span, change, target, picked, along, residual)
        exact = 0.9 * row.own(before).astype(float) + -0.37 * picked[:size]
        fitted = exact.astype(np.float32) if moves else row.own(before)
        left = fitted.astype(float) - target[:size]
        assert np.array_equal(row.own(row.fitted), fitted)
        assert np.array_equal(row.fitted[:3], before[:3])
        assert np.array_equal(row.fitted[3 + size :], before[3 + size :])
        assert np.array_equal(residual[:size], left)
        assert np.isnan(residual[size:]).all()
        expected = by_hand(fitted, fitted), by_hand(along, left), by_hand(left, left)
        assert tuple(found) == expected
        precision_matters |= bool((exact != fitted).any())
    assert precision_matters


def test_what_is_added_is_rounded_to_even_at_its_items() -> None:
    for size in SIZES:
        row, sums = Row(size), np.arange(2000)
        residual = np.random.default_rng(size).integers(-9, 9, size + 2) / 4
        residual[:1] = 2.0**50
        add_rounded(residual, 2.0, row.items, row.span, sums)
        expected = np.arange(2000)
        expected[row.own(row.items)] += np.rint(2.0 * residual[:size]).astype(np.int64)
        assert np.array_equal(sums, expected)
