"""Accounts at their edges: where a comparison with or without equality is another promise.

Each test is about one comparison or constant that a systematic mutant changed unnoticed.
"""

import math
from dataclasses import replace
from decimal import ROUND_CEILING, Decimal
from typing import Any

import mpmath
import pytest

from tacit import ConfigError, ModelFileError, PrivacyBudget, PrivacyError
from tacit.accounting import ledger as ledger_module
from tacit.accounting import promise as promise_module
from tacit.accounting.budget import LARGEST_MU, Sensitivity, epsilon_of
from tacit.accounting.certificate import Certificate, Method, Verification
from tacit.accounting.ledger import Entry, Ledger, _Book, _Reservation
from tacit.accounting.promise import Grade, grade_of, percent
from tacit.accounting.release import Release, ReleaseKind
from tests.conftest import named

BOUND = Sensitivity(1.0, 2.0)


@pytest.mark.parametrize("delta", [1e-6, 0.5, 0.6, 0.99])
@pytest.mark.parametrize("mu", [0.0, -0.5, -1.0, -3.0])
def test_what_costs_nothing_has_epsilon_zero_at_any_delta(mu: float, delta: float) -> None:
    """Above delta 1/2 another formula is used, which divides by mu."""
    assert epsilon_of(mu, delta) == 0.0


@pytest.mark.parametrize("mu", [LARGEST_MU, 1e3, 3e4])
def test_epsilon_of_a_cost_far_beyond_all_budgets_is_not_too_small(mu: float) -> None:
    """The search must begin at an epsilon that is large enough: about mu^2/2."""
    found = epsilon_of(mu, 1e-30)
    with mpmath.workdps(60):
        e, m = mpmath.mpf(found), mpmath.mpf(mu)
        delta = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)
        assert delta <= 1e-30
    assert found < mu * mu / 2 + 12 * mu


