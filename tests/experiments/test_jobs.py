"""Jobs: the same key for the same work, another for any other; settings chosen by trials alone."""

import math
from dataclasses import replace
from typing import Any

import pytest
from tests.support.small_experiment import small, synthetic_row

from tacit.accounting.budget import mu_of
from tacit.algorithms import Moments
from tacit.fitting.fit import automatic
from tacit.research.experiments.jobs import Job, cells_of
from tacit.research.experiments.reading import parse_experiment

JOB = Job({"synthetic": "few", "test_share": 0.01}, "svd", {"rank": 3}, 1.0, draw=2)


def test_a_key_is_the_same_tomorrow() -> None:
    assert JOB.key == "329eef7c4b2c60733862a239c9039fe1"


def test_a_key_survives_the_way_to_a_worker_and_back() -> None:
    import json

    job = replace(JOB, epsilon=float("inf"), settings={"schedule": (1.0, 2.0)})
    back = Job.from_json(json.loads(json.dumps(job.facts)))
    assert back.key == job.key
    assert back.settings == {"schedule": (1.0, 2.0)}


@pytest.mark.parametrize(
    "change",
    [
        {"dataset": {"synthetic": "few", "test_share": 0.02}},
        {"algorithm": "oja"},
        {"settings": {"rank": 4}},
        {"epsilon": 2.0},
        {"delta": 1e-7},
        {"accounting": "paper"},
        {"neighbours": "add_remove"},
        {"role": "trial"},
        {"draw": 3},
        {"ranking": True},
    ],
)
def test_other_work_has_another_key(change: dict) -> None:
    assert replace(JOB, **change).key != JOB.key


def test_an_older_schema_is_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    before = JOB.key
    monkeypatch.setattr("tacit.research.experiments.jobs.SCHEMA", 99)
    assert JOB.key != before


def test_runs_of_an_earlier_default_are_not_taken_for_those_of_todays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def of_automatic() -> list[Job]:
        cells = cells_of(small(), {})
        return [job for c in cells if c.method.algorithm == "automatic" for job in c.runs]

    today = of_automatic()
    assert {job.algorithm for job in today} == {automatic().name}
    monkeypatch.setattr("tacit.research.experiments.jobs.automatic", Moments)
    before = of_automatic()
    assert {job.algorithm for job in before} == {"moments"}
    assert not {job.key for job in today} & {job.key for job in before}


def test_a_new_revision_of_an_algorithm_is_other_work(monkeypatch: pytest.MonkeyPatch) -> None:
    other = replace(JOB, algorithm="moments")
    before = JOB.key, other.key
    monkeypatch.setattr("tacit.research.experiments.jobs.REVISIONS", {"svd": 2})
    assert JOB.key != before[0]
    assert other.key != before[1], "moments is back at its first revision"


def test_runs_wait_for_trials_and_take_the_best() -> None:
    experiment = small()
    tuned = [cell for cell in cells_of(experiment, {}) if cell.method.label == "svd"]
    assert all(len(cell.trials) == 2 and not cell.runs for cell in tuned)
    rows = {job.key: synthetic_row(job) for cell in tuned for job in cell.trials}
    for cell in cells_of(experiment, rows):
        if cell.method.label == "svd":
            assert [job.settings["rank"] for job in cell.runs] == [2, 2, 2]
    missing = dict(list(rows.items())[1:])
    assert not next(c for c in cells_of(experiment, missing) if c.method.grid).runs


def test_a_trial_that_failed_is_never_the_best() -> None:
    experiment = small()
    cell = next(cell for cell in cells_of(experiment, {}) if cell.method.grid)
    rows = {job.key: synthetic_row(job) for job in cell.trials}
    rows[cell.trials[1].key] |= {"status": "failed", "rmse": None}
    again = next(cell for cell in cells_of(experiment, rows) if cell.method.grid)
    assert [job.settings["rank"] for job in again.runs] == [1, 1, 1]


