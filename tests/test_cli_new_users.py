"""tacit evaluate --new-users, as a person types it."""

from pathlib import Path

import polars as pl
import pytest

import tacit
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import ExactPopularity, fold_in, rank_new_users
from tests.test_cli import Shell

SHOWN = ["recall@20", "NDCG@10", "NDCG@100", "coverage@20", "popularity@20", "popularity,"]


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 600 people, 300 others, and files that cannot be used."""
    place = tmp_path_factory.mktemp("new_users")
    made = synthesise("tastes", users=900, items=60, per_user=20, seed=3, test_fraction=0.0)
    made.train.filter(pl.col("user") < 600).write_csv(place / "fit.csv")
    made.train.filter(pl.col("user") >= 600).write_csv(place / "new.csv")
    made.items.write_csv(place / "items.csv")
    tacit.fit(ratings_of(place, "fit.csv"), budget=None).save(place / "m.tacit")
    rows = [f"{user},x{item},4" for user in range(5) for item in range(6)]
    (place / "other.csv").write_text("\n".join(["user,item,rating", *rows]))
    (place / "few.csv").write_text("user,item,rating\n1,3,4\n2,4,4\n")
    return place


def ratings_of(folder: Path, name: str) -> tacit.Ratings:
    catalogue = tacit.Catalogue.from_file(folder / "items.csv")
    return tacit.Ratings.from_file(folder / name, rating_range=(0.5, 5), catalogue=catalogue)


def test_it_shows_what_the_library_finds(shell: Shell, folder: Path) -> None:
    model, new = folder / "m.tacit", ratings_of(folder, "new.csv")
    words = ("evaluate", model, "--new-users", folder / "new.csv", "--liked", 4, "--seed", 5)
    found = shell.json(*words)
    expected = rank_new_users(tacit.load(model), new, relevant=4, seed=5)
    assert found["new_users"] == expected.to_json()
    popularity = ExactPopularity(fold_in(new, 5).own)
    assert found["popularity"] == rank_new_users(popularity, new, relevant=4, seed=5).to_json()
    assert found["label"] == "NOT PRIVATE"
    _, out, _ = shell(*words)
    lines = out.splitlines()
    assert "NOT PRIVATE" in lines[0]
    assert [line.split()[0] for line in lines[2:8]] == SHOWN
    recall = expected.recall_20
    assert f"{recall.mean:.4f} ({recall.low:.4f} to {recall.high:.4f})" in lines[2]
    assert f"{expected.users} users with a held-out rating of at least 4" in out
    assert "were not in the fit" in out


def test_ratings_of_other_items_are_left_out_and_counted(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    mixed = tmp_path / "mixed.csv"
    mixed.write_text((folder / "new.csv").read_text() + "700,999,5\n701,999,5\n")
    words = ("evaluate", folder / "m.tacit", "--new-users", mixed)
    assert shell.json(*words)["left_out"] == 2
    assert "2 ratings left out" in shell(*words)[1]


def test_lists_can_be_measured_in_other_orders(shell: Shell, folder: Path) -> None:
    model, new = folder / "m.tacit", ratings_of(folder, "new.csv")
    words = ("evaluate", model, "--new-users", folder / "new.csv")
    recalls = {}
    for by in ("rating", "choice"):
        found = shell.json(*words, "--by", by)
        assert found["new_users"] == rank_new_users(tacit.load(model), new, by=by).to_json()
        assert found["by"] == by
        recalls[by] = found["new_users"]["recall_20"]["mean"]
    assert recalls["rating"] != recalls["choice"]
    assert shell.json(*words)["by"] is None


NEW = ("--new-users", "new.csv")
BAD = {
    "missing file": (("--new-users", "none.csv"), "none.csv: no such file"),
    "other catalogue": (("--new-users", "other.csv"), "no row has an item of the catalogue"),
    "few ratings": (("--new-users", "few.csv"), "no user has 3 or more ratings"),
    "train": ((*NEW, "--train", "fit.csv"), "leave out --train"),
    "test": ((*NEW, "--test", "fit.csv"), "leave out --test"),
    "length": ((*NEW, "--k", "5"), "leave out --k"),
    "seed": ((*NEW, "--seed", "-1"), "--seed -1"),
    "liked": ((*NEW, "--liked", "9"), "--relevant 9"),
    "order": ((*NEW, "--by", "taste"), "--by 'taste': expected 'rating' or 'choice'"),
    "order alone": (
        ("--train", "fit.csv", "--test", "new.csv", "--by", "choice"),
        "--by goes with",
    ),
    "train alone": (("--train", "fit.csv"), "--test is missing"),
    "nothing": ((), "--train is missing"),
    "seed alone": (("--train", "fit.csv", "--test", "new.csv", "--seed", "1"), "--seed goes with"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_done_is_one_line(
    case: str, shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    words, said = BAD[case]
    code, out, err = shell("evaluate", "m.tacit", *words)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


def test_a_model_of_interactions_is_measured_too(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ("fit", folder / "fit.csv", "-o", tmp_path / "m.tacit", "--implicit", "--no-privacy")
    assert shell(*words)[0] == 0
    found = shell.json("evaluate", tmp_path / "m.tacit", "--new-users", folder / "new.csv")
    assert found["new_users"]["not_counted"] == 0  # type: ignore[index]
