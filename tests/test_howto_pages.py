"""The commands of the tutorial and the how-tos, as they stand, each page in a folder of its own."""

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
PAGES = [DOCS / "tutorial.md", DOCS / "integrations" / "model-card.md"]
PAGES += sorted((DOCS / "howto").glob("*.md"))
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def commands(text: str) -> list[tuple[str, str]]:
    """Each command with the output that is shown for it."""
    found: list[tuple[str, str]] = []
    for block in BLOCK.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = part.partition("\n")
            found.append((line, output))
    return found


WITH_COMMANDS = [page for page in PAGES if commands(page.read_text())]


def assert_runs(line: str, shown: str, folder: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if line.startswith("tacit serve"):  # it would not end; tests/serve start it
        line, shown = "tacit serve --help", "Usage: tacit serve ..."
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=os.environ | {"PATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
    if shown.strip():
        checker = doctest.OutputChecker()
        assert checker.check_output(shown, done.stdout, FLAGS), f"{line}\n{done.stdout}"


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: page.stem)
def test_its_commands_run(page: Path, tmp_path: Path) -> None:
    for line, shown in commands(page.read_text()):
        assert_runs(line, shown, tmp_path)


def test_commands_are_found_and_wrong_ones_noticed(tmp_path: Path) -> None:
    """The twin: an output that is not what is shown, and a command that fails."""
    assert len(commands((DOCS / "tutorial.md").read_text())) > 5
    page = "```console\n$ echo a\nb\n$ false\n```\n"
    assert commands(page) == [("echo a", "b\n"), ("false", "")]
    for line, shown in commands(page):
        with pytest.raises(AssertionError):
            assert_runs(line, shown, tmp_path)
    assert_runs("echo a b; echo c", "a ...", tmp_path)
