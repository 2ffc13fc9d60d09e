"""Mutants of every file that tacit reads: no crash, no hang, no memory blow-up, no leak.

Each is read in a child process with limits on memory and time. A mutant is made from its number, so
that `Sound.mutant` makes it again.
"""

import pytest

from tests.fuzz.running import run
from tests.fuzz.subjects import SUBJECTS, TWINS
from tests.support.cases import slow

REFUSED = {"r.jsonl", "r4.parquet", "r8.parquet", "other.tacit"}
"""Files that are whole and yet refused: of no known format, with gaps, with no model in them."""

COUNTS = {
    "models": 10_000,
    "text": 4_000,
    "parquet": 6_000,
    "packed": 3_000,
    "own": 2_000,
    "experiments": 1_000,
    "certificates": 2_000,
    "signatures": 4_000,
    "keys": 2_000,
}

MOST_MEMORY = 1 << 20
"""KiB that a child may have at its peak; all that it reads is small."""


def assert_read_or_refused(subject: str, first: int, last: int) -> None:
    tally = run(subject, first, last)
    assert not tally.wrong
    assert sum(tally.outcomes.values()) == last - first
    assert {name for name, outcome in tally.sound.items() if outcome != "read"} <= REFUSED
    assert tally.outcomes["read"] < 0.9 * (last - first), "the mutants are too tame"
    assert tally.peak < MOST_MEMORY


@pytest.mark.parametrize("subject", [slow("models"), "text"])
def test_a_few_mutants(subject: str) -> None:
    assert_read_or_refused(subject, 0, 40)


def test_every_subject_has_thousands() -> None:
    assert set(COUNTS) == set(SUBJECTS)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("subject", "count"), COUNTS.items())
def test_thousands_of_mutants(subject: str, count: int) -> None:
    assert_read_or_refused(subject, 1_000_000, 1_000_000 + count)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("twin", "expected"),
    [
        ("ends", "the process ended with -6"),
        ("hangs", "hangs"),
        ("fills", "MemoryError"),
        ("raises", "KeyError"),
        ("tells", "a message tells"),
    ],
)
def test_the_harness_notices(twin: str, expected: str) -> None:
    """A reader that is wrong once is found, and the other mutants are read all the same."""
    assert twin in TWINS
    tally = run(twin, 0, 8, seconds=3)
    assert [expected in wrong for wrong in tally.wrong] == [True] * len(tally.wrong)
    assert len(tally.wrong) >= 1
    assert sum(tally.outcomes.values()) == 8
