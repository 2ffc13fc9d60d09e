"""reproduce: computes what is missing and nothing else, whatever happened before."""

import json
from collections.abc import Generator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from tests.support.small_experiment import LISTS, TEXT, small, synthetic_row

from tacit.errors import ConfigError, DataError
from tacit.evaluation import ExactPopularity, rank_new_users
from tacit.reporting.tables import markdown_text
from tacit.research.experiments import pool
from tacit.research.experiments.jobs import Job, cells_of
from tacit.research.experiments.pool import Crew, crew_for
from tacit.research.experiments.preparing import prepare
from tacit.research.experiments.reading import parse_experiment, read_experiment
from tacit.research.experiments.reproducing import Options, reproduce
from tacit.research.experiments.running import run_job
from tacit.research.experiments.spec import OPEN_RATINGS, Quick
from tacit.research.experiments.store import RunStore
from tacit.research.experiments.summary import points_of

ALL = 2 * (3 * 3 + 3 * 2 + 3 * 3 + 3)  # automatic, trials, svd, user means
TRIALS = 12


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> list[Job]:
    """Have jobs done by a stand-in, which notes them."""
    noted: list[Job] = []

    def stand_in(_: Any, jobs: Sequence[Job], *__: Any) -> Generator[dict[str, Any], None, None]:
        for job in jobs:
            noted.append(job)
            yield synthetic_row(job)

    monkeypatch.setattr("tacit.research.experiments.reproducing.run_jobs", stand_in)
    monkeypatch.setattr("tacit.research.experiments.reproducing.draw", lambda *_: [])
    return noted


def run(folder: Path, **options: Any) -> Any:
    return reproduce(small(), Options(runs=folder, **options))


def test_everything_is_computed_once(tmp_path: Path, tried: list[Job]) -> None:
    first = run(tmp_path)
    assert (first.computed, first.reused, first.failed) == (ALL, 0, 0)
    assert len({job.key for job in tried}) == len(tried) == ALL
    assert {path.name for path in first.files} == {"small.csv", "small.md"}
    again = run(tmp_path)
    assert (again.computed, again.reused) == (0, ALL)
    assert len(tried) == ALL


def test_one_dataset_is_run_alone_under_a_name_of_its_own(tmp_path: Path, tried: list[Job]) -> None:
    first = run(tmp_path, datasets=("Few",))  # labels are matched in any case
    assert first.computed == len(tried) == ALL // 2
    assert {path.name for path in first.files} == {"small-few.csv", "small-few.md"}
    assert "--dataset Few" in (tmp_path / "small-few.md").read_text()
    assert run(tmp_path).reused == ALL // 2  # its runs are those of the whole
    with pytest.raises(ConfigError, match=r"--dataset 'jester': expected one of 'few', 'tastes'"):
        run(tmp_path, datasets=("jester",))


def test_half_of_the_rows_deleted_is_half_computed(tmp_path: Path, tried: list[Job]) -> None:
    run(tmp_path)
    before = (tmp_path / "small.csv").read_text()
    path = tmp_path / "runs.parquet"
    frame = pl.read_parquet(path)
    kept = frame.gather_every(2)
    kept.write_parquet(path)
    tried.clear()
    again = run(tmp_path)
    assert again.computed == frame.height - kept.height == len(tried)
    assert {job.key for job in tried} == set(frame["key"]) - set(kept["key"])
    assert (tmp_path / "small.csv").read_text() == before


def test_an_interruption_loses_nothing_that_was_done(tmp_path: Path, tried: list[Job]) -> None:
    def impatient(done: int, _total: int, _left: float) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(small(), Options(runs=tmp_path), impatient)
    assert pl.read_parquet(tmp_path / "runs.parquet").height == 5
    assert run(tmp_path).computed == ALL - 5


