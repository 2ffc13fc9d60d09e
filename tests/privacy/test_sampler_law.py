"""The law of the sampler, part by part: words, acceptance, and the tail beyond 16 sd.

Statistical tests use fixed seeds and a false-alarm rate of 1e-4 for each test (`ALARM`), shared
among the points that it looks at; each has a twin that must fail.
"""

import math
import os
from collections.abc import Iterator
from itertools import chain, islice
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
from numba import njit
from scipy import special, stats
from tests.support.rows import frozen

from tacit import EngineError
from tacit.trusted import normal_tail
from tacit.trusted.exact_normal import DIGITS, SOUND, _accept, fill
from tacit.trusted.normal_tail import FURTHEST, Deviate, exp_minus, floor_tail_normal, tail_cell
from tacit.trusted.sampler import (
    MOST_BITS,
    SeededNoiseUnsafe,
    SystemNoise,
    _cell_table,
    floor_normals,
)

ALARM = 1e-4


# The words


def test_noise_is_made_of_the_systems_words_each_used_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte that the sampler gets is one that os.urandom gave, in order, and no other."""
    given = bytearray()
    stream = np.random.default_rng(1)

    def urandom(count: int) -> bytes:
        given.extend(stream.bytes(count))
        return bytes(given[-count:])

    with monkeypatch.context() as patch:
        patch.setattr(os, "urandom", urandom)
        words = SystemNoise().words(1000)
        assert words.tobytes() == bytes(given)
        given.clear()
        values = floor_normals(SystemNoise(), 5000, 40)
    tape = np.frombuffer(bytes(given), dtype=np.uint64)
    assert tape.size > 3 * values.size
    assert np.array_equal(values, list(islice(plain_normals(iter(tape.tolist()), 40), 5000)))


class Digits:
    """A uniform number, digit by digit, for the second writing of the sampler."""

    def __init__(self, words: Iterator[int]) -> None:
        self.words, self.known = words, [next(words)]

    def below(self, other: "Digits") -> bool:
        for place in range(DIGITS):
            for number in (self, other):
                if len(number.known) == place:
                    number.known.append(next(number.words))
            if self.known[place] != other.known[place]:
                return self.known[place] < other.known[place]
        raise AssertionError("equal in all digits")


def edges() -> list[list[int]]:
    with mpmath.workdps(250):
        weights = [mpmath.exp(-(mpmath.mpf(j) ** 2) / 512) for j in range(700)]
        scale = mpmath.mpf(2) ** 512 / mpmath.fsum(weights)
        sums = np.cumsum(np.array(weights[:256], dtype=object)) * scale
        whole = [int(mpmath.floor(total)) for total in sums]
    return [[(edge >> (448 - 64 * place)) % 2**64 for place in range(8)] for edge in whole]


def plain_normals(words: Iterator[int], bits: int) -> Iterator[int]:
    """The sampler once more, line by line from Lemma 8; an iterator gives each word once."""
    table = [SimpleNamespace(known=edge, words=None) for edge in edges()]
    while True:
        deviate = Digits(words)
        j = next(k for k, edge in enumerate(table) if deviate.below(edge))  # type: ignore[arg-type]
        x, word = Digits(words), next(words)
        last, length, choice = x, 0, word >> 55
        while choice < 2 * j or (choice == 2 * j and Digits(words).below(x)):
            new = Digits(words)
            if not new.below(last):
                break
            last, length, choice = new, length + 1, next(words) >> 55
        if length % 2 == 0:
            size = ((j << 64) + x.known[0]) >> (68 - bits)
            yield -size - 1 if word & 1 else size


@pytest.mark.parametrize("kinds", [2**64 - 1, 16])
def test_the_loops_do_what_a_second_writing_does(kinds: int) -> None:
    """Bit by bit; with 16 different words only, ties are frequent and many digits are drawn."""
    drawn = np.random.default_rng(3).integers(0, kinds, 30_000, dtype=np.uint64)
    tape = drawn * np.uint64((2**64 - 1) // kinds)
    values = np.zeros(5000, dtype=np.int64)
    filled, state = fill(values, 0, 40, _cell_table(), tape)
    assert (filled, state) == (5000, SOUND)
    assert np.array_equal(values, list(islice(plain_normals(iter(tape.tolist()), 40), 5000)))


# The acceptance, for cells of the table

CASES = (  # j, x and how often it is tried; 0.1 % at (40, 0.3) is seven standard errors
    (0, 0.95, 1_000_000),
    (2, 0.5, 300_000),
    (10, 0.9, 300_000),
    (40, 0.3, 2_000_000),
    (40, 0.98, 300_000),
    (96, 0.5, 300_000),
    (160, 0.8, 300_000),
    (255, 0.99, 300_000),
)


@njit  # not cached: numba would not see that the loop it calls has changed
def accepted(j, start, words, trials):  # type: ignore[no-untyped-def]
    tape = np.zeros(2, np.int64)
    x, trio = np.zeros(DIGITS + 1, np.uint64), np.zeros((3, DIGITS + 1), np.uint64)
    count = 0
    for _ in range(trials):
        x[0], x[DIGITS] = start, np.uint64(1)
        choice = np.int64(words[tape[0]] >> np.uint64(55))
        tape[0] += 1
        count += _accept(choice, j, x, trio, words, tape)
    return count, tape[0]


def off(counts: list[int], trials: list[int], law: list[float]) -> bool:
    """Whether some count is not what the law says, at a false-alarm rate of ALARM in all."""
    limit = stats.norm.isf(ALARM / len(law) / 2)
    return any(
        abs(count - n * p) > limit * math.sqrt(n * p * (1 - p)) + 1
        for count, n, p in zip(counts, trials, law, strict=True)
    )


def test_acceptance_has_its_closed_form_point_by_point() -> None:
    """Exp(-x(2j + x)/512), for cells of the table."""
    words = np.random.Philox(7).random_raw(7_000_000)
    found = [accepted(j, np.uint64(x * 2.0**64), words, trials) for j, x, trials in CASES]
    assert max(used for _, used in found) < words.size
    counts, trials = [count for count, _ in found], [case[2] for case in CASES]
    law = [math.exp(-x * (2 * j + x) / 512) for j, x, _ in CASES]
    assert not off(counts, trials, law)
    swapped = [math.exp(-x * (2 * j + 1 - x) / 512) for j, x, _ in CASES]  # `spare` above x
    assert off(counts, trials, swapped)
    astray = [p * 0.999 if case[:2] == (40, 0.3) else p for p, case in zip(law, CASES, strict=True)]
    assert off(counts, trials, astray)


# The tail


def stream(seed: int) -> Iterator[int]:
    generator = np.random.Philox(seed)
    return chain.from_iterable(generator.random_raw(4096).tolist() for _ in iter(int, 1))


def test_exponential_trials_have_their_probabilities() -> None:
    words, trials = stream(1), 20_000
    cases = [(1, 1), (1, 512), (100, 512), (300, 512), (511, 512)]
    counts = [sum(exp_minus(words, *case) for _ in range(trials)) for case in cases]
    law = [math.exp(-whole / size) for whole, size in cases]
    assert not off(counts, [trials] * len(cases), law)
    assert off(
        counts,
        [trials] * len(cases),
        [1 - whole / size * (1 - 1 / math.e) for whole, size in cases],
    )


@pytest.mark.parametrize("i", [0, 1, 22, 23, 40, 500])
def test_tail_cells_are_tried_as_their_law_says(i: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cell 256 + i: i trials of exp(-1), a miss, then trials that come to exp(-i^2/512)."""
    asked: list[float] = []

    def trial(words: Iterator[int], whole: int, size: int) -> bool:
        asked.append(whole / size)
        return len(asked) != i + 1

    monkeypatch.setattr(normal_tail, "exp_minus", trial)
    assert tail_cell(iter(())) == 256 + i
    assert asked[: i + 1] == [1.0] * (i + 1)
    assert sum(asked[i + 1 :]) == i * i / 512
    assert max(asked) <= 1


