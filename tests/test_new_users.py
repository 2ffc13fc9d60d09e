"""Lists for new users: by hand, a second implementation, intervals, and what is refused."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.synthetic import synthesise
from tacit.errors import ConfigError, DataError
from tacit.evaluation import (
    NOTICE,
    Estimate,
    ExactPopularity,
    NewUserRanking,
    fold_in,
    rank_new_users,
)
from tacit.evaluation.new_users import _estimates, _qualities
from tacit.models.rules import OwnRows
from tacit.models.top_n import best_items, without_rated

RANGE = (1.0, 5.0)


@dataclass
class Scores:
    """Gives the user with id i the scores of row i of a table; blocks of seven users."""

    catalogue: Catalogue
    table: np.ndarray

    def recommend_rows(self, ratings: Ratings, n: int) -> Iterator[tuple[int, np.ndarray]]:
        for start in range(0, len(ratings), 7):
            stop = min(start + 7, len(ratings))
            lo, hi = ratings.indptr[start], ratings.indptr[stop]
            own = OwnRows(ratings.indptr[start : stop + 1] - lo, ratings.items[lo:hi], None)
            scores = self.table[ratings.user_ids[start:stop].to_numpy()].copy()
            yield start, best_items(without_rated(scores, own), n)


def of(users: Any, items: Any, values: Any, n_items: int) -> Ratings:
    catalogue = Catalogue(list(range(n_items)))
    return Ratings.from_arrays(users, items, values, rating_range=RANGE, catalogue=catalogue)


def same_five(users: int, n_items: int, rating: float = 5.0) -> Ratings:
    """Everyone rates items 0 to 4, of which one is held out."""
    who = np.repeat(np.arange(users), 5)
    return of(who, np.tile(np.arange(5), users), np.full(5 * users, rating), n_items)


def random_ratings(seed: int, users: int = 60, items: int = 130, each: int = 40) -> Ratings:
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, each, size=users)
    what = np.concatenate([rng.choice(items, count, replace=False) for count in counts])
    return of(np.repeat(np.arange(users), counts), what, rng.integers(1, 6, len(what)), items)


@pytest.mark.parametrize("above", [0, 9, 10, 19, 20, 94])
def test_the_place_of_the_one_relevant_item_by_hand(above: int) -> None:
    """So many items that nobody has rated are ranked above it; which of five it is is no matter."""
    ratings = same_five(users=9, n_items=99)
    scores = np.zeros(99)
    scores[:5], scores[5 : 5 + above] = 1.0, 2.0
    found = rank_new_users(Scores(ratings.catalogue, np.tile(scores, (9, 1))), ratings)
    gain = 1 / math.log2(2 + above)
    assert found.recall_20.mean == float(above < 20)
    assert found.ndcg_10.mean == pytest.approx(gain if above < 10 else 0.0)
    assert found.ndcg_100.mean == pytest.approx(gain)
    assert (found.users, found.not_counted, found.skipped) == (9, 0, 0)
    assert found.relevant == pytest.approx(3.8)


def test_several_relevant_items_by_hand() -> None:
    """Hits at places 1 and 3 of two relevant items; of 25 relevant ones, 20 first, then 4."""
    hits = np.zeros((2, 100), bool)
    hits[0, [0, 2]] = True
    hits[1, :20] = hits[1, 96:] = True
    recall, ndcg_10, ndcg_100 = _qualities(hits, np.array([2.0, 25.0])).T
    assert recall.tolist() == [1.0, 1.0]  # hits / min(20, number of relevant)
    best = 1 + 1 / math.log2(3)
    assert ndcg_10 == pytest.approx([1.5 / best, 1.0])
    places = [*range(1, 21), *range(97, 101)]
    dcg = sum(1 / math.log2(1 + place) for place in places)
    ideal = sum(1 / math.log2(1 + place) for place in range(1, 26))
    assert ndcg_100 == pytest.approx([1.5 / best, dcg / ideal])


def brute_force(scores: np.ndarray, ratings: Ratings, seed: int) -> dict[str, float]:
    """Follow the definitions with loops over what is folded in and held out."""
    own, held, _ = fold_in(ratings, seed)
    rows = [set(own.items[own.indptr[i] : own.indptr[i + 1]].tolist()) for i in range(len(own))]
    popularity = [sum(j in row for row in rows) / len(rows) for j in range(own.n_items)]
    figures, seen = [], set()
    for i, user in enumerate(own.user_ids):
        part = slice(held.indptr[i], held.indptr[i + 1])
        has = held.items[part].tolist()
        liked = {j for j, r in zip(has, held.values[part], strict=True) if r >= 4}
        if not liked:
            continue
        free = [j for j in range(own.n_items) if j not in rows[i]]
        shown = sorted(free, key=lambda j, at=user: (-scores[at, j], j))
        seen |= set(shown[:20])
        figures.append(
            {
                "recall_20": len(set(shown[:20]) & liked) / min(20, len(liked)),
                "ndcg_10": ndcg(shown[:10], liked, 10),
                "ndcg_100": ndcg(shown[:100], liked, 100),
                "popularity_20": float(np.mean([popularity[j] for j in shown[:20]])),
                "popularity_held_out": float(np.mean([popularity[j] for j in has])),
            }
        )
    means = {name: float(np.mean([row[name] for row in figures])) for name in figures[0]}
    return means | {"coverage_20": len(seen) / own.n_items, "users": len(figures)}


def ndcg(shown: list[int], liked: set[int], k: int) -> float:
    dcg = sum(1 / math.log2(2 + at) for at, item in enumerate(shown) if item in liked)
    return dcg / sum(1 / math.log2(2 + at) for at in range(min(k, len(liked))))


def means_of(found: NewUserRanking) -> dict[str, float]:
    pairs = ((name, getattr(found, name)) for name in found.to_json() if name != "notice")
    means = {k: v.mean if isinstance(v, Estimate) else v for k, v in pairs}
    return {k: v for k, v in means.items() if k not in ("not_counted", "skipped", "relevant")}


@pytest.mark.parametrize("seed", range(5))
def test_all_figures_agree_with_loops(seed: int) -> None:
    ratings = random_ratings(seed)
    scores = np.random.default_rng(seed).integers(0, 30, size=(60, 130)).astype(float)  # with ties
    found = rank_new_users(Scores(ratings.catalogue, scores), ratings, relevant=4, seed=seed)
    assert means_of(found) == pytest.approx(brute_force(scores, ratings, seed))
    assert found.users + found.not_counted + found.skipped == ratings.n_users


def test_a_perfect_ranker_has_one_and_a_random_one_what_chance_gives() -> None:
    ratings = random_ratings(7, users=3000, items=200, each=30)
    held_out = fold_in(ratings, seed=3).held_out
    truth = np.zeros((3000, 200))
    rows = held_out.user_ids.to_numpy().repeat(np.diff(held_out.indptr))
    truth[rows, held_out.items] = held_out.values
    perfect = rank_new_users(Scores(ratings.catalogue, truth), ratings, seed=3)
    assert perfect.recall_20 == perfect.ndcg_10 == perfect.ndcg_100 == Estimate(1.0, 1.0, 1.0)
    noise = np.random.default_rng(0).random((3000, 200))
    chance = rank_new_users(Scores(ratings.catalogue, noise), ratings, seed=3).recall_20
    # 20 of the items that are not folded in: those are 180 to 199 of 200
    assert chance.low < 20 / 188 < chance.high
    assert chance.high - chance.low < 0.04
    worst = rank_new_users(Scores(ratings.catalogue, -truth), ratings, seed=3)
    assert worst.recall_20.mean == 0.0


def test_a_fifth_is_held_out_and_no_rating_is_lost() -> None:
    rng = np.random.default_rng(0)
    counts = np.arange(1, 31)
    what = np.concatenate([rng.choice(40, count, replace=False) for count in counts])
    ratings = of(np.repeat(np.arange(30), counts), what, rng.integers(1, 6, len(what)), 40)
    own, held_out, skipped = fold_in(ratings, seed=1)
    assert skipped == 2  # with one and with two ratings
    assert own.user_ids.to_list() == held_out.user_ids.to_list() == list(range(2, 30))
    expected = [math.floor(count / 5 + 0.5) for count in counts[2:]]
    assert np.diff(held_out.indptr).tolist() == expected
    for at, user in enumerate(own.user_ids):
        parts = [pairs(part, at) for part in (own, held_out)]
        assert not parts[0] & parts[1]
        assert parts[0] | parts[1] == pairs(ratings, user)


def pairs(ratings: Ratings, row: int) -> set[tuple[int, float]]:
    part = slice(ratings.indptr[row], ratings.indptr[row + 1])
    return set(zip(ratings.items[part].tolist(), ratings.values[part].tolist(), strict=True))


def test_every_rating_of_a_row_is_held_out_equally_often() -> None:
    """Of 4000 users each of five items is held out by 800; sd 25, and six of them are allowed."""
    held_out = fold_in(same_five(4000, 5), seed=2).held_out
    counts = np.bincount(held_out.items, minlength=5)
    assert counts.sum() == 4000
    assert np.abs(counts - 800).max() < 150
    again, other = (fold_in(same_five(4000, 5), seed=seed).held_out for seed in (2, 3))
    assert np.array_equal(held_out.items, again.items)
    assert not np.array_equal(held_out.items, other.items)


def test_intervals_cover_the_truth_as_often_as_they_say() -> None:
    """Of 400 samples of 80 users 95 % are to cover; 17 of 400 is four sds. Halved, they do not."""
    rng = np.random.default_rng(5)
    covered, halved = 0, 0
    for seed in range(400):
        found = _estimates(rng.beta(2.0, 3.0, size=(80, 1)), seed)[0]
        covered += found.low <= 0.4 <= found.high
        half = Estimate(found.mean, (found.low + found.mean) / 2, (found.high + found.mean) / 2)
        halved += half.low <= 0.4 <= half.high
    assert abs(covered - 380) < 18
    assert halved < 330


def test_intervals_are_those_of_resampled_users_and_follow_the_seed() -> None:
    figures = np.random.default_rng(0).random((3000, 2))
    first, second = _estimates(figures, 4)
    half = (first.high - first.low) / 2
    assert half == pytest.approx(1.96 * figures[:, 0].std() / math.sqrt(3000), rel=0.1)
    assert first.mean == pytest.approx(figures[:, 0].mean())
    assert (first, second) == tuple(_estimates(figures, 4))
    assert first != _estimates(figures, 5)[0]


def test_popular_lists_have_a_popularity_bias_and_little_coverage() -> None:
    made = synthesise("popular", users=3000, items=200, per_user=20)
    catalogue = Catalogue(made.items["item"])
    ratings = Ratings.from_frame(made.train, rating_range=(0.5, 5), catalogue=catalogue)
    found = rank_new_users(ExactPopularity(fold_in(ratings).own), ratings)
    assert found.popularity_20.mean > 1.2 * found.popularity_held_out.mean
    noise = np.random.default_rng(0).random((3000, 200))
    random = rank_new_users(Scores(catalogue, noise), ratings)
    assert random.popularity_20.mean < 0.8 * random.popularity_held_out.mean
    assert found.coverage_20 < random.coverage_20 == 1.0


def test_short_lists_and_few_items() -> None:
    ratings = same_five(users=4, n_items=6)
    found = rank_new_users(Scores(ratings.catalogue, np.zeros((4, 6))), ratings)
    assert found.recall_20.mean == 1.0
    assert 1 / math.log2(3) <= found.ndcg_100.mean <= 1.0


def test_interactions_are_all_relevant() -> None:
    made = synthesise("tastes", users=900, items=60, per_user=15, seed=2)
    catalogue = Catalogue(made.items["item"])
    touched = Ratings.from_frame(made.train, implicit=True, catalogue=catalogue)
    model = tacit.fit(touched.take_rows(np.arange(600)), budget=None)
    found = rank_new_users(model, touched.take_rows(np.arange(600, 900)))
    assert found.not_counted == 0
    assert 0.2 < found.recall_20.mean < 1


def test_keywords_reach_recommend_rows() -> None:
    ratings = same_five(users=4, n_items=30)

    class Told(Scores):
        def recommend_rows(
            self, ratings: Ratings, n: int, *, by: str = "rating"
        ) -> Iterator[tuple[int, np.ndarray]]:
            told.append(by)
            yield from super().recommend_rows(ratings, n)

    told: list[str] = []
    model = Told(ratings.catalogue, np.zeros((4, 30)))
    rank_new_users(model, ratings)
    rank_new_users(model, ratings, by="choice")
    assert told == ["rating", "choice"]


def test_it_says_that_it_is_not_private() -> None:
    ratings = same_five(users=4, n_items=30)
    found = rank_new_users(Scores(ratings.catalogue, np.zeros((4, 30))), ratings)
    assert found.to_json()["notice"] == NOTICE
    assert found.to_json()["recall_20"].keys() == {"mean", "low", "high"}
    assert repr(found).startswith("NewUserRanking(NOT PRIVATE: ")


def test_what_is_refused() -> None:
    ratings = same_five(users=4, n_items=30, rating=3.0)
    model = Scores(ratings.catalogue, np.zeros((4, 30)))
    with pytest.raises(DataError, match=r"relevant=3.8: the lowest rating that counts as liked"):
        rank_new_users(model, ratings)
    assert rank_new_users(model, ratings, relevant=3).users == 4
    for wrong in (1, 6, "4", float("nan"), True):
        with pytest.raises(ConfigError, match="relevant="):
            rank_new_users(model, ratings, relevant=wrong)  # type: ignore[arg-type]
    for wrong in (-1, 0.5, None, True):
        with pytest.raises(ConfigError, match="seed="):
            rank_new_users(model, ratings, relevant=3, seed=wrong)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="another catalogue"):
        rank_new_users(model, same_five(users=4, n_items=29))
    few = of([0, 0, 1], [0, 1, 2], [5, 5, 5], 30)
    with pytest.raises(DataError, match="no user has 3 or more ratings"):
        rank_new_users(model, few)
