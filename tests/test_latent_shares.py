"""How LatentFactors divides its budget: every release has a share, however dense ratings are."""

import itertools
import math
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit import PrivacyBudget, PrivacyError
from tacit.accounting.budget import Sensitivity
from tacit.accounting.ledger import Ledger
from tacit.algorithms.base import Facts
from tacit.algorithms.latent_shares import (
    NOTHING,
    by_density,
    shares_of,
    with_choices,
    without_covariance,
)
from tacit.estimation import latent
from tacit.estimation.cooccurrence import CoRatings
from tacit.evaluation import evaluate, split
from tests.conftest import named, ratings_for

BOUND = Sensitivity(add_remove=1.0, replace=2.0)


class Rated:
    """What is known of ratings of this density, as far as shares depend on it."""

    def __init__(self, density: float, items: int) -> None:
        self.stratum_sizes, self.weights = np.ones(1), np.ones(items)
        self.shares = np.full(items, 1 / items)
        self.lengths = np.array([density * items])


@pytest.mark.parametrize("users", [1, 1000, 10**9])
def test_every_share_is_positive_and_they_add_up(users: int) -> None:
    for density, epsilon in itertools.product((1e-4, 0.3, 0.8, 1.0, 3.0), (0.01, 1.0, 50.0)):
        facts = Facts(100, (1.0, 5.0), users, tacit.PrivacyBudget(epsilon))
        rated: CoRatings = Rated(density, 100)  # type: ignore[assignment]
        for shares in (shares_of(facts), by_density(facts, rated), with_choices(facts, rated)):
            assert min(shares) > 0
            assert sum(shares) == pytest.approx(1.0)


def test_rounds_give_choices_no_more_than_these_get() -> None:
    """At a density of 0.69 their share was negative, and a fit ended after half of its releases."""
    for epsilon in np.geomspace(0.01, 100.0, 25):
        facts = Facts(32, (1.0, 5.0), 3000, tacit.PrivacyBudget(float(epsilon)))
        for density in np.linspace(0.005, 1.0, 60):
            rated: CoRatings = Rated(float(density), 32)  # type: ignore[assignment]
            before, then = by_density(facts, rated), with_choices(facts, rated)
            assert min(then) > 0
            assert sum(then) == pytest.approx(1.0)
            assert then.steps >= before.steps - then.more_choice


@pytest.mark.parametrize("users", [1, 1000, 10**5, 10**9])
def test_a_second_look_at_choices_changes_nothing_that_was_spent_before_it(users: int) -> None:
    for density, epsilon in itertools.product((1e-4, 0.3, 1.0), (0.01, 1.0, 50.0)):
        facts = Facts(100, (1.0, 5.0), users, tacit.PrivacyBudget(epsilon))
        rated: CoRatings = Rated(density, 100)  # type: ignore[assignment]
        before, then = by_density(facts, rated), with_choices(facts, rated)
        spent = ("spreads", "weights", "effects", "choice")
        assert [getattr(then, name) for name in spent] == [getattr(before, name) for name in spent]


def test_choices_of_people_who_rate_most_items_have_next_to_nothing() -> None:
    """On Jester, where 56 % is rated, what choices had cost 0.4 % of RMSE at epsilon 0.2."""
    for users, epsilon in itertools.product((10**5, 10**6), (0.1, 1.0, 20.0)):
        facts = Facts(100, (1.0, 5.0), users, tacit.PrivacyBudget(epsilon))
        rated: CoRatings = Rated(0.56, 100)  # type: ignore[assignment]
        then = with_choices(facts, rated)
        assert then.choice + then.more_choice < 0.01
        few: CoRatings = Rated(0.09, 100)  # type: ignore[assignment]
        assert with_choices(facts, few).more_choice + with_choices(facts, few).choice > 0.15