def test_a_rejected_tail_cell_is_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = iter([True, True, False, False, True, False, True])  # 2: rejected; then 1
    monkeypatch.setattr(normal_tail, "exp_minus", lambda *_: next(outcomes))
    assert tail_cell(iter(())) == 257
    assert next(outcomes, None) is None


def at(place: float, words: Iterator[int]) -> Deviate:
    return Deviate(chain([int(place * 2.0**64)], words))


@pytest.mark.parametrize(
    ("j", "x", "trials"),
    [(3, 0.9, 4000), (256, 0.5, 8000), (300, 0.9, 8000), (2000, 0.1, 4000), (16383, 0.01, 1500)],
)
def test_acceptance_in_the_tail_has_its_closed_form(j: int, x: float, trials: int) -> None:
    words = stream(j)
    count = sum(normal_tail.accept(words, j, at(x, words)) for _ in range(trials))
    law = math.exp(-x * (2 * j + x) / 512)
    assert not off([count], [trials], [law])
    assert j < 256 or off([count], [trials], [law**0.8])


def tail_normals(seed: int, count: int) -> np.ndarray:
    """Values beyond 16 sd, as if the table had given the tail every time."""
    words = stream(seed)
    drawn = (floor_tail_normal(words, 40) for _ in iter(int, 1))
    return (np.array(list(islice((v for v in drawn if v is not None), count))) + 0.5) / 2.0**40


