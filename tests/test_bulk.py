"""Many users at once: the same numbers as one by one, in frames and in files."""

import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import tacit
from tacit._blas import blas_for, blas_threads
from tacit.cli import app
from tacit.evaluation import ExactPopularity, calibrate, evaluate, measure, split
from tacit.models.bulk import pair_predictions
from tacit.models.rules import Pairs
from tacit.models.top_n import best_items
from tests.conftest import ratings_for
from tests.test_recommending import METHODS


@pytest.fixture(scope="module")
def ratings() -> tacit.Ratings:
    return ratings_for(0, users=600)


@pytest.fixture(scope="module", params=["latent factors", "moments", "svd"])
def model(request: pytest.FixtureRequest, ratings: tacit.Ratings) -> tacit.Model:
    config, _ = METHODS[request.param]
    return tacit.fit(ratings, config, budget=None)


def own_of(ratings: tacit.Ratings, row: int) -> dict[str, float]:
    part = slice(ratings.indptr[row], ratings.indptr[row + 1])
    ids = ratings.catalogue.ids.gather(ratings.items[part]).to_list()
    return dict(zip(ids, ratings.values[part].tolist(), strict=True))


def frame_of(ratings: tacit.Ratings) -> pl.DataFrame:
    people = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    return pl.DataFrame(
        {
            "user": ratings.user_ids.gather(people),
            "item": ratings.catalogue.ids.gather(ratings.items),
            "rating": ratings.values,
        }
    )


