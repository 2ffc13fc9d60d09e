import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit
from tests.contracts.test_algorithms import CASES

OWN = {"film-01": 5.0, "film-03": 1.0, "film-07": 4.5}


@pytest.fixture
def model(ratings: tacit.Ratings) -> tacit.Model:
    return tacit.fit(ratings, epsilon=5.0)


def test_every_form_of_own_ratings_gives_the_same(model: tacit.Model) -> None:
    items, values = list(OWN), list(OWN.values())
    forms = [
        OWN,
        pl.DataFrame({"item": items, "rating": values}),
        pl.LazyFrame({"item": items, "rating": values}),
        pd.DataFrame({"item": items, "rating": values}),
        (items, values),
        (np.array(items), np.array(values)),
        dict(reversed(OWN.items())),
    ]
    for form in forms:
        assert np.array_equal(model.predict(form), model.predict(OWN))


def test_a_trained_user_and_a_newcomer_with_the_same_row_get_the_same(
    model: tacit.Model, ratings: tacit.Ratings
) -> None:
    (start, scores), *_ = model.predict_rows(ratings)
    assert start == 0
    for user in (0, 7, 79):
        lo, hi = ratings.indptr[user], ratings.indptr[user + 1]
        ids = [ratings.catalogue.ids[int(item)] for item in ratings.items[lo:hi]]
        own = dict(zip(ids, ratings.values[lo:hi].tolist(), strict=True))
        assert np.allclose(model.predict(own), scores[user], atol=1e-9)


def test_predictions_of_wanted_items_come_in_their_order(model: tacit.Model) -> None:
    everything = model.predict(OWN)
    assert model.predict(OWN, ["film-09", "film-02"]).tolist() == [everything[9], everything[2]]


def test_unknown_items_are_counted_and_left_out(model: tacit.Model) -> None:
    with pytest.warns(tacit.UnknownItemsWarning, match="2 of 5 own ratings"):
        scores = model.predict(OWN | {"no such film": 3.0, "nor this": 2.0})
    assert np.array_equal(scores, model.predict(OWN))
    with pytest.warns(tacit.UnknownItemsWarning, match="1 of 2 wanted items"):
        wanted = model.predict(OWN, ["film-00", "no such film"])
    assert np.isnan(wanted[1])
    assert wanted[0] == model.predict(OWN)[0]


def test_recommendations_are_sorted_titled_and_new(model: tacit.Model) -> None:
    chosen = model.recommend(OWN, n=5, by="rating")
    scores = [row.score for row in chosen]
    assert len(chosen) == 5
    assert scores == sorted(scores, reverse=True)
    assert not {row.item for row in chosen} & set(OWN)
    assert chosen[0].title.startswith("Film No. ")
    everything = model.recommend(OWN, n=100, include_rated=True)
    assert len(everything) == 15
    assert len(model.recommend(OWN, n=100)) == 12


def test_someone_unknown_gets_the_list_of_released_means(ratings: tacit.Ratings) -> None:
    model = tacit.fit(ratings, tacit.FrankWolfe(rounds=3, item_means=0.5), budget=None)
    chosen = model.recommend({}, n=15)
    assert len({row.score for row in chosen}) > 5
    means = {}
    for at, item in enumerate(ratings.catalogue.ids):
        means[item] = ratings.values[ratings.items == at].mean()
    best = sorted(means, key=means.__getitem__, reverse=True)[:4]
    assert len({row.item for row in chosen[:6]} & set(best)) >= 3


def test_predictions_stay_in_the_rating_range(model: tacit.Model, ratings: tacit.Ratings) -> None:
    for _, scores in model.predict_rows(ratings):
        assert scores.min() >= 0.5
        assert scores.max() <= 5.0


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"film-01": 9.0}, "1 ratings"),
        ({"film-01": float("nan")}, "1 ratings"),
        ({"film-01": "good"}, "number"),
        ((["film-01", "film-01"], [1.0, 2.0]), "twice"),
        ((["film-01"], [1.0, 2.0]), "pairs"),
        (pl.DataFrame({"film": ["film-01"]}), "columns item and rating"),
        ([1, 2, 3], "expected a dict"),
        (None, "expected a dict"),
    ],
)
def test_bad_own_ratings(model: tacit.Model, own: object, message: str) -> None:
    with pytest.raises(tacit.DataError, match=message) as caught:
        model.predict(own)
    assert "9.0" not in str(caught.value)


