"""Breeds mutants and tests each in a process of its own: python -m tests.mutants.run FOLDER NAME...

The package can be imported from one place only, so every mutant needs a process. Most of the time
of a short test goes into imports; so this process imports what all of them need, except the package
itself, and forks for each. FOLDER gets `base`, the code as it is, tested first and by itself, which
also compiles what is not compiled yet; and a tree, a report and a log for every NAME.
"""

import json
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from numba import njit

from tests.mutants.mutant import ROOT
from tests.mutants.table import MUTANTS
from tests.mutants.trees import copy_of_source, mutated, place_of

NEEDED_BY_ALL = (
    "dp_accounting", "hypothesis.strategies", "mpmath", "numba", "numpy.testing", "polars",
    "safetensors.numpy", "scipy.linalg", "scipy.sparse.linalg", "scipy.special", "scipy.stats",
)  # fmt: skip
WORKERS = os.cpu_count() or 1
# Hypothesis is imported before pytest could rewrite its asserts; nobody needs them rewritten.
OPTIONS = (
    "-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist",
    "-W", "ignore::pytest.PytestAssertRewriteWarning",
)  # fmt: skip


class Recorder:
    """Keeps the outcome of every test, and the kind of exception that it failed with."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str | None]] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_makereport(self, item, call):  # type: ignore[no-untyped-def]
        report = (yield).get_result()
        if report.when == "call" or report.outcome != "passed":
            kind = call.excinfo.typename if call.excinfo else None
            self.found[item.nodeid] = (report.outcome, kind)


def run_tests(tree: Path, tests: list[str]) -> None:
    """Run tests on a tree, in a process that has not imported the package, and report."""
    sys.path.insert(0, str(tree))
    os.environ["PYTHONPATH"] = str(tree)  # for processes that tests start
    os.environ.pop("NUMBA_CACHE_DIR", None)  # compiled loops lie beside their sources
    import tacit

    if not Path(tacit.__file__).is_relative_to(tree):
        raise RuntimeError(f"tacit comes from {tacit.__file__}, not from {tree}")
    recorder = Recorder()
    code = pytest.main([*OPTIONS, *tests], plugins=[recorder])
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        report = tree / "report.part"
        report.write_text(json.dumps(recorder.found))
        report.replace(tree / "report.json")


def forked(log: Path, work: Callable[[], None]) -> int:
    """Do the work in a fork of this process, whose words go to a log; return its number."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        words = os.open(log, os.O_CREAT | os.O_WRONLY | os.O_TRUNC)
        os.dup2(words, 1)
        os.dup2(words, 2)
        work()
        code = 0
    except BaseException as error:  # it must not go on as if it were the parent
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def breed(base: Path, folder: Path, name: str) -> None:
    """Make one mutant and test it."""
    tree = mutated(base, place_of(folder, name), MUTANTS[name].edits)
    run_tests(tree, list(MUTANTS[name].caught_by))


def prepare() -> None:
    """Load what all need, and let numba load what it needs for a first loop."""
    for module in NEEDED_BY_ALL:
        with suppress(ImportError):
            import_module(module)
    njit(lambda number: number + 1)(1)


def main(place: str, *names: str) -> None:
    folder = Path(place)
    os.chdir(ROOT)
    prepare()
    base = copy_of_source(folder / "base")
    tests = sorted({test for name in names for test in MUTANTS[name].caught_by})
    os.waitpid(forked(folder / "base.log", lambda: run_tests(base, tests)), 0)
    running: set[int] = set()
    for name in names:
        if len(running) == WORKERS:
            running.discard(os.wait()[0])
        log = place_of(folder, name).with_suffix(".log")
        running.add(forked(log, lambda name=name: breed(base, folder, name)))  # type: ignore[misc]
    while running:
        running.discard(os.wait()[0])


if __name__ == "__main__":
    main(*sys.argv[1:])
