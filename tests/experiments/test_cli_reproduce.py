"""tacit reproduce on the command line."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tacit.cli import app
from tacit.cli.reproduce import _in_lines
from tacit.errors import ConfigError
from tacit.research.experiments.reproducing import Options, Outcome
from tacit.research.experiments.spec import Experiment

RUNNER = CliRunner()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Experiment, Options]]:
    noted: list[tuple[Experiment, Options]] = []

    def stand_in(experiment: Experiment, options: Options, progress: object) -> Outcome:
        noted.append((experiment, options))
        return Outcome((Path("a.md"),), Path("runs"), 3, 4, 1, ("Jester is left out.",))

    monkeypatch.setattr("tacit.research.experiments.reproducing.reproduce", stand_in)
    return noted


def test_the_list_has_every_experiment() -> None:
    found = RUNNER.invoke(app, ["reproduce", "--list"], catch_exceptions=False)
    assert "figure-2b Figure 2(b): Jester" in " ".join(found.output.split())
    found = RUNNER.invoke(app, ["reproduce", "--list", "--json"], catch_exceptions=False)
    names = [entry["name"] for entry in json.loads(found.output)["experiments"]]
    assert "leaderboard" in names


def test_options_reach_the_runner(asked: list[tuple[Experiment, Options]]) -> None:
    words = ["reproduce", "fig1b", "--draws", "2", "--quick", "--retry", "--output", "out"]
    words += ["--runs", "kept", "--stored", "--dataset", "Jester"]
    found = RUNNER.invoke(app, words, catch_exceptions=False)
    experiment, options = asked[0]
    assert experiment.name == "figure-2b"
    assert options == Options(2, True, ("Jester",), Path("out"), Path("kept"), True, True)
    assert "NOT PRIVATE" in found.output
    assert "3 computed, 4 reused, 1 failed" in found.output
    assert "Jester is left out." in found.output


def test_json_has_stable_keys(asked: list[tuple[Experiment, Options]]) -> None:
    found = RUNNER.invoke(app, ["reproduce", "oja", "--json"], catch_exceptions=False)
    keys = {"experiment", "label", "runs", "files", "computed", "reused", "failed", "skipped"}
    assert set(json.loads(found.output)) == keys


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 0.0, 1.0, 31.0, 31.0])
    progress = _in_lines(lambda: next(times))
    for done in range(3):
        progress(done, 9, 100.0 - done)
    said = capsys.readouterr().err.splitlines()
    assert said == [
        "0 of 9 jobs, about 1 min 40 s left",
        "2 of 9 jobs, about 1 min 38 s left",
    ]


def test_an_interruption_says_that_what_is_done_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: object) -> Outcome:
        raise KeyboardInterrupt

    monkeypatch.setattr("tacit.research.experiments.reproducing.reproduce", stopped)
    found = RUNNER.invoke(app, ["reproduce", "oja"])
    assert found.exit_code == 130
    assert "the same command goes on from there" in found.output


def test_a_name_is_needed() -> None:
    with pytest.raises(ConfigError, match="--list"):
        RUNNER.invoke(app, ["reproduce"], catch_exceptions=False)