@pytest.mark.parametrize("n", [0, -1, 2.5, True])
def test_bad_counts(model: tacit.Model, ratings: tacit.Ratings, n: object) -> None:
    with pytest.raises(tacit.ConfigError, match="n="):
        model.recommend(OWN, n=n)  # type: ignore[arg-type]
    with pytest.raises(tacit.ConfigError, match="n="):
        next(model.recommend_rows(ratings, n))  # type: ignore[arg-type]


@pytest.mark.parametrize("include_rated", [False, True])
def test_lists_for_many_are_those_for_each(
    model: tacit.Model, ratings: tacit.Ratings, include_rated: bool
) -> None:
    (start, lists), *_ = model.recommend_rows(ratings, 12, include_rated=include_rated)
    assert (start, lists.shape) == (0, (80, 12))
    for user in (0, 41, 79):
        lo, hi = ratings.indptr[user], ratings.indptr[user + 1]
        ids = ratings.catalogue.ids.gather(ratings.items[lo:hi]).to_list()
        own = dict(zip(ids, ratings.values[lo:hi].tolist(), strict=True))
        wanted = [row.item for row in model.recommend(own, 12, include_rated=include_rated)]
        found = lists[user][lists[user] >= 0]
        assert ratings.catalogue.ids.gather(found).to_list() == wanted
        assert len(wanted) == (12 if include_rated else 9)


def test_lists_tell_items_apart_that_the_rating_range_cuts_off(ratings: tacit.Ratings) -> None:
    """Predictions beyond the end of the range all show its end, and still have an order."""
    model = tacit.fit(ratings, tacit.FrankWolfe(rounds=2), budget=None)
    offsets = 5.0 + np.arange(15) % 7
    rule = replace(model.rule, offsets=offsets)  # type: ignore[type-var]
    chosen = replace(model, rule=rule).recommend({}, n=15)
    assert {row.score for row in chosen} == {5.0}
    assert [row.item for row in chosen[:4]] == ["film-06", "film-13", "film-05", "film-12"]


@pytest.fixture
def uncertain(ratings: tacit.Ratings) -> tacit.Model:
    return tacit.fit(ratings, tacit.FrankWolfe(local="ridge", rounds=3), budget=None)


def test_stds_come_with_predictions_in_their_order(uncertain: tacit.Model) -> None:
    scores, stds = uncertain.predict(OWN, return_std=True)
    assert np.array_equal(scores, uncertain.predict(OWN))
    assert stds.shape == (15,)
    assert stds.min() > 0.9  # the noise of a rating is 0.9, by rule
    some = uncertain.predict(OWN, ["film-09", "film-02"], return_std=True)
    assert some[1].tolist() == [stds[9], stds[2]]
    with pytest.warns(tacit.UnknownItemsWarning):
        unknown = uncertain.predict(OWN, ["no such film"], return_std=True)
    assert np.isnan(unknown).all()


def test_predictions_leave_the_range_where_that_is_asked_for(uncertain: tacit.Model) -> None:
    wild = replace(uncertain, rating_range=(2.9, 3.1))
    assert np.all(np.abs(wild.predict({}) - 3.0) <= 0.1 + 1e-12)
    free, stds = wild.predict({}, clip=False, return_std=True)
    assert np.array_equal(free, wild.predict({}, clip=False))
    assert np.any(np.abs(free - 3.0) > 0.1)
    assert stds.max() == pytest.approx(0.1)
    for wrong in (None, 1, "yes"):
        with pytest.raises(tacit.ConfigError, match="clip="):
            uncertain.predict(OWN, clip=wrong)  # type: ignore[call-overload]


