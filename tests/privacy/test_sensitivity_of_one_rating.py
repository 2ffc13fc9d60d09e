"""Pairs of rows that differ in a single rating, in every statistic and in whole fits.

Under replace they are neighbours: nothing may be moved further than stated. Under add_remove they
are two changes apart, so twice the stated bound holds, and the bound itself does not: the twins
show rows that move a sum up to twice as far.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.privacy import (
    test_sensitivity,
    test_sensitivity_als,
    test_sensitivity_latent,
    test_sensitivity_moments,
    test_sensitivity_more,
    test_sensitivity_preparation,
)
from tests.support.attack import (
    ITEMS,
    RANGE,
    SLACK,
    bystanders,
)
from tests.support.cases import first_of_each, slow

import tacit
from tacit.accounting.budget import Neighbours, Sensitivity
from tacit.accounting.ledger import Entry
from tacit.accounting.promise import two_lists
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import Algorithm
from tacit.audit.exact_sums import Opened, opened_run
from tacit.audit.population import Row, World
from tacit.audit.rating import rating, worst_rating
from tacit.audit.sensitivity import QUICK, Effort, pair_search_of, total_cost_search
from tacit.audit.target import Target
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import ResidualCovariance, RowSums

CASES: dict[str, Callable[[], Statistic]] = {
    **test_sensitivity.CASES,
    **test_sensitivity_more.CASES,
    **test_sensitivity_moments.CASES,
    **test_sensitivity_als.CASES,
    **test_sensitivity_latent.FEW,
    **test_sensitivity_preparation.CASES,
}
MOMENTS = Target(tacit.Moments(), tacit.PrivacyBudget(4.0, neighbours=Neighbours.ADD_REMOVE))


def found(statistic: Statistic, effort: Effort) -> tuple[Row, Row, float]:
    """The worst pair that differs in one rating, and how far it moves the sum."""
    rng = np.random.default_rng(5)
    others = np.full((6, ITEMS), np.nan)
    for at, row in enumerate(bystanders(rng)):
        others[at, list(row)] = list(row.values())
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    release = Opened(Entry("a sum", 1.0, 1.0), statistic, unit)
    pair = worst_rating(pair_search_of(release, World(others, RANGE), rng, effort))
    assert pair.after is not None
    return pair.before, pair.after, pair.change


@pytest.mark.parametrize("case", first_of_each(CASES, lambda case: type(CASES[case]())))
def test_one_rating_moves_a_sum_no_further_than_two_lists_may(case: str) -> None:
    statistic = CASES[case]()
    before, after, moved = found(statistic, Effort(drawn=15, starts=1, rounds=1))
    assert np.sum(~((before == after) | (np.isnan(before) & np.isnan(after)))) <= 1
    assert moved <= statistic.sensitivity.replace * SLACK
    assert moved <= 2 * statistic.sensitivity.add_remove * SLACK


MIDDLE = np.full(ITEMS, 3.0)
EXCEEDED: dict[str, tuple[Statistic, float]] = {
    "row sums": (
        RowSums(RowBounds(8, MIDDLE, True, 0.5, bias_shrinkage=5.0, by_sqrt_count=True)), 1.99),
    "covariance": (ResidualCovariance(RowBounds(8, MIDDLE, True, 1.0), (), 1.0), 1.41),
}  # fmt: skip


@pytest.mark.parametrize("case", EXCEEDED)
def test_one_rating_moves_a_sum_further_than_one_presence(case: str) -> None:
    """The twin: what was claimed of a single rating under add_remove does not hold."""
    statistic, times = EXCEEDED[case]
    moved = found(statistic, Effort(drawn=120, starts=3, rounds=6))[2]
    assert moved > times * statistic.sensitivity.add_remove


@pytest.mark.parametrize(
    ("algorithm", "relation"),
    [
        (tacit.LatentFactors(), "replace"),
        (tacit.Moments(), "add_remove"),
        slow(tacit.LatentFactors(), "add_remove"),
        slow(tacit.Moments(), "replace"),
    ],
)
def test_the_default_holds_for_single_ratings(algorithm: Algorithm, relation: str) -> None:
    """And so does what it begins with."""
    budget = tacit.PrivacyBudget(4.0, neighbours=relation)  # type: ignore[arg-type]
    findings = rating(Target(algorithm, budget), effort=QUICK)
    assert all(finding.holds for finding in findings)
    assert findings[-1].subject == f"{algorithm.name}: the whole fit, one rating ({relation})"
    assert findings[-1].limit == pytest.approx(budget.mu * (2 if "add" in relation else 1))


def people_of_two_tastes(users: int) -> NDArray[np.float64]:
    """Rows of people who choose mostly the even or mostly the odd items, whatever they think."""
    rng = np.random.default_rng(1)
    rows = rng.uniform(1.0, 5.0, (users, 8))
    theirs = np.arange(8) % 2 == rng.integers(2, size=(users, 1))
    rows[rng.random(rows.shape) < np.where(theirs, 0.5, 0.95)] = np.nan
    return rows


def people_of_two_opinions(users: int) -> np.ndarray:
    """Rows of people who choose at random, and like either the even or the odd items."""
    rng = np.random.default_rng(1)
    likes = np.arange(8) % 2 == rng.integers(2, size=(users, 1))
    rows = np.where(likes, 4.0, 2.0) + rng.uniform(-1.0, 1.0, (users, 8))
    rows[rng.random(rows.shape) < 0.7] = np.nan
    return rows


@pytest.mark.parametrize(
    ("kind", "epsilon", "relation"),
    [
        (ReleaseKind.CO_OCCURRENCES, 4.0, Neighbours.REPLACE),
        slow(ReleaseKind.CO_OCCURRENCES, 0.3, Neighbours.ADD_REMOVE),
        (ReleaseKind.COVARIANCE, 1.0, Neighbours.REPLACE),
        slow(ReleaseKind.COVARIANCE, 0.1, Neighbours.ADD_REMOVE),
    ],
)
def test_the_default_holds_with_both_releases_of_a_matrix(
    kind: ReleaseKind, epsilon: float, relation: Neighbours
) -> None:
    """The audit's few people do not choose by taste, so that a fit of them makes one of these."""
    budget = tacit.PrivacyBudget(epsilon, neighbours=relation)
    taste = kind is ReleaseKind.CO_OCCURRENCES
    users = 4000 if relation is Neighbours.REPLACE else 40_000  # its shares are for 50,000
    rows = people_of_two_tastes(4000) if taste else people_of_two_opinions(users)
    everyone = World(rows, (1.0, 5.0)).ratings(rows[0])
    target = Target(tacit.LatentFactors(), budget)
    releases = opened_run(target, everyone, everyone, present=True, seed=1).releases
    both = [each for each in releases if each.entry.release.kind is kind]
    assert [each.entry.name for each in both] == [f"{kind.value} 1", f"{kind.value} 2"]
    few, search = World(rows[:5], (1.0, 5.0)), (np.random.default_rng(0), QUICK)
    for each in both:
        assert each.entry.sensitivity == each.stated.under(relation)
        moved = pair_search_of(each, few, *search).worst(relation).change
        assert 0.99 * each.entry.sensitivity < moved <= each.entry.sensitivity * SLACK
    whole = total_cost_search(releases, few, *search)
    assert 0.9 * budget.mu < whole.worst(relation).change <= budget.mu * SLACK
    assert worst_rating(whole).change <= two_lists(relation, budget.mu) * SLACK


def test_a_whole_fit_costs_more_than_one_presence() -> None:
    """The twin: the certificate of before claimed mu for a single rating under add_remove."""
    whole = rating(MOMENTS, effort=Effort(drawn=40, starts=1, rounds=4, alike=1))[-1]
    assert whole.holds
    assert whole.measured > 1.3 * MOMENTS.budget.mu


def test_a_single_rating_that_is_paid_too_little_for_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: the ledger pays for presence where replace is promised."""
    monkeypatch.setattr(Sensitivity, "under", lambda self, _: self.add_remove)
    broken = [
        f
        for f in rating(replace(MOMENTS, budget=tacit.PrivacyBudget(4.0)), effort=QUICK)
        if not f.holds
    ]
    assert any("the whole fit" in finding.subject for finding in broken)
    assert any("item effects" in finding.subject for finding in broken)


def test_interactions_are_given_or_withheld() -> None:
    """Where there are no ratings, a single one can only be there or not."""
    findings = rating(Target(tacit.Interactions(), tacit.PrivacyBudget(2.0)), effort=QUICK)
    assert all(finding.holds for finding in findings)
    assert max(finding.measured for finding in findings) > 0
    assert all(math.isfinite(finding.limit) for finding in findings)
