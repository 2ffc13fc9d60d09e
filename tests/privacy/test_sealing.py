"""Seals, byte by byte: every length, every cut, every key; and the sums that travel in them."""

import hashlib
import hmac
import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support.by_hand import (
    BOUNDS,
    ROWS,
    STEPS,
    ratings_with_empty_rows,
)

from tacit import EngineError
from tacit.trusted import local_state, sealing
from tacit.trusted.local_state import FilledRows, FittedValues
from tacit.trusted.rows import Rows, Run
from tacit.trusted.sealing import new_key, seal, unseal
from tacit.trusted.statistic import (
    BoundedSum,
    Statistic,
    any_vector,
    nonnegative_number,
    nonnegative_vector,
    outer_product,
)
from tacit.trusted.statistics import ItemCounts, RatingCount, UserCount

KEY = bytes(range(32))


@pytest.mark.parametrize("length", [0, 1, 7, 64, 137])
def test_a_seal_is_what_its_formula_says(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A tag of 32 bytes over 16 fresh ones and the masked content, computed once more."""
    content, asked = bytes(range(100, 100 + length)), []

    def drawn(count: int) -> bytes:
        asked.append(count)
        return b"r" * count

    monkeypatch.setattr(sealing.secrets, "token_bytes", drawn)
    sealed = seal(content, KEY)
    mask = hashlib.sha256(b"mask" + KEY).digest() + b"r" * 16
    stream = hashlib.shake_256(mask).digest(length)
    hidden = b"r" * 16 + bytes(one ^ other for one, other in zip(content, stream, strict=True))
    assert sealed == hmac.digest(hashlib.sha256(b"tag" + KEY).digest(), hidden, "sha256") + hidden
    assert asked == [16]
    assert unseal(sealed, KEY) == content
    assert len(new_key()) == 32


def test_what_is_shorter_than_any_seal_is_refused() -> None:
    """Even with the right tag: 15 bytes have no room for what a mask begins with."""
    for hidden in (b"", b"x" * 15):
        tag = hmac.digest(hashlib.sha256(b"tag" + KEY).digest(), hidden, "sha256")
        with pytest.raises(EngineError, match="changed on its way"):
            unseal(tag + hidden, KEY)
    empty = seal(b"", KEY)
    assert len(empty) == 48
    assert unseal(empty, KEY) == b""


@pytest.mark.parametrize("size", [0, 31, 33])
def test_keys_are_of_32_bytes(size: int) -> None:
    with pytest.raises(EngineError, match="expected 32"):
        seal(b"something", b"k" * size)


def summed(statistic: Statistic, unit: float = 2.0**-20) -> BoundedSum:
    rows = Rows(ratings_with_empty_rows(ROWS))
    return statistic.bounded_sum(rows, unit, Run(lambda task: [task(0, 5), task(5, len(ROWS))]))


def test_sums_travel_sealed_and_arrive_as_they_were() -> None:
    statistic = ItemCounts(10, (3,))
    total = summed(statistic)
    arrived = BoundedSum.unseal(total.seal(KEY), KEY, ItemCounts(10, (3,)))
    assert arrived.is_of(statistic, 2.0**-20)
    assert np.array_equal(arrived._exact_sum, total._exact_sum)
    assert np.array_equal((arrived + total)._exact_sum, 2 * total._exact_sum)
    head = json.loads(unseal(total.seal(KEY), KEY).partition(b"\n")[0])
    assert head == [statistic.digest.hex(), (2.0**-20).hex()]
    with pytest.raises(EngineError, match="another statistic"):
        BoundedSum.unseal(total.seal(KEY), KEY, ItemCounts(10, (4,)))


def test_a_sum_is_of_its_statistic_its_unit_and_its_shape() -> None:
    statistic = ItemCounts(10)
    total = summed(statistic)
    assert total.is_of(statistic, 2.0**-20)
    assert total.is_of(ItemCounts(10), 2.0**-20)
    assert not total.is_of(ItemCounts(10), 2.0**-21)
    assert not total.is_of(ItemCounts(11), 2.0**-20)
    users, ratings = summed(UserCount()), RatingCount(BOUNDS["centred"], 3)  # of the same shape
    assert users.is_of(UserCount(), 2.0**-20)
    assert not users.is_of(ratings, 2.0**-20)
    assert not BoundedSum(np.zeros(9, np.int64), 2.0**-20, statistic).is_of(statistic, 2.0**-20)
    for other in (summed(UserCount()), summed(statistic, 2.0**-21)):
        with pytest.raises(EngineError, match="cannot be added"):
            _ = total + other


def test_ranges_of_users_are_added_up() -> None:
    whole = Rows(ratings_with_empty_rows(ROWS))
    alone = UserCount().integer_sum(whole, 2.0**-20, Run(lambda task: [task(0, len(ROWS))]))
    assert np.array_equal(summed(UserCount())._exact_sum, alone)
    assert alone.tolist() == [len(ROWS) * (2**20 - 1)]


def test_what_statistics_are_unless_they_say_otherwise() -> None:
    """No noise is averaged with its transpose, and terms have 50 bits."""
    assert (UserCount().symmetric, UserCount().term_bits) == (False, 50)
    assert UserCount().max_entry == 1.0
    assert UserCount().loop_shape == UserCount().shape == (1,)


def test_sensitivities_in_closed_form() -> None:
    root = 2**0.5
    pairs = [
        (any_vector(3.0), 3.0, 6.0),
        (nonnegative_vector(3.0), 3.0, 3 * root),
        (nonnegative_number(3.0), 3.0, 3.0),
        (outer_product(3.0), 9.0, 9 * root),
    ]
    for found, add_remove, replaced in pairs:
        assert found.add_remove == pytest.approx(add_remove, rel=1e-15)
        assert found.replace == pytest.approx(replaced, rel=1e-15)


# Local state

RUN = Run(lambda task: [task(0, len(ROWS))])


def test_steps_that_were_taken_are_not_taken_again() -> None:
    """And others than those begin from scratch; so does whatever was interrupted."""
    arrays = Rows(ratings_with_empty_rows(ROWS)).bounded(BOUNDS["centred"], RUN)
    steps, state = STEPS["steps"], FittedValues(arrays)
    one = state.catch_up(steps[:1], RUN)
    assert np.array_equal(one.direction, steps[0].direction)
    assert (one.gain, one.keep, one.norm) == (steps[0].gain, steps[0].keep, steps[0].norm)
    assert not state.values.any()  # the newest is for the caller to take
    state.done(steps[:1])
    none = state.catch_up(steps[:1], RUN)
    assert (none.gain, none.keep, none.norm) == (0.0, 1.0, np.inf)
    assert not none.direction.any()
    assert none.direction.size == 10
    state.done(steps[:1])
    state.values[:] = 7.0
    state.catch_up((replace(steps[0]), steps[1]), RUN)  # goes on: nothing is set to zero
    assert (state.values == 7.0).all()
    state.catch_up(steps[:2], RUN)  # it was not done: begins anew, and takes the first step
    assert state.values.any()
    assert not (state.values == 7.0).any()


def test_which_steps_are_missing() -> None:
    arrays = Rows(ratings_with_empty_rows(ROWS)).bounded(BOUNDS["centred"], RUN)
    state, steps = FilledRows(arrays), STEPS["steps"]
    assert state.missing(steps) == (True, steps)  # type: ignore[arg-type, comparison-overlap]
    assert state.missing(steps) == (True, steps)  # type: ignore[arg-type, comparison-overlap]
    state.done(steps[:2])  # type: ignore[arg-type]
    assert state.missing(steps) == (False, steps[2:])  # type: ignore[arg-type, comparison-overlap]
    state.done(steps[:2])  # type: ignore[arg-type]
    assert state.missing(steps[:2]) == (False, ())  # type: ignore[arg-type]
    state.done(steps[:2])  # type: ignore[arg-type]
    assert state.missing(steps[:1]) == (True, steps[:1])  # type: ignore[arg-type, comparison-overlap]
    state.done(())
    assert state.missing(()) == (False, ())
    state.done(steps[:1])  # type: ignore[arg-type]
    assert state.missing(steps[1:]) == (True, steps[1:])  # type: ignore[arg-type, comparison-overlap]


def test_rows_are_filled_in_only_if_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, str]] = []
    monkeypatch.setattr(
        local_state, "check_memory", lambda need, what, _: asked.append((need, what))
    )
    arrays = Rows(ratings_with_empty_rows(ROWS)).bounded(BOUNDS["centred"], RUN)
    assert FilledRows(arrays).matrix.shape == (len(ROWS), 10)
    assert asked[0][0] == 4 * len(ROWS) * 10
    assert "over 10 items" in asked[0][1]
