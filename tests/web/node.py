"""Node runs tacit.js for the tests; a machine without it skips them and says so."""

import json
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

__all__ = ["ASKING", "answers", "needs_node"]

ASKING = Path(__file__).with_name("answer.mjs")
needs_node = pytest.mark.skipif(
    shutil.which("node") is None, reason="Node is not installed: tacit.js is not run"
)


def answers(folder: Path, jobs: Sequence[dict[str, Any]]) -> list[Any]:
    """Ask tacit.js about some files, all in one process."""
    asked = folder / "jobs.json"
    asked.write_text(json.dumps(jobs))
    done = subprocess.run(
        ["node", str(ASKING), str(asked)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return list(json.loads(done.stdout))
