"""Membership: the attack wins where there is no noise, and stays within what the budget allows.

Seeds are fixed. Over seeds, a sound model is called unsound with a probability below 5 % a finding
(and far below, since the limit is not reached); with these seeds it never is.
"""

from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import Neighbours, delta_of
from tacit.audit import membership as module
from tacit.audit.advantage import Guesses, area_under_curve, epsilon_limit, exact_limit
from tacit.audit.finding import Finding
from tacit.audit.learned_attack import Learned
from tacit.audit.membership import VIEWS, membership, membership_guesses, two_rows
from tacit.audit.population import Insider
from tacit.audit.result import Audit
from tacit.audit.target import Target
from tacit.models import Model
from tacit.models.rules import OwnRows

BUDGET = tacit.PrivacyBudget(1.0)
SUBJECT = Target(tacit.FrankWolfe(rounds=3, residual_clip=1.0), BUDGET)
TRIALS = 120


@pytest.mark.statistical
def test_it_wins_without_noise_and_not_beyond_the_limit_with_it() -> None:
    findings = membership(SUBJECT, seed=1, trials=TRIALS)
    assert [finding.holds for finding in findings] == [True] * 4
    free, private = findings[:2], findings[2:]
    assert all(finding.measured > 0.95 and "NOT PRIVATE" in finding.subject for finding in free)
    assert all(finding.measured < 0.25 for finding in private)
    assert all(finding.limit == exact_limit(BUDGET) < epsilon_limit(BUDGET) for finding in private)


def test_every_line_of_the_table_says_who_attacks() -> None:
    findings = membership(SUBJECT, seed=1, trials=30)
    table = Audit("frank-wolfe", BUDGET, tuple(findings)).text()
    for budget in ("NOT PRIVATE", "epsilon 1"):
        assert all(f"frank-wolfe, {budget}: {who} " in table for who in VIEWS)
    assert len({finding.subject for finding in findings}) == len(findings)


@pytest.mark.statistical
def test_a_model_with_too_little_noise_is_found_out() -> None:
    """The twin: noise for epsilon 20 under a certificate that says 1."""
    generous = membership_guesses(SUBJECT, replace(BUDGET, epsilon=20.0), TRIALS, seed=1)
    for guesses in generous.values():
        assert guesses.interval.low > exact_limit(BUDGET)
        assert guesses.advantage <= exact_limit(replace(BUDGET, epsilon=20.0))


@pytest.mark.statistical
def test_her_own_predictions_shown_to_others_give_her_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of joint privacy: what the promise does not cover is really not covered."""
    inside, outside = two_rows(6, Neighbours.REPLACE)
    true_fit = Insider.fit
    fitted: dict[int, np.ndarray] = {}

    def fit_and_look(self: Insider, row: np.ndarray, seed: int) -> Model:
        model = true_fit(self, row, seed)
        rated = np.flatnonzero(row)
        own = OwnRows(np.array([0, rated.size]), rated, row[rated].astype(np.float32))
        fitted[id(model)] = model.rule.scores(own).ravel()
        return model

    monkeypatch.setattr(Insider, "fit", fit_and_look)
    monkeypatch.setitem(VIEWS, "her list is shown", lambda model, _: fitted[id(model)])
    law = module.law_of(6, 0)
    insider = Insider(SUBJECT, BUDGET, law.draw(20, module.stream(0, 3)))
    guesses = module.guess_rows(insider, (inside, outside), 60, seed=1)
    assert guesses["her list is shown"].interval.low > epsilon_limit(BUDGET)
    assert all(guesses[name].interval.low < exact_limit(BUDGET) for name in list(VIEWS)[:2])


def test_add_remove_takes_her_row_away() -> None:
    with_her, without = two_rows(6, Neighbours.ADD_REMOVE)
    assert with_her.any()
    assert not without.any()
    first, second = two_rows(6, Neighbours.REPLACE)
    assert first.any()
    assert second.any()
    assert not np.any((first > 0) & (second > 0))


def test_interactions_are_attacked_too() -> None:
    subject = Target(tacit.Interactions(), BUDGET)
    findings = membership(subject, seed=2, trials=30)
    assert len(findings) == 4
    assert all(finding.holds for finding in findings[2:])


def test_limits_are_those_of_their_definitions() -> None:
    for epsilon in (0.1, 1.0, 8.0):
        budget = tacit.PrivacyBudget(epsilon, delta=1e-5)
        wanted = (np.exp(epsilon) - 1 + 2e-5) / (np.exp(epsilon) + 1)
        assert epsilon_limit(budget) == pytest.approx(wanted, rel=1e-12)
        assert exact_limit(budget) == pytest.approx(delta_of(0.0, budget.mu), rel=1e-9)
    assert epsilon_limit(tacit.PrivacyBudget(1e4)) == 1.0


def test_bounds_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(3)
    chance = 0.6
    right = rng.binomial(100, chance, size=500)
    guesses = [Guesses(int(count), 100, 0.5) for count in right]
    missed = np.mean([each.interval.low > 2 * chance - 1 for each in guesses])
    assert missed <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / 500)
    assert all(each.interval.low < each.advantage < each.interval.high for each in guesses)
    assert missed > 0.01  # not vacuous


def test_area_is_the_chance_to_be_above() -> None:
    inside, outside = np.array([1.0, 2.0, 2.0]), np.array([0.0, 2.0])
    assert area_under_curve(inside, outside) == pytest.approx((1 + 1.5 + 1.5) / 6)


def test_learning_finds_a_weak_direction_among_many() -> None:
    rng = np.random.default_rng(4)
    hidden = rng.choice([-1.0, 1.0], size=(600, 1))
    seen = rng.normal(size=(600, 40))
    seen[:, :1] += 0.8 * hidden
    guess = Learned.from_examples(seen[:300], hidden[:300]).guess(seen[300:])
    assert np.mean((guess > 0) == (hidden[300:] > 0)) > 0.7
    shuffled = rng.permutation(hidden)
    blind = Learned.from_examples(seen[:300], shuffled[:300]).guess(seen[300:])
    assert np.mean((blind > 0) == (hidden[300:] > 0)) < 0.62


def finding_of(right: int, trials: int = 400) -> Finding:
    budget = tacit.PrivacyBudget(1.0)
    return module._finding("moments", budget, "someone", Guesses(right, trials, 0.5))


def test_a_finding_above_the_limit_shows_the_interval_that_explains_it() -> None:
    """A twin: more trials with the same advantage have a lower limit that is above, and fail."""
    lucky, broken = finding_of(31, 50), finding_of(247)
    assert lucky.measured > lucky.limit
    assert lucky.interval is not None
    assert lucky.interval.low <= lucky.limit < lucky.measured < lucky.interval.high
    assert (lucky.holds, broken.holds) == (True, False)
    table = Audit("moments", BUDGET, (lucky,)).text()
    assert "0.24   -0.012 to 0.470    0.09421" in table
    assert "%" not in table.split("interval:")[0]  # no share of the limit beside an estimate
    assert "It holds if the lower one is not above the limit" in " ".join(table.split())
    told = Audit("moments", BUDGET, (broken,)).conclusion()
    assert "0.235 (0.151 to 0.316) where 0.09421 is the limit" in told


def test_the_interval_is_in_the_json_and_on_the_page() -> None:
    found = Audit("moments", BUDGET, (finding_of(200),))
    (line,) = found.to_json()["findings"]
    assert set(line["interval"]) == {"low", "high", "confidence"}
    assert line["interval"]["confidence"] == pytest.approx(0.95)
    assert "-0.085 to 0.085" in found.page()
