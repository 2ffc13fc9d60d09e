"""Filters, the ratings that a recommendation rests on, and similar items."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.models.filling import FillingRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.neighbours import NeighbourRule
from tacit.models.replay import ReplayRule
from tests.conftest import ratings_for

OWN = {"film-01": 5.0, "film-03": 1.0, "film-07": 4.5}
IDS = [f"film-{item:02d}" for item in range(15)]

METHODS: dict[str, tuple[Any, type]] = {
    "latent factors": (tacit.LatentFactors(step="equations", rounds=2), LatentFactorRule),
    "moments": (tacit.Moments(), RidgeRule),
    "als": (tacit.ALS(), RidgeRule),
    "svd": (tacit.SVD(rank=2), ProjectionRule),
    "svd, few ratings": (tacit.SVD(rank=2, max_ratings=2), ProjectionRule),
    "frank-wolfe": (tacit.FrankWolfe(rounds=3), ReplayRule),
    "frank-wolfe, ridge": (tacit.FrankWolfe(rounds=3, local="ridge"), RidgeRule),
    "projected gradient": (tacit.ProjectedGradient(rounds=3), FillingRule),
    "cleansing": (tacit.Cleansing(local="neighbours"), NeighbourRule),
}
LINEAR = [name for name, (_, rule) in METHODS.items() if hasattr(rule, "contributions")]


@pytest.fixture(scope="module")
def models() -> dict[str, tacit.Model]:
    """A fit by each method, without noise, so that all have factors."""
    ratings = ratings_for(0, users=600)
    return {name: tacit.fit(ratings, config, budget=None) for name, (config, _) in METHODS.items()}


@pytest.fixture(scope="module")
def model(models: dict[str, tacit.Model]) -> tacit.Model:
    return models["latent factors"]


@pytest.fixture(scope="module")
def touched() -> tacit.Model:
    """A model of interactions of two tastes: even and odd items."""
    from tests.test_implicit import people_of_tastes

    return tacit.fit(people_of_tastes(600, 12, seed=0), budget=None)


class TestFilters:
    """candidates and exclude."""

    def test_only_candidates_and_none_of_the_excluded(self, model: tacit.Model) -> None:
        some = ["film-02", "film-09", "film-12", "film-01"]
        found = [row.item for row in model.recommend(OWN, candidates=some, exclude=["film-09"])]
        assert set(found) == {"film-02", "film-12"}  # film-01 is her own
        again = [row.item for row in model.recommend(OWN, 15) if row.item in found]
        assert found == again  # in the order of the whole list

    @pytest.mark.parametrize("form", [list, tuple, set, np.array, pl.Series])
    def test_every_form_of_ids(self, model: tacit.Model, form: Any) -> None:
        given = form(["film-02", "film-09"])
        assert {row.item for row in model.recommend(OWN, candidates=given)} == set(given)

    def test_a_frame_is_a_form_too(self, model: tacit.Model) -> None:
        frame = pl.DataFrame({"item": ["film-02"], "price": [3.0]})
        assert [row.item for row in model.recommend(OWN, candidates=frame)] == ["film-02"]
        assert len(model.recommend(OWN, 20, exclude=frame)) == 11

    def test_shares_of_choice_are_among_what_could_be_recommended(self, model: tacit.Model) -> None:
        some = IDS[:6]
        found = model.recommend(OWN, candidates=some)
        assert sum(row.choice or 0.0 for row in found) == pytest.approx(1.0)

    def test_rows_have_the_same_filters(self, model: tacit.Model) -> None:
        ratings = ratings_for(1)
        given = {"candidates": IDS[:8], "exclude": IDS[3:5]}
        _, lists = next(model.recommend_rows(ratings, 5, **given))
        own = dict(
            zip([IDS[k] for k in ratings.items[:6]], ratings.values[:6].tolist(), strict=True)
        )
        wanted = [IDS.index(row.item) for row in model.recommend(own, 5, **given)]
        assert lists[0][lists[0] >= 0].tolist() == wanted
        assert set(np.unique(lists)) <= {-1, 0, 1, 2, 5, 6, 7}

    @pytest.mark.parametrize("name", ["candidates", "exclude"])
    def test_unknown_items_are_named(self, model: tacit.Model, name: str) -> None:
        with pytest.raises(tacit.ConfigError, match=f"{name}: 1 of 2 .*'no such film'") as error:
            model.recommend(OWN, **{name: ["film-02", "no such film"]})
        assert "4.5" not in str(error.value)
        with pytest.raises(tacit.ConfigError, match=f"{name}=str: expected a list"):
            model.recommend(OWN, **{name: "film-02"})
        with pytest.raises(tacit.ConfigError, match=f"{name}: expected item ids"):
            model.recommend(OWN, **{name: [object()]})

    def test_nothing_left_is_an_error(self, model: tacit.Model) -> None:
        for given in ({"candidates": []}, {"exclude": IDS}):
            with pytest.raises(tacit.ConfigError, match="leave no item"):
                model.recommend(OWN, **given)
        assert len(model.recommend(OWN, 20, exclude=[])) == 12


class TestReasons:
    """recommend(because=True)."""

    @pytest.mark.parametrize("name", LINEAR)
    @pytest.mark.parametrize("own", [OWN, {}, {"film-05": 2.0}], ids=["three", "none", "one"])
    def test_they_add_up_to_the_prediction(
        self, models: dict[str, tacit.Model], name: str, own: dict[str, float]
    ) -> None:
        model = models[name]
        raw = dict(zip(IDS, model.predict(own, clip=False), strict=True))
        found = model.recommend(own, 15, include_rated=True, because=True)
        assert len(found) == 15
        for row in found:
            assert row.because is not None
            assert {reason.item: reason.rating for reason in row.because} == own
            total = (row.baseline or 0.0) + sum(reason.contribution for reason in row.because)
            assert total == pytest.approx(raw[row.item], abs=1e-9)
            sizes = [abs(reason.contribution) for reason in row.because]
            assert sizes == sorted(sizes, reverse=True)

    @pytest.mark.parametrize("name", LINEAR)
    def test_a_contribution_is_linear_in_its_rating(
        self, models: dict[str, tacit.Model], name: str
    ) -> None:
        """A rating that moves by 1 moves its own contribution by what predictions move, no other.

        A wrong split that only adds up right, such as equal parts, fails here.
        """
        model, moved = models[name], {**OWN, "film-03": 2.0}
        tables = []
        for own in (OWN, moved):
            rows = model.recommend(own, 15, include_rated=True, because=True)
            tables.append({(row.item, r.item): r.contribution for row in rows for r in row.because})
        change = model.predict(moved, clip=False) - model.predict(OWN, clip=False)
        for at, item in enumerate(IDS):
            for rated in OWN:
                wanted = change[at] if rated == "film-03" else 0.0
                gained = tables[1][item, rated] - tables[0][item, rated]
                assert gained == pytest.approx(wanted, abs=1e-9)

    def test_someone_who_rates_as_expected_has_contributions_of_zero(
        self, models: dict[str, tacit.Model]
    ) -> None:
        model = models["moments"]
        means = dict(zip(IDS, model.predict({}), strict=True))
        own = {item: means[item] for item in OWN}
        for row in model.recommend(own, because=True):
            assert all(abs(reason.contribution) < 1e-6 for reason in row.because or ())

    def test_interactions_have_reasons(self, touched: tacit.Model) -> None:
        ids = touched.catalogue.ids.to_list()
        own = ids[:3]
        raw = dict(zip(ids, touched.predict(own, clip=False), strict=True))
        for row in touched.recommend(own, 12, include_rated=True, because=True):
            total = (row.baseline or 0.0) + sum(r.contribution for r in row.because or ())
            assert total == pytest.approx(raw[row.item], abs=1e-9)

    @pytest.mark.parametrize("name", sorted(set(METHODS) - set(LINEAR)))
    def test_rules_that_are_not_linear_say_so(
        self, models: dict[str, tacit.Model], name: str
    ) -> None:
        with pytest.raises(tacit.ConfigError, match=r"because=True .*not linear"):
            models[name].recommend(OWN, because=True)

    def test_without_asking_there_are_none(self, model: tacit.Model) -> None:
        row = model.recommend(OWN, 1)[0]
        assert row.because is None
        assert row.baseline is None
        with pytest.raises(tacit.ConfigError, match="because='yes'"):
            model.recommend(OWN, because="yes")  # type: ignore[arg-type]


class TestSimilarItems:
    """similar_items."""

    @pytest.mark.parametrize("name", METHODS)
    def test_every_method_has_a_measure(self, models: dict[str, tacit.Model], name: str) -> None:
        found = models[name].similar_items("film-04", 5)
        similarities = [row.similarity for row in found]
        assert len(found) == 5
        assert similarities == sorted(similarities, reverse=True)
        assert all(-1 <= each <= 1 for each in similarities)
        assert "film-04" not in {row.item for row in found}
        assert found[0].title.startswith("Film No. ")

    @pytest.mark.parametrize("name", METHODS)
    def test_it_is_symmetric(self, models: dict[str, tacit.Model], name: str) -> None:
        one = {row.item: row.similarity for row in models[name].similar_items("film-04", 15)}
        other = {row.item: row.similarity for row in models[name].similar_items("film-09", 15)}
        assert one["film-09"] == pytest.approx(other["film-04"])

    def test_items_that_are_rated_alike_are_similar(self) -> None:
        """Two groups: similar items are of the same group, where ratings tell of groups."""
        rng = np.random.default_rng(5)
        taste = rng.standard_normal((800, 2))
        groups = np.arange(14) % 2
        stars = np.clip(3 + taste[:, groups] + 0.3 * rng.standard_normal((800, 14)), 1, 5)
        rows, items = np.nonzero(rng.random((800, 14)) < 0.6)
        ratings = tacit.Ratings.from_arrays(rows, items, stars[rows, items], rating_range=(1, 5))
        model = tacit.fit(ratings, budget=None)
        for item in range(14):
            near = [row.item for row in model.similar_items(item, 6)]
            assert {each % 2 for each in near} == {item % 2}

    def test_latent_factors_use_choice_and_rating(self, model: tacit.Model) -> None:
        rule = model.rule
        assert isinstance(rule, LatentFactorRule)
        rng = np.random.default_rng(0)
        choice = np.hstack([rule.choice_factors[:, :1], rng.standard_normal((15, 2))])
        two = replace(rule, choice_factors=choice, prior=np.zeros((3, rule.prior.shape[1])))
        flat = replace(two, factors=np.ones_like(rule.factors))
        alone = replace(two, choice_factors=choice[:, :1], prior=two.prior[:1])
        wanted = 0.5 * (flat.similarities(4) + alone.similarities(4))
        assert np.allclose(two.similarities(4), wanted)

    def test_without_factors_it_is_an_error(self, ratings: tacit.Ratings) -> None:
        model = tacit.fit(ratings, epsilon=0.001, noise_seed_unsafe=1)
        with pytest.raises(tacit.ConfigError, match="item='film-04': no factors of it"):
            model.similar_items("film-04")

    def test_bad_input_is_named(self, model: tacit.Model, touched: tacit.Model) -> None:
        with pytest.raises(tacit.ConfigError, match=r"item: 1 of 1 .*'no such film'"):
            model.similar_items("no such film")
        with pytest.raises(tacit.ConfigError, match="n=0"):
            model.similar_items("film-04", 0)
        assert len(touched.similar_items(touched.catalogue.ids[0], 3)) == 3