def test_the_tail_is_that_of_a_normal() -> None:
    values = tail_normals(11, 6000)

    def fit(sd: float) -> float:
        beyond = np.exp(special.log_ndtr(-np.abs(values) / sd) - special.log_ndtr(-16 / sd))
        return float(stats.kstest(beyond, "uniform").pvalue)

    assert fit(1.0) > ALARM
    assert max(fit(0.9), fit(1.1)) < ALARM
    assert stats.binomtest(int(np.sum(values < 0)), values.size).pvalue > ALARM


class ForcedTail(SeededNoiseUnsafe):
    """The first deviate is so near to one that the table gives the tail."""

    def words(self, count: int) -> np.ndarray:
        words = super().words(count).copy()
        if count > 1 and not hasattr(self, "forced"):
            self.forced = True
            words[:3] = 2**64 - 1
        return frozen(words)[0]


def test_values_beyond_16_sd_are_drawn_when_the_table_says_so() -> None:
    """A cell of the tail is accepted as often as the law says, else the value begins anew."""
    trials = 400
    values = np.array([floor_normals(ForcedTail(seed), 3, 52) for seed in range(trials)])
    far = np.abs(values / 2.0**52) > 15.999
    cells = mpmath.nsum(lambda i: mpmath.exp(-((256 + i) ** 2) / 512), [0, mpmath.inf])
    law = 16 * mpmath.sqrt(2 * mpmath.pi) * mpmath.ncdf(-16) / cells
    assert not off([int(far[:, 0].sum())], [trials], [float(law)])
    assert not far[:, 1:].any()
    assert np.abs(values[far]).min() >= 16 << 52


def test_the_furthest_value_fits_and_none_lies_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    """1024 sd of 2^52 units are 2^62 units, and a sum of 2^61 units has room beside them."""
    with monkeypatch.context() as patch:
        patch.setattr(normal_tail, "exp_minus", lambda *_: True)
        with pytest.raises(EngineError, match="1024 standard deviations"):
            tail_cell(iter(()))
    monkeypatch.setattr(normal_tail, "tail_cell", lambda _: FURTHEST - 1)
    monkeypatch.setattr(normal_tail, "accept", lambda *_: True)
    for sign, value in ((0, 2**62 - 1), (1, -(2**62))):
        assert floor_tail_normal(iter([2**64 - 1, sign]), MOST_BITS) == value
        assert np.iinfo(np.int64).min < value - 2**61 < value + 2**61 < np.iinfo(np.int64).max


def test_a_stuck_generator_is_noticed_in_the_tail() -> None:
    with pytest.raises(EngineError, match="repeats"):
        floor_tail_normal(iter([2**63] * 1000), 40)
