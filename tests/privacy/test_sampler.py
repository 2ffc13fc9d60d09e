"""Noise: the right law (and only that law), independent, exact in its low bits.

Statistical tests use fixed seeds and a false-alarm rate of 1e-4 (`ALARM`); each has a twin that
must fail.
"""

import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from tacit import ConfigError, EngineError
from tacit.trusted.exact_normal import CELLS, DIGITS, RESERVE
from tacit.trusted.sampler import (
    SeededNoiseUnsafe,
    SystemNoise,
    _cell_table,
    floor_normals,
    idealised_normals,
)

ALARM = 1e-4
SIZE = 400_000


def normals(seed: int, size: int = SIZE, bits: int = 40) -> np.ndarray:
    source = SeededNoiseUnsafe(seed)
    return (floor_normals(source, size, bits) + 0.5) / 2.0**bits


def fit_of(values: np.ndarray, sd: float) -> float:
    """p-value of a chi-squared test against N(0, sd^2) in 200 cells of equal probability."""
    counts, _ = np.histogram(stats.norm.cdf(values / sd), bins=200, range=(0, 1))
    return float(stats.chisquare(counts).pvalue)


def test_it_is_normal_with_the_stated_sd_and_no_other() -> None:
    values = normals(1)
    assert fit_of(values, 1.0) > ALARM
    assert stats.kstest(values, "norm").pvalue > ALARM
    for wrong in (0.9, 1.1):
        assert fit_of(values, wrong) < ALARM


def test_moments_and_tails() -> None:
    values = normals(2, size=2_000_000)
    root = math.sqrt(values.size)
    for power, expected, spread in ((1, 0, 1), (2, 1, math.sqrt(2)), (4, 3, math.sqrt(96))):
        assert abs(np.mean(values**power) - expected) < 4 * spread / root
    for edge in (2.0, 3.0, 4.0):
        tail = 2 * stats.norm.sf(edge)
        count = np.sum(np.abs(values) > edge)
        assert stats.binomtest(int(count), values.size, tail).pvalue > ALARM


@pytest.mark.parametrize("bits", [0, 1, 3, 4, 5])
def test_coarse_grids_have_the_exact_probability_of_every_point(bits: int) -> None:
    values = floor_normals(SeededNoiseUnsafe(3 + bits), SIZE, bits)
    points = np.arange(-3 << bits, 3 << bits)
    expected = np.diff(stats.norm.cdf(np.append(points, 3 << bits) / 2**bits))
    counts = np.array([np.sum(values == point) for point in points])
    rest = SIZE - counts.sum()
    observed = np.append(counts, rest)
    wanted = SIZE * np.append(expected, 1 - expected.sum())
    assert stats.chisquare(observed, wanted).pvalue > ALARM
    shifted = np.append(np.roll(counts, 1), rest)  # rounding the other way must be noticed
    assert stats.chisquare(shifted, wanted).pvalue < ALARM


def test_successive_values_are_independent() -> None:
    values = normals(4)
    limit = stats.norm.isf(ALARM / 20) / math.sqrt(values.size)
    for lag in range(1, 11):
        assert abs(np.mean(values[lag:] * values[:-lag])) < limit
    mixed = values[1:] + 0.05 * values[:-1]
    assert abs(np.mean(mixed[1:] * mixed[:-1])) > limit


def test_sign_and_size_are_independent() -> None:
    """They share a word of the tape, at different bits."""
    values = normals(5)
    table = np.array(
        [[np.sum((values < 0) & (np.abs(values) > e)), np.sum((values > 0) & (np.abs(values) > e))]
         for e in (0.0, 0.5, 1.0, 2.0)]
    )  # fmt: skip
    bands = np.vstack([table[:-1] - table[1:], table[-1:]])
    assert stats.chi2_contingency(bands).pvalue > ALARM


@pytest.mark.parametrize("bit", [0, 1, 5, 20])
def test_low_bits_are_fair_in_the_exact_sampler(bit: int) -> None:
    ones = int(np.sum((floor_normals(SeededNoiseUnsafe(6), SIZE, 52) >> bit) & 1))
    assert stats.binomtest(ones, SIZE).pvalue > ALARM


