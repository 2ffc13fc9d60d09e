"""The sampler where random words hardly ever lead: ties, last digits, few bits, and the tail."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import special
from tests.privacy.test_sampler_law import Digits
from tests.support.rows import frozen

from tacit import EngineError
from tacit.trusted import normal_tail, sampler
from tacit.trusted.exact_normal import (
    _ATTEMPT,
    BROKEN,
    CELLS,
    DIGITS,
    RESERVE,
    SOUND,
    TAIL,
    _accept,
    _cell,
    _draw,
    fill,
)
from tacit.trusted.normal_tail import FURTHEST, Deviate, accept, floor_tail_normal, tail_cell
from tacit.trusted.sampler import (
    SeededNoiseUnsafe,
    SystemNoise,
    _cell_table,
    floor_normals,
    idealised_normals,
)

ONES = 2**64 - 1


def cell_of(words: list[int]) -> tuple[int, int, int]:
    """The cell that these words lead to, how many of them were used, and the state."""
    cumulative, guide = _cell_table()
    tape = np.zeros(2, np.int64)
    deviate = np.full(DIGITS + 1, ONES, np.uint64)  # as the one before may have left it
    drawn = np.array([*words, *[0] * DIGITS], np.uint64)
    j = _cell(deviate, cumulative, guide, drawn, tape)
    return int(j), int(tape[0]), int(tape[1])


@pytest.mark.parametrize("j", [0, 1, 17, 30])
@pytest.mark.parametrize("place", range(DIGITS))
def test_a_cell_ends_where_its_last_digit_says(j: int, place: int) -> None:
    """A deviate that agrees with the edge of a cell in all places but one, and is next to it."""
    edge = [int(digit) for digit in _cell_table()[0][j, :DIGITS]]
    below, above = ([*edge[:place], edge[place] + step] for step in (-1, 1))
    assert cell_of(below) == (j, place + 1, SOUND)
    assert cell_of(above) == (j + 1, place + 1, SOUND)


def test_a_deviate_that_agrees_in_all_places_is_noticed() -> None:
    edge = [int(digit) for digit in _cell_table()[0][5, :DIGITS]]
    assert cell_of(edge)[1:] == (DIGITS, BROKEN)


def test_a_value_is_not_begun_where_an_attempt_may_take_more_words_than_are_left() -> None:
    tape, x = np.zeros(2, np.int64), np.zeros(DIGITS + 1, np.uint64)
    words, trio = np.zeros(_ATTEMPT - 1, np.uint64), np.zeros((3, DIGITS + 1), np.uint64)
    assert _draw(40, *_cell_table(), x, trio, *frozen(words), tape) == 0
    assert tape.tolist() == [0, BROKEN]


def plain_accept(choice: int, j: int, x: Any, words: Iterator[int]) -> bool:
    """The acceptance once more, from Lemma 8."""
    last, length = x, 0
    while choice < 2 * j or (choice == 2 * j and Digits(words).below(x)):
        new = Digits(words)
        if not new.below(last):
            break
        last, length, choice = new, length + 1, next(words) >> 55
    return length % 2 == 0


def test_runs_with_many_ties_are_those_of_a_second_writing() -> None:
    """Words whose top bits are small: they are near 2j for j = 0, 1, 2, and below x as a rule."""
    rng = np.random.default_rng(5)
    tops = rng.integers(0, 6, 60_000, dtype=np.uint64) << np.uint64(55)
    tape = tops | rng.integers(0, 2**55, tops.size, dtype=np.uint64)
    at, trio, outcomes = 0, np.zeros((3, DIGITS + 1), np.uint64), set()
    for trial in range(1500):
        j, choice, part = trial % 3, trial % 5, tape[at : at + 200]
        x, used = np.zeros(DIGITS + 1, np.uint64), np.zeros(2, np.int64)
        x[0], x[DIGITS] = part[0], 1
        found = _accept(np.int64(choice), j, x, trio, part[1:], used)
        words = iter(part.tolist())
        assert found == plain_accept(choice, j, Digits(words), words)
        count = part.size - len(list(words))
        assert used.tolist() == [count - 1, SOUND]
        outcomes.add((bool(found), count > 6))
        at += count
    assert len(outcomes) == 4


@pytest.mark.parametrize("bits", [0, 1, 2, 3, 4, 5, 6, 9, 51])
def test_fewer_bits_are_the_leading_bits_of_the_same_value(bits: int) -> None:
    fine = floor_normals(SeededNoiseUnsafe(4), 300, 52)
    assert np.array_equal(floor_normals(SeededNoiseUnsafe(4), 300, bits), fine >> (52 - bits))
    assert fine.min() < 0 < fine.max()


def test_a_cell_of_the_tail_ends_the_loop_and_says_so() -> None:
    tape = np.full(2 * RESERVE, ONES, np.uint64)
    values = np.zeros(3, np.int64)
    assert fill(values, 1, 40, _cell_table(), tape) == (1, TAIL)
    assert cell_of([ONES] * DIGITS)[::2] == (CELLS, SOUND)


def test_a_tape_that_comes_to_its_end_is_sound() -> None:
    """As many values as fit before the reserve is touched; the rest needs another tape."""
    words = np.random.Philox(9).random_raw(RESERVE + 200)
    values = np.full(500, 7, np.int64)
    filled, state = fill(values, 0, 40, _cell_table(), words)
    assert state == SOUND
    assert 30 < filled < 80
    assert (values[filled:] == 7).all()
    assert len(set(values[:filled].tolist())) == filled
    assert fill(values, 0, 40, _cell_table(), words[: RESERVE - 1]) == (0, SOUND)
    one, state = fill(values, 0, 40, _cell_table(), words[:RESERVE])
    assert (one, state) == (1, SOUND)


class Forced(SeededNoiseUnsafe):
    """The first deviate is so near to one that the table gives the tail."""

    def words(self, count: int) -> np.ndarray:
        words = super().words(count).copy()
        if count > 1 and not hasattr(self, "forced"):
            self.forced = True
            words[:3] = ONES
        return frozen(words)[0]


@pytest.mark.parametrize("drawn", [[None, 7 << 52], [9 << 52]])
def test_a_value_of_the_tail_is_kept_or_begun_anew(
    drawn: list[int | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is rejected is drawn again from the table, and the value beside it is another."""
    first, given = drawn[0], iter(drawn)
    monkeypatch.setattr(sampler, "floor_tail_normal", lambda *_: next(given))
    values = floor_normals(Forced(1), 3, 52)
    assert (values[0] == first) == (first is not None)
    assert np.abs(values[first is not None :]).max() < 6 << 52
    assert len(set(values.tolist())) == 3


