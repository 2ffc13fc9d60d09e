"""Which ratings count, to the last one; and that rows are bounded anew for every other bound."""

import math
from dataclasses import dataclass, is_dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tests.privacy.test_rows_are_rows import ITEMS, made
from tests.support.by_hand import (
    BOUNDS,
    ROWS,
    assert_close,
    bounded,
    chosen,
    ratings_with_empty_rows,
    summed,
    words_of,
)
from tests.support.rows import frozen

from tacit import Catalogue, DataError, EngineError, Ratings, ThreadEngine
from tacit.kernels import rows as loops
from tacit.kernels.quantise import MOST_EXACT, Quanta, clip_factor, quantise
from tacit.kernels.rows import (
    RowArrays,
    RowLimits,
    _smallest,
    choose,
    kept_lengths,
    priorities,
    row_means_and_scales,
    row_weight,
    rows_hold,
)
from tacit.trusted import local_state, statistic, statistics
from tacit.trusted.described import Described
from tacit.trusted.local_state import LinearStep, RankOneStep
from tacit.trusted.quantise import _checked, below, norm_quanta, product_quanta
from tacit.trusted.rows import RowBounds, Rows, Run, all_ratings
from tacit.trusted.selection import keep, restricted
from tacit.trusted.statistics import (
    DescentMoments,
    FactorGradient,
    FilledCovariance,
    HeldOutLosses,
    Holdout,
    ItemCounts,
    ItemSums,
    NormalEquations,
    RatingCount,
    ResidualCovariance,
    ResidualEnergy,
    ResidualProduct,
    RowNorms,
    RowSums,
    UserCount,
    UserMoments,
)
from tacit.trusted.views import ChosenItems, NotHeldOut, seen

LONG = 300


def long_row(seed: int) -> dict[int, float]:
    rng = np.random.default_rng(seed)
    items = np.sort(rng.choice(10 * LONG, LONG, replace=False))
    return {int(item): float(np.float32(rng.uniform(-5, 5))) for item in items}


@pytest.mark.parametrize("seed", [0, 1, 7, 2**31])
def test_words_are_those_of_whole_numbers(seed: int) -> None:
    """Splitmix64 over the row, its values to a part in 4096, and then over each item."""
    for row in (long_row(seed), {5: 0.25}):
        items, values = np.array(list(row), np.uint16), np.array(list(row.values()), np.float32)
        with np.errstate(over="ignore"):
            found = priorities(items, values, seed)
        assert [int(word) for word in found] == list(words_of(row, seed).values())


def choice(rows: list[dict[int, float]], most: int, seed: int) -> list[dict[int, float]]:
    """What the loop chooses, row by row; what lies beyond a row is never written."""
    indptr = np.cumsum([0, *map(len, rows)], dtype=np.int64)
    items = np.array([item for row in rows for item in row], np.uint16)
    values = np.array([value for row in rows for value in row.values()], np.float32)
    ends = np.cumsum([0, *(min(len(row), most) for row in rows)], dtype=np.int64)
    chosen_items = np.full(ends[-1] + 1, 9999, np.uint16)
    chosen_values = np.full(ends[-1] + 1, 99.0, np.float32)
    with np.errstate(over="ignore"):
        given, room = frozen(indptr, items, values), (ends, chosen_items, chosen_values)
        choose(given, room, most, seed, 0, len(rows))
    assert (chosen_items[-1], chosen_values[-1]) == (9999, 99.0)
    return [
        dict(zip(chosen_items[a:b].tolist(), chosen_values[a:b].tolist(), strict=True))
        for a, b in pairwise(ends)
    ]


@pytest.mark.parametrize("most", [1, 2, 37, 150, LONG - 1, LONG, LONG + 1])
def test_those_with_the_smallest_words_are_chosen(most: int) -> None:
    """In rows so long that a partition at another place gives another choice."""
    rows = [long_row(1), {3: 1.5}, long_row(2), {}, long_row(3)]
    assert choice(rows, most, 5) == [chosen(row, most, 5) for row in rows]


