import math

import pytest

from tacit import BudgetExceeded, ConfigError, PrivacyBudget, PrivacyError
from tacit.accounting import budget as budget_module
from tacit.accounting import ledger as ledger_module
from tacit.accounting.budget import Sensitivity, epsilon_of
from tacit.accounting.ledger import Entry, Ledger
from tests.conftest import named
from tests.test_budget import precise_delta

BOUND = Sensitivity(add_remove=1.0, replace=2.0)


def test_a_whole_budget_in_shares_gives_exactly_its_epsilon() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    for turn in range(10):
        ledger.reserve(named(f"r{turn}"), BOUND, 0.1)
        ledger.spend(named(f"r{turn}"), BOUND)
    total = math.sqrt(sum(entry.mu**2 for entry in ledger.entries))
    assert epsilon_of(total, 1e-6) == pytest.approx(1.0, rel=1e-8)


def test_sensitivity_is_that_of_the_relation() -> None:
    for relation, bound in (("replace", 2.0), ("add_remove", 1.0)):
        ledger = Ledger(PrivacyBudget(1.0, neighbours=relation))
        assert ledger.reserve(named("r"), BOUND, 1.0).sensitivity == bound


def test_a_share_too_many_is_refused_with_what_was_left_and_changes_nothing() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("first"), BOUND, 0.9)
    left = ledger.left
    with pytest.raises(BudgetExceeded, match="'second'") as caught:
        ledger.reserve(named("second"), BOUND, 0.2)
    assert caught.value.left == pytest.approx(left)
    assert caught.value.asked == pytest.approx(2 * left)
    assert [entry.name for entry in ledger.reserved] == ["first"]


def test_what_was_not_reserved_cannot_be_spent() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    with pytest.raises(PrivacyError, match="not reserved"):
        ledger.spend(named("r"), BOUND)


def test_nothing_is_spent_twice() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("r"), BOUND, 0.5)
    ledger.spend(named("r"), BOUND)
    with pytest.raises(PrivacyError, match="spent already"):
        ledger.spend(named("r"), BOUND)


def test_nothing_is_spent_twice_inside_a_part() -> None:
    """A part's releases are known by the part, too: the same one in another part is another."""
    ledger = Ledger(PrivacyBudget(1.0))
    parts = [ledger.part(0.5, candidate) for candidate in (1, 2)]
    for part in parts:
        part.reserve(named("r"), BOUND, 0.5)
        part.spend(named("r"), BOUND)
        with pytest.raises(PrivacyError, match="spent already"):
            part.spend(named("r"), BOUND)
    assert [entry.name for entry in ledger.entries] == ["candidate 1: r", "candidate 2: r"]


def test_a_release_cannot_turn_out_more_sensitive_than_planned() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("r"), BOUND, 0.5)
    with pytest.raises(PrivacyError, match="sensitivity"):
        ledger.spend(named("r"), Sensitivity(add_remove=1.0, replace=3.0))


@pytest.mark.parametrize(("epsilon", "exact"), [(5.0, 4.62), (10.0, 10.35), (20.0, 24.68)])
def test_the_papers_formula_is_refused_where_it_does_not_cover_its_own_claim(
    epsilon: float, exact: float
) -> None:
    """Lemma D.1 states 4 L^2 for replace, where it is 4 sqrt2 L^2."""
    covariance = Sensitivity(add_remove=4.0, replace=4.0 * math.sqrt(2))
    budget = PrivacyBudget(epsilon, accounting="paper")
    cost = covariance.replace / budget.noise_sd(covariance, 1.0)
    assert epsilon_of(cost, budget.delta) == pytest.approx(exact, abs=0.005)
    if exact <= epsilon:
        Ledger(budget).reserve(named("w"), covariance, 1.0)
    else:
        with pytest.raises(BudgetExceeded):
            Ledger(budget).reserve(named("w"), covariance, 1.0)


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_impossible_shares(share: float) -> None:
    with pytest.raises(ConfigError, match="share"):
        Ledger(PrivacyBudget(1.0)).reserve(named("r"), BOUND, share)


def test_two_releases_of_one_name() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("r"), BOUND, 0.1)
    with pytest.raises(ConfigError, match="'r'"):
        ledger.reserve(named("r"), BOUND, 0.1)