def test_failures_are_kept_and_tried_again_only_when_asked(
    tmp_path: Path, tried: list[Job]
) -> None:
    run(tmp_path)
    path = tmp_path / "runs.parquet"
    frame = pl.read_parquet(path)
    bad = (pl.col("algorithm") == "latent-factors") & (pl.col("draw") == 0)
    frame.with_columns(
        status=pl.when(bad).then(pl.lit("failed")).otherwise("status")
    ).write_parquet(path)
    assert (run(tmp_path).failed, len(tried)) == (6, ALL)
    assert (run(tmp_path, retry=True).failed, len(tried)) == (0, ALL + 6)


def test_fewer_draws_are_some_of_the_same_runs(tmp_path: Path, tried: list[Job]) -> None:
    assert run(tmp_path, draws=1).computed == TRIALS + 2 * (3 + 3 + 1)
    assert run(tmp_path).reused == TRIALS + 2 * (3 + 3 + 1)
    assert len({job.key for job in tried}) == len(tried) == ALL
    with pytest.raises(ConfigError, match="--draws 4: expected 1 to 3"):
        run(tmp_path, draws=4)


def test_a_quick_look_is_kept_apart(tmp_path: Path, tried: list[Job]) -> None:
    found = reproduce(small(), Options(runs=tmp_path, quick=True))
    assert {path.stem for path in found.files} == {"small-quick"}
    assert {job.draw for job in tried} == {0}
    page = (tmp_path / "small-quick.md").read_text()
    assert "tacit reproduce small --quick" in page
    assert "**A quick form: 1 draw" in page
    quick = replace(small(), quick=Quick(users=10)).made_quick()
    assert all(one.label.endswith("(here 10 users)") for one in quick.datasets if one.synthetic)
    assert "A quick form" not in markdown_text(small(), [], "", ())


