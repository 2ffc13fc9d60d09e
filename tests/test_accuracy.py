import math
import time
from collections import defaultdict
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.synthetic import synthesise
from tacit.errors import ConfigError, DataError
from tacit.evaluation import (
    Accuracy,
    evaluate,
    global_mean_accuracy,
    item_mean_accuracy,
    split,
    user_mean_accuracy,
)

RANGE = (0.5, 5.0)
TRAIN = [
    ("ann", "tea", 4.0),
    ("ann", "milk", 2.0),
    ("bob", "tea", 5.0),
    ("bob", "juice", 2.0),
    ("cleo", "milk", 4.0),
]
TEST = [
    ("cleo", "tea", 3.5),
    ("ann", "juice", 2.5),
    ("bob", "milk", 0.5),
    ("ann", "water", 5.0),  # unknown item
    ("dora", "tea", 4.0),  # unknown user
]


def frame(rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")


def ratings(rows, **keywords) -> Ratings:
    return Ratings.from_frame(frame(rows), rating_range=RANGE, **keywords)


@dataclass
class Echo:
    """Predicts item position + 10 x mean of own ratings, in blocks of two; remembers its rows."""

    catalogue: Catalogue
    seen: int = 0

    def predict_rows(self, rows: Ratings):
        self.seen += len(rows)
        for start in range(0, len(rows), 2):
            stop = min(start + 2, len(rows))
            means = [
                rows.values[rows.indptr[i] : rows.indptr[i + 1]].mean() for i in range(start, stop)
            ]
            yield start, 10 * np.array(means)[:, None] + np.arange(len(self.catalogue))


def expected(pairs, skipped, users) -> Accuracy:
    errors = [predicted - true for predicted, true in pairs]
    rmse = math.sqrt(sum(e * e for e in errors) / len(errors))
    return Accuracy(rmse, sum(map(abs, errors)) / len(errors), len(errors), users, skipped)


def same(one: Accuracy, other: Accuracy) -> bool:
    counts = (one.ratings, one.users, one.skipped) == (other.ratings, other.users, other.skipped)
    return counts and math.isclose(one.rmse, other.rmse) and math.isclose(one.mae, other.mae)


@pytest.mark.parametrize("as_ratings", [True, False])
def test_each_test_user_predicts_from_her_own_training_row(as_ratings):
    train = ratings(TRAIN)
    assert train.catalogue.ids.to_list() == ["juice", "milk", "tea"]
    model = Echo(train.catalogue)
    test = ratings(TEST) if as_ratings else frame(TEST)
    pairs = [(10 * 4.0 + 2, 3.5), (10 * 3.0 + 0, 2.5), (10 * 3.5 + 1, 0.5)]
    assert same(evaluate(model, train, test), expected(pairs, skipped=2, users=3))
    assert model.seen == 3


def test_only_rows_of_test_users_are_predicted():
    train = ratings(TRAIN)
    model = Echo(train.catalogue)
    found = evaluate(model, train, frame([("bob", "milk", 2.0)]))
    assert same(found, expected([(36.0, 2.0)], skipped=0, users=1))
    assert model.seen == 1


def test_user_mean_against_a_loop():
    pairs = [(4.0, 3.5), (3.0, 2.5), (3.5, 0.5)]
    assert same(user_mean_accuracy(ratings(TRAIN), frame(TEST)), expected(pairs, 2, 3))


def test_item_mean_against_a_loop():
    pairs = [(4.5, 3.5), (2.0, 2.5), (3.0, 0.5)]
    assert same(item_mean_accuracy(ratings(TRAIN), frame(TEST)), expected(pairs, 2, 3))


def test_global_mean_against_a_loop():
    pairs = [(3.4, 3.5), (3.4, 2.5), (3.4, 0.5)]
    assert same(global_mean_accuracy(ratings(TRAIN), frame(TEST)), expected(pairs, 2, 3))


def test_an_item_that_nobody_rated_gets_the_mean_of_all():
    train = ratings(TRAIN, catalogue=Catalogue(["juice", "milk", "tea", "water"]))
    found = item_mean_accuracy(train, frame([("ann", "water", 5.0)]))
    assert same(found, expected([(3.4, 5.0)], 0, 1))


def test_a_user_with_an_empty_training_row_is_skipped():
    catalogue = Catalogue(["juice", "milk", "tea"])
    rows = [*TRAIN, ("dora", "cocoa", 1.0)]
    train = ratings(rows, catalogue=catalogue, unknown_items="drop")
    assert train.n_users == 4
    for measure in (user_mean_accuracy, item_mean_accuracy, global_mean_accuracy):
        assert measure(train, frame(TEST)).skipped == 2
    assert evaluate(Echo(train.catalogue), train, frame(TEST)).users == 3


def test_pairs_that_are_in_train_are_found_and_counted():
    """Every pair of every user, against a set of pairs; the ids may be of another type."""
    rng = np.random.default_rng(5)
    users, items = rng.integers(0, 40, 300), rng.integers(0, 25, 300)
    pairs = sorted(set(zip(users.tolist(), items.tolist(), strict=True)))
    seen, rest = pairs[::2], pairs[1::2]
    train = ratings([(*pair, 3.0) for pair in seen], catalogue=Catalogue(list(range(25))))
    assert user_mean_accuracy(train, frame([(*pair, 3.0) for pair in rest])).rmse == 0
    texts = [(str(user), str(item), 3.0) for user, item in rest]
    assert item_mean_accuracy(train, frame(texts)).rmse == 0
    for count in (1, 17, len(seen)):
        chosen = [seen[at] for at in rng.choice(len(seen), count, replace=False)]
        test = frame([(str(u), str(i), 3.0) for u, i in [*rest, *chosen]])
        with pytest.raises(DataError, match=rf"^test: {count} rows? with a pair .* in train"):
            global_mean_accuracy(train, test)
    with pytest.raises(DataError, match=f"{len(seen)} rows with a pair"):
        evaluate(Echo(train.catalogue), train, train)
    other = Catalogue(list(range(24, -1, -1)))  # the same items in another order
    with pytest.raises(DataError, match=f"{len(seen)} rows with a pair"):
        evaluate(Echo(other), train, train)


def naive(train: pl.DataFrame, test: pl.DataFrame) -> dict[str, Accuracy]:
    """Follow the definitions with dictionaries and loops."""
    by_user, by_item = defaultdict(list), defaultdict(list)
    for user, item, rating in train.iter_rows():
        by_user[user].append(rating)
        by_item[item].append(rating)
    overall = sum(train["rating"]) / train.height
    told = [row for row in test.iter_rows() if row[0] in by_user and row[1] in by_item]
    skipped, users = test.height - len(told), len({row[0] for row in told})
    pairs = {
        "user": [(sum(by_user[u]) / len(by_user[u]), r) for u, _, r in told],
        "item": [(sum(by_item[i]) / len(by_item[i]), r) for _, i, r in told],
        "global": [(overall, r) for _, _, r in told],
    }
    return {name: expected(errors, skipped, users) for name, errors in pairs.items()}


def test_yardsticks_against_a_naive_loop_on_shuffled_ratings():
    world = synthesise("tastes", users=400, items=60, per_user=9, test_fraction=0.2, seed=5)
    train = world.train.filter(pl.col("user") % 7 > 0, pl.col("item") % 11 > 0)
    test = world.test.sample(fraction=1.0, shuffle=True, seed=1)
    truth = naive(train, test)
    assert truth["user"].skipped > 0
    own = Ratings.from_frame(train, rating_range=RANGE)
    found = {
        "user": user_mean_accuracy(own, test),
        "item": item_mean_accuracy(own, test),
        "global": global_mean_accuracy(own, test),
    }
    for name, accuracy in truth.items():
        assert same(found[name], accuracy), name


@pytest.mark.parametrize("kind", [pl.String, pl.UInt64, pl.Int16])
def test_user_and_item_ids_are_matched_by_value_across_types(kind):
    numbers = {"ann": 1, "bob": 2, "cleo": 3, "dora": 4}
    names = {"tea": 7, "milk": 8, "juice": 9, "water": 10}
    train, test = (
        frame(rows).with_columns(
            pl.col("user").replace_strict(numbers), pl.col("item").replace_strict(names)
        )
        for rows in (TRAIN, TEST)
    )
    own = Ratings.from_frame(train, rating_range=RANGE)
    found = user_mean_accuracy(own, test.with_columns(pl.col("user", "item").cast(kind)))
    assert same(found, expected([(4.0, 3.5), (3.0, 2.5), (3.5, 0.5)], 2, 3))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("zoe", "tea", 4.0)], "no held-out rating"),
        ([("ann", "wine", 4.0)], "no held-out rating"),
        ([("ann", "tea", 6.0)], "'rating': 1 row without a rating in the rating range"),
        ([("ann", "tea", float("nan"))], "'rating': 1 row without"),
        ([("ann", "tea", None)], "'rating': 1 row without"),
        ([("ann", "tea", 1.0), ("ann", "tea", 1.0)], "1 row with a pair"),
        ([("ann", None, 1.0)], "'item': 1 row without an id"),
    ],
)
def test_what_cannot_be_measured_is_an_error_without_a_rating_or_an_id(rows, message):
    held_out = pl.DataFrame(
        rows, {"user": pl.String, "item": pl.String, "rating": pl.Float64}, orient="row"
    )
    with pytest.raises(DataError, match=message) as caught:
        user_mean_accuracy(ratings(TRAIN), held_out)
    assert not any(word in str(caught.value) for word in ("ann", "zoe", "tea", "wine", "6"))


