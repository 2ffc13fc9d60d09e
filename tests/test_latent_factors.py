"""LatentFactors: what people choose and how they rate it, in one model."""

import dataclasses
import math
import statistics
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import Facts
from tacit.algorithms.latent_factors import by_density, shares_of
from tacit.datasets.synthetic import synthesise
from tacit.estimation.choice import ChoiceFactors
from tacit.estimation.cooccurrence import co_ratings
from tacit.estimation.latent import LatentEstimate, equations_step, initial_variances
from tacit.evaluation import evaluate, rank_new_users, user_mean_accuracy
from tacit.models.latent import choice_weights
from tacit.models.rules import OwnRows
from tests.conftest import ratings_for

RANGE = (0.5, 5.0)


def world(kind: str, seed: int = 0, **size: int) -> tuple[tacit.Ratings, tacit.Ratings]:
    made = synthesise(kind, test_fraction=0.1, seed=seed, **size)
    catalogue = tacit.Catalogue(made.items["item"], public=True)
    return tuple(  # type: ignore[return-value]
        tacit.Ratings.from_frame(part, rating_range=made.rating_range, catalogue=catalogue)
        for part in (made.train, made.test)
    )


@pytest.fixture(scope="module")
def tastes() -> tuple[tacit.Ratings, tacit.Ratings]:
    return world("tastes", users=3000, items=120, per_user=30)


@pytest.fixture(scope="module")
def exact(tastes: tuple[tacit.Ratings, tacit.Ratings]) -> tacit.Model:
    return tacit.fit(tastes[0], budget=None)


def test_it_is_the_default() -> None:
    model = tacit.fit(ratings_for(1), epsilon=1.0)
    assert model.certificate.method is not None
    assert model.certificate.method.name == "latent-factors"


def test_without_privacy_it_beats_moments_and_the_user_mean(
    tastes: tuple[tacit.Ratings, tacit.Ratings], exact: tacit.Model
) -> None:
    ours = evaluate(exact, *tastes).rmse
    theirs = evaluate(tacit.fit(tastes[0], tacit.Moments(), budget=None), *tastes).rmse
    assert ours < theirs
    assert ours < 0.9 * user_mean_accuracy(*tastes).rmse


@pytest.mark.slow
def test_few_people_and_many_items_have_factors_without_privacy() -> None:
    """A threshold found none here; the mean is far behind."""
    parts = world("popular", users=800, items=900, per_user=60)
    model = tacit.fit(parts[0], budget=None)
    noisy = tacit.fit(parts[0], epsilon=5.0, noise_seed_unsafe=1)
    found = evaluate(model, *parts).rmse
    assert found < 0.99 * user_mean_accuracy(*parts).rmse
    assert found <= evaluate(noisy, *parts).rmse


@pytest.mark.parametrize("epsilon", [1e-3, 0.05])
def test_where_noise_rules_it_is_the_user_mean(epsilon: float) -> None:
    parts = world("tastes", seed=3, users=300, items=60, per_user=20)
    model = tacit.fit(parts[0], epsilon=epsilon, noise_seed_unsafe=2)
    assert evaluate(model, *parts).rmse < 1.01 * user_mean_accuracy(*parts).rmse
    assert model.rule.factors.shape[1] == 1  # type: ignore[attr-defined]