def test_the_tail_has_as_many_words_as_it_asks_for() -> None:
    values = [floor_normals(Forced(seed), 1, 52)[0] for seed in range(12)]
    assert max(abs(int(value)) for value in values) >= 16 << 52


def test_idealised_values_are_those_of_the_middle_of_their_interval() -> None:
    def value(word: int) -> int:
        source = SimpleNamespace(words=lambda size: np.full(size, word, np.uint64))
        return int(idealised_normals(source, 1, 40)[0])  # type: ignore[arg-type]

    for word in (0, 1 << 11, 5 << 11, 1 << 62):
        middle = ((word >> 11) + 0.5) / 2.0**53
        assert value(word) == np.floor(special.ndtri(middle) * 2.0**40)


def test_seeded_words_are_those_of_release_zero_until_another_begins() -> None:
    source = SeededNoiseUnsafe(5)
    expected = np.random.Philox(np.random.SeedSequence([5, 0])).random_raw(7)
    assert np.array_equal(source.words(7), expected)
    source.start(3)
    expected = np.random.Philox(np.random.SeedSequence([5, 3])).random_raw(7)
    assert np.array_equal(source.words(7), expected)


def test_only_the_systems_words_are_secure() -> None:
    assert SystemNoise().secure is True
    assert SeededNoiseUnsafe(1).secure is False


@pytest.mark.parametrize("j", [3, 255, 256, 300, 512, 1024, 2000, FURTHEST - 1])
def test_the_factors_of_an_acceptance_in_the_tail_give_its_exponent(
    j: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many equal factors as it takes for each thinning to be at most one, and no other h."""
    asked: list[tuple[int, int, Any]] = []

    def noted(words: Iterator[int], whole: int, size: int, part: Any) -> bool:
        asked.append((whole, size, part))
        return True

    monkeypatch.setattr(normal_tail, "exp_minus", noted)
    x = Deviate(iter([1]))
    assert accept(iter(()), j, x)
    whole, size, part = asked[0]
    assert set(asked) == {(whole, size, part)}
    assert part is x
    assert len(asked) * whole * 512 == size * 2 * j  # exp(-x (2j + x)/512), in so many factors
    assert size == 512 * len(asked)
    assert whole + 1 <= size


@pytest.mark.parametrize(("first", "kept"), [(4, True), (5, True), (7, False)])
def test_thinning_in_the_tail_goes_on_to_the_part(first: int, kept: bool) -> None:
    """Where the whole number is met exactly, a fresh deviate below the part decides."""
    met = 3 << 55  # of 512

    def thinned(*words: int, part: Deviate | None = None) -> bool:
        return bool(normal_tail._thinned(iter(words), 3, part, 512))

    assert thinned(met, first, 7, part=Deviate(iter([6, 5]))) is kept
    assert thinned(met, 6, 4, part=Deviate(iter([6, 5])))
    assert not thinned(met, 6, 6, part=Deviate(iter([6, 5])))
    assert thinned(met - 1)
    assert not thinned(met + (1 << 55))
    assert not thinned(met)


def test_no_cell_is_at_the_furthest(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0

    def always(*_: object) -> bool:
        nonlocal asked
        asked += 1
        return True

    monkeypatch.setattr(normal_tail, "exp_minus", always)
    with pytest.raises(EngineError, match="1024"):
        tail_cell(iter(()))
    assert asked == FURTHEST - CELLS


def test_a_value_of_the_tail_begins_with_the_first_digits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where more digits than those were drawn."""
    monkeypatch.setattr(normal_tail, "tail_cell", lambda _: 300)
    monkeypatch.setattr(normal_tail, "accept", lambda _words, _cell, x: x.place(2) == 7)
    assert floor_tail_normal(iter([5 << 32, 6, 7, 0]), 52) == (300 << 48) + (5 << 16)


def test_a_value_of_the_tail_fills_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two would release a number that nobody drew."""
    values, source = np.zeros(3, np.int64), SeededNoiseUnsafe(1)
    monkeypatch.setattr(sampler, "floor_tail_normal", lambda *_: 5)
    assert sampler._fill_from_tail(values, 1, 52, source) == 2
    assert values.tolist() == [0, 5, 0]
    monkeypatch.setattr(sampler, "floor_tail_normal", lambda *_: None)
    assert sampler._fill_from_tail(values, 2, 52, source) == 2
