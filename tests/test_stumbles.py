"""What new users typed wrongly, and what they are told: the remedy is named and exists."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tacit
from tacit.errors import TacitError
from tests.conftest import ratings_for
from tests.test_cli import RANGE, Shell, folder, shell

__all__ = ["folder", "shell"]


def frame() -> pl.DataFrame:
    return pl.DataFrame({"item": [1, 2], "title": ["a", "b"]})


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tacit.Catalogue(frame()), r"Catalogue\(frame\['item'\]"),  # type: ignore[arg-type]
        (lambda: tacit.Catalogue("items.csv"), "from_file"),  # type: ignore[arg-type]
        (lambda: tacit.Ratings.from_arrays([1], [2], rating_range=(1, 5)), "implicit=True"),
        (lambda: tacit.fit(ratings_for(0), 1.0), "give epsilon="),
        (lambda: tacit.fit(frame(), epsilon=1.0), "from_frame"),
        (lambda: tacit.tune(ratings_for(0), ["moments", "alss"], epsilon=1.0), "als"),
    ],
)
def test_python_says_what_to_write(call: Any, told: str) -> None:
    with pytest.raises(TacitError, match=told):
        call()


def test_a_user_id_is_no_persons_ratings() -> None:
    model = tacit.fit(ratings_for(0), "Moments", epsilon=5.0)
    for given in (5, "ann"):
        with pytest.raises(TacitError, match="holds no users"):
            model.recommend(given)


def test_tune_takes_names() -> None:
    model = tacit.tune(ratings_for(0), ["moments", tacit.SVD], epsilon=5.0)
    assert model.private


def own_files(place: Path) -> None:
    (place / "lines.jsonl").write_text('{"user":1,"item":2,"rating":3}\n')
    (place / "words.csv").write_text("user,item,rating\n1,2,good\n2,3,bad\n")
    (place / "wide.csv").write_text("user,item,rating\n1,2,9\n2,3,1\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("fit", "tacit fit --help"),
        ("recommend m.tacit --user 5", "holds no users: give her own ratings with --ratings"),
        ("recommend train.csv", "it is text; give a file that `tacit fit` wrote"),
        ("audit m.tacit --epsilon 1", "leave it out"),
        ("audit moments", "give --epsilon 1"),
        ("extend m.tacit items.csv -o e.tacit", "--feature NAME"),
    ],
)
def test_the_command_line_says_what_to_type(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.chdir(folder)
    code, _, err = shell(*words.split())
    assert code == 2
    assert told in " ".join(err.split())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lines.jsonl", "JSON, which is not read; write it as CSV or Parquet"),
        ("words.csv", "expected numbers such as 4.5"),
        ("wide.csv", "give the range of the scale"),
    ],
)
def test_a_file_is_refused_with_what_to_do(
    shell: Shell, tmp_path: Path, name: str, told: str
) -> None:
    own_files(tmp_path)
    words = ("fit", tmp_path / name, "-o", tmp_path / "x.tacit", "--epsilon", 1, *RANGE)
    code, _, err = shell(*words)
    assert code == 2
    assert told in err


def test_names_of_methods_may_be_capital(shell: Shell, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "x.tacit", "--epsilon", 1, *RANGE)
    assert shell(*words, "--algorithm", "ALS", "--items", folder / "items.csv")[0] == 0