class TestLists:
    """recommend, by its three orders."""

    def test_choice_times_liking_finds_more_than_the_rating(
        self, tastes: tuple[tacit.Ratings, tacit.Ratings]
    ) -> None:
        fitted, new = (tastes[0].take_rows(np.arange(*span)) for span in ((0, 2500), (2500, 3000)))
        model = tacit.fit(fitted, budget=None)
        found = {by: rank_new_users(model, new, by=by).recall_20 for by in (None, "rating")}
        assert found[None].low > found["rating"].high

    def test_orders_and_shares(self, exact: tacit.Model) -> None:
        own = dict.fromkeys(exact.catalogue.ids[:5].to_list(), 4.5)
        lists = {by: exact.recommend(own, n=115, by=by) for by in (None, "rating", "choice")}
        for by, key in (("rating", "score"), ("choice", "choice")):
            shown = [getattr(row, key) for row in lists[by]]
            assert shown == sorted(shown, reverse=True)
        assert math.isclose(sum(row.choice for row in lists[None]), 1.0)
        assert not {row.item for row in lists[None]} & own.keys()
        assert {row.item for row in lists[None]} == {row.item for row in lists["choice"]}

    def test_nobody_gets_popular_items(self, exact: tacit.Model) -> None:
        first = exact.recommend({}, n=5, by="choice")
        shares = exact.rule.choice_factors[:, 0]  # type: ignore[attr-defined]
        best = np.sort(shares)[::-1][:5]
        places = exact.catalogue.positions([row.item for row in first])
        assert np.allclose(np.sort(shares[places])[::-1], best)

    @pytest.mark.parametrize(("told", "power"), [(0.0, 1.0), (0.25, 0.8), (1.0, 0.5), (9.0, 0.5)])
    def test_liking_counts_less_where_choices_tell_of_taste(
        self, exact: tacit.Model, told: float, power: float
    ) -> None:
        """`told` is what differs between people, beside what is the same; never below the root."""
        rule: Any = exact.rule
        common = rule.choice_factors[:, :1]
        other = math.sqrt(told) * np.linalg.norm(common) * np.eye(common.size)[:, :1]
        rule = dataclasses.replace(
            rule,
            choice_factors=np.hstack([common, other]),
            prior=np.zeros((2, rule.prior.shape[1])),
        )
        scores, choice = np.full((1, common.size), 4.0), np.linspace(1, 2, common.size)[None]
        liking = np.vectorize(statistics.NormalDist().cdf)((4.0 - rule.liked) / rule.noise**0.5)
        assert np.allclose(rule.ranked(scores, choice), choice * liking**power)

    @pytest.mark.parametrize("by", ["liking", "", 3, True])
    def test_other_orders_are_refused(self, exact: tacit.Model, by: Any) -> None:
        with pytest.raises(tacit.ConfigError, match="by="):
            exact.recommend({}, by=by)

    def test_a_model_of_ratings_alone_has_no_order_by_choice(self) -> None:
        model = tacit.fit(ratings_for(1), tacit.Moments(), epsilon=1.0)
        assert [row.choice for row in model.recommend({}, n=2, by="rating")] == [None, None]
        with pytest.raises(tacit.ConfigError, match="by='choice'"):
            model.recommend({}, by="choice")


class TestLocalRule:
    """models.latent, against its equations."""

    def test_predictions_and_stds_are_the_posterior(self, exact: tacit.Model) -> None:
        rule: Any = exact.rule
        items, values = np.array([3, 8, 20]), np.array([5.0, 1.0, 3.5], dtype=np.float32)
        own = OwnRows(np.array([0, 3]), items.astype(np.uint32), values)
        inverse = np.diag(1 / rule.choice_noise)
        V = rule.choice_factors
        c = np.linalg.inv(np.eye(V.shape[1]) + V.T @ inverse @ V) @ V.T @ inverse
        c = c[:, items].sum(axis=1) / math.sqrt(3)
        mean, F, D = rule.prior.T @ c, rule.factors[items], rule.noise[items]
        S = np.linalg.inv(F.T @ np.diag(1 / D) @ F + np.eye(F.shape[1]))
        u = mean + S @ F.T @ ((values - rule.offsets[items] - F @ mean) / D)
        assert np.allclose(rule.scores(own)[0], rule.offsets + rule.factors @ u)
        variances = np.einsum("jk,kl,jl->j", rule.factors, S, rule.factors) + rule.noise
        assert np.allclose(rule.spread(own)[0] ** 2, variances)
        assert np.allclose(choice_weights(V, rule.choice_noise)[items].sum(axis=0) / 3**0.5, c)

    def test_choices_of_many_ratings_are_drawn_less_to_popularity(self, exact: tacit.Model) -> None:
        rule: Any = exact.rule
        V, precision = rule.choice_factors, rule.choice_factors.T / rule.choice_noise
        soft = 0.1 * float(np.mean(V[:, 0]))
        for items in (np.array([3, 8, 20]), np.arange(0, 120, 2)):
            own = OwnRows(
                np.array([0, items.size]), items.astype(np.uint32), np.ones(items.size, np.float32)
            )
            s = np.clip(math.sqrt(items.size) / float(V[:, 0].sum()), 0.1, 10.0)
            c = np.linalg.solve(np.eye(V.shape[1]) / s + precision @ V, precision[:, items].sum(1))
            plain = V @ c / math.sqrt(items.size)
            assert np.allclose(rule.choice(own)[0], soft * np.logaddexp(0, plain / soft))

    def test_a_missing_release_is_seen(self, exact: tacit.Model) -> None:
        every = [entry.release for entry in exact.certificate.releases]
        assert exact.rule.missing_releases(every) == []
        for kind in (
            ReleaseKind.ITEM_WEIGHTS,
            ReleaseKind.CO_OCCURRENCES,
            ReleaseKind.FACTOR_MOMENTS,
        ):
            left = [release for release in every if release.kind is not kind]
            assert len(exact.rule.missing_releases(left)) == 1


