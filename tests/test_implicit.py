"""Interactions without ratings: reading, wrong use, the local rule, and what it is worth."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_matrix

import tacit
from tacit.accounting.release import Release, ReleaseKind
from tacit.errors import ModelFileError
from tacit.estimation.popularity import popularity, positive
from tacit.evaluation import ExactPopularity, Ranking, evaluate, rank, split
from tacit.models.implicit import InteractionRule
from tacit.models.rules import OwnRows
from tacit.trusted.statistic import Statistic
from tests.conftest import spy_on_sums

USERS, ITEMS, TASTES = 6000, 80, 6


def people_of_tastes(users: int, items: int, seed: int, likes: float = 20.0) -> tacit.Ratings:
    """Everyone has one taste and takes items of it more often; popular items are taken by all."""
    rng = np.random.default_rng(seed)
    fame = (rng.permutation(items) + 3.0) ** -0.8
    taste, kind = rng.integers(TASTES, size=users), rng.integers(TASTES, size=items)
    chance = np.log(fame * (1 + likes * (taste[:, None] == kind)))
    keys = chance + rng.gumbel(size=(users, items))
    counts = rng.integers(3, max(4, items // 6), size=users)
    taken = np.argsort(np.argsort(-keys, axis=1), axis=1) < counts[:, None]
    who, what = np.nonzero(taken)
    return tacit.Ratings.from_arrays(
        [f"user-{user:05d}" for user in who],
        [f"film-{item:02d}" for item in what],
        implicit=True,
        catalogue=tacit.Catalogue([f"film-{item:02d}" for item in range(items)], public=True),
    )


def pairs_of(ratings: tacit.Ratings) -> list[tuple[Any, Any]]:
    who = np.repeat(ratings.user_ids.to_numpy(), np.diff(ratings.indptr))
    return list(zip(who.tolist(), ratings.catalogue.ids[ratings.items].to_list(), strict=True))


class TestReading:
    """Only users and items are needed; pairs given twice count once."""

    WANTED = [("ann", "milk"), ("ann", "tea"), ("bob", "tea")]  # noqa: RUF012
    USERS, THINGS = ["ann", "bob", "ann", "ann"], ["tea", "tea", "milk", "tea"]

    def assert_wanted(self, ratings: tacit.Ratings) -> None:
        assert pairs_of(ratings) == self.WANTED
        assert ratings.implicit
        assert ratings.rating_range == (0.0, 1.0)
        assert ratings.values.tolist() == [1.0] * 3
        assert repr(ratings) == "Ratings(implicit=True)"

    @pytest.mark.parametrize(
        "text",
        [
            "user,item\nann,tea\nbob,tea\nann,milk\nann,tea\n",
            "item\tuser\twhen\ntea\tann\t1\ntea\tbob\t2\nmilk\tann\t3\ntea\tann\t4\n",
            "user,item,rating\nann,tea,99\nbob,tea,\nann,milk,good\nann,tea,-1\n",
        ],
        ids=["header", "other order", "a rating column of any kind"],
    )
    def test_text_files(self, text: str, tmp_path: Path) -> None:
        (tmp_path / "touched.csv").write_text(text)
        self.assert_wanted(tacit.Ratings.from_file(tmp_path / "touched.csv", implicit=True))

    def test_without_a_header_users_come_first_and_items_second(self, tmp_path: Path) -> None:
        (tmp_path / "touched.txt").write_text("2::31::4::99\n2::30::4::98\n1::31::9::97\n")
        ratings = tacit.Ratings.from_file(tmp_path / "touched.txt", implicit=True)
        assert pairs_of(ratings) == [(1, 31), (2, 30), (2, 31)]

    def test_frames_parquet_and_arrays(self, tmp_path: Path) -> None:
        frame = pl.DataFrame({"user": self.USERS, "item": self.THINGS, "rating": [9, 9, 9, 9]})
        frame.write_parquet(tmp_path / "touched.parquet")
        self.assert_wanted(tacit.Ratings.from_frame(frame, implicit=True))
        self.assert_wanted(tacit.Ratings.from_frame(frame.drop("rating").lazy(), implicit=True))
        self.assert_wanted(tacit.Ratings.from_file(tmp_path / "touched.parquet", implicit=True))
        self.assert_wanted(tacit.Ratings.from_arrays(self.USERS, self.THINGS, implicit=True))

    def test_a_sparse_matrix_counts_whatever_is_stored(self) -> None:
        matrix = csr_matrix(([7.0, 0.0, -1.0], ([0, 1, 1], [1, 0, 1])), shape=(3, 2))
        ratings = tacit.Ratings.from_sparse(matrix, implicit=True)
        assert pairs_of(ratings) == [(0, 1), (1, 0), (1, 1)]
        assert ratings.n_users == 3
        assert ratings.values.tolist() == [1.0] * 3

    def test_rows_that_are_taken_or_split_stay_implicit(self) -> None:
        ratings = people_of_tastes(50, 12, seed=0)
        train, test = split(ratings, 0.3, np.random.default_rng(0))
        assert ratings.take_rows([4, 2]).implicit
        assert train.implicit
        assert test.implicit

    def test_ratings_where_there_are_none_are_refused(self) -> None:
        pair = (self.USERS, self.THINGS)
        with pytest.raises(
            tacit.ConfigError, match=r"rating_range=\(1, 5\): interactions \(implicit\)"
        ):
            tacit.Ratings.from_arrays(*pair, rating_range=(1, 5), implicit=True)
        with pytest.raises(tacit.ConfigError, match="rating_range=None; give"):
            tacit.Ratings.from_arrays(*pair)
        with pytest.raises(tacit.ConfigError, match="implicit='yes'"):
            tacit.Ratings.from_arrays(*pair, implicit="yes")  # type: ignore[arg-type]
        frame, columns = pl.DataFrame({"user": [1], "item": [2]}), tacit.Columns(rating="stars")
        with pytest.raises(tacit.ConfigError, match="rating='stars' with implicit=True"):
            tacit.Ratings.from_frame(frame, columns=columns, implicit=True)


class TestWrongUse:
    """Ratings and interactions are not taken for each other."""

    def test_algorithms_are_for_one_of_the_two(self, ratings: tacit.Ratings) -> None:
        touched = people_of_tastes(50, 12, seed=0)
        with pytest.raises(tacit.ConfigError, match="svd: it learns from ratings"):
            tacit.fit(touched, tacit.SVD(), epsilon=1.0)
        with pytest.raises(tacit.ConfigError, match="interactions: it learns from interactions"):
            tacit.fit(ratings, tacit.Interactions(), epsilon=1.0)
        with pytest.raises(tacit.ConfigError, match="tune compares errors of ratings"):
            tacit.tune(touched, [tacit.SVD(), tacit.FrankWolfe()], epsilon=1.0)
        with pytest.raises(tacit.ConfigError, match="interactions: it learns from interactions"):
            tacit.tune(ratings, [tacit.SVD(), tacit.Interactions()], epsilon=1.0)

    def test_the_automatic_choice_follows_the_ratings(self, ratings: tacit.Ratings) -> None:
        touched = tacit.fit(people_of_tastes(50, 12, seed=0), epsilon=1.0)
        assert touched.implicit
        assert touched.rule.kind == "interactions"
        assert touched.certificate.public["rating range"].startswith("none")
        assert not tacit.fit(ratings, epsilon=1.0).implicit

    def test_the_most_touched_items_can_be_chosen_first(self) -> None:
        model = tacit.fit(people_of_tastes(600, 20, seed=0), epsilon=5.0, top_items=8)
        assert model.implicit
        assert len(model.catalogue) == 8
        assert model.verify().holds

    def test_models_and_rows_must_match(self, ratings: tacit.Ratings) -> None:
        touched = people_of_tastes(50, 15, seed=0)
        model, other = tacit.fit(touched, epsilon=1.0), tacit.fit(ratings, epsilon=1.0)
        with pytest.raises(tacit.ConfigError, match="read them with implicit=True"):
            list(model.predict_rows(ratings))
        with pytest.raises(tacit.ConfigError, match="read them with implicit=False"):
            list(other.recommend_rows(touched))
        with pytest.raises(tacit.ConfigError, match="no RMSE"):
            evaluate(model, touched, touched)
        with pytest.raises(tacit.ConfigError, match="knows no uncertainty"):
            model.predict([], return_std=True)
        with pytest.raises(tacit.ConfigError, match="train and test"):
            rank(model, touched, ratings)

    def test_own_interactions_have_many_forms(self) -> None:
        model = tacit.fit(people_of_tastes(600, 12, seed=0), budget=None)
        wanted = model.predict(["film-03", "film-07"])
        assert not np.allclose(wanted, model.predict([]))
        for own in (
            ("film-07", "film-03"),
            {"film-03", "film-07"},
            np.array(["film-03", "film-07"]),
            pl.Series(["film-03", "film-07", "film-07"]),
            pl.DataFrame({"item": ["film-03", "film-07"], "rating": [4, 2]}),
            {"film-03": 1, "film-07": True},
        ):
            assert np.array_equal(model.predict(own), wanted)
        with pytest.warns(tacit.UnknownItemsWarning, match="1 of 3 own interactions"):
            model.recommend(["film-03", "film-07", "other"])
        for own in ({"film-03": 0}, {"film-03": 5.0}, "film-03", 7, pl.DataFrame({"x": [1]})):
            with pytest.raises(tacit.DataError, match="own_ratings"):
                model.predict(own)


def rows_of(items: int, people: int, seed: int) -> OwnRows:
    rng = np.random.default_rng(seed)
    rows = [np.sort(rng.choice(items, k, replace=False)) for k in rng.integers(0, items, people)]
    indptr = np.cumsum([0, *map(len, rows)])
    flat = np.concatenate(rows).astype(np.uint32)
    return OwnRows(indptr, flat, np.ones(flat.size, np.float32))


def dense_scores(rule: InteractionRule, own: OwnRows, idle_weight: float = 1.0) -> np.ndarray:
    """The least squares problem of the docstring, one person at a time, by a general solver."""
    factors, shares = rule.factors, rule.offsets
    found = []
    for lo, hi in zip(own.indptr[:-1], own.indptr[1:], strict=True):
        touched = np.zeros(shares.size)
        touched[own.items[lo:hi]] = 1.0
        mean = (hi - lo) * shares
        weights = np.where(touched > 0, 1.0, idle_weight) / np.maximum(mean, 1e-30)
        design = np.sqrt(weights)[:, None] * mean[:, None] * factors
        left = np.vstack([design, np.eye(factors.shape[1])])
        right = np.concatenate([np.sqrt(weights) * (touched - mean), np.zeros(factors.shape[1])])
        taste = np.linalg.lstsq(left, right, rcond=None)[0]
        found.append(shares * (1 + factors @ taste))
    return np.array(found)


class TestRule:
    """The local rule."""

    def rule(self, directions: int = 3) -> InteractionRule:
        rng = np.random.default_rng(5)
        shares = rng.random(9) ** 2
        return InteractionRule(rng.standard_normal((9, directions)), shares / shares.sum())

    @pytest.mark.parametrize("directions", [0, 1, 3, 12])
    def test_it_solves_the_weighted_least_squares_of_all_items(self, directions: int) -> None:
        rule, own = self.rule(directions), rows_of(9, 40, seed=1)
        assert np.allclose(rule.scores(own), dense_scores(rule, own), atol=1e-9)

    def test_another_weight_of_what_was_not_touched_is_noticed(self) -> None:
        rule, own = self.rule(), rows_of(9, 40, seed=1)
        assert not np.allclose(rule.scores(own), dense_scores(rule, own, 0.9), atol=1e-3)

    def test_who_touched_nothing_gets_popularity(self) -> None:
        rule = self.rule()
        nobody = OwnRows(np.array([0, 0]), np.zeros(0, np.uint32), np.zeros(0, np.float32))
        assert np.allclose(rule.scores(nobody)[0], rule.offsets)

    def test_moving_all_factors_together_moves_no_taste(self) -> None:
        """Errors of popularity that look like a constant factor do no harm to tastes."""
        rule, own = self.rule(), rows_of(9, 40, seed=1)
        centred = rule.factors - rule.offsets @ rule.factors
        one = InteractionRule(centred, rule.offsets)
        constant = np.hstack([centred, np.full((9, 1), 4.0)])
        other = InteractionRule(constant, rule.offsets)
        assert np.allclose(one.scores(own), other.scores(own))

    @pytest.mark.parametrize(
        ("factors", "shares"),
        [
            (np.zeros((3, 1)), np.array([0.5, 0.6, -0.1])),
            (np.zeros((3, 1)), np.array([0.5, 0.5, 0.5])),
            (np.full((3, 1), 1e200), np.array([0.5, 0.25, 0.25])),
            (np.zeros((2, 1)), np.array([0.5, 0.25, 0.25])),
            (np.full((3, 1), np.nan), np.array([0.5, 0.25, 0.25])),
        ],
        ids=["negative", "no shares", "huge", "other shape", "not a number"],
    )
    def test_impossible_parts_are_refused(self, factors: np.ndarray, shares: np.ndarray) -> None:
        with pytest.raises(ModelFileError):
            InteractionRule.from_parts({"factors": factors, "offsets": shares}, {})

    def test_what_was_not_paid_for_is_named(self) -> None:
        rule = self.rule()
        weights = Release(ReleaseKind.ITEM_WEIGHTS)
        pairs = Release(ReleaseKind.CO_OCCURRENCES, (1,))
        product = Release(ReleaseKind.CO_OCCURRENCE_PRODUCT, (1,))
        assert rule.missing_releases([weights, pairs]) == []
        assert rule.missing_releases([weights, product]) == []
        assert len(rule.missing_releases([weights])) == 1
        assert (
            len(rule.missing_releases([weights, replace(pairs, part=(1,))])) == 1
        )  # of a trial only
        assert len(rule.missing_releases([])) == 2


class TestPopularity:
    """Shares of items from noisy releases."""

    def test_numbers_that_cannot_be_negative_keep_their_order(self) -> None:
        noisy = np.linspace(-40, 40, 81)
        found = positive(noisy, 2.0)
        assert (found > 0).all()
        assert (np.diff(found) > 0).all()
        assert np.allclose(found[noisy > 16], noisy[noisy > 16])
        assert np.allclose(positive(noisy, 0.0), np.maximum(noisy, 0), atol=1e-9)

    def test_pairs_help_where_weights_drown(self) -> None:
        rng = np.random.default_rng(2)
        shares = (np.arange(100) + 2.0) ** -1
        shares /= shares.sum()
        pairs = 2e5 * np.outer(shares, shares) + 30 * _symmetric(rng, 100)
        weights = 2e4 * shares + 300 * rng.standard_normal(100)
        alone = positive(weights, 300.0)
        found = popularity(weights, 300.0, pairs, 30.0)
        assert found.sum() == pytest.approx(1.0)
        alone_error = np.linalg.norm(alone / alone.sum() - shares)
        assert np.linalg.norm(found - shares) < 0.6 * alone_error

    def test_noise_alone_gives_shares_all_the_same(self) -> None:
        for seed in range(20):
            rng = np.random.default_rng(seed)
            weights, pairs = 1e6 * rng.standard_normal(30), 1e6 * _symmetric(rng, 30)
            found = popularity(weights, 1e6, pairs, 1e6)
            assert (found > 0).all()
            assert found.sum() == pytest.approx(1.0)


def _symmetric(rng: np.random.Generator, size: int) -> np.ndarray:
    noise = rng.standard_normal((size, size))
    return (noise + noise.T) / 2


@pytest.fixture(scope="module")
def problem() -> tuple[tacit.Ratings, tacit.Ratings]:
    return split(people_of_tastes(USERS, ITEMS, seed=1), 0.2, np.random.default_rng(0))


class TestWorth:
    """Recall on held-out interactions. Noise is seeded, so figures are the same in every run."""

    def recall(self, problem: Any, epsilon: float | None, **options: Any) -> list[float]:
        train, test = problem
        found = []
        for seed in range(2 if epsilon else 1):
            noise = {"epsilon": epsilon, "noise_seed_unsafe": seed} if epsilon else {"budget": None}
            model = tacit.fit(train, **noise, **options)
            shares = model.rule.offsets
            alone = InteractionRule(np.zeros((shares.size, 0)), shares)
            popular = tacit.Model(alone, model.catalogue, (0.0, 1.0), model.certificate, 2)
            found.append([rank(m, train, test).recall for m in (model, popular)])
        return np.mean(found, axis=0).tolist()

    def test_tastes_beat_popularity_where_noise_allows(self, problem: Any) -> None:
        exact = rank(ExactPopularity(problem[0]), *problem).recall
        free, private = self.recall(problem, None)[0], self.recall(problem, 5.0)[0]
        assert free > 1.25 * exact
        assert private > 1.1 * exact
        assert private > exact + 0.6 * (free - exact)

    @pytest.mark.parametrize("epsilon", [0.02, 0.1, 0.5])
    def test_under_noise_it_fades_into_popularity(self, problem: Any, epsilon: float) -> None:
        found, popular = self.recall(problem, epsilon)
        assert found > 0.99 * popular

    def test_the_block_form_finds_tastes_too(self, problem: Any) -> None:
        block = tacit.Interactions(eigen="block")
        found, popular = self.recall(problem, None, algorithm=block)
        assert found > 1.2 * popular
        found, popular = self.recall(problem, 0.1, algorithm=block)
        assert found > 0.99 * popular


class TestRanking:
    """Every held-out interaction is relevant; the yardstick is popularity without noise."""

    def test_frames_need_no_ratings_and_count_pairs_once(self) -> None:
        train, test = split(people_of_tastes(400, 20, seed=3), 0.3, np.random.default_rng(0))
        who, what = zip(*pairs_of(test), strict=True)
        frame = pl.DataFrame({"user": who, "item": what})
        model = tacit.fit(train, epsilon=3.0)
        found = rank(model, train, pl.concat([frame, frame.head(50)]), k=5)
        assert isinstance(found, Ranking)
        assert found == rank(model, train, test, k=5)
        assert found.people == found.lists

    def test_exact_popularity_is_a_plain_count(self) -> None:
        train, _ = split(people_of_tastes(1500, 20, seed=3), 0.3, np.random.default_rng(0))
        counts = np.bincount(train.items, minlength=20).astype(float)
        lists = np.vstack([block for _, block in ExactPopularity(train).recommend_rows(train, 4)])
        for user in (0, 7, 1100, 1499):
            own = train.items[train.indptr[user] : train.indptr[user + 1]]
            left = counts.copy()
            left[own] = -np.inf
            assert lists[user].tolist() == np.argsort(-left, kind="stable")[:4].tolist()


class TestSensitivity:
    """No neighbour moves what the algorithm releases further than stated; some come close."""

    THINGS = 10
    CATALOGUE = tacit.Catalogue(list(range(THINGS)), public=True)

    def ratings(self, rows: list[list[int]]) -> tacit.Ratings:
        who = [user for user, row in enumerate(rows) for _ in row]
        what = [item for row in rows for item in row]
        return tacit.Ratings.from_arrays(who, what, implicit=True, catalogue=self.CATALOGUE)

    def asked(self, config: tacit.Interactions, monkeypatch: pytest.MonkeyPatch) -> list[Statistic]:
        """The statistics of a fit, in the order of their release."""
        with monkeypatch.context() as patch:
            kept = spy_on_sums(patch)
            rows = [[0, 1], [2, 3, 4], [5], [6, 7, 8, 9]]
            tacit.fit(self.ratings(rows), config, epsilon=2.0, neighbours="add_remove")
        return kept

    def moved(self, statistic: Statistic, before: list[int], after: list[int] | None) -> float:
        others = [[0, 5], [1, 2, 3], list(range(10))]
        unit = statistic.max_entry * 2.0**-40
        sums = []
        for rows in ([before, *others], others if after is None else [after, *others]):
            engine = tacit.ThreadEngine(2)
            engine.take(self.ratings(rows))
            sums.append(engine.sum(statistic, unit)._exact_sum * unit)
        return float(np.linalg.norm(sums[0] - sums[1]))

    @pytest.mark.parametrize("eigen", ["exact", "block"])
    def test_no_neighbour_moves_a_release_further_than_stated(
        self, eigen: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        config = tacit.Interactions(eigen=eigen, columns=10, steps=1)
        asked = self.asked(config, monkeypatch)
        assert len(asked) == 3
        rng = np.random.default_rng(0)
        lists = [rng.choice(10, rng.integers(1, 11), replace=False).tolist() for _ in range(30)]
        designed = [([0, 1, 2], [3, 4]), ([0], [9]), (list(range(9)), [9])]
        for statistic in asked:
            stated = statistic.sensitivity
            removed = [self.moved(statistic, row, None) for row in lists]
            pairs = [*zip(lists[::2], lists[1::2], strict=True), *designed]
            replaced = [self.moved(statistic, *pair) for pair in pairs]
            assert 0.97 * stated.add_remove < max(removed) <= stated.add_remove * (1 + 1e-12)
            assert max(replaced) <= stated.replace * (1 + 1e-12)
            if statistic.shape != (1,):  # replacing a user leaves their number alone
                assert max(replaced) > 0.97 * stated.replace
