"""The examples, from top to bottom."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))
LAST_LINES = {
    "film_demo": "5. ",
    "from_implicit": "similar_users: ",
    "own_algorithm": "latent-factors: RMSE 0.",
    "weekly_refit": "3 refits; the model in use: Model(",
}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_is_short(script: Path) -> None:
    assert len(script.read_text().splitlines()) < 100


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_runs(script: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1].startswith(LAST_LINES[script.stem])


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {}
    for cell in json.loads(notebook.read_text())["cells"]:
        if cell["cell_type"] == "code":
            exec(compile("".join(cell["source"]), notebook.name, "exec"), names)  # noqa: S102
            assert not cell["outputs"], "outputs are made by whoever runs it"
    assert "PRIVACY CERTIFICATE" in capsys.readouterr().out
    assert names["errors"][5.0] < names["errors"][0.1]


def test_every_script_is_known_and_there_is_a_notebook() -> None:
    assert {path.stem for path in SCRIPTS} == set(LAST_LINES)
    assert NOTEBOOKS