class TestShares:
    """How the budget is divided."""

    @pytest.mark.parametrize("users", [1, 1000, 10**8, None])
    @pytest.mark.parametrize("items", [1, 100, 10**6])
    @pytest.mark.parametrize("epsilon", [1e-3, 1.0, 100.0, None])
    def test_they_add_up_to_one_before_and_after(
        self, users: int | None, items: int, epsilon: float | None
    ) -> None:
        budget = None if epsilon is None else tacit.PrivacyBudget(epsilon)
        facts = Facts(items, RANGE, users, budget)
        shares = shares_of(facts)
        for length in (1, 50, items):
            counts = np.full((1, items), math.sqrt(length) * 100 / items)
            rated = co_ratings(counts, 0.0, (), 100.0)
            for found in (shares, by_density(facts, rated)):
                assert min(found) > 0
                assert sum(found) == pytest.approx(1.0)
                assert found[:3] == shares[:3]

    def test_a_dense_set_has_a_larger_covariance_and_smaller_steps(self) -> None:
        facts = Facts(100, RANGE, 700_000, tacit.PrivacyBudget(1.0))
        sparse, dense = (
            by_density(facts, co_ratings(np.full((1, 100), d**0.5), 0.0, (), 100.0))
            for d in (2.0, 90.0)
        )
        assert dense.covariance > 1.5 * sparse.covariance
        assert dense.steps < 0.5 * sparse.steps

    def test_where_matrices_can_just_be_read_it_is_nearly_moments(self) -> None:
        """Else factors are lost in noise that neither rounds nor choices can make up for."""
        facts = Facts(400, RANGE, 20_000, tacit.PrivacyBudget(1.0))
        moments = tacit.Moments()
        left = 1.0 - moments.spread_share - moments.weight_share - moments.effect_share
        shares = shares_of(facts)
        assert shares.covariance + shares.more_covariance > 0.8 * left

    def test_where_nothing_can_be_read_item_means_have_most_of_it(self) -> None:
        shares = shares_of(Facts(400, RANGE, 500, tacit.PrivacyBudget(0.1)))
        assert shares.effects + shares.weights + shares.steps > 0.9

    def test_the_certificate_shows_what_was_spent(self) -> None:
        dense = ratings_for(4, users=400, items=10, per_user=9)
        model = tacit.fit(dense, epsilon=200.0, noise_seed_unsafe=1)  # so that all can be read
        spent = {entry.release.kind: entry.mu**2 for entry in model.certificate.releases}
        budget = tacit.PrivacyBudget(200.0)
        planned = shares_of(Facts(10, RANGE, 400, budget)).covariance * budget.mu**2
        assert spent[ReleaseKind.COVARIANCE] > 1.2 * planned


def test_equations_give_back_the_factors_that_made_them() -> None:
    rng = np.random.default_rng(0)
    items, rank, people = 6, 2, 4000
    F, shift = rng.standard_normal((items, rank)), rng.standard_normal(items)
    u = rng.standard_normal((people, rank))
    y = u @ F.T + shift + 0.1 * rng.standard_normal((people, items))
    t = np.column_stack([u, np.ones(people)])
    above = np.triu_indices(rank + 1)
    released = np.array(
        [[*(t.T @ t)[above], *(t.T @ y[:, j]), y[:, j] @ y[:, j]] for j in range(items)]
    )
    start = LatentEstimate(F + 0.5, np.zeros(items), np.ones(items), np.zeros((1, rank)))
    found, variances = equations_step(
        start, (released, 0.0), initial_variances(start, np.full(items, 1 / items)), 1e-6
    )
    assert np.allclose(found.factors, F, atol=0.05)
    assert np.allclose(found.offsets, shift, atol=0.05)
    assert np.allclose(found.noise, 0.01, atol=0.01)
    assert np.all(variances > 0)


def test_the_second_moment_of_choices_is_that_of_the_model() -> None:
    shares = np.array([0.5, 0.3, 0.2])
    V, own = ChoiceFactors(shares, np.array([[0.4], [-0.2], [-0.7]]), 200.0).second_moment(100.0)
    assert np.allclose(V[:, 0], math.sqrt(2.0) * shares)
    assert np.all(own >= 0.2 * shares)