class TestLists:
    """recommend_frame."""

    @pytest.mark.parametrize("how", [{}, {"by": "rating"}, {"include_rated": True}])
    def test_everyone_gets_the_list_she_would_make_herself(
        self, model: tacit.Model, ratings: tacit.Ratings, how: dict[str, Any]
    ) -> None:
        frame = model.recommend_frame(ratings, 4, **how)
        for row in (0, 7, 599):
            mine = frame.filter(pl.col("user") == ratings.user_ids[row])
            own = model.recommend(own_of(ratings, row), 4, **how)
            assert mine["rank"].to_list() == [1, 2, 3, 4]
            assert mine["item"].to_list() == [each.item for each in own]
            assert np.allclose(mine["score"], [each.score for each in own], rtol=1e-5)
            if "choice" in frame.columns:
                assert np.allclose(mine["choice"], [each.choice for each in own], rtol=1e-5)

    def test_a_frame_in_any_order_and_with_other_items_gives_the_same(
        self, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        frame = frame_of(ratings).sample(fraction=1, shuffle=True, seed=1)
        other = pl.DataFrame({"user": ["new"], "item": ["unknown"], "rating": [3.0]})
        with pytest.warns(tacit.UnknownItemsWarning, match="1 rows"):
            found = model.recommend_frame(pl.concat([frame, other.cast(frame.schema)]), 3)
        known = found.filter(pl.col("user") != "new").sort("user", "rank")
        assert known.equals(model.recommend_frame(ratings, 3).sort("user", "rank"))
        stranger = found.filter(pl.col("user") == "new")["item"].to_list()
        assert stranger == [each.item for each in model.recommend({}, 3)]

    def test_one_user_is_enough(self, model: tacit.Model, ratings: tacit.Ratings) -> None:
        frame = frame_of(ratings.take_rows([3]))
        assert model.recommend_frame(frame, 2)["rank"].to_list() == [1, 2]

    def test_what_makes_no_list_is_refused(
        self, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        with pytest.raises(tacit.ConfigError, match="n=0"):
            model.recommend_frame(ratings, 0)
        with pytest.raises(tacit.ConfigError, match="catalogue"):
            model.recommend_frame(ratings_for(0, users=20, items=9))


class TestPairs:
    """predict_frame, and what evaluate makes of it."""

    def test_pairs_have_the_predictions_of_whole_rows(
        self, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        rng = np.random.default_rng(0)
        items = rng.integers(0, ratings.n_items, 3 * ratings.n_users)
        pairs = Pairs(np.arange(ratings.n_users + 1) * 3, items)
        scores = pair_predictions(model, ratings, pairs)[0]
        whole = np.concatenate([block for _, block in model.predict_rows(ratings)])
        assert np.allclose(scores, whole[pairs.people, items], atol=1e-9)
        if model.knows_std:
            stds = pair_predictions(model, ratings, pairs, spread=True)[1]
            spread = np.concatenate([s for _, _, s in model.predict_rows_with_std(ratings)])
            assert np.allclose(stds, spread[pairs.people, items], rtol=1e-5)
            assert not np.allclose(stds, spread[pairs.people, items[::-1]], atol=1e-3)

    def test_a_frame_of_pairs_keeps_its_order(
        self, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        one, other = ratings.user_ids[5], ratings.user_ids[2]
        users, items = [one, "nobody", other, one], ["film-03", "film-03", "film-01", "?"]
        pairs = pl.DataFrame({"user": users, "item": items})
        with pytest.warns(tacit.UnknownItemsWarning):
            found = model.predict_frame(ratings, pairs, return_std=model.knows_std)
        assert found["user"].to_list() == users
        mine = [
            model.predict(own_of(ratings, 5), ["film-03"])[0],
            model.predict({}, ["film-03"])[0],
        ]
        mine.append(model.predict(own_of(ratings, 2), ["film-01"])[0])
        assert np.allclose(found["score"][:3], mine, rtol=1e-5)
        assert found["score"][3] is None
        assert ("std" in found.columns) == model.knows_std

    def test_one_pass_measures_what_two_do(
        self, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        train, test = split(ratings, 0.1, np.random.default_rng(1))
        accuracy, calibration = measure(model, train, test)
        assert accuracy.to_json() == evaluate(model, train, test).to_json()
        if calibration is not None:
            assert calibration.to_json() == calibrate(model, train, test).to_json()
        assert (calibration is not None) == model.knows_std


def test_exact_popularity_is_the_best_of_the_counts(ratings: tacit.Ratings) -> None:
    counts = np.bincount(ratings.items, minlength=ratings.n_items).astype(float)
    scores = np.repeat(counts[None], ratings.n_users, axis=0)
    people = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    scores[people, ratings.items] = -np.inf
    ((_, lists),) = ExactPopularity(ratings).recommend_rows(ratings, 12)
    assert np.array_equal(lists, best_items(scores, 12))
    assert (lists == -1).any()  # some have rated all but a few


class TestCommands:
    """tacit recommend and tacit predict with -o."""

    @pytest.fixture
    def files(self, model: tacit.Model, ratings: tacit.Ratings, tmp_path: Path) -> Path:
        model.save(tmp_path / "m.tacit")
        frame_of(ratings).write_parquet(tmp_path / "all.parquet")
        users = ratings.user_ids.head(50)
        pl.DataFrame({"user": users, "item": ["film-02"] * 50}).write_csv(tmp_path / "pairs.csv")
        return tmp_path

    def ask(self, *words: Any) -> Any:
        return CliRunner().invoke(app, [str(word) for word in words])

    def test_lists_and_predictions_go_to_files(
        self, files: Path, model: tacit.Model, ratings: tacit.Ratings
    ) -> None:
        given = (files / "m.tacit", "--ratings", files / "all.parquet")
        found = self.ask("recommend", *given, "-n", 3, "-o", files / "lists.parquet")
        assert found.exit_code == 0, found.output
        written = pl.read_parquet(files / "lists.parquet")
        wanted = model.recommend_frame(ratings, 3)
        assert written.sort("user", "rank").equals(wanted.sort("user", "rank"))
        pairs = ("--pairs", files / "pairs.csv", "-o", files / "out.csv")
        found = self.ask("predict", *given, *pairs)
        assert found.exit_code == 0, found.output
        assert pl.read_csv(files / "out.csv").columns == ["user", "item", "score"]
        assert len(pl.read_csv(files / "out.csv")) == 50

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("recommend", "-o", "all.parquet", "--force"), "would be lost"),
            (("recommend", "-o", "m.tacit", "--force"), "ends in .parquet or .csv"),
            (("recommend", "-o", "pairs.csv"), "is there already"),
            (("recommend", "-o", "x.csv", "--because"), "--because"),
            (("predict", "-o", "x.csv"), "--pairs"),
            (("predict", "-o", "pairs.csv", "--pairs", "pairs.csv", "--force"), "would be lost"),
            (("predict", "--pairs", "pairs.csv"), "goes with -o"),
        ],
    )
    def test_inputs_are_safe(
        self, files: Path, words: tuple[str, ...], message: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(files)
        before = {path.name: path.read_bytes() for path in files.iterdir()}
        verb, *rest = words
        found = self.ask(verb, "m.tacit", "--ratings", "all.parquet", *rest)
        assert found.exit_code != 0
        shown = found.output + str(found.exception)
        assert message in shown
        assert before == {path.name: path.read_bytes() for path in files.iterdir()}


@pytest.mark.slow
def test_a_busy_neighbour_does_not_stall_a_fit() -> None:
    """Best of four each; alone a fit has both cores, beside a neighbour at least two thirds.

    Before BLAS followed the engine it took up to 70 times as long. Other work on the machine may
    come in between, so that it is measured three times before it fails.
    """
    ratings = ratings_for(1, users=20_000, items=120)

    def best() -> float:
        times = []
        for _ in range(4):
            start = time.perf_counter()
            tacit.fit(ratings, tacit.Moments(), budget=None)
            times.append(time.perf_counter() - start)
        return min(times)

    def slower() -> float:
        alone = best()
        neighbour = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            return best() / alone
        finally:
            neighbour.kill()
            neighbour.wait()

    best()
    assert any(slower() < 2.5 for _ in range(3))


class TestThreadsOfBlas:
    """blas_threads."""

    def count(self) -> int:
        from threadpoolctl import threadpool_info

        return max(each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas")

    def test_the_fewest_that_anyone_asked_for_and_then_as_before(self) -> None:
        before = self.count()
        with blas_threads(1024):
            assert self.count() == before  # never more than there were
            with blas_threads(1):
                assert self.count() == 1
            assert self.count() == before
        assert self.count() == before

    def test_two_threads_that_leave_in_any_order_restore_it(self) -> None:
        before, inside, out = self.count(), threading.Event(), threading.Event()

        def first() -> None:
            with blas_threads(1):
                inside.set()
                out.wait(10)

        thread = threading.Thread(target=first)
        thread.start()
        inside.wait(10)
        with blas_threads(1):
            out.set()
            thread.join()
            assert self.count() == 1
        assert self.count() == before

    def test_small_matrices_have_one_thread(self) -> None:
        before = self.count()
        with blas_for(100, before):
            assert self.count() == 1
        with blas_for(5000, before):
            assert self.count() == before

    def test_a_fit_leaves_it_as_it_was(self, ratings: tacit.Ratings) -> None:
        before = self.count()
        tacit.fit(ratings, budget=None, engine=tacit.ThreadEngine(1))
        assert self.count() == before
