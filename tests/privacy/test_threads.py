"""The engine of threads: whose rows it sums, once each, in what unit, and with how much memory."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from tests.conftest import ratings_for

import tacit
from tacit.engines import base as base_module
from tacit.engines import threads as threads_module
from tacit.trusted.statistic import BoundedSum, Run


@dataclass(frozen=True, eq=False)
class Ranges:
    """A statistic that tells over which ranges of users it was summed."""

    shape: tuple[int, ...] = (3, 5)
    asked: list[tuple[int, int]] = field(default_factory=list)

    def bounded_sum(self, rows: Any, unit: float, run: Run) -> BoundedSum:  # noqa: ARG002
        self.asked.extend(run.map_users(lambda lo, hi: (lo, hi)))
        return BoundedSum(np.zeros(self.shape, dtype=np.int64), unit, self)  # type: ignore[arg-type]


def uneven(lengths: list[int]) -> tacit.Ratings:
    users = np.repeat(np.arange(len(lengths)), lengths)
    items = np.concatenate([np.arange(length) for length in lengths])
    return tacit.Ratings.from_arrays(users, items, np.ones(users.size), rating_range=(0, 5))


@pytest.mark.parametrize("threads", [True, False, 0, -1, 1025])
def test_impossible_numbers_of_threads_are_refused(threads: int) -> None:
    with pytest.raises(tacit.ConfigError, match="threads"):
        tacit.ThreadEngine(threads)
    tacit.ThreadEngine(1024)


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
def test_every_user_is_in_one_range_and_ranges_hold_as_many_ratings(threads: int) -> None:
    lengths = [9, 1, 1, 1, 4, 4, 1, 8, 1, 1, 1, 5, 2, 1]
    engine, statistic = tacit.ThreadEngine(threads), Ranges()
    engine.take(uneven(lengths))
    engine.sum(statistic, 0.5)  # type: ignore[arg-type]
    assert len(statistic.asked) == threads
    assert [user for lo, hi in statistic.asked for user in range(lo, hi)] == list(range(14))
    for lo, hi in statistic.asked:
        assert sum(lengths[lo:hi]) <= sum(lengths) / threads + max(lengths)


def test_it_holds_nobody_before_it_takes_rows() -> None:
    engine = tacit.ThreadEngine(1)
    assert engine.n_users == 0
    with pytest.raises(tacit.EngineError, match="no rows"):
        engine.sum(Ranges(), 0.5)  # type: ignore[arg-type]
    engine.take(ratings_for(0, users=21))
    assert engine.n_users == 21
    statistic: Any = Ranges()
    assert engine.sum(statistic, 0.5).is_of(statistic, 0.5)


def test_there_is_room_for_a_sum_of_every_thread_and_four_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    monkeypatch.setattr(base_module, "check_memory", lambda needed, *_: asked.append(needed))
    engine = tacit.ThreadEngine(3)
    engine.take(ratings_for(0))
    engine.sum(Ranges(), 0.5)  # type: ignore[arg-type]
    assert asked == [8 * 3 * 5 * (3 + 4)]


def test_all_cores_are_used_unless_a_number_is_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads_module, "usable_cores", lambda: 5)
    engine, statistic = tacit.ThreadEngine(), Ranges()
    engine.take(ratings_for(0))
    engine.sum(statistic, 0.5)  # type: ignore[arg-type]
    assert len(statistic.asked) == 5
