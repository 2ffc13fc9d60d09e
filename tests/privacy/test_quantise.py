"""Attacks on the one loop that makes integers of bounded norm (tacit.kernels.quantise)."""

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tacit import EngineError
from tacit.kernels.lanes import put_rounded
from tacit.kernels.quantise import MOST_EXACT, Quanta, clip_factor, norm_of, quantise
from tacit.trusted.quantise import below, norm_quanta, product_quanta, whole_below

Quantiser = Callable[[np.ndarray, float, int, np.ndarray], None]
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64)
SIZES = st.sampled_from([0, 1, 2, 3, 99, 2**20 - 1, 2**34, 2**42 - 7, 2**52])


def integers(vector: np.ndarray, factor: float, most: int, by: Quantiser = quantise) -> list[int]:
    found = np.full(vector.size + 1, 77, dtype=np.int64)
    with np.errstate(all="ignore"):
        by(vector, factor, most, found)
    assert found[-1] == 77  # nothing beyond the vector is written
    return [int(k) for k in found[:-1]]


def squared(whole: list[int]) -> int:
    """The squared norm, in exact arithmetic."""
    return sum(k * k for k in whole)


def rounded_only(vector: np.ndarray, factor: float, most: int, out: np.ndarray) -> None:
    """Wrong: clipped in floating point, rounded, and not looked at again."""
    norm = norm_of(vector)
    scale = min(factor, math.sqrt(most) / norm) if 0 < norm < np.inf else 0.0
    out[: vector.size] = np.rint(vector * scale)


def wrapping(vector: np.ndarray, factor: float, most: int, out: np.ndarray) -> None:
    """Wrong: squares are summed in 64 bits, which wrap around, and the first try is not clipped."""
    while True:
        out[: vector.size] = np.rint(vector * factor)
        if int(np.sum(out[: vector.size] * out[: vector.size])) <= most:
            return
        factor *= 0.5


@settings(max_examples=400)
@given(st.lists(NUMBERS, max_size=12), NUMBERS, SIZES)
def test_the_bound_holds_for_any_vector_and_any_factor(
    vector: list[float], factor: float, most: int
) -> None:
    assert squared(integers(np.array(vector, dtype=np.float64), factor, most)) <= most


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 7, 8, 9, 12, 31])
@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("given", [np.float32, np.float64])
def test_what_is_rounded_is_what_is_counted(size: int, kind: type, given: type) -> None:
    """Halves go to even numbers, and every number that is written is in the sum of squares."""
    vector = (np.arange(size) * 1.5 - 7).astype(given)
    found = np.full(size + 1, 77, dtype=kind)
    total = put_rounded(vector, 1.0, found)
    assert np.array_equal(found[:size], np.rint(vector))
    assert found[size] == 77
    assert total == squared([int(k) for k in found[:size]])


def hard_rows(most: int) -> list[tuple[np.ndarray, float]]:
    """Vectors that rounding makes longer: all entries just above a half, at the bound's length."""
    rng = np.random.default_rng(most % 1000)
    found = []
    for size in (1, 2, 3, 7, 50, 1000):
        level = max(math.floor(math.sqrt(most / size)), 0)
        for up in (0.5, np.nextafter(0.5, 1.0), 0.51, 0.499):
            row = np.full(size, level + up)
            found.append((row, clip_factor(norm_of(row), math.sqrt(most))))
        drawn = rng.standard_normal(size)
        found.append((drawn, math.sqrt(most) / float(norm_of(drawn))))
    return found


def broken(by: Quantiser) -> int:
    """How many of the hard rows come out longer than they may."""
    grids = (3, 99, 1000, 2**20 - 1, 2**34, 2**52)
    cases = [(row, factor, most) for most in grids for row, factor in hard_rows(most)]
    return sum(squared(integers(row, factor, most, by)) > most for row, factor, most in cases)


def test_rounding_never_passes_the_bound_and_one_that_is_not_checked_does() -> None:
    """The attack, and its twin: the same rows break a clip that is made in floating point only."""
    assert broken(quantise) == 0
    assert broken(rounded_only) > 20


def test_squares_that_overflow_are_noticed_and_64_bits_would_not_notice() -> None:
    row = np.full(4, 2.0**31)  # its square is 2^64, which is 0 in 64 bits
    assert squared(integers(row, 1.0, 2**40)) <= 2**40
    assert squared(integers(row, 1.0, 2**40, wrapping)) > 2**40


NOTHING = [0, 0, 0]


