"""What is shipped: a wheel and an sdist that work where there is nothing of this tree."""

import re
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tacit
from tacit.cli import app

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

WORK = """
import tacit, tacit.cli
assert "site-packages" in tacit.__file__, tacit.__file__
from tacit.datasets.synthetic import synthesise
made = synthesise("tastes", users=200, items=12, per_user=6, seed=1)
ratings = tacit.Ratings.from_frame(made.train, rating_range=(0.5, 5))
model = tacit.fit(ratings, "moments", epsilon=1.0)
from tacit.reporting.html import write_report
write_report("r.html", model=model, accuracies=[], person={}, recommendations=[])
from tacit.research.experiments.reading import read_experiment
read_experiment("leaderboard")
print(tacit.__version__)
"""


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run([*map(str, words)], cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel, built from the sdist as an index would have it, and the sdist."""
    pytest.importorskip("hatchling")
    place = tmp_path_factory.mktemp("dist")
    build = "import sys; from hatchling.build import {0}; print({0}(sys.argv[1]))"
    sdist = run(sys.executable, "-c", build.format("build_sdist"), place, cwd=ROOT).split()[-1]
    with tarfile.open(place / sdist) as archive:
        archive.extractall(place, filter="data")
    source = place / sdist.removesuffix(".tar.gz")
    wheel = run(sys.executable, "-c", build.format("build_wheel"), place, cwd=source).split()[-1]
    return place / wheel, place / sdist


@pytest.mark.extras
def test_the_wheel_works_where_nothing_else_is(built: tuple[Path, Path], tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", tmp_path / "clean", cwd=tmp_path)
    python = tmp_path / "clean" / "bin" / "python"
    pip = (python, "-m", "pip", "install", "--no-deps", "--no-index", "-q")
    run(*pip, built[0], cwd=tmp_path)
    inner = run(
        python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=tmp_path
    )
    # Dependencies are those of this environment; the tacit of this tree is not on that path.
    others = [path for path in sys.path if path.endswith("site-packages")]
    (Path(inner.strip()) / "others.pth").write_text("\n".join(others))
    assert run(python, "-c", WORK, cwd=tmp_path).split()[-1] == tacit.__version__
    said = run(tmp_path / "clean" / "bin" / "tacit", "--version", cwd=tmp_path)
    assert said.strip() == PROJECT["version"]


@pytest.mark.extras
def test_the_wheel_holds_the_package_and_nothing_else(built: tuple[Path, Path]) -> None:
    names = zipfile.ZipFile(built[0]).namelist()
    assert all(
        name.startswith(("tacit/", f"tacit-{PROJECT['version']}.dist-info/")) for name in names
    )
    assert {"tacit/py.typed", "tacit/reporting/page.html", "tacit/reporting/page.css"} <= set(names)
    assert any(name.endswith("files/leaderboard.toml") for name in names)
    about = next(name for name in names if name.endswith("METADATA"))
    text = zipfile.ZipFile(built[0]).read(about).decode()
    needed = re.findall(r"^Requires-Dist: ([^;\n]+)$", text, re.MULTILINE)
    assert {each.strip() for each in needed} == set(PROJECT["dependencies"])


@pytest.mark.extras
def test_the_sdist_has_what_a_packager_needs(built: tuple[Path, Path]) -> None:
    top = f"tacit-{PROJECT['version']}/"
    with tarfile.open(built[1]) as archive:
        names = {name.removeprefix(top) for name in archive.getnames()}
    wanted = {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml", "constraints.txt"}
    assert wanted | {"tests/test_packaging.py", "CITATION.cff", "SECURITY.md"} <= names
    assert not any(name.startswith((".venv", "build/", "dist/")) for name in names)


def test_version_and_files_about_the_project_agree() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {PROJECT['version']}\n" in citation
    assert f"license: {PROJECT['license']}\n" in citation
    log = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"## [{PROJECT['version']}]" in log


def test_the_container_copies_what_there_is() -> None:
    lines = (ROOT / "Dockerfile").read_text(encoding="utf-8").splitlines()
    copied = [word for line in lines if line.startswith("COPY ") and "--from" not in line
              for word in line.split()[1:-1]]  # fmt: skip
    assert copied
    kept = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in copied:
        assert (ROOT / name).exists(), name
        assert f"!{name.removeprefix('./')}" in kept, name
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]
    for pattern in built["build"]["targets"]["wheel"]["include"]:
        assert pattern.split("/")[1] in copied, f"the wheel of the container has no {pattern}"


def test_the_commands_of_the_container_exist() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    found = re.findall(r"\btacit (synth|fit|recommend|evaluate) ([^&>\n]*)", text)
    assert {verb for verb, _ in found} == {"synth", "fit", "recommend", "evaluate"}
    for verb, rest in found:
        told = CliRunner().invoke(app, [verb, "--help"]).output
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", rest):
            assert option in told, f"tacit {verb} has no {option}"


def test_versions_of_python_are_those_that_were_tested() -> None:
    named = [each.rpartition(" ")[2] for each in PROJECT["classifiers"] if ":: 3." in each]
    assert named == ["3.11", "3.12", "3.13"]
    assert PROJECT["requires-python"] == f">={named[0]}"
    badge = (ROOT / "docs" / "pictures" / "python.svg").read_text(encoding="utf-8")
    assert f"{named[0]} – {named[-1]}" in badge
    assert f"Python {named[0]} to {named[-1]}" in (ROOT / "README.md").read_text(encoding="utf-8")
