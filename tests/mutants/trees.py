"""Copies of the source tree, mutated, and the process that tests them.

A copy keeps the compiled loops that lie beside the sources, since numba knows them again by the
time stamp of their file; so only what a mutant changes is compiled anew. Numba does not know which
loops call which, so the loops of modules that import a mutated one are thrown away too.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from tests.mutants.edits import Edit, edited
from tests.mutants.mutant import ROOT, SOURCE

COMPILED = "__pycache__"


class Outcome(NamedTuple):
    """What one test came to: "passed", or "failed" with the kind of exception."""

    result: str
    exception: str | None


def copy_of_source(folder: Path) -> Path:
    """Copy the package, with time stamps and compiled loops; return what goes on the path."""
    shutil.copytree(SOURCE, folder / "tacit", copy_function=_copied)
    return folder


def mutated(base: Path, folder: Path, edits: Iterable[Edit]) -> Path:
    """Make a tree that shares all files with `base` but the edited ones."""
    shutil.copytree(base / "tacit", folder / "tacit", copy_function=os.link)
    for edit in edits:
        path = folder / "tacit" / edit.file
        text = edited(path.read_text(), edit)
        path.unlink()  # what is shared stays as it is
        path.write_text(text)
        for name in dependents(path):
            _forget_loops(name)
    return folder


def dependents(path: Path) -> set[Path]:
    """Return a module and all modules beside it that import it, or import one that does."""
    found, fresh = {path}, {path}
    while fresh:
        words = "|".join(re.escape(one.stem) for one in fresh)
        imports = re.compile(rf"from tacit\.{path.parent.name}\.({words}) import")
        fresh = {p for p in path.parent.glob("*.py") if imports.search(p.read_text())} - found
        found |= fresh
    return found


def place_of(folder: Path, name: str) -> Path:
    """Return where the tree of a mutant is."""
    return folder / re.sub(r"\W+", "-", name)


class Nursery:
    """A process that breeds mutants one after another, and what has come of them so far."""

    def __init__(self, folder: Path, names: list[str]) -> None:
        """Begin."""
        self._folder = folder
        command = [sys.executable, "-m", "tests.mutants.run", str(folder), *names]
        self._process = subprocess.Popen(command, cwd=ROOT)

    def real(self) -> dict[str, Outcome]:
        """Wait for the tests of the code as it is."""
        return self._outcomes(self._folder / "base")

    def found(self, name: str) -> dict[str, Outcome]:
        """Wait for the tests of a mutant."""
        return self._outcomes(place_of(self._folder, name))

    def close(self) -> None:
        """Stop, if there is anything left to do."""
        self._process.terminate()
        self._process.wait()

    def _outcomes(self, tree: Path) -> dict[str, Outcome]:
        report = tree / "report.json"
        while not report.exists() and self._process.poll() is None:
            time.sleep(0.05)
        if not report.exists():
            log = tree.with_suffix(".log")
            words = log.read_text()[-3000:] if log.exists() else "nothing was said"
            raise RuntimeError(f"the tests did not run: {words}")
        found = json.loads(report.read_text())
        return {test: Outcome(*parts) for test, parts in found.items()}


def _copied(source: str, target: str) -> None:
    """Copy a file, unless it is a temporary one of another process and has gone by now."""
    if Path(source).exists():
        shutil.copy2(source, target)


def _forget_loops(module: Path) -> None:
    for path in (module.parent / COMPILED).glob(f"{module.stem}.*.nb?"):
        path.unlink()
