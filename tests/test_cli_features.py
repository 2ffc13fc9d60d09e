"""Item features on the command line: fit --feature, tune --feature, and extend."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from benchmarks.item_features import made

import tacit
from tests.test_cli import Shell, shell

__all__ = ["shell"]  # the fixture

SCALE = ("--rating-range", 0.5, 5)
TWO = ("--candidate", "latent-factors rounds=1", "--candidate", "latent-factors rounds=2")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Ratings, a catalogue with features of all but the last ten items, and one of those."""
    world = made(0.8, users=600, items=60, seed=0, per_user=12)
    train, features = world.train, world.catalogue.features
    assert features is not None
    users = np.repeat(np.arange(train.n_users), np.diff(train.indptr))
    kept = train.items < 50
    rated = {"user": users[kept], "item": train.items[kept], "rating": train.values[kept]}
    pl.DataFrame(rated).write_csv(tmp_path / "train.csv")
    genres = [features.columns[int(k)].label for k in np.argmax(features.values[:, :8], axis=1)]
    items = {"item": np.arange(60), "genre": genres, "year": features.values[:, 8]}
    pl.DataFrame(items).head(50).write_csv(tmp_path / "items.csv")
    pl.DataFrame(items).tail(10).write_csv(tmp_path / "new.csv")
    return tmp_path


def test_fit_and_extend(shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words = ("fit", "train.csv", "-o", "m.tacit", "--epsilon", 3, "--rating-range", 0.5, 5)
    code, out, err = shell(
        *words, "--items", "items.csv", "--feature", "genre", "--feature", "year"
    )
    assert code == 0, err
    out = shell("certificate", "m.tacit")[1]
    assert "item features: genre, year, public facts given by the caller" in out
    assert shell.json("info", "m.tacit")["features"] == ["genre", "year"]
    assert shell("verify", "m.tacit")[0] == 0
    code, out, err = shell("extend", "m.tacit", "new.csv", "-o", "more.tacit")
    assert (code, err) == (0, "")
    assert out == "wrote more.tacit: 60 items, 10 of them new\n"
    assert shell("verify", "more.tacit")[0] == 0
    assert len(tacit.load("more.tacit").predict({55: 4.0}, [51, 59])) == 2
    found = shell.json("extend", "m.tacit", "new.csv", "-o", "again.tacit")
    assert found == {"model": "again.tacit", "items": 60, "added": 10}


def test_tune_uses_features(shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    words = ("tune", "train.csv", "-o", "m.tacit", "--epsilon", 3, "--rating-range", 0.5, 5)
    code, out, err = shell(*words, *TWO, "--items", "items.csv", "--feature", "genre")
    assert code == 0, err
    out = shell("certificate", "m.tacit")[1]
    assert "item features: genre, public facts given by the caller" in out
    assert shell.json("info", "m.tacit")["features"] == ["genre"]
    assert shell("verify", "m.tacit")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("tune", "train.csv", "-o", "m", "--epsilon", 1, *SCALE, *TWO, "--feature", "year"),
            "--feature year: it",
        ),
        (
            ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--feature", "year"),
            "--feature year: it",
        ),
        (("extend", "train.csv", "new.csv", "-o", "m"), "not a valid model file"),
        (("extend", "train.csv", "new.csv", "-o", "new.csv"), "--output"),
    ],
)
def test_errors_are_one_line(
    shell: Shell,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(folder)
    code, out, err = shell(*words)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
