"""The guard of speed, benchmarks/ratios.py: what is slow fails, and bad luck does not."""

from collections.abc import Callable, Iterator
from itertools import chain, repeat

import pytest
from benchmarks import ratios
from benchmarks.ratios import Row, Turn, beside, measured, report

MARGIN = 0.5
WITHIN, TOO_SLOW = (0.9, 1.0), (2.0, 1.0)


def row(turn: Turn, name: str = "reading") -> Row:
    return Row(name, "peer", 1.0, 1.0, turn)


def taking(turns: Iterator[tuple[float, float]]) -> Turn:
    return lambda: next(turns)


def first(slow: int) -> Callable[[], Turn]:
    """A row whose first turns are slow and whose others are within the bar."""
    return lambda: taking(chain(repeat(TOO_SLOW, slow), repeat(WITHIN)))


UNLUCKY = first(5)
"""All turns of one measurement: one that does not count, and four of 3 s each."""


def counting(size: int) -> Callable[[], object]:
    return lambda: sum(range(size))


def test_what_takes_twice_as_long_fails(capsys: pytest.CaptureFixture[str]) -> None:
    rows = [row(lambda: WITHIN, "listing"), row(lambda: TOO_SLOW)]
    assert not report(rows, 12.0, MARGIN)
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if "FAILS" in line] == [
        "| reading | peer | 2.00 | 1 | 1 | FAILS |"
    ]


def test_work_that_is_slowed_fails_and_the_same_work_does_not() -> None:
    """In real processor time: four times the work beside the work itself, and the work twice."""
    work, slowed = counting(100_000), counting(400_000)
    assert report([row(beside(work, work))], 0.1, MARGIN)
    assert not report([row(beside(slowed, work))], 0.1, MARGIN)


def test_one_unlucky_measurement_does_not_fail() -> None:
    assert report([row(UNLUCKY())], 12.0, MARGIN)


def test_without_measuring_again_it_would_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ratios, "MORE_MEASUREMENTS", 0)
    assert not report([row(UNLUCKY())], 12.0, MARGIN)


def test_two_unlucky_measurements_do_not_fail_and_three_do() -> None:
    assert report([row(first(10)())], 12.0, MARGIN)
    assert not report([row(first(15)())], 12.0, MARGIN)


def test_a_row_is_measured_again_after_all_the_others() -> None:
    """Bad luck lasts for seconds, so that the same second is no second chance."""
    order: list[str] = []

    def noting(name: str, turn: Turn) -> Turn:
        def noted() -> tuple[float, float]:
            if not order or order[-1] != name:
                order.append(name)
            return turn()

        return noted

    rows = [row(noting("unlucky", UNLUCKY())), row(noting("other", lambda: WITHIN))]
    assert measured(rows, 12.0, MARGIN) == [0.9, 0.9]
    assert order == ["unlucky", "other", "unlucky"]


def test_turns_end_when_a_row_is_within_its_bar_or_its_time_is_over() -> None:
    taken = []

    def turn(ours: float) -> tuple[float, float]:
        taken.append(ours)
        return ours, 1.0

    ratios.ratio(row(lambda: turn(0.9)), 1000.0)
    assert len(taken) == 1 + ratios.FEWEST_TURNS
    taken.clear()
    ratios.ratio(row(lambda: turn(2.0)), 30.0)
    assert len(taken) == 1 + 10
