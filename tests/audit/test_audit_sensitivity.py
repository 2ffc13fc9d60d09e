"""The sensitivity attack: nothing it finds passes a stated bound, and what is broken is found."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.conftest import named
from tests.privacy.test_sensitivity import CASES
from tests.support.attack import (
    RANGE,
    bystanders,
)

import tacit
from tacit.accounting.budget import Neighbours, Sensitivity
from tacit.accounting.ledger import Entry
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
from tacit.audit.exact_sums import Opened
from tacit.audit.population import World, synthetic_world
from tacit.audit.sensitivity import QUICK, Effort, PairSearch, pair_search_of, sensitivity
from tacit.audit.target import Target
from tacit.kernels.quantise import Quanta
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import covariance

BUDGET = tacit.PrivacyBudget(1.0)
NAMES = [name for name in (ALGORITHMS | IMPLICIT_ALGORITHMS) if name != "approximate-frank-wolfe"]
# Their bound is for any steps; those that a fit takes do not lead there.
LOOSE = {"frank-wolfe", "oja", "pgd"}
UNREACHED = {
    ("covariance after steps", "replace"),
    ("covariance after steps", "add_remove"),
    ("user count", "replace"),  # which cannot change it
}


def subject_of(name: str, **settings: Any) -> Target:
    return Target(replace((ALGORITHMS | IMPLICIT_ALGORITHMS)[name](), **settings), BUDGET)


@pytest.mark.parametrize("name", NAMES)
def test_no_release_of_any_algorithm_can_be_moved_further_than_stated(name: str) -> None:
    findings = sensitivity(subject_of(name), effort=QUICK)
    assert findings
    assert [finding.subject for finding in findings if not finding.holds] == []
    shares = [finding.measured / finding.limit for finding in findings]
    assert max(shares) <= 1 + 1e-12
    assert max(shares) > (0.2 if name in LOOSE else 0.99)


def test_every_release_is_attacked_under_both_relations() -> None:
    subject = subject_of("svd")
    world = synthetic_world(subject, 0)
    model = tacit.fit(world.ratings(None), subject.algorithm, budget=BUDGET)
    found = {finding.subject for finding in sensitivity(subject, effort=QUICK)}
    assert found == {
        f"svd: {entry.name} ({relation})"
        for entry in model.certificate.releases
        for relation in ("replace", "add_remove")
    }


def test_the_count_that_chooses_items_is_attacked_too() -> None:
    findings = sensitivity(replace(subject_of("svd"), narrowed=True), effort=QUICK)
    assert any("item counts" in finding.subject for finding in findings)
    assert all(finding.holds for finding in findings)


def test_a_sum_without_clipping_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: rows are as long as people like, and the stated bound stays."""
    plain = RowBounds.limits
    monkeypatch.setattr(RowBounds, "limits", lambda self: plain(replace(self, norm=math.inf)))
    monkeypatch.setattr(
        covariance, "product_quanta", lambda _, unit: Quanta(1e3, math.sqrt(unit), 2**62)
    )
    findings = sensitivity(subject_of("svd", row_norm=1.5), effort=QUICK)
    broken = [finding for finding in findings if not finding.holds]
    assert len(broken) == 2
    assert all(finding.measured > 2 * finding.limit for finding in broken)


def test_the_other_relations_bound_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: the ledger pays for add_remove where replace is promised."""
    monkeypatch.setattr(Sensitivity, "under", lambda self, _: self.add_remove)
    findings = sensitivity(subject_of("cleansing"), effort=QUICK)
    broken = [finding for finding in findings if not finding.holds]
    assert broken
    assert all("(replace)" in finding.subject for finding in broken)


@pytest.mark.parametrize("case", CASES)
def test_it_finds_what_the_tests_of_sensitivity_find(case: str) -> None:
    """The same statistics, by the general engine: never above the bound, and where it is reached
    there, it is reached here.
    """
    statistic = CASES[case]()
    rng = np.random.default_rng(5)
    rows = np.full((6, 10), np.nan)
    for at, row in enumerate(bystanders(rng)):
        rows[at, list(row)] = list(row.values())
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    release = Opened(Entry(named("a sum"), 1.0, 1.0), statistic, unit)
    for relation in Neighbours:
        pair_search = pair_search_of(release, World(rows, RANGE), rng, QUICK)
        found, stated = pair_search.worst(relation).change, statistic.sensitivity.under(relation)
        assert found <= stated * (1 + 1e-12)
        assert found > 0.99 * stated or (case, relation.value) in UNREACHED


def toy(total: Any, effort: Effort) -> PairSearch:
    """A search through a sum of our own making, in a world of four items."""
    world = World(np.full((2, 4), 3.0), (1.0, 5.0))
    return PairSearch(world, total, np.array(1e-6), np.random.default_rng(1), effort)


def peaked(row: np.ndarray | None) -> np.ndarray:
    """A sum that is largest where no end of the range is: at ratings of 2.2 and 4.1."""
    if row is None or np.isnan(row).any():
        return np.zeros(1, np.int64)
    off = (row[0] - 2.2) ** 2 + (row[1] - 4.1) ** 2 + (row[2] - 2.2) ** 2 + (row[3] - 4.1) ** 2
    return np.array([np.int64(1e6 * np.exp(-off / 4))])


def test_ratings_inside_the_range_are_found_by_climbing() -> None:
    found = toy(peaked, Effort(drawn=20, starts=1, rounds=12)).worst(Neighbours.ADD_REMOVE)
    assert found.change > 0.98
    assert found.before == pytest.approx([2.2, 4.1, 2.2, 4.1], abs=0.25)


def test_without_climbing_they_are_not_found() -> None:
    """The twin: proposals alone do not get there."""
    found = toy(peaked, Effort(drawn=20, starts=1, rounds=0)).worst(Neighbours.ADD_REMOVE)
    assert found.change < 0.9


def test_someone_who_is_gone_and_someone_with_nothing_are_both_tried() -> None:
    def users(row: np.ndarray | None) -> np.ndarray:
        return np.array([0 if row is None else 10**6])

    assert toy(users, QUICK).worst(Neighbours.ADD_REMOVE).change == pytest.approx(1.0)
    assert toy(users, QUICK).worst(Neighbours.REPLACE).change == 0.0


def test_worlds_are_the_ratings_that_they_say() -> None:
    subject = subject_of("svd")
    world = synthetic_world(subject, 3)
    row = np.array([1.0, np.nan, 5.0, np.nan, 2.5, np.nan, np.nan, 4.0])
    ratings = world.ratings(row)
    assert ratings.n_users == world.ratings(None).n_users + 1 == len(world.others) + 1
    assert ratings.items[ratings.indptr[-2] :].tolist() == [0, 2, 4, 7]
    assert ratings.values[ratings.indptr[-2] :].tolist() == [1.0, 5.0, 2.5, 4.0]
    users = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    again = tacit.Ratings.from_arrays(
        users, ratings.items, ratings.values, rating_range=(1, 5), catalogue=world.catalogue
    )
    assert again.items.dtype == ratings.items.dtype
    assert np.array_equal(again.items, ratings.items)