def test_the_command_names_the_folders_and_a_file_of_ones_own(
    tmp_path: Path, tried: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.toml").write_text(TEXT)
    reproduce(read_experiment("mine.toml"), Options(runs=Path("kept"), output=Path("out")))
    page = Path("out/mine.md").read_text()
    assert "`tacit reproduce mine.toml --output out --runs kept`" in page
    with pytest.raises(ConfigError, match=r"other\.toml: cannot be read: No such file"):
        read_experiment("other.toml")


def test_what_is_not_here_is_left_out_and_said(
    tmp_path: Path, tried: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TACIT_DATA", str(tmp_path / "nowhere"))
    text = TEXT.replace(
        'synthetic = "few"\nusers = 60\nitems = 20\nper_user = 8', 'name = "jester"'
    )
    found = reproduce(parse_experiment("small", text), Options(runs=tmp_path))
    assert len(tried) == ALL / 2
    assert found.skipped[0].startswith("Jester 1 is left out")
    assert "Skipped: Jester 1 is left out" in (tmp_path / "small.md").read_text()
    alone = text.replace('synthetic = "tastes"\nusers = 60\nitems = 20\nper_user = 8', "").replace(
        "[[datasets]]\n\n\n", ""
    )
    with pytest.raises(DataError, match="nothing can be run: Jester 1 is left out"):
        reproduce(parse_experiment("alone", alone), Options(runs=tmp_path / "alone"))
    assert not (tmp_path / "alone").exists()


def test_a_file_that_nobody_named_is_left_out_and_said(
    tmp_path: Path, tried: list[Job], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(OPEN_RATINGS, raising=False)
    file = 'file = "mine"\nusers = 30\nitems = 4\nratings = 60\nlowest = 1\nhighest = 5'
    text = TEXT.replace('synthetic = "few"\nusers = 60\nitems = 20\nper_user = 8', file)
    found = reproduce(parse_experiment("small", text), Options(runs=tmp_path))
    assert len(tried) == ALL / 2
    assert "mine is left out" in found.skipped[0]
    assert OPEN_RATINGS in found.skipped[0]
    named = tmp_path / "secret-place.csv"
    named.write_text("user,item,rating\n1,1,5\n")
    monkeypatch.setenv(OPEN_RATINGS, str(named))
    assert reproduce(parse_experiment("small", text), Options(runs=tmp_path)).skipped == ()
    assert len(tried) == ALL
    assert all("secret-place" not in str(job.facts) for job in tried)


def test_a_named_file_must_be_as_large_as_stated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.csv"
    pairs = [f"{user},{item},{1 + (user + item) % 5}" for user in range(6) for item in range(4)]
    path.write_text("\n".join(["user,item,rating", *pairs]))
    monkeypatch.setenv(OPEN_RATINGS, str(path))
    facts: dict[str, Any] = {"file": "mine", "users": 6, "items": 4, "ratings": 24}
    facts |= {"lowest": 1, "highest": 5, "test_share": 0.25}
    assert prepare(facts).ratings.n_users == 6
    with pytest.raises(DataError, match="has not the stated numbers"):
        prepare(facts | {"users": 7})


def test_lists_of_new_users_are_measured_and_tabled(tmp_path: Path) -> None:
    """By the same function as elsewhere: the yardstick of popularity, without a fit."""
    facts = {"synthetic": "tastes", "users": 80, "items": 30, "per_user": 12, "test_share": 0.0}
    prepared = prepare(facts | {"new_users": 0.25})
    job = Job(prepared.facts, "popularity", draw=1)
    row = run_job(job, prepared, 1)
    train, new = prepared.parts(job)
    found = rank_new_users(ExactPopularity(train), new, seed=1)
    assert (row["status"], row["rmse"]) == ("done", None)
    assert row["recall_20"] == found.recall_20.mean > 0
    assert row["ndcg_10"] == found.ndcg_10.mean
    experiment = parse_experiment("lists", LISTS)
    with pytest.raises(ConfigError, match="--draws 5: expected 1 to 4"):
        reproduce(experiment, Options(runs=tmp_path, draws=5))
    cell = cells_of(experiment, {})[-1]
    rows = {one.key: row | {"key": one.key, "draw": one.draw} for one in cell.runs}
    text = markdown_text(experiment, points_of(experiment, rows), "c", [])
    assert f"{found.recall_20.mean:.4f}" in text
    assert "NDCG@10 of new users:\n\n| method |" in text
    assert f"{found.ndcg_10.mean:.4f}" in text
    assert "25 % of the users are in no fit" in text


def test_what_is_stored_can_be_seen_while_it_grows(tmp_path: Path, tried: list[Job]) -> None:
    """Somebody looks at a long experiment half way: nothing is computed, and nothing is claimed."""
    with pytest.raises(DataError, match="nothing is stored of this experiment yet"):
        run(tmp_path / "new", stored=True)
    assert not (tmp_path / "new").exists()
    run(tmp_path, draws=1)
    path, done = tmp_path / "runs.parquet", len(tried)
    rows = pl.read_parquet(path)
    lost = (pl.col("algorithm") == "user-mean") & (pl.col("draw") == 0)
    rows.filter(~lost).write_parquet(path)
    with RunStore(tmp_path):  # another process is at work
        found = run(tmp_path, stored=True)
    assert (found.computed, found.reused, len(tried)) == (0, done - 2, done)
    page = (tmp_path / "small.md").read_text()
    assert "Made by `tacit reproduce small --stored`" in page
    assert "the mean over 1 draw of noise" in page
    assert "| user mean | - | - | - |" in page
    run(tmp_path, draws=2)
    kept = pl.read_parquet(path).filter((pl.col("algorithm") != "svd") | (pl.col("draw") == 0))
    kept.write_parquet(path)
    run(tmp_path, stored=True)
    assert "the mean over 2 draws (svd: 1) of" in (tmp_path / "small.md").read_text()


def test_workers_and_threads_never_exceed_the_cores() -> None:
    few, large = small().datasets[0], parse_experiment("x", LARGE).datasets[0]
    assert crew_for(few, cores=4, memory=64e9) == Crew(4, 1)
    assert crew_for(few, cores=4, memory=1.6e9) == Crew(2, 2)
    assert crew_for(few, cores=3, memory=1e6) == Crew(1, 3)
    assert crew_for(large, cores=4, memory=1e12) == Crew(4, 1)
    assert crew_for(large, cores=4, memory=9e9) == Crew(2, 2)
    assert crew_for(large, cores=4, memory=4e9) == Crew(1, 4)


LARGE = TEXT.replace("users = 60", "users = 5_000_000", 1)

REAL = """
title = "Real"
about = "A few fits, in worker processes."
draws = 2
epsilons = [2, inf]
test_share = 0.05
wall_seconds = 60

[[datasets]]
synthetic = "few"
users = 300
items = 40
per_user = 15

[[methods]]
algorithm = "frank-wolfe"
tune = { rounds = [3, 5] }

[[methods]]
algorithm = "approximate-frank-wolfe"
label = "refuses a budget"
settings = { rounds = 5 }

[[methods]]
algorithm = "user-mean"
"""


@pytest.mark.slow
def test_from_a_file_to_a_figure(tmp_path: Path) -> None:
    """The whole way: two worker processes, trials, fits, failures, table and figure."""
    experiment = parse_experiment("real", REAL)
    found = reproduce(experiment, Options(runs=tmp_path / "runs", output=tmp_path / "out"))
    assert (found.computed, found.failed) == (2 * 2 + 2 * 2 + 2 * 2 + 2, 2)
    rows = pl.read_parquet(tmp_path / "runs" / "runs.parquet")
    done = rows.filter(pl.col("status") == "done")
    assert done["rmse"].is_between(0.3, 2.0).all()
    assert done["seconds"].is_not_null().all()
    assert (rows["workers"] * rows["threads"].fill_null(1)).max() <= 64
    assert set(json.loads(done["versions"][0])) >= {"tacit", "python", "numpy"}
    reasons = rows.filter(pl.col("status") == "failed")["reason"].unique().to_list()
    assert len(reasons) == 1
    assert "not private" in reasons[0]
    fits = done.filter(pl.col("algorithm") == "frank-wolfe", pl.col("role") == "run")
    assert fits["rmse"].n_unique() == 4  # noise and test parts differ from draw to draw
    text = (tmp_path / "out" / "real.md").read_text()
    assert "| refuses a budget | - |" in text
    assert (tmp_path / "out" / "real.png").stat().st_size > 10_000
    assert reproduce(experiment, Options(runs=tmp_path / "runs", output=tmp_path)).computed == 0


@pytest.mark.slow
def test_nobody_works_on_after_an_interruption(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hired = []
    begin = pool._start
    monkeypatch.setattr(pool, "_start", lambda *at: hired.append(begin(*at)) or hired[-1])

    def impatient(done: int, _total: int, _left: float) -> None:
        if done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        reproduce(parse_experiment("real", REAL), Options(runs=tmp_path), impatient)
    assert hired
    assert all(process.poll() is not None for process in hired)
    assert pl.read_parquet(tmp_path / "runs.parquet").height == 1


SLOW = """
title = "Slow"
about = "A fit that takes longer than it may."
draws = 3
epsilons = [1]
wall_seconds = 0.5

[[datasets]]
synthetic = "tastes"
users = 2_000
items = 300
per_user = 100

[[methods]]
algorithm = "frank-wolfe"
settings = { rounds = 2000 }
"""


@pytest.mark.slow
def test_what_takes_too_long_is_stopped_and_the_like_is_not_tried(tmp_path: Path) -> None:
    found = reproduce(parse_experiment("slow", SLOW), Options(runs=tmp_path))
    assert (found.computed, found.failed) == (3, 3)
    reasons = pl.read_parquet(tmp_path / "runs.parquet").sort("draw")["reason"].to_list()
    assert any(reason == "over the wall-time cap of 0.5 s" for reason in reasons)
    assert "over the wall-time cap of 0.5 s" in (tmp_path / "slow.md").read_text()
    assert all("wall-time cap of 0.5 s" in reason for reason in reasons)
