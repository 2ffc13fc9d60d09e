"""The way into the trust zone: what is no set of rows is refused, and told nothing of."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tacit import Catalogue, DataError, Ratings, ThreadEngine
from tacit.trusted import rows as rows_module
from tacit.trusted.rows import Rows
from tacit.trusted.statistics import ItemCounts

RANGE = (1.0, 5.0)
ITEMS = 6


def made(
    indptr: list[int],
    items: list[int],
    values: list[float] | None = None,
    item_kind: Any = np.uint16,
    value_kind: Any = np.float32,
) -> Ratings:
    """Ratings as nobody should make them: by the arrays, past all checks."""
    given = [3.0] * len(items) if values is None else values
    return Ratings(
        RANGE,
        Catalogue(list(range(ITEMS))),
        pl.Series("user", range(len(indptr) - 1)),
        np.array(indptr, dtype=np.int64),
        np.array(items, dtype=item_kind),
        np.array(given, dtype=value_kind),
    )


WRONG: dict[str, Ratings] = {
    "an item twice": made([0, 2, 3], [0, 0, 1]),
    "an item twice, apart": made([0, 3, 4], [0, 1, 0, 1]),
    "items that do not increase": made([0, 2, 4], [0, 1, 3, 2]),
    "the last row": made([0, 1, 2, 4], [0, 1, 2, 2]),
    "an item beyond the catalogue": made([0, 2, 3], [0, ITEMS, 1]),
    "an item far beyond": made([0, 2, 3], [0, 2**64 - 1, 1], item_kind=np.uint64),
    "signed items": made([0, 2, 3], [-1, 0, 1], item_kind=np.int32),
    "a value that is no number": made([0, 1, 2], [0, 1], [3.0, np.nan]),
    "an infinite value": made([0, 1, 2], [0, 1], [np.inf, 3.0]),
    "a value above the range": made([0, 1, 2], [0, 1], [3.0, 5.001]),
    "a value below the range": made([0, 1, 2], [0, 1], [0.999, 3.0]),
    "wide values": made([0, 1, 2], [0, 1], value_kind=np.float64),
    "rows that go back": made([0, 3, 1, 3], [0, 1, 2]),
    "rows beyond the end": made([0, 9, 3], [0, 1, 2]),
    "rows before the start": made([0, -2, 3], [0, 1, 2]),
    "rows that begin late": made([1, 2, 3], [0, 1, 2]),
    "rows that end early": made([0, 1, 2], [0, 1, 2]),
    "rows that end late": made([0, 1, 4], [0, 1, 2]),
    "fewer values than items": made([0, 1, 3], [0, 1, 2], [3.0, 3.0]),
}


@pytest.fixture(params=["in one go", "by all cores"], autouse=True)
def _looked_at(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows are looked at in one go, many by all cores."""
    if request.param == "by all cores":
        monkeypatch.setattr(rows_module, "_FEW", 0)


@pytest.mark.parametrize("case", WRONG)
def test_what_is_no_set_of_rows_is_refused(case: str) -> None:
    with pytest.raises(DataError, match="from_") as caught:
        ThreadEngine(2).take(WRONG[case])
    shown = str(caught.value).replace("8,388,608", "")
    assert not any(sign.isdigit() for sign in shown)


@pytest.mark.parametrize("kind", [np.uint16, np.uint32])
def test_rows_are_taken(kind: Any) -> None:
    """Empty ones, full ones, none at all; values at the ends of the range."""
    everything = list(range(ITEMS))
    for indptr, items in (
        ([0, 0, ITEMS, ITEMS, ITEMS + 1], [*everything, 5]),
        ([0, 0, 0], []),
        ([0, 1, 2], [5, 0]),
    ):
        Rows(made(indptr, items, [(1.0, 5.0)[k % 2] for k in range(len(items))], item_kind=kind))


def test_a_range_between_floats_is_met_as_ratings_store_it() -> None:
    ratings = Ratings.from_arrays([1, 1, 2], [1, 2, 1], [0.1, 0.9, 0.5], rating_range=(0.1, 0.9))
    Rows(ratings)


def test_all_rows_are_looked_at() -> None:
    """A single wrong rating among many, wherever it is."""
    rng = np.random.default_rng(0)
    lengths = rng.integers(0, ITEMS + 1, 500)
    items = np.concatenate([np.sort(rng.choice(ITEMS, n, replace=False)) for n in lengths])
    right = made([0, *np.cumsum(lengths).tolist()], items.tolist())
    Rows(right)
    starts = right.indptr[:-1][lengths > 1]
    for at in starts[:: max(1, starts.size // 40)]:
        twice = right.items.copy()
        twice[at + 1] = twice[at]
        astray = right.values.copy()
        astray[at] = 5.5
        for wrong in (replace(right, items=twice), replace(right, values=astray)):
            with pytest.raises(DataError):
                Rows(wrong)


def test_longer_rows_than_margins_cover_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ratings = made([0, 4, 5], [0, 1, 2, 3, 0])
    assert rows_module.LONGEST_ROW == 1 << 23
    monkeypatch.setattr(rows_module, "LONGEST_ROW", 4)
    Rows(ratings)
    monkeypatch.setattr(rows_module, "LONGEST_ROW", 3)
    with pytest.raises(DataError, match="at most 3 ratings in a row"):
        Rows(ratings)


def test_a_repeated_item_would_break_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: without the check one person's term of ItemCounts is 1.414, and 1 is stated."""
    monkeypatch.setattr(rows_module, "_check", lambda _: None)
    statistic, unit, terms = ItemCounts(ITEMS), 2.0**-30, []
    for ratings in (made([0, 2, 3], [0, 0, 1]), made([0, 0, 1], [1])):
        engine = ThreadEngine(1)
        engine.take(ratings)
        terms.append(engine.sum(statistic, unit)._exact_sum * unit)
    assert np.linalg.norm(terms[0] - terms[1]) > 1.4 * statistic.sensitivity.add_remove
