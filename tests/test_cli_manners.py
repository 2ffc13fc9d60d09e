"""Manners of the command line: progress, quiet, examples, completion, a short summary."""

import io
import json
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

import tacit
from tacit.cli import app, main
from tacit.cli.examples import EXAMPLES
from tacit.cli.progress import Pace, stages
from tests.test_cli import RANGE, Shell, folder, shell

__all__ = ["folder", "shell"]

NETWORK = {"data get"}
FOREVER = {"serve"}
LONG = {"tune", "audit", "demo"}


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def verbs() -> set[str]:
    names = {command.name for command in app.registered_commands}
    for group in app.registered_groups:
        inner = group.typer_instance.registered_commands if group.typer_instance else []
        for command in inner:
            name = command.name or getattr(command.callback, "__name__", "")
            names.add(f"{group.name} {name}")
    return {name for name in names if name}


def test_every_verb_has_examples_and_none_is_left_over() -> None:
    assert verbs() == set(EXAMPLES)
    for verb, lines in EXAMPLES.items():
        assert any(line.startswith(f"tacit {verb}") for line in lines)


def prepared(place: Path) -> None:
    """What examples use and no example writes."""
    (place / "my.csv").write_text("item,rating\n3,5\n17,4.5\n42,1\n")
    genre = ["space", "love"]
    rows = pl.DataFrame({"item": range(60), "title": [f"Film {k}" for k in range(60)]})
    rows = rows.with_columns(genre=pl.Series([genre[k % 2] for k in range(60)]))
    rows.write_csv(place / "genres.csv")
    rows = [f"{user},{item},4,{20 * user + item}" for user in range(20) for item in range(20)]
    (place / "log.csv").write_text("user,item,stars,timestamp\n" + "\n".join(rows) + "\n")
    (place / "new-items.csv").write_text("item,title,genre\n900,New Film,space\n")


def run_examples(shell: Shell, skipped: set[str]) -> None:
    prepared(Path.cwd())
    for verb, lines in EXAMPLES.items():
        for line in lines if verb not in skipped else ():
            code, out, err = shell(*shlex.split(line)[1:])
            assert code == 0, (line, err)
            assert out or "--quiet" in line, line


def test_examples_run(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(shell, NETWORK | FOREVER | LONG)


@pytest.mark.slow
def test_all_examples_run(shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_examples(shell, NETWORK | FOREVER)


@pytest.fixture
def far(folder: Path, tmp_path: Path) -> Path:
    """A model with long ids, and titles that few encodings have."""
    model = tacit.load(folder / "m.tacit")
    ids = [f"0062f7af-5a75-1d92-79e2-83b6503c{k:04}" for k in range(len(model.catalogue))]
    titles = [
        f"Щелкунчик № {k} and his very long way home through all of the snow"
        for k in range(len(ids))
    ]
    catalogue = tacit.Catalogue(ids, titles, public=True)
    replace(model, catalogue=catalogue).save(tmp_path / "far.tacit")
    return tmp_path / "far.tacit"


def test_what_a_locale_cannot_write_is_no_traceback(
    far: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (["-n", "2"], ["-n", "2", "--json"]):
        written = io.BytesIO()
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, "ascii"))
        monkeypatch.setattr(sys, "argv", ["tacit", "recommend", str(far), *words])
        with pytest.raises(SystemExit) as left:
            main()
        sys.stdout.flush()
        assert not left.value.code
        text = written.getvalue().decode("ascii")
        assert (
            "????" in text
            if len(words) == 2
            else "Щ" in json.loads(text)["recommendations"][0]["title"]
        )


def test_ids_are_never_cut_and_lines_only_on_a_screen(
    far: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    ids = set(tacit.load(far).catalogue.ids)
    lines = shell("recommend", far, "-n", 3)[1].splitlines()[1:]
    assert len(lines) == 3
    assert all(line.split()[0] in ids and "all of the snow" in line for line in lines)
    monkeypatch.setenv("COLUMNS", "40")
    out = shell("recommend", far, "-n", 3)[1]
    assert "…" not in out
    assert max(map(len, out.splitlines())) <= 40


@pytest.mark.parametrize("verb", sorted(EXAMPLES))
def test_help_shows_them_and_no_option_that_is_not_there(shell: Shell, verb: str) -> None:
    code, out, _ = shell(*verb.split(), "--help")
    assert code == 0
    assert "Examples:" in out
    assert all(line in out for line in EXAMPLES[verb])


def test_quiet_says_nothing_and_json_still_speaks(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "m.tacit", "--epsilon", 1, *RANGE)
    words = (*words, "--items", folder / "items.csv", "--algorithm", "moments")
    assert shell(*words, "--quiet")[:2] == (0, "")
    assert shell.json(*words, "-q")["epsilon"] == 1.0
    assert shell(*words)[1], "quiet lasts for one command"


def test_errors_are_not_hushed(shell: Shell, tmp_path: Path) -> None:
    code, _, err = shell("fit", tmp_path / "no.csv", "-o", "m.tacit", "--epsilon", 1, "-q")
    assert code == 2
    assert "no such file" in err


def test_completion_is_offered() -> None:
    script = "import os; os.environ['_TACIT_COMPLETE'] = 'complete_bash'"
    words = "os.environ['COMP_WORDS'] = 'tacit rec'; os.environ['COMP_CWORD'] = '1'"
    run = "import sys; sys.argv = ['tacit']; from tacit.cli import main; main()"
    command = [sys.executable, "-c", f"{script}; {words}; {run}"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "recommend" in found.stdout, found.stderr


def test_the_time_left_falls_and_grows_with_a_slow_step() -> None:
    clock = Clock()
    pace = Pace(clock)
    assert (pace.share(), pace.left()) == (None, None)
    for done in range(1, 4):
        clock.now += 2.0
        pace.update(done, 10)
    assert pace.left() == pytest.approx(14.0)
    assert pace.share() == pytest.approx(0.3)
    clock.now += 1.0
    assert pace.left() == pytest.approx(13.0)
    clock.now += 29.0  # the fourth step takes half a minute
    assert pace.left() > 50
    assert 0.3 < pace.share() < 0.4
    pace.update(4, 10)
    assert pace.share() == pytest.approx(0.4)


def test_the_last_step_never_stands_at_nothing() -> None:
    clock = Clock()
    pace = Pace(clock)
    for done in range(1, 10):
        clock.now += 1.0
        pace.update(done, 10)
    shares, left = [], []
    for _ in range(30):
        clock.now += 1.0
        shares.append(pace.share())
        left.append(pace.left())
    assert shares == sorted(shares)
    assert max(shares) < 1.0
    assert left[-1] > left[1] > 0.5


def test_nothing_is_drawn_where_nobody_looks(capfd: pytest.CaptureFixture[str]) -> None:
    with stages() as tell:
        tell("a stage", 1, 2)
    assert capfd.readouterr() == ("", "")
