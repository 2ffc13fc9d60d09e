"""Ranking: tiny examples by hand, a brute-force reference, and what is refused."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError
from tacit.evaluation import NOTICE, Ranking, rank
from tacit.models.rules import OwnRows
from tacit.models.top_n import best_items, without_rated

RANGE = (1.0, 5.0)
Rows = list[tuple[str, str, float]]


@dataclass
class Fixed:
    """Gives everyone the same scores, in the order of the catalogue; blocks of two people."""

    catalogue: Catalogue
    scores: list[float]

    def recommend_rows(self, ratings: Ratings, n: int) -> Iterator[tuple[int, np.ndarray]]:
        for start in range(0, len(ratings), 2):
            stop = min(start + 2, len(ratings))
            lo, hi = ratings.indptr[start], ratings.indptr[stop]
            own = OwnRows(ratings.indptr[start : stop + 1] - lo, ratings.items[lo:hi], None)
            scores = np.tile(np.array(self.scores, dtype=float), (stop - start, 1))
            yield start, best_items(without_rated(scores, own), n)


def frame(rows: Rows) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")


def ratings(rows: Rows, items: str) -> Ratings:
    return Ratings.from_frame(frame(rows), rating_range=RANGE, catalogue=Catalogue(list(items)))


TRAIN = [("ann", "a", 3.0), ("bob", "b", 3.0), ("cleo", "c", 3.0), ("dan", "a", 1.0)]
TEST = [
    ("ann", "b", 5.0),
    ("ann", "e", 4.0),
    ("ann", "d", 2.0),
    ("bob", "e", 5.0),
    ("cleo", "a", 1.5),
    ("dan", "z", 5.0),  # unknown item
    ("eve", "a", 5.0),  # unknown user
]
SCORES = [9.0, 8.0, 7.0, 6.0, 5.0]  # a, b, c, d, e


def test_every_measure_by_hand() -> None:
    """Lists of two: ann (a rated) b c; bob (b rated) a c; cleo (c rated) a b."""
    train = ratings(TRAIN, "abcde")
    found = rank(Fixed(train.catalogue, SCORES), train, frame(TEST), k=2)
    # ann: b has gain 1 at place 1; her ideal is b (1), e (3/4). bob: e is not in his list.
    ideal = 1.0 + 0.75 / math.log2(3)
    assert found.ndcg == pytest.approx((1.0 / ideal + 0.0) / 2)
    assert found.recall == pytest.approx((1 / 2 + 0 / 1) / 2)
    assert found.coverage == pytest.approx(3 / 5)  # a, b, c
    assert (found.people, found.lists, found.k) == (2, 3, 2)  # cleo has nothing relevant
    assert found.relevant == pytest.approx(1 + 0.7 * 4)


def test_the_place_in_the_list_counts() -> None:
    train = ratings(TRAIN, "abcde")
    test = frame([("ann", "d", 5.0)])
    for k, gain in ((2, 0.0), (3, 1 / math.log2(4)), (5, 1 / math.log2(4))):
        found = rank(Fixed(train.catalogue, SCORES), train, test, k=k)
        assert found.ndcg == pytest.approx(gain)
        assert found.recall == float(k > 2)


def test_a_perfect_list_has_ndcg_one_though_recall_is_bounded_by_its_length() -> None:
    train = ratings(TRAIN, "abcde")
    test = frame([("ann", "b", 5.0), ("ann", "c", 4.5), ("ann", "d", 4.0), ("ann", "e", 4.0)])
    found = rank(Fixed(train.catalogue, SCORES), train, test, k=2)
    assert found.ndcg == pytest.approx(1.0)
    assert found.recall == pytest.approx(0.5)
    worse = rank(Fixed(train.catalogue, [9, 7, 8, 6, 5]), train, test, k=2)
    assert worse.ndcg < 0.98
    assert worse.recall == found.recall


def test_what_is_relevant_can_be_said() -> None:
    train = ratings(TRAIN, "abcde")
    found = rank(Fixed(train.catalogue, SCORES), train, frame(TEST), k=2, relevant=1.5)
    assert found.people == 3
    gains = {"b": 1.0, "e": 0.75, "d": 0.25}
    ann = gains["b"] / (gains["b"] + gains["e"] / math.log2(3))
    assert found.ndcg == pytest.approx((ann + 0.0 + 1.0) / 3)
    assert found.recall == pytest.approx((1 / 3 + 0 + 1) / 3)


def test_a_rating_of_just_the_threshold_is_relevant_in_single_precision_too() -> None:
    train = ratings(TRAIN, "abcde")
    model = Fixed(train.catalogue, SCORES)
    assert rank(model, train, frame([("ann", "b", 4.1)]), k=1, relevant=4.1).people == 1


def test_equal_scores_come_in_the_order_of_the_catalogue() -> None:
    train = ratings(TRAIN, "abcde")
    test = frame([("ann", "b", 5.0), ("bob", "a", 5.0), ("cleo", "d", 5.0)])
    found = rank(Fixed(train.catalogue, [1.0] * 5), train, test, k=1)
    assert found.recall == pytest.approx(2 / 3)
    assert found.coverage == pytest.approx(2 / 5)


def test_an_item_that_is_in_the_training_row_too_is_refused() -> None:
    train = ratings(TRAIN, "abcde")
    with pytest.raises(DataError, match=r"1 row with a pair .* in train as well"):
        rank(Fixed(train.catalogue, SCORES), train, frame([("ann", "a", 5.0)]), k=5)


def brute_force(
    scores: np.ndarray, train: set[tuple[int, int]], test: dict[tuple[int, int], float], k: int
) -> tuple[float, float, float]:
    """Follow the definitions with loops: (ndcg, recall, coverage)."""
    ndcgs, recalls, seen = [], [], set()
    people = sorted({user for user, _ in test})
    items = scores.shape[1]
    for user in people:
        free = [item for item in range(items) if (user, item) not in train]
        chosen = sorted(free, key=lambda item: (-scores[user, item], item))[:k]
        seen |= set(chosen)
        gains = {i: (r - 1) / 4 for (u, i), r in test.items() if u == user and r >= 3.8}
        if not gains:
            continue
        got = sum(gains.get(item, 0) / math.log2(2 + at) for at, item in enumerate(chosen))
        top = sorted(gains.values(), reverse=True)[:k]
        ndcgs.append(got / sum(gain / math.log2(2 + at) for at, gain in enumerate(top)))
        recalls.append(len(set(chosen) & set(gains)) / len(gains))
    return sum(ndcgs) / len(ndcgs), sum(recalls) / len(recalls), len(seen) / items


@dataclass
class Table:
    """Gives people the scores of a table, found by the first rating of their row."""

    catalogue: Catalogue
    scores: np.ndarray

    def recommend_rows(self, ratings: Ratings, n: int) -> Iterator[tuple[int, np.ndarray]]:
        own = OwnRows(ratings.indptr, ratings.items, ratings.values)
        users = ratings.user_ids.to_numpy()
        yield 0, best_items(without_rated(self.scores[users].copy(), own), n)


@pytest.mark.parametrize("k", [1, 3, 10, 20])
def test_against_brute_force(k: int) -> None:
    rng = np.random.default_rng(k)
    users, items = 60, 20
    scores = np.round(rng.standard_normal((users, items)), 1)  # with many ties
    role = rng.choice(3, (users, items), p=[0.5, 0.3, 0.2])
    stars = rng.integers(1, 6, (users, items)).astype(float)
    role[:, 0] = 1  # everyone has a training rating
    parts = [
        pl.DataFrame({"user": u, "item": i, "rating": stars[u, i]})
        for u, i in (np.nonzero(role == 1), np.nonzero(role == 2))
    ]
    train = Ratings.from_frame(
        parts[0], rating_range=RANGE, catalogue=Catalogue(list(range(items)))
    )
    test = {(int(u), int(i)): stars[u, i] for u, i in zip(*np.nonzero(role == 2), strict=True)}
    known = set(zip(*(index.tolist() for index in np.nonzero(role == 1)), strict=True))
    found = rank(
        Table(train.catalogue, scores), train, parts[1].sample(fraction=1, shuffle=True), k
    )
    wanted = brute_force(scores, known, test, k)
    assert (found.ndcg, found.recall, found.coverage) == pytest.approx(wanted)


@pytest.mark.parametrize("count", [1, 4, 7, 9])
def test_best_items_are_those_of_a_full_stable_sort(count: int) -> None:
    rng = np.random.default_rng(count)
    scores = rng.integers(0, 4, (200, 7)).astype(float)
    scores[rng.random(scores.shape) < 0.2] = -np.inf
    scores[0] = -np.inf
    scores[1, 2] = np.nan
    clean = np.where(np.isnan(scores), -np.inf, scores)
    order = np.argsort(-clean, axis=1, kind="stable")[:, :count]
    wanted = np.where(np.take_along_axis(clean, order, 1) > -np.inf, order, -1)
    assert np.array_equal(best_items(scores, count), wanted)
    assert best_items(scores[:0], count).shape == (0, min(count, 7))
    assert best_items(scores[:, :0], count).shape == (200, 0)
    many = rng.permuted(np.tile(np.arange(300.0) // 2, (3, 1)), axis=1)  # long lists, with ties
    many[0, :150], many[1, 7] = -np.inf, np.nan
    clean = np.where(np.isnan(many), -np.inf, many)
    order = np.argsort(-clean, axis=1, kind="stable")[:, : 60 * count]
    wanted = np.where(np.take_along_axis(clean, order, 1) > -np.inf, order, -1)
    assert np.array_equal(best_items(many, 60 * count), wanted)


@pytest.mark.parametrize("k", [0, -1, 6, True, 2.0, "3", None])
def test_impossible_lengths_are_named(k: object) -> None:
    train = ratings(TRAIN, "abcde")
    with pytest.raises(ConfigError, match=r"k=.*from 1 to the 5 items"):
        rank(Fixed(train.catalogue, SCORES), train, frame(TEST), k=k)  # type: ignore[arg-type]


@pytest.mark.parametrize("relevant", [1.0, 0.0, 5.5, True, "high", math.nan, math.inf])
def test_impossible_thresholds_are_named(relevant: object) -> None:
    train = ratings(TRAIN, "abcde")
    with pytest.raises(ConfigError, match="relevant="):
        rank(Fixed(train.catalogue, SCORES), train, frame(TEST), k=2, relevant=relevant)  # type: ignore[arg-type]


def test_nothing_relevant_is_an_error_that_says_what_to_do() -> None:
    train = ratings(TRAIN, "abcde")
    with pytest.raises(DataError, match="lower it") as caught:
        rank(Fixed(train.catalogue, SCORES), train, frame([("cleo", "a", 1.5)]), k=2)
    assert "1.5" not in str(caught.value)
    assert "cleo" not in str(caught.value)


def test_outputs_say_that_they_are_not_private() -> None:
    found = Ranking(0.5, 0.25, 0.75, 8, 9, 10, 4.0)
    assert repr(found).startswith("Ranking(NOT PRIVATE: ndcg=0.5")
    assert found.to_json() == {
        "notice": NOTICE, "ndcg": 0.5, "recall": 0.25, "coverage": 0.75,
        "people": 8, "lists": 9, "k": 10, "relevant": 4.0,
    }  # fmt: skip


def test_a_fitted_model_beats_a_list_turned_upside_down(ratings: tacit.Ratings) -> None:
    """The whole way, and a twin: lists of the worst items must be worse."""
    train, test = tacit.evaluation.split(ratings, 0.3, np.random.default_rng(0))
    model = tacit.fit(train, tacit.FrankWolfe(local="ridge", item_means=0.2), budget=None)

    class Worst:
        catalogue = model.catalogue

        def recommend_rows(self, rows: Ratings, n: int) -> Iterator[tuple[int, np.ndarray]]:
            for start, lists in model.recommend_rows(rows, len(model.catalogue)):
                yield start, np.array([[at for at in row if at >= 0][-n:] for row in lists])

    assert rank(model, train, test, k=3).ndcg > 1.3 * rank(Worst(), train, test, k=3).ndcg