def test_yardsticks_are_run_once_a_draw_whatever_epsilon() -> None:
    cells = [c for c in cells_of(small(), {}) if c.method.is_yardstick]
    assert [cell.epsilon for cell in cells] == [None, None]
    assert [len(cell.runs) for cell in cells] == [3, 3]


IN_STAGES = """
title = "In stages"
about = "One method, tuned twice."
draws = 2
epsilons = [0.5, 2, 5, inf]

[[datasets]]
synthetic = "few"

[[methods]]
algorithm = "svd"
tune = [{ rank = [1, 2, 3] }, { eigen = ["exact", "power"], rank = [2, 4] }]
tuned_at = [1, inf]
"""


def test_later_grids_are_searched_with_the_best_of_the_earlier_ones() -> None:
    experiment = parse_experiment("mine", IN_STAGES)
    first = cells_of(experiment, {})
    assert [[job.settings for job in cell.trials] for cell in first] == [
        [{"rank": 1}, {"rank": 2}, {"rank": 3}]
    ] * 4
    rows = {job.key: synthetic_row(job) for cell in first for job in cell.trials}
    second = cells_of(experiment, rows)
    tried = [job.settings for job in second[0].trials[3:]]
    assert tried == [
        {"rank": rank, "eigen": eigen} for eigen in ("exact", "power") for rank in (2, 4)
    ]
    assert not any(cell.runs for cell in second)
    rows |= {job.key: synthetic_row(job) for cell in second for job in cell.trials}
    for cell in cells_of(experiment, rows):
        assert [job.settings for job in cell.runs] == [{"rank": 2, "eigen": "exact"}] * 2


def test_settings_are_tuned_at_the_nearest_epsilon_and_used_at_their_own() -> None:
    experiment = parse_experiment("mine", IN_STAGES)
    cells = cells_of(experiment, {})
    tuned = [{job.epsilon for job in cell.trials} for cell in cells]
    assert tuned == [{1.0}, {1.0}, {1.0}, {math.inf}]
    method = replace(experiment.methods[0], tuned_at=(0.1, 1.0, 5.0))
    places = (0.2, 0.5, 2.0, 5.0, math.inf)
    assert [method.tuning_epsilon(place) for place in places] == [0.1, 1.0, 1.0, 5.0, 5.0]
    assert replace(method, tuned_at=None).tuning_epsilon(0.2) == 0.2


def test_trials_of_fewer_users_have_less_noise_in_proportion() -> None:
    text = IN_STAGES.replace("tuned_at = [1, inf]", "tuned_users = 100")
    experiment = parse_experiment("mine", text)
    for cell in cells_of(experiment, {}):
        assert cell.epsilon is not None
        (epsilon,) = {job.epsilon for job in cell.trials}
        assert all(job.dataset == cell.tuned_on.facts for job in cell.trials)
        assert cell.tuned_on.users == 100 < cell.dataset.users
        if math.isinf(cell.epsilon):
            assert epsilon == math.inf
        else:
            ratio = mu_of(epsilon, 1e-6) / mu_of(cell.epsilon, 1e-6)
            assert math.isclose(ratio, cell.dataset.users / 100, rel_tol=1e-5)
    rows: dict[str, Any] = {}
    for _ in range(2):
        cells = cells_of(experiment, rows)
        rows |= {job.key: synthetic_row(job) for cell in cells for job in cell.trials}
    for cell in cells_of(experiment, rows):
        assert {(job.epsilon, job.dataset["synthetic"]) for job in cell.runs} == {
            (cell.epsilon, "few")
        }
        assert all(job.dataset == cell.dataset.facts for job in cell.runs)


def test_more_users_than_there_are_are_not_made_for_trials() -> None:
    text = IN_STAGES.replace("tuned_at = [1, inf]", "tuned_users = 1_000_000")
    for cell in cells_of(parse_experiment("mine", text), {}):
        assert {job.epsilon for job in cell.trials} == {cell.epsilon}
        assert cell.tuned_on is cell.dataset