@pytest.mark.parametrize(
    ("vector", "factor", "most", "expected"),
    [
        ([], 1.0, 9, []),
        ([0.0, 0.0, -0.0], 1.0, 9, NOTHING),
        ([3.0, 0.0, 0.0], 1.0, 9, [3, 0, 0]),  # exactly at the bound
        ([3.4, 0.0, 0.0], 1.0, 9, [3, 0, 0]),
        ([0.4, -0.4, 0.4], 1.0, 9, NOTHING),
        ([1e-300, 0.0, 5e-324], 1.0, 9, NOTHING),
        ([1e100, 0.0, 0.0], 1.0, 9, [3, 0, 0]),
        ([1e200, 0.0, 0.0], 1.0, 9, NOTHING),  # its square overflows
        ([math.nan, 1.0, 1.0], 1.0, 9, NOTHING),
        ([math.inf, 1.0, 1.0], 1.0, 9, NOTHING),
        ([1.0, -math.inf, 1.0], 0.0, 9, NOTHING),
        ([1.0, 2.0, 2.0], math.nan, 9, NOTHING),
        ([1.0, 2.0, 2.0], math.inf, 9, NOTHING),
        ([1.0, 2.0, 2.0], 0.0, 9, NOTHING),
        ([1.0, 2.0, 2.0], 1.0, 0, NOTHING),
        ([1.0, 2.0, 2.0], 1.0, 9, [1, 2, 2]),
        ([-7.0], 1.0, 9, [-2]),  # shortened by a part in 10^9 more than needed: then rounded
    ],
)
def test_edge_cases(vector: list[float], factor: float, most: int, expected: list[int]) -> None:
    found = integers(np.array(vector, dtype=np.float64), factor, most)
    if expected == [-2]:
        assert found in ([-2], [-3])
    else:
        assert found == expected


@pytest.mark.parametrize("most", [2**20, 2**34, 2**52])
def test_an_ulp_above_the_bound_costs_next_to_nothing(most: int) -> None:
    """The bound is not only kept but used: at most a few units of length are lost."""
    rng = np.random.default_rng(3)
    for size in (1, 2, 30):
        row = rng.standard_normal(size)
        length = math.sqrt(most)
        for norm in (length, np.nextafter(length, np.inf), 10 * length):
            scaled = row / norm_of(row) * norm
            factor = clip_factor(norm_of(scaled), length)
            kept = math.sqrt(squared(integers(scaled, factor, most)))
            assert length - 2 - math.sqrt(size) <= kept <= length


def test_single_precision_and_floating_point_outputs_keep_the_bound_too() -> None:
    rng = np.random.default_rng(4)
    for _ in range(200):
        row, out = rng.standard_normal(60).astype(np.float32), np.empty(60)
        quantise(row, 2.0**21 / float(np.sqrt(np.sum(row**2))), 2**42 - 5, out)
        assert np.array_equal(out, np.rint(out))
        assert squared([int(k) for k in out]) <= 2**42 - 5


@pytest.mark.parametrize("norm", [0.0, 0.5, 3.0, np.nextafter(3.0, 4.0), 1e300, np.inf, np.nan])
def test_a_clip_factor_is_at_most_one_and_brings_a_norm_to_its_bound(norm: float) -> None:
    factor = clip_factor(norm, 3.0)
    assert 0.0 <= factor <= 1.0
    assert (factor == 0.0) == (not norm < np.inf)
    assert not norm < np.inf or norm * factor <= 3.0 * (1 + 2**-52)


@given(st.floats(1e-6, 1e6), st.integers(1, 26))
def test_units_never_come_to_more_than_the_bound(bound: float, bits: int) -> None:
    unit = bound * 2.0**-bits
    quanta: Quanta = norm_quanta(bound, unit)
    assert Fraction(quanta.most_squared) * Fraction(unit) ** 2 < Fraction(bound) ** 2
    products: Quanta = product_quanta(bound, bound**2 * 2.0**-bits)
    assert Fraction(products.most_squared) * Fraction(bound**2 * 2.0**-bits) <= Fraction(bound) ** 2
    assert whole_below(bound / unit) * Fraction(unit) <= Fraction(bound)
    assert below(bound) < bound


def test_a_grid_whose_squared_norms_would_not_be_exact_is_refused() -> None:
    assert norm_quanta(1.0, 2.0**-26).most_squared <= MOST_EXACT
    with pytest.raises(EngineError, match="too fine"):
        norm_quanta(1.0, 2.0**-27)
    with pytest.raises(EngineError, match="too fine"):
        product_quanta(1.0, 2.0**-53)