def test_the_book_without_a_budget_has_no_noise_and_infinite_costs() -> None:
    ledger = Ledger(None)
    entry = ledger.reserve(named("r"), BOUND, 1.0)
    assert entry.noise_sd == 0.0
    assert math.isinf(entry.mu)


def test_without_a_budget_nothing_runs_out() -> None:
    ledger = Ledger(None)
    part = ledger.part(0.5, candidate=3)
    for book in (ledger, part):
        assert not book.private
        assert book.left == math.inf
    for turn in range(3):
        part.reserve(named(f"r{turn}"), BOUND, 0.9)
    assert part.spend(named("r1"), BOUND).sensitivity == BOUND.replace


@pytest.mark.parametrize("share", [0.0, -0.1, 1.1, math.nan])
def test_impossible_parts(share: float) -> None:
    with pytest.raises(ConfigError, match="share"):
        Ledger(PrivacyBudget(1.0)).part(share)


def test_parts_and_their_parts_have_what_their_shares_say() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    whole = ledger.left
    part = ledger.part(0.4).part(0.5, candidate=1)
    assert part.left == pytest.approx(0.2 * whole)
    assert part.reserve(named("r"), BOUND, 0.5).mu ** 2 == pytest.approx(0.1 * whole)
    assert part.left == pytest.approx(0.1 * whole)
    assert ledger.left == pytest.approx(0.6 * whole)
    with pytest.raises(BudgetExceeded, match="a part"):
        ledger.part(0.61)
    with pytest.raises(BudgetExceeded, match="the part of candidate 7"):
        ledger.part(0.61, candidate=7)


@pytest.mark.parametrize("bound", [0.0, -1.0, math.inf, math.nan])
def test_an_open_sensitivity_is_a_number_above_zero(bound: float) -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("r"), BOUND, 1.0, scaled=True)
    with pytest.raises(PrivacyError, match="sensitivity"):
        ledger.spend(named("r"), Sensitivity(bound, bound))
    assert ledger.entries == ()


def test_what_is_planned_is_what_will_be_spent() -> None:
    ledger = Ledger(PrivacyBudget(1.0))
    other = Sensitivity(add_remove=0.1, replace=0.2)
    fixed = ledger.reserve(named("fixed"), BOUND, 0.5)
    ledger.reserve(named("open"), BOUND, 0.5, scaled=True)
    assert ledger.planned(named("fixed")) == ledger.planned(named("fixed"), other) == fixed
    entry = ledger.planned(named("open"), other)
    assert (entry.sensitivity, entry.mu) == (0.2, pytest.approx(fixed.mu))
    assert ledger.spend(named("open"), other) == entry
    with pytest.raises(PrivacyError, match="not reserved"):
        ledger.planned(named("neither"))


def test_without_noise_the_cost_is_infinite_and_with_little_it_is_large() -> None:
    assert Entry(named("r"), 2.0, 0.0).mu == math.inf
    assert Entry(named("r"), 2.0, 0.5).mu == 4.0


def greedy_total(budget: PrivacyBudget, rounding: float) -> float:
    """All that can be had: parts inside parts, every share as large as it is let through."""
    ledger, most = Ledger(budget), 1 + 0.99 * rounding
    larger = Sensitivity(add_remove=3.0, replace=7.0)
    for _ in range(4):
        ledger.reserve(named("r"), BOUND, 0.1, scaled=True)
        ledger.spend(named("r"), larger)
        ledger = ledger.part(1 - 0.1 + 0.99 * rounding, candidate=1)
    for turn in range(7):
        ledger.reserve(named(f"r{turn}"), BOUND, most / 7, scaled=True)
        ledger.spend(named(f"r{turn}"), larger)
    return math.sqrt(math.fsum(entry.mu**2 for entry in ledger.entries))


@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 1e-2])
@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 10.0, 50.0])
def test_rounding_of_shares_never_passes_the_budget(epsilon: float, delta: float) -> None:
    """However it is divided: by 60 digits, and by what a certificate's check finds again.

    (That rounds epsilon up, by a part in 10^10.)
    """
    total = greedy_total(PrivacyBudget(epsilon, delta), ledger_module._ROUNDING)
    assert precise_delta(epsilon, total) <= delta
    assert epsilon_of(total, delta) <= epsilon * (1 + 1.1e-10)
    assert epsilon_of(total, delta) == pytest.approx(epsilon, rel=1e-8)