def test_low_bits_give_the_idealised_sampler_away() -> None:
    """Large floating-point values have no low bits: the leak that Mironov found."""
    values = idealised_normals(SeededNoiseUnsafe(7), SIZE, 52)
    exact = floor_normals(SeededNoiseUnsafe(7), SIZE, 52)
    far = 2 << 52  # beyond two sd, 53 bits do not reach down to the unit
    assert np.all(values[np.abs(values) > far] % 2 == 0)
    ones = int(np.sum(exact[np.abs(exact) > far] & 1))
    assert stats.binomtest(ones, int(np.sum(np.abs(exact) > far))).pvalue > ALARM


def test_idealised_noise_has_the_right_law_all_the_same() -> None:
    values = idealised_normals(SeededNoiseUnsafe(8), SIZE, 40) / 2.0**40
    assert fit_of(values, 1.0) > ALARM


def test_cells_have_their_probabilities_to_the_last_digit() -> None:
    """Each cell, and the tail, to a factor 1 +- 2^-322, which leaves room for Lemma 8's 2^-320."""
    cumulative, guide = _cell_table()
    assert cumulative.shape == (CELLS, DIGITS + 1)
    shifts = [64 * (DIGITS - 1 - place) for place in range(DIGITS)]
    stored = [sum(int(row[p]) << shifts[p] for p in range(DIGITS)) for row in cumulative]
    with mpmath.workdps(250):
        weights = [mpmath.exp(-(mpmath.mpf(j) ** 2) / 512) for j in range(700)]
        exact = [*weights[:CELLS], mpmath.fsum(weights[CELLS:])]
        scale = mpmath.mpf(2) ** (64 * DIGITS) / mpmath.fsum(weights)
        steps = np.diff([0, *stored, 1 << (64 * DIGITS)]).tolist()
        errors = [abs(s / (w * scale) - 1) for s, w in zip(steps, exact, strict=True)]
        assert max(errors) < mpmath.mpf(2) ** -322
    assert guide[0] == 0
    assert np.all(np.diff(guide) >= 0)


def test_system_noise_never_repeats() -> None:
    source = SystemNoise()
    assert source.secure
    assert not np.array_equal(source.words(4), source.words(4))
    assert not np.array_equal(floor_normals(source, 8, 40), floor_normals(source, 8, 40))


def test_a_seed_repeats_and_each_release_has_its_own_stream() -> None:
    source = SeededNoiseUnsafe(9)
    assert not source.secure
    source.start(1)
    first = floor_normals(source, 100, 40)
    source.start(2)
    second = floor_normals(source, 100, 40)
    source.start(1)
    assert np.array_equal(first, floor_normals(source, 100, 40))
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.5


class StuckGenerator:
    """A broken machine: every word is the same, so deviates never differ."""

    secure = True

    def words(self, count: int) -> np.ndarray:
        return np.full(count, 0x0000_1234_5678_9ABC, dtype=np.uint64)

    def start(self, release: int) -> None:
        pass


def test_a_stuck_generator_is_noticed() -> None:
    with pytest.raises(EngineError, match="repeats"):
        floor_normals(StuckGenerator(), 1000, 40)


def test_a_generator_that_is_always_rejected_is_noticed_at_the_end_of_the_tape() -> None:
    """Cell 40, x near one, and a run of one step: the same three words over and over."""

    class Rejected(StuckGenerator):
        def words(self, count: int) -> np.ndarray:
            turn = [0xFDBE_0000_0000_0000, 0xFFFF_0000_0000_0000, 0, 1 << 63, 1 << 63]
            return np.resize(np.array(turn, dtype=np.uint64), count)

    with pytest.raises(EngineError, match="repeats"):
        floor_normals(Rejected(), 10, 40)


@pytest.mark.parametrize("bits", [-1, 53, 60])
def test_bits_that_could_overflow_are_refused(bits: int) -> None:
    with pytest.raises(ConfigError, match="bits"):
        floor_normals(SeededNoiseUnsafe(1), 10, bits)


def test_the_reserve_is_far_more_than_any_value_uses() -> None:
    """If a value could come near the reserve, cutting the tape off would bend the law."""

    class Counting(SeededNoiseUnsafe):
        used = 0

        def words(self, count: int) -> np.ndarray:
            self.used += count
            return super().words(count)

    source = Counting(10)
    floor_normals(source, SIZE, 40)
    assert source.used / SIZE < 6
    assert RESERVE > 500 * 6
