"""The command line as a person types it: outputs, exit codes, and one-line errors."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tacit
from tacit._compiling import TEXT
from tacit.cli import main

RANGE = ("--rating-range", "0.5", "5")


class Shell:
    """Runs the command line in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capsys, self._monkeypatch = capsys, monkeypatch

    def __call__(self, *words: object) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = self._capsys.readouterr()
        err = err.replace(f"tacit: note: {TEXT}\n", "")  # whether loops are new here is not asked
        return int(left.value.code or 0), out, err

    def json(self, *words: object) -> dict[str, object]:
        code, out, err = self(*words, "--json")
        assert code == 0, err
        return json.loads(out)


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Synthetic ratings, a public catalogue, own ratings, and a fitted model."""
    from tacit.datasets.synthetic import synthesise

    place = tmp_path_factory.mktemp("cli")
    made = synthesise("tastes", users=600, items=30, per_user=10, seed=3, test_fraction=0.05)
    made.train.write_parquet(place / "train.parquet")
    made.train.write_csv(place / "train.csv")
    made.test.write_csv(place / "test.csv")
    made.items.write_csv(place / "items.csv")
    (place / "my.csv").write_text("item,rating\n3,5\n7,1\n11,4.5\n")
    ratings = tacit.Ratings.from_file(
        place / "train.csv",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(place / "items.csv"),
    )
    tacit.fit(ratings, epsilon=2.0).save(place / "m.tacit")
    return place


def test_synth_writes_what_fit_reads(shell: Shell, tmp_path: Path) -> None:
    out, test, items = (tmp_path / name for name in ("t.parquet", "x.csv", "i.csv"))
    words = ("synth", "-o", out, "--kind", "rank-one", "--users", 300, "--items", 20)
    code, said, _ = shell(*words, "--per-user", 8, "--test", test, "--items-out", items)
    assert code == 0
    assert "--rating-range -1 1" in said
    found = shell.json(*words, "--per-user", 8, "--force")
    assert found == {"train": str(out), "test": None, "items": None, "rating_range": [-1.0, 1.0]}
    assert shell(*words, "--per-user", 8, "--test", test, "--force")[0] == 0
    assert pl.read_parquet(out).columns == ["user", "item", "rating"]
    assert pl.read_csv(items).columns == ["item", "title"]
    model = tmp_path / "m.tacit"
    found = shell.json("fit", out, "-o", model, "--epsilon", 1, "--rating-range", -1, 1)
    assert found["epsilon"] == 1.0
    assert shell.json("evaluate", model, "--train", out, "--test", test)["ratings"] > 0


def test_fit_reports_the_certificate(shell: Shell, folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tacit"
    words = ("fit", folder / "train.parquet", "-o", model, "--epsilon", 0.5, *RANGE)
    code, out, _ = shell(*words, "--items", folder / "items.csv", "--threads", 2)
    assert code == 0
    told = [line for line in out.splitlines() if not line.startswith("learned little")]
    assert len(told) == 6
    assert "epsilon 0.5" in out
    assert "a list of items that was given" in out
    assert f"tacit certificate {model}" in out
    found = shell.json(*words, "--neighbours", "add_remove", "--delta", "1e-7")
    assert (found["epsilon"], found["delta"], found["neighbours"]) == (0.5, 1e-7, "add_remove")
    keys = {"name", "kind", "index", "part", "sensitivity", "noise_sd", "mu"}
    assert keys == set(found["releases"][0])  # type: ignore[index]


def test_settings_and_algorithm_are_passed_on(shell: Shell, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "m.tacit", "--epsilon", 1, *RANGE)
    found = shell.json(
        *words, "--algorithm", "frank-wolfe", "--set", "rounds=4", "--set", "shift=false",
        "--set", "schedule=[1,2,3]", "--max-ratings", 5,
    )  # fmt: skip
    public = found["public"]
    assert len(found["releases"]) == 3  # type: ignore[arg-type]
    assert public["frank-wolfe schedule"] == "(1, 2, 3)"  # type: ignore[index]
    assert public["frank-wolfe max_ratings"] == "5"  # type: ignore[index]
    assert public["frank-wolfe shift"] == "False"  # type: ignore[index]


def test_no_privacy_must_be_spelled_out_and_is_marked(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "m.tacit", *RANGE)
    code, _, err = shell(*words)
    assert code == 2
    assert "--no-privacy" in err
    code, out, _ = shell(*words, "--no-privacy")
    assert code == 0
    assert out.startswith("NOT PRIVATE")
    assert shell("info", tmp_path / "m.tacit")[1].startswith("NOT PRIVATE")
    code, out, _ = shell("verify", tmp_path / "m.tacit")
    assert code == 1
    assert "DOES NOT HOLD" in out


def test_a_checkpoint_goes_on_and_is_refused_for_other_settings(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "m.tacit", *RANGE)
    kept = ("--checkpoint", tmp_path / "c")
    first = shell.json(*words, *kept, "--epsilon", 1)
    content = (tmp_path / "m.tacit").read_bytes()
    assert shell.json(*words, *kept, "--epsilon", 1) == first
    assert (tmp_path / "m.tacit").read_bytes() == content
    code, _, err = shell(*words, *kept, "--epsilon", 2)
    assert code == 2
    assert "differs in budget" in err


def test_recommend_and_predict(shell: Shell, folder: Path) -> None:
    own = ("--ratings", folder / "my.csv")
    code, out, err = shell("recommend", folder / "m.tacit", *own, "-n", 4)
    assert (code, err) == (0, "")
    assert "title" in out
    assert len(out.strip().splitlines()) == 5
    found = shell.json("recommend", folder / "m.tacit", *own, "-n", 4)["recommendations"]
    assert not {row["item"] for row in found} & {3, 7, 11}  # type: ignore[attr-defined]
    found = shell.json("predict", folder / "m.tacit", *own)["predictions"]
    assert len(found) == 30  # type: ignore[arg-type]
    code, out, err = shell("predict", folder / "m.tacit", *own, "--item", 2, "--item", "nothing")
    assert code == 0
    assert "--item nothing: not in the catalogue" in err
    assert len(out.strip().splitlines()) == 2
    assert len(shell.json("recommend", folder / "m.tacit")["recommendations"]) == 10  # type: ignore[arg-type]


def test_filters_and_reasons(shell: Shell, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "some.csv").write_text("item,price\n2,1\n5,9\n8,3\n")
    (tmp_path / "never.csv").write_text("item\n5\n")
    words = ["recommend", folder / "m.tacit", "--ratings", folder / "my.csv"]
    words += ["--only", tmp_path / "some.csv", "--exclude", tmp_path / "never.csv"]
    found: list[dict[str, Any]] = shell.json(*words)["recommendations"]  # type: ignore[assignment]
    assert {row["item"] for row in found} == {2, 8}
    assert "because" not in found[0]
    found = shell.json(*words, "--because")["recommendations"]  # type: ignore[assignment]
    for row in found:
        assert {reason["item"] for reason in row["because"]} == {3, 7, 11}
        total = row["baseline"] + sum(reason["contribution"] for reason in row["because"])
        assert min(max(total, 0.5), 5.0) == pytest.approx(row["score"], abs=1e-9)
    code, out, _ = shell(*words, "--because")
    assert code == 0
    assert "because" in out.splitlines()[0]
    (tmp_path / "never.csv").write_text("item\n5\n777\n")
    code, _, err = shell(*words)
    assert code == 2
    assert "never.csv: 1 of 2 items are not in the catalogue (777)" in err


def test_similar(shell: Shell, folder: Path, tmp_path: Path) -> None:
    ratings = tacit.Ratings.from_file(
        folder / "train.csv",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(folder / "items.csv"),
    )
    tacit.fit(ratings, budget=None).save(tmp_path / "exact.tacit")  # noise may leave no factors
    code, out, err = shell("similar", tmp_path / "exact.tacit", 3, "-n", 4)
    assert (code, err) == (0, "")
    assert out.split("\n")[0].split() == ["item", "title", "similarity"]
    assert len(out.strip().splitlines()) == 5
    found: list[dict[str, Any]] = shell.json("similar", tmp_path / "exact.tacit", 3)["similar"]  # type: ignore[assignment]
    assert len(found) == 10
    assert set(found[0]) == {"item", "title", "similarity"}
    assert 3 not in {row["item"] for row in found}


def test_unknown_own_items_are_counted(shell: Shell, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "my.csv").write_text("item,rating\n3,5\n999,1\n")
    _, _, err = shell("recommend", folder / "m.tacit", "--ratings", tmp_path / "my.csv")
    assert "1 of 2 own ratings are not in the catalogue" in err


def test_evaluate_says_not_private(shell: Shell, folder: Path) -> None:
    files = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    code, out, _ = shell("evaluate", folder / "m.tacit", *files)
    assert code == 0
    assert "NOT PRIVATE" in out
    found = shell.json("evaluate", folder / "m.tacit", *files)
    names = {"rmse", "mae", "ratings", "users", "skipped", "ranking", "calibration", "label"}
    assert names | {"popularity", "train_left_out", "user_mean"} == set(found)
    assert 0.3 < found["rmse"] < 2  # type: ignore[operator]


def test_evaluate_shows_exact_popularity_beside_the_lists(shell: Shell, folder: Path) -> None:
    """With the same k and the same relevant ratings as the lists of the model."""
    from tacit.evaluation import ExactPopularity, rank

    test = pl.read_csv(folder / "test.csv")
    files = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    words = ("evaluate", folder / "m.tacit", *files, "--k", 3, "--relevant", 3)
    found = shell.json(*words)["popularity"]
    train = tacit.Ratings.from_file(
        folder / "train.csv",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(folder / "items.csv"),
    )
    expected = rank(ExactPopularity(train), train, test, 3, 3.0)
    assert found == expected.to_json()
    lines = shell(*words)[1].splitlines()
    assert "baseline" in lines[1]
    row = next(line.split() for line in lines if line.startswith("recall@3"))
    assert row[2] == f"{expected.recall:.4f}"
    assert any(
        line.startswith("baseline of lists: exact popularity (NOT PRIVATE): ") for line in lines
    )


def test_evaluate_shows_the_user_mean_beside_the_errors(shell: Shell, folder: Path) -> None:
    from tacit.evaluation import user_mean_accuracy

    files = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    train = tacit.Ratings.from_file(
        folder / "train.csv",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(folder / "items.csv"),
    )
    mean = user_mean_accuracy(train, pl.read_csv(folder / "test.csv"))
    assert shell.json("evaluate", folder / "m.tacit", *files)["user_mean"] == mean.to_json()
    rows = [line.split() for line in shell("evaluate", folder / "m.tacit", *files)[1].splitlines()]
    assert next(row for row in rows if row[0] == "RMSE")[2] == f"{mean.rmse:.4f}"


@pytest.mark.parametrize("how", ["itself", "link", "pattern", "copy", "one pair"])
def test_evaluate_refuses_a_test_file_that_is_not_held_out(
    how: str, shell: Shell, folder: Path, tmp_path: Path
) -> None:
    train, test = folder / "train.csv", tmp_path / "t.csv"
    if how == "link":
        test.symlink_to(train)
    elif how == "copy":
        test.write_bytes(train.read_bytes())
    elif how == "one pair":
        lines = (folder / "test.csv").read_text() + train.read_text().splitlines()[1] + "\n"
        test.write_text(lines)
    tested = {"itself": train, "pattern": folder / "tr*n.csv"}.get(how, test)
    code, out, err = shell("evaluate", folder / "m.tacit", "--train", train, "--test", tested)
    assert (code, out) == (2, "")
    assert "held out" in err
    assert "split" in err
    assert ("1 row with a pair of user and item" in err) == (how == "one pair")
    assert ("also a file of --train" in err) == (how in ("itself", "link", "pattern"))


def test_ratings_outside_the_catalogue_are_dropped_by_name_only(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    few, train = tmp_path / "few.csv", pl.read_csv(folder / "train.csv")
    few.write_text("item\n3\n7\n9\n11\n")
    outside = train.filter(~pl.col("item").is_in([3, 7, 9, 11])).height
    words = ("fit", folder / "train.csv", "--items", few, "--epsilon", 1, *RANGE)
    model = tmp_path / "m.tacit"
    code, _, err = shell(*words, "-o", model)
    assert code == 2
    assert f"{outside} rows with an item that is not in the catalogue" in err
    assert "--unknown-items drop" in err
    assert not model.exists()
    assert shell(*words, "-o", model, "--unknown-items", "drop")[0] == 0
    files = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    assert shell.json("evaluate", model, *files)["train_left_out"] == outside
    assert f"{outside} training ratings left out" in shell("evaluate", model, *files)[1]
    assert "--unknown-items 'some'" in shell(*words, "-o", model, "--unknown-items", "some")[2]


@pytest.fixture(scope="module")
def uncertain(folder: Path) -> Path:
    """A model whose local rule knows stds."""
    ratings = tacit.Ratings.from_file(
        folder / "train.csv",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(folder / "items.csv"),
    )
    tacit.fit(ratings, tacit.FrankWolfe(local="ridge", rounds=3), epsilon=2.0).save(
        folder / "ridge.tacit"
    )
    return folder / "ridge.tacit"


def test_evaluate_shows_lists_and_stds(shell: Shell, folder: Path, uncertain: Path) -> None:
    files = ("--train", folder / "train.csv", "--test", folder / "test.csv")
    _, out, _ = shell("evaluate", uncertain, *files, "--k", 5)
    for words in ("RMSE", "NDCG@5", "recall@5", "coverage@5", "within 1 std", "if stds were right"):
        assert words in out
    found = shell.json("evaluate", uncertain, *files, "--k", 5)
    assert found["ranking"]["k"] == 5  # type: ignore[index]
    assert 0 < found["ranking"]["ndcg"] < 1  # type: ignore[index]
    assert len(found["calibration"]["deciles"]) == 10  # type: ignore[index]
    words = ("evaluate", folder / "m.tacit", *files, "--relevant", 5)
    assert shell.json(*words)["ranking"]["relevant"] == 5  # type: ignore[index]


def test_evaluate_without_lists_and_stds_says_why(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    low = pl.read_csv(folder / "test.csv").filter(pl.col("rating") < 3)
    low.write_csv(tmp_path / "low.csv")
    model = tmp_path / "replay.tacit"
    words = ("fit", folder / "train.csv", "-o", model, "--epsilon", 2, *RANGE)
    assert shell(*words, "--algorithm", "frank-wolfe")[0] == 0
    files = ("--train", folder / "train.csv", "--test", tmp_path / "low.csv")
    code, out, _ = shell("evaluate", model, *files)
    assert code == 0
    assert "no ranking" in out
    assert "no stds" in out
    found = shell.json("evaluate", model, *files)
    assert (found["ranking"], found["calibration"]) == (None, None)


def test_predict_with_stds(shell: Shell, folder: Path, uncertain: Path) -> None:
    own = ("--ratings", folder / "my.csv", "--item", 2, "--item", "nothing", "--item", 3)
    code, out, _ = shell("predict", uncertain, *own, "--std")
    assert code == 0
    assert out.splitlines()[0].split() == ["item", "title", "predicted", "rating", "std"]
    assert len(out.strip().splitlines()) == 3
    found = shell.json("predict", uncertain, *own, "--std")["predictions"]
    assert [row["item"] for row in found] == [2, 3]  # type: ignore[attr-defined]
    assert all(row["std"] > 0.5 for row in found)  # type: ignore[attr-defined]
    assert "std" not in shell.json("predict", uncertain, *own)["predictions"][0]  # type: ignore[index]


def test_certificate_verify_info(shell: Shell, folder: Path) -> None:
    assert "PRIVACY CERTIFICATE" in shell("certificate", folder / "m.tacit")[1]
    assert shell.json("certificate", folder / "m.tacit")["epsilon"] == 2.0
    assert shell("verify", folder / "m.tacit")[1].startswith("holds")
    found = shell.json("verify", folder / "m.tacit")
    assert found["holds"] is True
    assert found["epsilon_recomputed"] == pytest.approx(2.0)
    assert shell.json("info", folder / "m.tacit")["items"] == 30


BAD = {
    "missing file": ("fit", "none.csv", "-o", "m.tacit", "--epsilon", 1, *RANGE),
    "bad epsilon": ("fit", "train.csv", "-o", "m.tacit", "--epsilon", -1, *RANGE),
    "bad range": ("fit", "train.csv", "-o", "m.tacit", "--epsilon", 1, "--rating-range", 5, 1),
    "narrow range": ("fit", "train.csv", "-o", "m.tacit", "--epsilon", 1, "--rating-range", 1, 2),
    "bad relation": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--neighbours", "x", *RANGE),
    "bad algorithm": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--algorithm", "x", *RANGE),
    "bad setting": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--set", "speed=9", *RANGE),
    "bad value": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--set", "rounds=x", *RANGE),
    "no value": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--set", "rounds", *RANGE),
    "bad column": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--user-column", "x", *RANGE),
    "bad threads": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--threads", 0, *RANGE),
    "bad folder": ("fit", "train.csv", "-o", "no/m.tacit", "--epsilon", 1, *RANGE),
    "both": ("fit", "train.csv", "-o", "m", "--epsilon", 1, "--no-privacy", *RANGE),
    "not a model": ("info", "train.csv"),
    "no model": ("certificate", "none.tacit"),
    "bad own ratings": ("recommend", "m.tacit", "--ratings", "items.csv"),
    "unknown item": ("similar", "m.tacit", "nothing"),
    "bad count": ("recommend", "m.tacit", "-n", 0),
    "bad length": ("evaluate", "m.tacit", "--train", "train.csv", "--test", "test.csv", "--k", 31),
    "bad kind": ("synth", "-o", "t.csv", "--kind", "x"),
    "bad ending": ("synth", "-o", "t.txt"),
}


@pytest.mark.parametrize("case", BAD)
def test_an_error_is_one_line_and_exit_code_2(
    case: str, shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    before = {path.name for path in folder.iterdir()}
    code, out, err = shell(*BAD[case])
    assert code == 2
    assert out == ""
    assert err.startswith("tacit: error: ")
    assert err.count("\n") == 1
    assert {path.name for path in folder.iterdir()} == before


def test_wrong_words_are_refused_by_name(shell: Shell) -> None:
    for words, name in (
        (("fit", "x.csv", "--no-such-option"), "--no-such-option"),
        (("fit", "x.csv", "-o", "m", "--epsilon", "one", *RANGE), "--epsilon"),
        (("fit", __file__, "-o", "m", "--epsilon", 1), "--rating-range"),
        (("fly",), "fly"),
    ):
        code, _, err = shell(*words)
        assert code == 2
        assert name in err
        assert err.count("\n") == 1
    assert "Usage" in shell()[1]
    assert shell("--version")[1].strip() == "0.1.0"


def test_help_is_quick_and_names_every_verb() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "tacit", "--help"], capture_output=True, text=True, check=True
    )
    for verb in (
        "synth",
        "fit",
        "predict",
        "recommend",
        "similar",
        "evaluate",
        "certificate",
        "verify",
    ):
        assert verb in found.stdout


@pytest.mark.slow
def test_demo(shell: Shell, tmp_path: Path) -> None:
    code, out, _ = shell("demo", "--folder", tmp_path / "d", "--users", 600)
    assert code == 0
    for words in ("PRIVACY CERTIFICATE", "NOT PRIVATE", "RMSE", "predicted"):
        assert words in out
    assert "open http://127.0.0.1:8765/" in out  # how to see the page
    assert (tmp_path / "d" / "report.html").stat().st_size > 5000
    assert tacit.load(tmp_path / "d" / "model.tacit").verify().holds