def test_the_whole_budget_is_granted_to_the_last_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any room for rounding, all that is left may be taken, and then nothing."""
    monkeypatch.setattr(ledger_module, "_ROUNDING", 0.0)
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.part(1.0)
    assert ledger.left == 0.0


def test_a_share_may_be_above_one_by_its_rounding_and_no_more() -> None:
    Ledger(None).reserve(named("a"), BOUND, 1.0 + 1e-12)
    for share in (1.0 + 1.001e-12, 0.0, math.nan):
        with pytest.raises(ConfigError, match="share"):
            Ledger(None).reserve(named("a"), BOUND, share)


def test_a_refusal_never_says_that_less_than_nothing_is_left() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    for _ in range(3):  # each passes what is left by less than its rounding
        ledger._taken.append(ledger._limit * (1 + 3e-13) / 3)
    with pytest.raises(Exception, match="and 0 is left"):
        ledger.part(0.5)


@pytest.mark.parametrize(("chance", "grade"), [(0.60, Grade.STRONG), (0.75, Grade.MODERATE)])
def test_a_chance_at_a_limit_is_within_it(
    chance: float, grade: Grade, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(promise_module, "guessing_chance", lambda _: chance)
    assert grade_of(PrivacyBudget(1.0, 1e-5), 0.1) is grade


def test_a_limit_of_exactly_nearly_all_is_written_as_a_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    above = 50 * math.erf(1.0 / math.sqrt(8)) * promise_module._UP
    monkeypatch.setattr(promise_module, "_NEARLY", above)
    assert percent(1.0) == "69.2"
    assert percent(1.0001) == "more than 99.9"


def certificate(*entries: tuple[float, float], epsilon: float = 1.0) -> Certificate:
    releases = tuple(
        Entry(Release(ReleaseKind.COVARIANCE, (turn,)), *numbers)
        for turn, numbers in enumerate(entries, start=1)
    )
    return Certificate(PrivacyBudget(epsilon, 1e-6), releases, {})


def test_verify_names_the_release_that_has_no_noise() -> None:
    """And says of it nothing but that: its cost is infinite, not large."""
    problems = certificate((1.0, 100.0), (1.0, 0.0)).verify().problems
    assert "release 'covariance 2' has no noise" in problems
    assert not any("covariance 1" in problem or "proven" in problem for problem in problems)


def test_a_release_with_little_noise_has_noise() -> None:
    problems = certificate((1e-12, 1e-10)).verify().problems
    assert not any("no noise" in problem for problem in problems)


def test_the_largest_cost_that_is_proven_is_proven() -> None:
    one, more = (certificate((mu, 1.0), epsilon=1e4).verify() for mu in (LARGEST_MU, 150.1))
    assert not any("exactness" in problem for problem in one.problems)
    assert any("exactness" in problem for problem in more.problems)


def test_an_epsilon_that_is_above_the_claim_by_its_rounding_holds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for found, holds in ((1.0 + 1e-9, True), (1.0 + 1.001e-9, False)):
        monkeypatch.setattr(Certificate, "exact_epsilon", property(lambda _, x=found: x))
        assert certificate((1.0, 100.0)).verify().holds is holds


@pytest.mark.parametrize("cost", [0.04, 0.25, 4.0])
def test_what_rests_on_earlier_releases_claims_what_all_of_them_cost(cost: float) -> None:
    """Epsilon is that of all releases together, with six digits, rounded up."""
    own = certificate((1.0, 100.0), epsilon=0.1)
    told = own.resting_on(cost)
    assert told.releases[0].release.kind is ReleaseKind.EARLIER_REFITS
    assert told.releases[1:] == own.releases
    assert told.mu**2 == pytest.approx(cost + 1e-4)
    exact = Decimal(epsilon_of(told.mu, 1e-6))
    digits = Decimal(1).scaleb(exact.adjusted() - 5)
    assert told.budget == PrivacyBudget(float(exact.quantize(digits, ROUND_CEILING)), 1e-6)
    assert told.verify().problems == own.verify().problems


def test_what_rests_on_nothing_earlier_or_claims_more_keeps_its_claim() -> None:
    own, exact = certificate((1.0, 100.0), epsilon=9.0), Certificate(None, (), {})
    assert own.resting_on(0.0) is own
    assert exact.resting_on(1.0) is exact
    assert own.resting_on(0.25).budget == own.budget


def test_what_is_not_private_promises_nothing_and_has_no_grade() -> None:
    own = certificate((1.0, 100.0))
    assert own.grade is not Grade.NONE
    assert own.budget is not None
    assert own.promise() == promise_module.promise(own.budget, own.mu)
    repeatable = replace(own, reasons_not_private=("its noise can be repeated",))
    for other in (repeatable, Certificate(None, (), {})):
        assert other.grade is Grade.NONE
        assert "NOT PRIVATE" in other.promise()[0]


def test_a_run_of_releases_says_that_its_cost_is_each() -> None:
    assert (
        "covariance 1: sensitivity 1, noise sd 100, mu 0.01\n" in certificate((1.0, 100.0)).text()
    )
    text = certificate((1.0, 100.0), (1.0, 100.0)).text()
    assert "covariance 1 to 2: sensitivity 1, noise sd 100, mu 0.01 each" in text


def test_what_is_promised_and_paid_cannot_be_changed_afterwards() -> None:
    """Or a budget could grow once a ledger has been opened with it."""
    kinds: list[Any] = [Sensitivity, PrivacyBudget, Entry, _Reservation, _Book]
    kinds += [Release, Certificate, Verification, Method]
    for kind in kinds:
        assert kind.__dataclass_params__.frozen, kind
    budget = PrivacyBudget(1.0)
    with pytest.raises(AttributeError):
        budget.epsilon = 100.0  # type: ignore[misc]


@pytest.mark.parametrize("epsilon", [1e-300, 0.5, 1.0, 1e4])
def test_epsilon_is_above_zero_and_up_to_the_largest(epsilon: float) -> None:
    assert PrivacyBudget(epsilon).epsilon == epsilon
    for wrong in (0.0, -0.5, 10000.5):
        with pytest.raises(ConfigError, match="epsilon"):
            PrivacyBudget(wrong)


@pytest.mark.parametrize("delta", [1e-30, 1e-6, 0.5, 1 - 2**-53])
def test_delta_is_from_the_least_to_below_one(delta: float) -> None:
    assert PrivacyBudget(1.0, delta).delta == delta
    for wrong in (0.99e-30, 0.0, -0.5, 1.0, 1.5):
        with pytest.raises(ConfigError, match="delta"):
            PrivacyBudget(1.0, wrong)


def test_the_papers_limit_is_named_in_numbers() -> None:
    with pytest.raises(ConfigError, match=r"= 27\.63, and epsilon is 40; use accounting='exact'"):
        PrivacyBudget(40.0, 1e-6, accounting="paper")


@pytest.mark.parametrize("bound", [0.0, -0.5, math.inf, math.nan])
@pytest.mark.parametrize("budget", [None, PrivacyBudget(1.0)])
def test_an_open_sensitivity_is_positive_and_finite_with_or_without_a_budget(
    budget: PrivacyBudget | None, bound: float
) -> None:
    ledger = Ledger(budget)
    ledger.reserve(named("a"), BOUND, 1.0, scaled=True)
    with pytest.raises(PrivacyError, match="not reserved"):
        ledger.spend(named("a"), Sensitivity(bound, bound))
    assert ledger.spend(named("a"), Sensitivity(3.0, 3.0)).sensitivity == 3.0


def test_the_limits_of_grades_are_those_of_the_decision() -> None:
    """docs/decisions/0019: epsilon, delta, and how often an attacker decides rightly."""
    assert promise_module._LIMITS == {
        Grade.STRONG: (1.0, 1e-5, 0.60),
        Grade.MODERATE: (5.0, 1e-3, 0.75),
        Grade.WEAK: (20.0, 1e-2, 0.95),
    }


def test_releases_in_json_at_the_edges_of_what_is_possible() -> None:
    content = certificate((2.0, 40.0)).to_json()

    def read(**change: object) -> Certificate:
        releases = [content["releases"][0] | change | {"mu": None}]
        return Certificate.from_json(content | {"releases": releases})

    with pytest.raises(ModelFileError, match="impossible"):
        read(noise_sd=-0.5)
    with pytest.raises(ModelFileError, match="impossible cost"):
        read(sensitivity=1.001e140, noise_sd=1.0)
    content |= {"private": False, "not_private_because": ["too much"]}
    assert read(sensitivity=1e140, noise_sd=1.0).mu == 1e140