@pytest.mark.parametrize("kinds", [1, 2, 5, 1 << 62])
def test_the_largest_of_the_smallest_words_is_found(kinds: int) -> None:
    """Wherever it stands, also among words that are equal, and the words stay as they are."""
    rng = np.random.default_rng(kinds % 100)
    for size in (1, 2, 3, 4, 7, 40):
        for words in (rng.integers(0, kinds, size, np.uint64), np.arange(size, dtype=np.uint64)):
            before = words.copy()
            found = [_smallest(words, count) for count in range(1, size + 1)]
            assert found == sorted(before.tolist())
            assert np.array_equal(words, before)


@pytest.mark.parametrize("most", [1, 2, 3])
def test_equal_words_make_no_row_longer(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """If two words were equal, still no more than `most` ratings would count."""
    monkeypatch.setattr(loops, "priorities", lambda items, *_: np.full(items.size, 7, np.uint64))
    found = choice([long_row(1), long_row(2)], most, 0)
    assert [len(row) for row in found] == [most, most]


def test_rows_that_are_all_too_long_are_shortened() -> None:
    """Not only where some row is short enough: the cap would be lost where it is needed most."""
    rows = [dict.fromkeys(range(n), 4.0) for n in (5, 7, 10)]
    bounds = RowBounds(4, np.zeros(ITEMS + 4), False, math.inf)
    held = Rows(ratings_with_empty_rows(rows)).bounded(bounds, Run(lambda task: [task(0, 3)]))
    assert np.diff(held.indptr).tolist() == [4, 4, 4]


def test_one_set_of_rows_is_bounded_anew_for_other_bounds() -> None:
    """Row by row what the bounds say, whichever bounds there were before."""
    engine = ThreadEngine(1)
    engine.take(ratings_with_empty_rows(ROWS))
    names = [*BOUNDS, *reversed(BOUNDS), "centred", "centred"]
    for name in names:
        expected = np.zeros(BOUNDS[name].offsets.size)
        for row in ROWS:
            items, own = bounded(row, BOUNDS[name])
            expected[items] += own
        unit = BOUNDS[name].norm * 2.0**-40
        assert_close(engine.sum(RowSums(BOUNDS[name]), unit)._exact_sum * unit, expected)


def test_rows_are_bounded_once_for_the_same_bounds() -> None:
    """And their local state is kept, or every round would begin from scratch."""
    rows, run = Rows(ratings_with_empty_rows(ROWS)), Run(lambda task: [task(0, len(ROWS))])
    first = rows.bounded(BOUNDS["centred"], run)
    state = rows.state(local_state.FittedValues, BOUNDS["centred"], run)
    assert rows.bounded(replace(BOUNDS["centred"]), run) is first
    assert rows.state(local_state.FittedValues, BOUNDS["centred"], run) is state
    assert isinstance(
        rows.state(local_state.FilledRows, BOUNDS["centred"], run), local_state.FilledRows
    )
    assert rows.state(local_state.FittedValues, BOUNDS["weighted"], run) is not state
    assert rows.bounded(BOUNDS["weighted"], run) is not first


def test_rows_are_bounded_by_what_is_asked_for_alone() -> None:
    bounds = RowBounds(None, np.zeros(2), True, 3.0)
    assert bounds.limits() == RowLimits(True, 0.0, 3.0, False, np.inf)
    assert (bounds.seed, bounds.clip, bounds.binarise) == (0, np.inf, False)


def test_the_bounds_that_leave_rows_as_they_are() -> None:
    """No rating is left out, no mean taken off, nothing scaled: sums depend on all of it."""
    found, expected = all_ratings(3), RowBounds(None, np.zeros(3), False, math.inf)
    assert found.digest == expected.digest
    assert RowBounds(1, np.zeros(1), True, 1.0).seed == 0
    held = Rows(ratings_with_empty_rows(ROWS)).bounded(
        all_ratings(10), Run(lambda task: [task(0, len(ROWS))])
    )
    assert (held.means == 0).all()
    assert (held.scales == 1).all()


# What is no set of rows


def test_nobody_is_a_set_of_rows_and_no_ends_are_not() -> None:
    assert Rows(made([0], [])).n_users == 0
    with pytest.raises(DataError, match="from_"):
        Rows(replace(made([0], []), indptr=np.zeros(0, np.int64)))


@pytest.mark.parametrize("items", [[ITEMS], [0, ITEMS], [1, 2, ITEMS + 3]])
def test_the_last_item_of_the_last_row_is_looked_at(items: list[int]) -> None:
    with pytest.raises(DataError, match="from_"):
        Rows(made([0, len(items)], items))
    Rows(made([0, 2], [0, ITEMS - 1]))


LIMITS = (ITEMS, np.float32(1.0), np.float32(5.0), 3)


def hold(indptr: list[int], items: list[int], values: list[float], lo: int, hi: int) -> bool:
    rows = frozen(np.array(indptr), np.array(items, np.uint16), np.array(values, np.float32))
    return bool(rows_hold(rows, LIMITS, lo, hi))


def test_each_row_is_looked_at_by_itself() -> None:
    """The loop on its own: every rating of the rows lo <= i < hi, and no other row."""
    values = [1.0, 5.0, 3.0, 2.0]
    assert hold([0, 3, 4], [0, 1, 5, 2], values, 0, 2)
    assert not hold([-1, 1, 4], [3, 1, 2, 0], values, 0, 1)
    assert not hold([0, 1, 5], [0, 1, 2, 3], values, 1, 2)
    assert not hold([0, 4, 4], [0, 1, 2, 3], values, 0, 1)  # longer than three
    assert not hold([0, 3, 4], [0, 2, 2, 3], values, 0, 2)
    assert not hold([0, 3, 4], [2, 2, 3, 3], values, 0, 2)
    assert hold([0, 3, 4], [2, 2, 3, 3], values, 1, 2)
    for place in range(4):
        astray = [*values[:place], 5.5, *values[place + 1 :]]
        assert not hold([0, 3, 4], [0, 1, 5, 2], astray, 0, 2)
        astray[place] = 0.5
        assert not hold([0, 3, 4], [0, 1, 5, 2], astray, 0, 2)


def test_the_weight_of_a_row_is_the_share_that_counts() -> None:
    found = [row_weight(length, 4.0) for length in (0, 1, 3, 4, 5, 16)]
    assert found == [1.0, 1.0, 1.0, 1.0, 0.8, 0.25]
    assert row_weight(1, 0.5) == 0.5


@pytest.mark.parametrize("most", [math.inf, 2.0])
def test_scales_of_rows_one_by_one(most: float) -> None:
    """A row that is all zeros keeps its scale, and where only some count, so does its length."""
    indptr, items = np.array([0, 2, 2, 5, 6]), np.array([0, 3, 1, 2, 4, 5], np.uint16)
    values = np.array([3.0, 5.0, 1.0, 2.0, 4.5, 2.5], np.float32)
    offsets = np.array([2.5, 3.0, 2.0, 3.5, 4.0, 2.5])
    own = (np.full(4, 9.0), np.full(4, 9.0), math.inf)
    rows = RowArrays(*frozen(indptr, items, values), offsets, *own)
    with np.errstate(all="raise"):
        row_means_and_scales(rows, RowLimits(False, 0.0, 1.2, False, most), 0, 4)
    lengths = [math.hypot(0.5, 1.5), math.hypot(2.0, 0.0, 0.5) * math.sqrt(min(1.0, most / 3))]
    assert rows.means.tolist() == [0.0, 9.0, 0.0, 0.0]
    expected = [1.2 / lengths[0], 9.0, min(1.0, 1.2 / lengths[1]), 1.0]
    assert rows.scales.tolist() == pytest.approx(expected, rel=1e-12)


def test_rows_are_divided_by_the_root_of_their_length_and_short_ones_are_shortened_too() -> None:
    indptr, items = np.array([0, 1, 5]), np.array([0, 0, 1, 2, 3], np.uint16)
    values, offsets = np.array([0.5, 0.3, 0.1, 0.1, 0.1], np.float32), np.zeros(4)
    for norm, expected in ((9.0, [1.0, 0.5]), (0.1, [0.1 / 0.5, 0.1 / math.sqrt(0.12)])):
        rows = RowArrays(*frozen(indptr, items, values), offsets, np.zeros(2), np.ones(2), math.inf)
        row_means_and_scales(rows, RowLimits(False, 0.0, norm, True, math.inf), 0, 2)
        assert rows.scales.tolist() == pytest.approx(expected, rel=1e-6)


# Keeping some of everyone's ratings


def test_marked_ratings_are_kept_row_by_row() -> None:
    marks = np.array([True, False, True, True, False])
    lengths = kept_lengths(*frozen(np.array([0, 2, 2, 5])), marks)
    assert lengths.tolist() == [1, 0, 2]
    ratings = made([0, 2, 2, 5], [0, 3, 1, 2, 4], [1.0, 2.0, 3.0, 4.0, 5.0])
    kept = keep(ratings, np.array([False, True, True, False, True]))
    assert kept.indptr.tolist() == [0, 1, 1, 3]
    assert kept.items.tolist() == [3, 1, 4]
    assert kept.values.tolist() == [2.0, 3.0, 5.0]
    assert (kept.rating_range, kept.n_items, kept.n_users) == (ratings.rating_range, ITEMS, 3)
    assert kept.implicit is ratings.implicit is False


@pytest.mark.parametrize("titles", [None, [f"item {n}" for n in range(ITEMS)]])
def test_chosen_items_are_numbered_anew(titles: list[str] | None) -> None:
    """In the order that was asked for, with their own ids and titles, and nothing of others."""
    plain = made([0, 2, 2, 5], [0, 3, 1, 3, 4], [1.0, 2.0, 3.0, 4.0, 5.0])
    catalogue = Catalogue([10 * n for n in range(ITEMS)], titles, public=True)
    ratings = replace(plain, catalogue=catalogue)
    found = restricted(ratings, np.array([1, 3, 5]))
    assert found.indptr.tolist() == [0, 1, 1, 3]
    assert found.items.tolist() == [1, 0, 1]
    assert found.values.tolist() == [2.0, 3.0, 4.0]
    assert found.catalogue.ids.to_list() == [10, 30, 50]
    assert found.catalogue.public
    if titles is None:
        assert found.catalogue.titles is None
    else:
        assert found.catalogue.titles is not None
        assert found.catalogue.titles.to_list() == ["item 1", "item 3", "item 5"]


def test_a_view_of_ratings_in_memory_is_applied_at_once() -> None:
    ratings = made([0, 2, 3], [0, 3, 1], [1.0, 2.0, 3.0])
    found = seen(ratings, ChosenItems(np.array([1, 3])))
    assert isinstance(found, Ratings)
    assert found.items.tolist() == [1, 0]


def test_views_cannot_be_changed_and_only_those_without_arrays_are_compared() -> None:
    for view, eq in ((ChosenItems, False), (NotHeldOut, True)):
        settings = view.__dataclass_params__  # type: ignore[attr-defined]
        assert (settings.frozen, settings.eq) == (True, eq)


# Descriptions


def test_what_is_public_and_paid_for_cannot_be_changed_afterwards() -> None:
    """A statistic is known by its digest, which is computed once: its fields must not move."""
    found: list[Any] = [Run, RowBounds, RankOneStep, LinearStep, Holdout]
    found += [ResidualCovariance, ResidualProduct, ResidualEnergy, DescentMoments, RowSums]
    found += [FilledCovariance, FactorGradient, NormalEquations, HeldOutLosses, ItemCounts]
    found += [ItemSums, RowNorms, RatingCount, UserCount, UserMoments, statistics.LatentModel]
    found += [statistics.FactorMoments, statistics.ExpectedGradient, statistics.ExpectedEquations]
    assert {each for each in vars(statistics).values() if is_statistic(each)} <= set(found)
    for kind in found:
        assert is_dataclass(kind)
        settings = kind.__dataclass_params__
        assert settings.frozen, kind
        assert issubclass(kind, Described) == (kind not in (Run, Holdout))
        assert settings.eq is not issubclass(kind, Described)  # arrays have no truth value


def is_statistic(kind: object) -> bool:
    return isinstance(kind, type) and issubclass(kind, statistic.Statistic)


def test_descriptions_of_any_kind_have_a_value() -> None:
    one = ItemCounts(3, (1, 2))
    others = [ItemCounts(3, (12,)), ItemCounts(3, (1, 2, 2)), ItemCounts(31, (2,)), ItemCounts(3)]
    lists = replace(one, edges=[1, 2])  # type: ignore[arg-type]
    assert len({each.digest for each in (one, *others)}) == 5
    assert lists.digest == one.digest
    assert len(one.digest) == 32
    nested = replace(one, edges=(np.int64(1), 2))
    assert nested.digest != one.digest
    rule = Holdout(0.5, 1)
    holding = replace(one, edges=(rule,))  # type: ignore[arg-type]
    assert holding.digest != replace(one, edges=(replace(rule, seed=2),)).digest  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class OneNumber(Described):
    value: object


@dataclass(frozen=True, eq=False)
class AnotherNumber(Described):
    value: object


def test_no_two_values_look_the_same() -> None:
    """Arrays by type, shape and content; sequences by where they end; classes by their name."""
    values = [
        np.zeros(4),
        np.zeros((2, 2)),
        np.zeros(4, np.float32),
        np.array([0.0, 0.0, 0.0, 1.0]),
        ((1,), 2),
        ((1, 2),),
        (1, 2),
        (12,),
        "12",
        12,
        12.0,
        None,
        False,
        "None",
        OneNumber(1),
        AnotherNumber(1),
        OneNumber(2),
    ]
    digests = {OneNumber(value).digest for value in values}
    assert len(digests) == len(values)
    assert not digests & {AnotherNumber(value).digest for value in values}
    assert OneNumber(np.zeros(4)).digest == OneNumber(np.zeros(4)).digest


# The quantiser, with room for what is no number


@pytest.mark.parametrize(
    ("vector", "factor", "most", "expected"),
    [
        ([1e100, 0.0, 0.0], 1.0, 9, [3, 0, 0]),
        ([1e200, 0.0, 0.0], 1.0, 9, [0, 0, 0]),
        ([math.nan, 1.0, 1.0], 1.0, 9, [0, 0, 0]),
        ([1.0, math.inf, 1.0], 1.0, 9, [0, 0, 0]),
        ([1.0, 1.0, -math.inf], 1.0, 9, [0, 0, 0]),
        ([1.0, 2.0, 2.0], math.nan, 9, [0, 0, 0]),
        ([1.0, 2.0, 2.0], 1.0, 9, [1, 2, 2]),
        ([1.0, 2.0, 2.0], 1.0, 8, [1, 2, 1]),
        ([1.0, 2.0, 2.0, 4.0], 2.0, 100, [2, 4, 4, 8]),
        ([3.0, 3.0, 3.0, 3.0, 3.0], 1.0, 45, [3, 3, 3, 3, 3]),
        ([3.0, 3.0, 3.0, 3.0, 3.0], 1.0, 44, [3, 3, 3, 3, 3]),
        ([0.6, 0.6], 1.0, 1, [0, 0]),
    ],
)
def test_quantised_vectors(
    vector: list[float], factor: float, most: int, expected: list[int]
) -> None:
    """Also where the loop runs as plain Python: what is no number needs a place to stand."""
    out = np.full(len(vector) + 1, 77.0)
    with np.errstate(all="ignore"):
        quantise(np.array(vector), factor, most, out)
    assert out[-1] == 77.0
    squared = sum(int(k) ** 2 for k in out[:-1])
    assert squared <= most
    if sum(k * k for k in expected) <= most and expected != [1, 2, 1]:
        assert out[:-1].tolist() == expected


def test_tries_shorten_a_little_more_each_time() -> None:
    """The first takes a part in 10^9 more than the excess, so that next to nothing is lost."""
    size, most = 4001, 2**40
    level = math.sqrt(most / size)
    out = np.empty(size, np.int64)
    quantise(np.full(size, math.floor(level) + 0.6), 1.0, most, out)
    squared = int(np.sum(out * out))
    assert squared <= most
    assert out.min() == out.max() == math.floor(level)
    one, odd = np.empty(1, np.int64), 50_000_001  # where a part in 10^9 decides
    quantise(np.array([odd + 0.5]), 1.0, odd**2, one)
    assert one.tolist() == [odd - 1]


def test_grids_are_checked_up_to_the_last_exact_one() -> None:
    assert _checked(Quanta(1.0, 1.0, MOST_EXACT)).most_squared == 2**52
    with pytest.raises(EngineError, match="too fine"):
        _checked(Quanta(1.0, 1.0, MOST_EXACT + 1))


def test_units_use_the_bound_up() -> None:
    """The public side of the quantiser: a part in 10^12 below, and no further."""
    for bound, unit in ((3.0, 2.0**-20), (0.3, 1e-5)):
        assert norm_quanta(bound, unit).most_squared == pytest.approx((bound / unit) ** 2, rel=2e-9)
        assert norm_quanta(bound, unit)[:2] == (bound, unit)
        quanta = product_quanta(bound, unit)
        assert quanta.most_squared == pytest.approx(bound**2 / unit, abs=1.001)
        assert quanta[:2] == (bound, math.sqrt(unit))
    assert below(1.0) == pytest.approx(1.0, abs=1.1e-12)
    assert below(1.0) <= 1 - 0.9e-12


@pytest.mark.parametrize(
    ("norm", "factor"), [(0.0, 1.0), (3.0, 1.0), (3.0001, 3.0 / 3.0001), (math.inf, 0.0)]
)
def test_clip_factors(norm: float, factor: float) -> None:
    assert clip_factor(norm, 3.0) == factor
    assert clip_factor(math.nan, 3.0) == 0.0


def test_item_counts_of_people_without_ratings() -> None:
    ratings: Ratings = ratings_with_empty_rows([{}, {0: 1.0}, {}])
    engine = ThreadEngine(1)
    engine.take(ratings)
    assert engine.sum(ItemCounts(10), 2.0**-20)._exact_sum.sum() == 2**20 - 1 - 2
    assert summed(ItemCounts(10), [{0: 1.0}]).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("most", [None, 2])
def test_nobody_writes_to_ratings_and_one_counts_as_one(most: int | None) -> None:
    """Neither to those that are all taken nor to those that are chosen; binarised ones are 1."""
    run = Run(lambda task: [task(0, len(ROWS))])
    for binarise in (False, True):
        bounds = RowBounds(most, np.zeros(10), False, math.inf, binarise=binarise)
        rows = Rows(ratings_with_empty_rows(ROWS)).bounded(bounds, run)
        assert not any(each.flags.writeable for each in (rows.indptr, rows.items, rows.values))
        assert binarise == bool(np.all(rows.values == 1.0))
