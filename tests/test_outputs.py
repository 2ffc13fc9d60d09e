"""No command writes over an input, over another output, or over a file of another kind."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save as to_bytes

import tacit
from tacit._outputs import Kind, Output, check_outputs, is_of_kind
from tacit.audit.result import Audit
from tacit.cli.audit import _write
from tacit.datasets.synthetic import synthesise
from tacit.errors import ConfigError, ModelFileError
from tacit.reporting.drawing import check_picture, save_figure
from tests.test_cli import Shell

RANGE = ("--rating-range", "0.5", "5")
OURS = "someone's own work"


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: Path) -> Path:
    """The working folder: ratings, a list of items, a model, and a file of another kind."""
    made = synthesise("tastes", users=60, items=12, per_user=6, seed=3, test_fraction=0.0)
    made.train.write_parquet(tmp_path / "r.parquet")
    made.items.write_csv(tmp_path / "items.csv")
    (tmp_path / "m.tacit").write_bytes(model.read_bytes())
    (tmp_path / "own.txt").write_text(OURS)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = synthesise("tastes", users=60, items=12, per_user=6, seed=3, test_fraction=0.0)
    ratings = tacit.Ratings.from_frame(made.train, rating_range=(0.5, 5))
    path = tmp_path_factory.mktemp("model") / "m.tacit"
    tacit.fit(ratings, epsilon=2.0).save(path)
    return path


def hard_link(target: str, name: str) -> None:
    os.link(target, name)


LINKS: dict[str, Callable[[str, str], None]] = {"symlink": os.symlink, "hard link": hard_link}
FIT = ("fit", "r.parquet", "--epsilon", 1, *RANGE)
TUNE = ("tune", "r.parquet", "--epsilon", 1, *RANGE, "--candidates", "c.toml")

LOSSES = {
    "ratings": (*FIT, "-o", "r.parquet"),
    "ratings by another way": (*FIT, "-o", "../{here}/./r.parquet"),
    "ratings of a pattern": ("fit", "r.p*", "--epsilon", 1, *RANGE, "-o", "r.parquet"),
    "items": (*FIT, "--items", "items.csv", "-o", "items.csv"),
    "ratings to tune": (*TUNE, "-o", "r.parquet"),
    "candidates": (*TUNE, "-o", "c.toml"),
    "audited model": ("audit", "model.json", "-o", "model.json"),
    "model in the picture": ("audit", "model.svg", "--picture", "model"),
}


@pytest.mark.parametrize("case", LOSSES)
def test_an_input_is_never_written_over(case: str, shell: Shell, folder: Path) -> None:
    """Not by --force either, and nothing is changed or left behind."""
    (folder / "c.toml").write_text('[[candidate]]\nalgorithm = "svd"\n' * 2)
    for name in ("model.json", "model.svg"):
        (folder / name).write_bytes((folder / "m.tacit").read_bytes())
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    words = [str(word).replace("{here}", folder.name) for word in LOSSES[case]]
    for more in ((), ("--force",)):
        code, out, err = shell(*words, *more)
        assert (code, out) == (2, "")
        assert "is the same file as the input" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("kind", LINKS)
def test_links_to_an_input_are_followed(kind: str, shell: Shell, folder: Path) -> None:
    LINKS[kind]("r.parquet", "link.tacit")
    LINKS[kind]("r.parquet", "other.parquet")
    for source, output in (("r.parquet", "link.tacit"), ("other.parquet", "r.parquet")):
        words = ("fit", source, "-o", output, "--epsilon", 1, *RANGE, "--force")
        code, _, err = shell(*words)
        assert code == 2
        assert "is the same file as the input" in err


@pytest.mark.parametrize("other", ["a.csv", "./a.csv", "A.csv", "link.csv"])
def test_two_outputs_are_two_files(other: str, shell: Shell, folder: Path) -> None:
    (folder / "link.csv").symlink_to("a.csv")
    code, _, err = shell("synth", "-o", "a.csv", "--test", other, "--force")
    assert code == 2
    assert f"--output a.csv and --test {Path(other)} are the same file" in err
    assert not (folder / "a.csv").exists()


REPLACED = {
    "model": (*FIT, "-o", "own.txt"),
    "picture of a plan": ("plan", "--users", 9, "--items", 9, "--epsilon", 1, "--plot", "own.svg"),
    "audit": ("audit", "svd", "--epsilon", 1, "-o", "own.txt"),
    "picture of an audit": ("audit", "svd", "--epsilon", 1, "--picture", "own"),
    "synthetic ratings": ("synth", "-o", "own.csv"),
    "list of items": ("synth", "-o", "new.csv", "--items-out", "own.csv"),
    "model over a checkpoint": (*FIT, "-o", "release-0001.safetensors"),
    "results": ("reproduce", "leaderboard", "--output", ".", "--stored"),
    "demo": ("demo", "--folder", ".", "--users", 2000),
}


@pytest.mark.parametrize("case", REPLACED)
def test_a_file_of_another_kind_is_not_replaced(case: str, shell: Shell, folder: Path) -> None:
    names = ("own.csv", "own.svg", "own.png", "leaderboard.md", "train.parquet")
    for name in names:
        (folder / name).write_text(OURS)
    release = to_bytes({"values": np.zeros(2)}, metadata={"tacit": '["a", 1.0, 1.0, "x"]'})
    (folder / "release-0001.safetensors").write_bytes(release)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    code, out, err = shell(*REPLACED[case])
    assert (code, out.replace("\n", "")[:3]) in {(2, ""), (2, "== ")}
    assert "the file is there already" in err
    assert "--force" in err
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_model_replaces_a_model_and_force_replaces_anything(shell: Shell, folder: Path) -> None:
    for name, more in (("m.tacit", ()), ("own.txt", ("--force",))):
        before = (folder / name).read_bytes()
        assert shell(*FIT, "-o", name, *more)[0] == 0
        assert (folder / name).read_bytes() != before
        assert tacit.load(name).verify().holds


def test_what_is_no_file_is_never_replaced(shell: Shell, folder: Path) -> None:
    os.mkfifo("pipe")
    (folder / "inner").mkdir()
    for name, what in (("pipe", "a pipe or a device"), ("inner", "a folder")):
        code, _, err = shell(*FIT, "-o", name, "--force")
        assert code == 2
        assert f"it is {what}" in err
    (folder / "lost").symlink_to("nowhere")
    assert "the file is there already" in shell(*FIT, "-o", "lost")[2]


@pytest.mark.parametrize(
    ("checkpoint", "output"), [(".", "n.tacit"), ("c", "c/n.tacit"), ("n.tacit/c", "n.tacit")]
)
def test_a_checkpoint_has_a_folder_of_its_own(
    checkpoint: str, output: str, shell: Shell, folder: Path
) -> None:
    (folder / "c").mkdir()
    code, _, err = shell(*FIT, "-o", output, "--checkpoint", checkpoint)
    assert code == 2
    assert "give the checkpoint a folder of its own" in err
    assert sorted(path.name for path in folder.iterdir()) == [
        "c", "items.csv", "m.tacit", "own.txt", "r.parquet",
    ]  # fmt: skip


def test_a_demo_can_be_repeated_in_its_own_folder_only(shell: Shell, folder: Path) -> None:
    from tacit.cli.demo import _claim

    names = [folder / "d" / "train.parquet", folder / "d" / "report.html"]
    (folder / "d").mkdir()
    _claim(folder / "d", names, False)
    for name in names:
        name.write_text("of the demo")
    _claim(folder / "d", names, False)
    (folder / "d" / ".tacit-demo").unlink()
    with pytest.raises(ConfigError, match="the file is there already"):
        _claim(folder / "d", names, False)
    _claim(folder / "d", names, True)


def test_saving_a_model_in_python(folder: Path) -> None:
    model = tacit.load("m.tacit")
    for name in ("r.parquet", "own.txt"):
        before = (folder / name).read_bytes()
        with pytest.raises(ModelFileError, match="is there already and is not a model file"):
            model.save(name)
        assert (folder / name).read_bytes() == before
    model.save("m.tacit")
    model.save("own.txt", overwrite=True)
    assert tacit.load("own.txt").verify().holds


def test_pictures_pages_and_tables_are_known_again(folder: Path) -> None:
    """What is written once can be written again."""
    from matplotlib.figure import Figure

    for name in ("p.svg", "p.png"):
        save_figure(Figure((1, 1)), Path(name))
        check_picture("--plot", Path(name))
        assert is_of_kind(Path(name), Kind.PICTURE)
        assert not is_of_kind(Path(name), Kind.AUDIT)
    audit = Audit("svd", tacit.PrivacyBudget(1.0, 1e-6), ())
    for name in ("a.txt", "a.json", "a.html"):
        for _ in range(2):
            _write(audit, Path(name), False)
        assert is_of_kind(Path(name), Kind.AUDIT)
        assert not is_of_kind(Path(name), Kind.MODEL)
    results = Path(__file__).parents[1] / "docs" / "results"
    for ending, kind in (("md", Kind.RESULTS), ("csv", Kind.RESULTS), ("png", Kind.PICTURE)):
        assert is_of_kind(results / f"leaderboard.{ending}", kind)
    assert not is_of_kind(results / "README.md", Kind.RESULTS)


@pytest.mark.parametrize("content", [b"", b"{", b"\x02" + bytes(7) + b"{}", b"\xff" * 99])
def test_a_file_that_is_damaged_is_of_no_kind(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(content)
    assert not any(is_of_kind(tmp_path / "x", kind) for kind in Kind)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "no" / "m.tacit"
    with pytest.raises(ConfigError, match=re.escape(f"--output {path}: its folder does not exist")):
        check_outputs([Output("--output", path, Kind.MODEL)])