def test_outputs_say_that_they_are_not_private():
    accuracy = Accuracy(0.5, 0.25, 8, 4, 1)
    assert "NOT PRIVATE" in repr(accuracy)
    assert accuracy.to_json() == {
        "notice": accuracy.to_json()["notice"],
        "rmse": 0.5,
        "mae": 0.25,
        "ratings": 8,
        "users": 4,
        "skipped": 1,
    }
    assert accuracy.to_json()["notice"].startswith("NOT PRIVATE")


def triples(rows: Ratings) -> set[tuple[int, int, float]]:
    users = rows.user_ids.to_numpy().repeat(np.diff(rows.indptr))
    items = rows.catalogue.ids.to_numpy()[rows.items]
    return set(zip(users.tolist(), items.tolist(), rows.values.tolist(), strict=True))


def test_split_parts_all_ratings_at_random():
    world = synthesise("tastes", users=2_000, items=50, per_user=4, test_fraction=0.0)
    whole = Ratings.from_frame(world.train, rating_range=RANGE)
    train, test = split(whole, 0.3, np.random.default_rng(1))
    assert triples(train) | triples(test) == triples(whole)
    assert not triples(train) & triples(test)
    total = len(whole.values)
    assert abs(len(test.values) - 0.3 * total) < 5 * math.sqrt(0.21 * total)
    assert (train.catalogue, test.catalogue) == (whole.catalogue, whole.catalogue)
    assert train.user_ids.equals(whole.user_ids)
    assert (np.diff(test.indptr) > 0).all()
    assert (np.diff(train.indptr) == 0).any()
    again = split(whole, 0.3, np.random.default_rng(1))
    other = split(whole, 0.3, np.random.default_rng(2))
    assert triples(again[1]) == triples(test) != triples(other[1])
    emptied = set(train.user_ids.to_numpy()[np.diff(train.indptr) == 0])
    lost = sum(user in emptied for user, _, _ in triples(test))
    assert user_mean_accuracy(train, test).skipped == lost > 0