def test_more_room_for_rounding_would_pass_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: with the 1e-9 of before, the same greed gets more than the promise."""
    monkeypatch.setattr(ledger_module, "_ROUNDING", 1e-9)
    total = greedy_total(PrivacyBudget(1.0, 1e-6), 1e-9)
    assert precise_delta(1.0, total) > 1e-6
    assert epsilon_of(total, 1e-6) > 1 + 1e-9


def test_ten_depths_of_parts_use_less_than_a_tenth_of_the_slack() -> None:
    """Each part inside a part passes what it is given by as much as it is let through."""
    budget, most = PrivacyBudget(1.0), 1 + 0.99 * ledger_module._ROUNDING
    ledger = Ledger(budget)
    for _ in range(10):
        ledger = ledger.part(most)
    ledger.reserve(named("r"), BOUND, most, scaled=True)
    used = ledger.spend(named("r"), Sensitivity(add_remove=3.0, replace=7.0)).mu / budget.mu - 1
    assert 5e-12 < used < 0.1 * budget_module._RELATIVE_SLACK


def exchanged(first: float, second: float, epsilon: float | None = 1.0) -> Ledger:
    ledger = Ledger(None if epsilon is None else PrivacyBudget(epsilon))
    ledger.reserve(named("fixed"), BOUND, 0.2)
    for name in ("one", "two"):
        ledger.reserve(named(name), BOUND, 0.4, scaled=True)
    ledger.redivide({named("one"): first, named("two"): second})
    return ledger


def test_releases_to_come_may_exchange_what_is_set_aside_and_no_more() -> None:
    ledger = exchanged(0.7, 0.1)
    costs = [entry.mu**2 for entry in ledger.reserved]
    assert costs[1] == pytest.approx(7 * costs[2])
    assert costs[0] == pytest.approx(costs[1] * 2 / 7)
    for name in ("fixed", "one", "two"):
        ledger.spend(named(name), BOUND)
    total = math.sqrt(sum(entry.mu**2 for entry in ledger.entries))
    assert epsilon_of(total, 1e-6) == pytest.approx(1.0, rel=1e-8)
    with pytest.raises(PrivacyError, match="more together"):
        exchanged(0.7, 0.1 + 1e-9)


def test_what_an_exchange_leaves_over_can_be_reserved() -> None:
    ledger = exchanged(0.3, 0.2)
    assert ledger.left == pytest.approx(0.3 * sum(e.mu**2 for e in ledger.reserved) / 0.7)
    ledger.reserve(named("more"), BOUND, 0.3)
    with pytest.raises(BudgetExceeded):
        ledger.reserve(named("too much"), BOUND, 0.01)


@pytest.mark.parametrize("share", [0.0, -0.1, math.nan, 1.5])
def test_impossible_shares_of_an_exchange(share: float) -> None:
    with pytest.raises(ConfigError, match="share="):
        exchanged(share, 0.1)


def test_only_scaled_releases_to_come_exchange_shares() -> None:
    ledger = exchanged(0.4, 0.4)
    ledger.spend(named("one"), BOUND)
    for name in ("fixed", "one", "unknown"):
        with pytest.raises(PrivacyError, match="cannot change"):
            ledger.redivide({named(name): 0.1})
    assert exchanged(0.5, 0.3, epsilon=None).left == math.inf


def test_an_exchange_between_unequal_relations_is_paid_as_it_costs() -> None:
    """With the paper's accounting a share costs more where replacing a row doubles the bound."""
    ledger = Ledger(PrivacyBudget(1.0, neighbours="replace", accounting="paper"))
    ledger.reserve(named("one"), Sensitivity(1.0, 1.0), 0.3, scaled=True)
    ledger.reserve(named("two"), BOUND, 0.1, scaled=True)
    with pytest.raises(PrivacyError, match="more together"):
        ledger.redivide({named("one"): 0.1, named("two"): 0.3})


def test_an_exchange_gets_no_more_where_something_is_left_over() -> None:
    """What is reserved for others, or for nobody yet, is not given away by an exchange."""
    ledger = Ledger(PrivacyBudget(1.0))
    ledger.reserve(named("one"), BOUND, 0.4, scaled=True)
    cost = ledger.reserved[0].mu ** 2
    with pytest.raises(PrivacyError, match="more together"):
        ledger.redivide({named("one"): 0.4 * (1 + 1e-11)})
    ledger.redivide({})
    assert ledger.reserved[0].mu ** 2 == cost