def test_choices_that_tell_get_more_where_they_can_be_read_and_are_not_clear() -> None:
    """With their usual share, a fifth, lists lost more to noise there than ratings did."""
    rated: CoRatings = Rated(0.09, 500)  # type: ignore[assignment]
    parts = {}
    for epsilon in (0.001, 0.1, 100.0):
        facts = Facts(500, (1.0, 5.0), 450_000, tacit.PrivacyBudget(epsilon))
        then = with_choices(facts, rated)
        parts[epsilon] = then.choice + then.more_choice
    assert parts[0.001] < 0.1
    assert 0.15 < parts[100.0] < 0.25
    assert 0.3 < parts[0.1] < 0.4


def crowds(apart: bool) -> tacit.Ratings:
    """Two groups who choose other items, or one group who choose any; ratings are all alike."""
    rng = np.random.default_rng(3)
    users, items, each = 6000, 40, 8
    first = rng.integers(0, 2, users) * (items // 2) if apart else np.zeros(users, dtype=int)
    width = items // 2 if apart else items
    chosen = np.argsort(rng.random((users, width)), axis=1)[:, :each] + first[:, None]
    values = rng.integers(1, 6, users * each).astype(float)
    return tacit.Ratings.from_arrays(
        np.repeat(np.arange(users), each), chosen.ravel(), values, rating_range=(1.0, 5.0)
    )


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
@pytest.mark.parametrize("apart", [True, False])
def test_choices_are_looked_at_again_only_if_they_tell_of_taste(
    apart: bool, neighbours: str
) -> None:
    """What is decided on the way costs nothing beyond the budget, and leaves next to nothing."""
    model = tacit.fit(
        crowds(apart), tacit.LatentFactors(), epsilon=1.0, neighbours=neighbours,
        noise_seed_unsafe=1,
    )  # fmt: skip
    names = [entry.name for entry in model.certificate.releases]
    assert ("co-occurrences 2" in names) == apart
    assert names.index("co-occurrences 1") < names.index("covariance 1")
    assert model.certificate.exact_epsilon == pytest.approx(1.0, rel=1e-8)
    assert model.certificate.exact_epsilon <= 1.0 + 1e-9


@pytest.mark.parametrize(("epsilon", "twice"), [(0.01, True), (1.0, True), (50.0, False)])
def test_the_covariance_is_parted_where_its_factors_may_be_out_of_reach(
    epsilon: float, twice: bool
) -> None:
    facts = Facts(100, (1.0, 5.0), 3000, tacit.PrivacyBudget(epsilon))
    shares = shares_of(facts)
    assert (shares.more_covariance > shares.covariance) == twice
    assert (shares.more_covariance == NOTHING) != twice
    paper = replace(facts, budget=tacit.PrivacyBudget(min(epsilon, 20.0), accounting="paper"))
    assert shares_of(paper).more_covariance == NOTHING
    rest = without_covariance(shares)
    assert sum(rest) == pytest.approx(1.0)
    assert rest.more_covariance == NOTHING
    assert rest.steps >= shares.steps


def groups(loading: float, users: int = 6000, items: int = 60, each: int = 10) -> tacit.Ratings:
    """Two groups choose other items, mostly, and like other ones of them."""
    rng = np.random.default_rng(3)
    group, side = rng.integers(0, 2, users), np.arange(items) % 2
    odds = np.where(side == group[:, None], 8.0, 1.0)
    chosen = np.argsort(-np.log(rng.random((users, items))) / odds, axis=1)[:, :each]
    sign = np.where(rng.random(items) < 0.5, 1.0, -1.0)[chosen] * (1 - 2 * group[:, None])
    values = np.rint(3 + loading * sign + rng.standard_normal((users, each)))
    return tacit.Ratings.from_arrays(
        np.repeat(np.arange(users), each), chosen.ravel(), np.clip(values, 1, 5).ravel(),
        rating_range=(1.0, 5.0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("loading", "found", "epsilon", "neighbours"),
    [(0.0, False, 1.0, "replace"), (1.0, True, 1.0, "replace"), (1.0, False, 0.1, "add_remove")],
)
def test_the_covariance_is_looked_at_again_only_if_it_has_factors(
    loading: float, found: bool, epsilon: float, neighbours: str
) -> None:
    """What the second look would have cost goes to the rounds; nothing is left, nothing is more."""
    model = tacit.fit(
        groups(loading), tacit.LatentFactors(), epsilon=epsilon, neighbours=neighbours,
        noise_seed_unsafe=1,
    )  # fmt: skip
    spent = {entry.name: entry.mu**2 for entry in model.certificate.releases}
    assert ("covariance 2" in spent) == found
    if found:
        assert spent["covariance 2"] > 2 * spent["covariance 1"]
    else:
        assert spent["gradient 1"] + spent["gradient 2"] > spent["covariance 1"]
    assert model.certificate.exact_epsilon == pytest.approx(epsilon, rel=1e-7)
    assert model.certificate.exact_epsilon <= epsilon * (1 + 1e-9)


def test_choices_start_factors_that_the_covariance_cannot_show(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """How ratings go with choice has far fewer numbers than their covariance."""
    train, test = split(groups(0.3), 0.2, np.random.default_rng(0))

    def error() -> tuple[int, float]:
        model = tacit.fit(train, tacit.LatentFactors(), epsilon=2.0, noise_seed_unsafe=0)
        assert "covariance 2" not in [entry.name for entry in model.certificate.releases]
        return model.rule.factors.shape[1] - 1, evaluate(model, train, test).rmse

    found, with_them = error()
    monkeypatch.setattr(latent, "_FROM_CHOICE", 0)
    none, without = error()
    assert (found, none) == (1, 0)
    assert with_them < without - 0.002


def test_factors_of_which_ratings_tell_nothing_are_left_out() -> None:
    model = tacit.fit(groups(0.0), tacit.LatentFactors(), epsilon=0.5, noise_seed_unsafe=1)
    assert model.rule.choice_factors.shape[1] == 2
    assert model.rule.factors.shape[1] == model.rule.prior.shape[1] == 1


def test_ratings_of_all_items_can_be_fitted() -> None:
    """Nothing was left for the rounds there, and a fit ended after half of its releases."""
    ratings = ratings_for(1, users=3000, items=12, per_user=12)
    model = tacit.fit(ratings, tacit.LatentFactors(), epsilon=5.0, noise_seed_unsafe=1)
    assert model.certificate.exact_epsilon == pytest.approx(5.0, rel=1e-6)


def scaled_thirds(epsilon: float = 1.0) -> Ledger:
    """A whole budget in three scaled reservations."""
    ledger = Ledger(PrivacyBudget(epsilon))
    for turn in range(3):
        ledger.reserve(named(f"r {turn}"), BOUND, 1 / 3, scaled=True)
    return ledger


def cost_of(ledger: Ledger) -> float:
    return math.fsum(entry.mu**2 for entry in ledger.reserved)


def test_what_was_given_up_and_reserved_by_another_does_not_come_back() -> None:
    ledger = scaled_thirds()
    ledger.redivide({named("r 0"): 0.1})
    ledger.reserve(named("late"), BOUND, 1 / 3 - 0.1)
    with pytest.raises(PrivacyError, match="more together"):
        ledger.redivide({named("r 0"): 1 / 3})


@pytest.mark.parametrize("epsilon", [1.0, 15.0])
def test_rounding_does_not_add_up_however_often_shares_are_divided(epsilon: float) -> None:
    """Each time a little more, within what rounding is forgiven: it is forgiven once."""
    ledger, share = scaled_thirds(epsilon), 1 / 3
    limit = cost_of(ledger)
    for _ in range(1000):
        share *= 1 + 0.9e-12
        with suppress(PrivacyError):
            ledger.redivide({named(f"r {turn}"): share for turn in range(3)})
    assert cost_of(ledger) <= limit * (1 + 3e-12)