def test_more_ratings_leave_less_doubt_and_no_std_exceeds_half_the_range(
    uncertain: tacit.Model,
) -> None:
    _, none = uncertain.predict({}, return_std=True)
    _, few = uncertain.predict(OWN, return_std=True)
    _, more = uncertain.predict(OWN | {"film-02": 3.0, "film-10": 4.0}, return_std=True)
    assert np.all(none == (5.0 - 0.5) / 2)  # she might be anyone
    assert np.all(few <= none)
    assert more.mean() < few.mean()


def test_stds_of_many_are_those_of_each(uncertain: tacit.Model, ratings: tacit.Ratings) -> None:
    (start, scores, stds), *_ = uncertain.predict_rows_with_std(ratings)
    lo, hi = ratings.indptr[7], ratings.indptr[8]
    ids = ratings.catalogue.ids.gather(ratings.items[lo:hi]).to_list()
    own = dict(zip(ids, ratings.values[lo:hi].tolist(), strict=True))
    alone = uncertain.predict(own, return_std=True)
    assert start == 0
    assert np.allclose(alone[0], scores[7])
    assert np.allclose(alone[1], stds[7])


def test_stds_survive_a_model_file(uncertain: tacit.Model, tmp_path: Path) -> None:
    uncertain.save(tmp_path / "m.tacit")
    again = tacit.load(tmp_path / "m.tacit")
    assert np.array_equal(
        again.predict(OWN, return_std=True), uncertain.predict(OWN, return_std=True)
    )


@pytest.mark.parametrize("case", CASES)
def test_who_knows_no_std_says_who_does(case: str, ratings: tacit.Ratings) -> None:
    model = tacit.fit(ratings, CASES[case], budget=None)
    plain = tacit.fit(ratings, tacit.FrankWolfe(rounds=2), budget=None)
    with pytest.raises(tacit.ConfigError, match="return_std=True") as caught:
        plain.predict(OWN, return_std=True)
    if model.knows_std:
        assert len(model.predict(OWN, return_std=True)) == 2
        assert type(CASES[case]).__name__ in str(caught.value)
    else:
        with pytest.raises(tacit.ConfigError, match="return_std=True"):
            model.predict(OWN, return_std=True)
        with pytest.raises(tacit.ConfigError, match="predict_rows_with_std"):
            next(model.predict_rows_with_std(ratings))


def test_return_std_is_true_or_false(uncertain: tacit.Model) -> None:
    with pytest.raises(tacit.ConfigError, match="return_std='yes'"):
        uncertain.predict(OWN, return_std="yes")  # type: ignore[call-overload]


def test_nothing_of_anyone_is_printed(model: tacit.Model, ratings: tacit.Ratings) -> None:
    assert repr(model) == "Model(latent-factors, 15 items, epsilon=5, delta=1e-06)"
    assert "user-" not in repr(ratings) + str(ratings)


def test_a_model_shows_its_algorithm_and_not_its_local_rule(ratings: tacit.Ratings) -> None:
    model = tacit.fit(ratings, "moments", epsilon=5.0)
    assert (model.algorithm, model.rule.kind) == ("moments", "ridge")
    assert repr(model).startswith("Model(moments, ")
    of_an_older_file = replace(model, certificate=replace(model.certificate, method=None))
    assert repr(of_an_older_file).startswith("Model(ridge, ")


def test_ratings_of_another_catalogue_are_refused(model: tacit.Model) -> None:
    other = tacit.Ratings.from_arrays([1, 2, 2], ["x", "y", "x"], [1, 2, 3], rating_range=(0.5, 5))
    with pytest.raises(tacit.ConfigError, match="catalogue"):
        next(model.predict_rows(other))


def test_no_warning_when_all_is_well(model: tacit.Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.recommend(OWN)


def test_no_error_behind_an_error_quotes_a_rating(model: tacit.Model) -> None:
    own = pl.DataFrame({"item": list(model.catalogue.ids)[:2], "rating": ["4.4375x", "3"]})
    with pytest.raises(tacit.DataError) as found:
        model.predict(own)
    assert found.value.__context__ is None
    assert "4.4375" not in str(found.value)
