"""Fits in real processes, and what must hold after any number of them were ended."""

import atexit
import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import tacit

ROOT = Path(__file__).parents[2]


def command(folder: Path, stage: str = "", number: int = 0) -> list[str]:
    return [sys.executable, "-m", "tests.faults.child", str(folder), stage, str(number)]


@cache
def _server() -> "subprocess.Popen[str]":
    """A process that has loaded everything, and forks for each fit; it ends with this one."""
    line = [sys.executable, "-m", "tests.faults.child", "--serve"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    server = subprocess.Popen(line, cwd=ROOT, **pipes)  # type: ignore[call-overload]
    atexit.register(server.__exit__, None, None, None)
    return server


def run(folder: Path, stage: str = "", number: int = 0) -> int:
    """Run a fit, to its end or to a stage of a release where it is killed."""
    if not hasattr(os, "fork"):
        return subprocess.run(command(folder, stage, number), cwd=ROOT, check=False).returncode
    server = _server()
    server.stdin.write(json.dumps([str(folder), stage, number]) + "\n")  # type: ignore[union-attr]
    server.stdin.flush()  # type: ignore[union-attr]
    return int(server.stdout.readline())  # type: ignore[union-attr]


def killed(folder: Path, stage: str, number: int) -> None:
    """Run a fit that must be killed there, and check what it left."""
    model = folder / "model.tacit"
    before = model.read_bytes() if model.exists() else None
    assert run(folder, stage, number) == -signal.SIGKILL, f"{stage} {number} was not reached"
    after = model.read_bytes() if model.exists() else None
    if after != before:
        tacit.load(model)  # whole, or it would be an error
    assert_drawn_once(folder)


def releases(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.rglob("release-*.safetensors"))}


def assert_drawn_once(folder: Path) -> dict[int, str]:
    """No release is drawn again once it was used, and every use is of the same values."""
    used: dict[int, str] = {}
    draws: dict[int, int] = defaultdict(int)
    path = folder / "log"
    for line in path.read_text().splitlines() if path.exists() else ():
        what, number, *sha = line.split()
        if what == "drawn":
            assert int(number) not in used, f"release {number} is drawn again after it was used"
            draws[int(number)] += 1
        else:
            assert used.setdefault(int(number), sha[0]) == sha[0], f"release {number} has changed"
            assert draws[int(number)] >= 1
    return used


def assert_finished(folder: Path) -> tacit.Model:
    """After the last run: a sound model that spent its budget once, and nothing else left."""
    model = tacit.load(folder / "model.tacit")
    found = model.verify()
    assert found.holds, found.problems
    assert (
        len(assert_drawn_once(folder)) == len(model.certificate.releases) == len(releases(folder))
    )
    assert not list((folder / "checkpoint").glob(".*"))
    return model
