"""The command line for interactions without ratings."""

import re
from pathlib import Path

import polars as pl
import pytest

import tacit
from tests.test_cli import Shell
from tests.test_implicit import pairs_of, people_of_tastes


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Who touched what, in training and held out, and what one person touched."""
    place = tmp_path_factory.mktemp("implicit")
    pairs = pairs_of(people_of_tastes(600, 20, seed=1))
    frame = pl.DataFrame(pairs, schema=["user", "item"], orient="row").with_row_index("row")
    frame.filter(pl.col("row") % 5 > 0).drop("row").write_csv(place / "train.csv")
    frame.filter(pl.col("row") % 5 == 0).drop("row").write_csv(place / "test.csv")
    (place / "mine.csv").write_text("item\nfilm-03\nfilm-07\n")
    return place


def test_fit_recommend_predict_and_evaluate(shell: Shell, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tacit"
    found = shell.json("fit", folder / "train.csv", "-o", model, "--implicit", "--epsilon", 5)
    assert [entry["name"] for entry in found["releases"]] == ["item weights", "co-occurrences 1"]
    assert tacit.load(model).implicit
    own = ("--ratings", folder / "mine.csv")
    listed = shell.json("recommend", model, *own, "-n", 4)["recommendations"]
    assert len(listed) == 4
    assert {"film-03", "film-07"}.isdisjoint(entry["item"] for entry in listed)
    assert len(shell.json("predict", model, *own)["predictions"]) == 20
    assert re.search(r"^rating range +none$", shell("info", model)[1], re.MULTILINE)
    code, shown, _ = shell("recommend", model)
    assert not any(line.endswith(" ") for line in shown.splitlines())
    assert code == 0
    assert "predicted share" in shown
    words = ("evaluate", model, "--train", folder / "train.csv", "--test", folder / "test.csv")
    figures = shell.json(*words, "--k", 5)
    assert figures["label"] == "NOT PRIVATE"
    assert 0 < figures["popularity"]["recall"] < 1
    code, shown, _ = shell(*words)
    assert code == 0
    assert "NOT PRIVATE" in shown
    assert "recall@10" in shown
    assert "RMSE" not in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("--implicit", "--rating-range", 1, 5),
            "--rating-range (1.0, 5.0): interactions (implicit)",
        ),
        (("--implicit", "--algorithm", "svd"), "svd: it learns from ratings"),
        (("--algorithm", "interactions", "--rating-range", 1, 5), "read them with implicit=True"),
        ((), "--rating-range LO HI, or --implicit"),
        (("--implicit", "--rating-column", "stars"), "rating='stars' with implicit=True"),
    ],
)
def test_wrong_use_is_one_line(
    words: tuple[object, ...], said: str, shell: Shell, folder: Path, tmp_path: Path
) -> None:
    train = folder / "train.csv"
    code, _, error = shell("fit", train, "-o", tmp_path / "m.tacit", "--epsilon", 1, *words)
    assert code == 2
    assert said in error
    assert "Traceback" not in error