def test_split_of_ratings_with_empty_rows():
    rows = [*TRAIN, ("abe", "cocoa", 1.0), ("zoe", "cocoa", 1.0)]
    catalogue = Catalogue(["juice", "milk", "tea"])
    whole = ratings(rows, catalogue=catalogue, unknown_items="drop")
    train, test = split(whole, 0.5, np.random.default_rng(0))
    assert len(train.values) + len(test.values) == 5
    assert train.user_ids.to_list() == ["abe", "ann", "bob", "cleo", "zoe"]
    assert set(test.user_ids) <= {"ann", "bob", "cleo"}


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan"), "half", None])
def test_split_names_a_bad_fraction(fraction):
    with pytest.raises(ConfigError, match="fraction="):
        split(ratings(TRAIN), fraction, np.random.default_rng(0))


def test_split_that_leaves_nothing_is_an_error():
    with pytest.raises(DataError, match="nothing to"):
        split(ratings(TRAIN), 1e-9, np.random.default_rng(0))


def test_evaluation_is_vectorised():
    """400,000 held-out ratings in well under the time that a loop over them would take."""
    world = synthesise("rank-one", users=20_000, items=100, per_user=50, test_fraction=0.4)
    train = Ratings.from_frame(world.train, rating_range=(-1, 1))
    started = time.perf_counter()
    assert user_mean_accuracy(train, world.test).ratings == world.test.height
    assert item_mean_accuracy(train, world.test).skipped == 0
    assert time.perf_counter() - started < 20
