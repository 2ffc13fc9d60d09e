"""Attacks on the sensitivities of what prepares a fit: item counts, row norms, held-out losses.

As in test_sensitivity: no pair of neighbours may move a sum further than stated, whether found at
random, by climbing or by design; and some pair comes within 3 % of it, or noise is wasted.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from tests.support.attack import (
    CLOSE,
    ITEMS,
    RANGE,
    SLACK,
    Row,
    assert_hers_is_the_whole_change,
    assert_no_order_matters,
    assert_no_row_is_too_long_on_a_grid,
    bystanders,
    change,
    climb,
    random_row,
    ratings_of,
    summed,
)

from tacit.estimation.row_norms import norm_edges
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import HeldOutLosses, Holdout, ItemCounts, RowNorms


@dataclass(frozen=True)
class Guess:
    """A published rule that knows nothing of anyone but how many she has rated."""

    value: float
    lean: float = 0.0

    def scores(self, own: Any) -> np.ndarray:
        lengths = np.diff(own.indptr)
        return self.value + self.lean * np.tile(lengths[:, None], (1, ITEMS)).astype(float)


GUESSES = (Guess(1.0), Guess(5.0), Guess(3.0, 0.1), Guess(2.0, -0.2))


def norms(*, most: int | None = None) -> RowNorms:
    bounds = RowBounds(most, np.full(ITEMS, 3.0), True, math.inf)
    return RowNorms(bounds, norm_edges(ITEMS, RANGE))


def losses(rules: tuple[Any, ...] = GUESSES, clip: float = 0.125, share: float = 0.3) -> Any:
    return HeldOutLosses(rules, ITEMS, RANGE, Holdout(share, 0), clip)


CASES: dict[str, Callable[[], Statistic]] = {
    "item counts": lambda: ItemCounts(ITEMS),
    "item counts by length": lambda: ItemCounts(ITEMS, (2, 4, 8)),
    "row norms": norms,
    "row norms of few ratings": lambda: norms(most=3),
    "held-out losses": losses,
    "held-out losses of two rules": lambda: losses(GUESSES[:2]),
}


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_moves_a_sum_further_than_stated(case: str) -> None:
    assert_no_climb_is_too_high(case, 2)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_nor_does_one_that_is_found_from_more_starts(case: str) -> None:
    assert_no_climb_is_too_high(case, 6)


def assert_no_climb_is_too_high(case: str, starts: int) -> None:
    """And the twin: had a tenth less been stated, the same attack would have found it out."""
    statistic = CASES[case]()
    rng = np.random.default_rng(21)
    stated = statistic.sensitivity
    found = climb(statistic, rng, False, starts), climb(statistic, rng, True, starts)
    assert 0.9 * stated.add_remove < found[0] <= stated.add_remove * SLACK
    assert 0.9 * stated.replace < found[1] <= stated.replace * SLACK


def lover_and_hater(holdout: Holdout) -> tuple[Row, Row]:
    """Two rows, of which something is held out, at either end of the range."""
    spans = [range(first, first + 4) for first in range(ITEMS - 3)]
    rows = [dict.fromkeys(span, value) for value in (5.0, 1.0) for span in spans]
    held = [row for row in rows if kept_of(holdout, row).size < len(row)]
    lover = next(row for row in held if 5.0 in row.values())
    return lover, next(row for row in held if 1.0 in row.values())


def kept_of(holdout: Holdout, row: Row) -> np.ndarray:
    """The items of a row that are not held out."""
    rest = holdout.rest(ratings_of([row, {0: 3.0}]))
    return rest.items[: rest.indptr[1]]


def pairs(case: str) -> tuple[Row, Row]:
    """The worst pair by design."""
    if case.startswith("item counts"):
        return dict.fromkeys(range(5), 4.0), dict.fromkeys(range(5, 10), 2.0)
    if case.startswith("row norms"):
        return {0: 5.0, 1: 1.0}, {0: 3.5, 1: 3.0}
    return lover_and_hater(losses().holdout)


@pytest.mark.parametrize(
    "case", ["item counts", "row norms", "held-out losses", "held-out losses of two rules"]
)
def test_the_bound_is_reached(case: str) -> None:
    statistic = CASES[case]()
    others = bystanders(np.random.default_rng(1))
    before, after = pairs(case)
    stated = statistic.sensitivity
    assert change(statistic, others, before, None) > CLOSE * stated.add_remove
    assert change(statistic, others, before, after) > CLOSE * stated.replace


def test_without_the_clip_losses_would_break_the_bound() -> None:
    """The twin: losses that are not clipped are caught by the worst pair."""
    loose, stated = losses(GUESSES[:2], clip=10.0), losses(GUESSES[:2]).sensitivity
    before, after = lover_and_hater(loose.holdout)
    others = bystanders(np.random.default_rng(1))
    assert change(loose, others, before, after) > 3 * stated.replace
    assert change(loose, others, before, None) > 3 * stated.add_remove


@pytest.mark.parametrize("case", CASES)
def test_a_users_row_moves_nobody_elses_term(case: str) -> None:
    """Her term is the whole difference: with everyone else removed, the change is the same."""
    assert_hers_is_the_whole_change(CASES[case]())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("bits", [5, 12, 26])
def test_bounds_hold_in_integers_however_coarse_the_grid(case: str, bits: int) -> None:
    assert_no_row_is_too_long_on_a_grid(CASES[case](), bits)


@pytest.mark.parametrize("case", CASES)
def test_sums_do_not_depend_on_threads_or_order(case: str) -> None:
    assert_no_order_matters(CASES[case](), bits=26)


def test_item_counts_are_what_they_say() -> None:
    rows: list[Row] = [{0: 5.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, {}, {1: 3.0, 9: 3.0}]
    expected = np.zeros(ITEMS)
    for row in rows:
        for item in row:
            expected[item] += 1 / math.sqrt(len(row))
    assert summed(ItemCounts(ITEMS), rows) == pytest.approx(expected, abs=1e-9)


def test_item_counts_stand_in_the_class_of_their_list() -> None:
    """A class begins at its edge: two ratings are in the second class, four in the third."""
    rows: list[Row] = [{0: 5.0}, {0: 1.0, 1: 2.0, 2: 3.0, 3: 4.0}, {}, {1: 3.0, 9: 3.0}]
    expected = np.zeros((3, ITEMS))
    for place, row in ((0, rows[0]), (2, rows[1]), (1, rows[3])):
        expected[place, list(row)] = 1 / math.sqrt(len(row))
    assert summed(ItemCounts(ITEMS, (2, 4)), rows) == pytest.approx(expected, abs=1e-9)


def test_row_norms_are_counted_in_their_bins() -> None:
    statistic = norms()
    rows: list[Row] = [{0: 5.0, 1: 1.0}, {0: 4.0, 1: 3.0}, {0: 5.0}, {}, {2: 3.0, 3: 3.0}]
    found = summed(statistic, rows)
    expected = np.zeros(statistic.edges.size)
    for norm in (math.sqrt(8.0), math.sqrt(0.5)):  # a row that is zero once centred is in no bin
        expected[np.argmax(statistic.edges >= norm)] += 1
    assert found == pytest.approx(expected, abs=1e-9)


def test_held_out_losses_are_what_they_say() -> None:
    rng = np.random.default_rng(8)
    statistic = losses(clip=10.0)
    rows = [random_row(rng) for _ in range(30)]
    expected = np.zeros(len(GUESSES))
    some = False
    for row in rows:
        left = set(kept_of(statistic.holdout, row).tolist())
        held = [np.float32(value) for item, value in sorted(row.items()) if item not in left]
        if not held:
            continue
        some = True
        scores = [rule.value + rule.lean * len(left) for rule in GUESSES]
        hers = [np.mean([(y - np.clip(s, *RANGE)) ** 2 / 16 for y in held]) for s in scores]
        expected += np.array(hers) - np.mean(hers)
    assert some
    assert summed(statistic, rows) == pytest.approx(expected, abs=1e-5)


def test_scores_that_are_not_numbers_are_the_worst_and_move_nobody_beyond_the_bound() -> None:
    broken = (Guess(math.nan), Guess(math.inf), Guess(3.0))
    statistic, rng = losses(broken), np.random.default_rng(9)
    others, most = bystanders(rng), losses(broken).sensitivity.replace * SLACK
    for _ in range(60):
        assert change(statistic, others, random_row(rng), random_row(rng)) <= most
    wide = replace(losses((Guess(math.nan), Guess(3.0))), clip=10.0)
    rows = [random_row(np.random.default_rng(seed)) for seed in range(20)]
    found = summed(wide, rows)
    assert found[0] > found[1]


def test_what_is_held_out_depends_on_the_own_row_and_the_seed_alone() -> None:
    rng = np.random.default_rng(10)
    rows = [random_row(rng) for _ in range(200)]
    holdout = Holdout(0.1, 3)
    together = holdout.rest(ratings_of(rows))
    ends = together.indptr
    for at in (0, 7, 199):
        alone = kept_of(holdout, rows[at])
        assert np.array_equal(together.items[ends[at] : ends[at + 1]], alone)
    total = sum(len(row) for row in rows)
    held = total - together.items.size
    # 1100 ratings or so, each held out with probability 0.1: 5 sds; false alarms: one in a million.
    assert abs(held - 0.1 * total) < 5 * math.sqrt(0.09 * total)
    other = Holdout(0.1, 4).rest(ratings_of(rows))
    assert not np.array_equal(other.items, together.items)
