import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tacit

OWN = {"film-01": 5.0, "film-03": 1.0, "film-07": 4.5}


@pytest.fixture
def model(ratings: tacit.Ratings) -> tacit.Model:
    return tacit.fit(ratings, epsilon=20.0)


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
    chosen = model.recommend(OWN, n=5)
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
def test_bad_counts(model: tacit.Model, n: object) -> None:
    with pytest.raises(tacit.ConfigError, match="n="):
        model.recommend(OWN, n=n)  # type: ignore[arg-type]


def test_nothing_of_anyone_is_printed(model: tacit.Model, ratings: tacit.Ratings) -> None:
    assert repr(model) == "Model(replay, 15 items, epsilon=20, delta=1e-06)"
    assert "user-" not in repr(ratings) + str(ratings)


def test_more_ratings_than_the_cap_count_as_much_as_the_cap(ratings: tacit.Ratings) -> None:
    """A long row must not take steps larger than those of the fit."""
    config = tacit.FrankWolfe(rounds=4, max_ratings=3, nuclear_norm=50.0, row_norm=3.0)
    model = tacit.fit(ratings, config, budget=None)
    long_row = {f"film-{item:02d}": 5.0 if item % 2 else 1.0 for item in range(15)}
    spread = np.ptp(model.predict(long_row))
    free = tacit.fit(
        ratings, tacit.FrankWolfe(rounds=4, max_ratings=None, nuclear_norm=50.0, row_norm=3.0),
        budget=None,
    )  # fmt: skip
    assert spread < np.ptp(free.predict(long_row)) + 2.0


def test_ratings_of_another_catalogue_are_refused(model: tacit.Model) -> None:
    other = tacit.Ratings.from_arrays([1, 2, 2], ["x", "y", "x"], [1, 2, 3], rating_range=(0.5, 5))
    with pytest.raises(tacit.ConfigError, match="catalogue"):
        next(model.predict_rows(other))


def test_no_warning_when_all_is_well(model: tacit.Model) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.recommend(OWN)
