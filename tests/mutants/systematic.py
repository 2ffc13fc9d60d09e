"""Tests every mutant that Cosmic Ray's operators make: python -m tests.mutants.systematic.

Thousands of mutants leave less than a second for each. So one process imports everything, collects
the tests, notes once which lines each of them runs, and forks for every mutant: the fork gives the
living functions the mutant's code and runs the tests that pass through the changed line, quickest
first, until one fails. Compiled loops that are mutated run as plain Python. What a module does
while it is imported is mutated in a fork that has not imported the package yet.
"""

import argparse
import ast
import gc
import json
import os
import re
import signal
import sys
import time
import tomllib
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["POLARS_MAX_THREADS"] = "1"  # a fork has none of the threads that polars waits for

import pytest

from tests.mutants.earlier import is_as_it_was
from tests.mutants.forks import PLACE, by_of, in_forks
from tests.mutants.generated import CONFIG, Change, changes_of
from tests.mutants.installing import MutantFinder, functions, install
from tests.mutants.mutant import ROOT, SOURCE
from tests.mutants.run import NEEDED_BY_ALL, forked
from tests.mutants.tracing import Tracer

GROUPS: dict[str, dict[str, Any]] = CONFIG["tacit"]["groups"]
LONGEST_TEST = float(CONFIG["tacit"]["longest_test"])  # seconds of processor time
LONGEST_MUTANT = float(CONFIG["tacit"]["longest_mutant"])
LONGEST_SURVIVOR = float(CONFIG["tacit"]["longest_survivor"])
IMPORTED_LATE = (
    "tacit", "accounting", "algorithms", "data", "estimation", "fitting", "models", "trusted",
)  # fmt: skip
LONGEST_TRACE = 120.0  # by the clock, for a test on the code as it is
SKIP_IMPORTS = bool(os.environ.get("SKIP_IMPORTS"))  # they take some seconds each
HARMLESS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "harmless.toml").read_text()
)["harmless"]
LISTED = {key for entry in HARMLESS for key in entry["mutants"]}
KILLED, SURVIVED, TIMED_OUT, AT_IMPORT = "killed", "survived", "timed out", "at import"


class Ran(NamedTuple):
    """What one test did on the code as it is: seconds, and lines of the package by file."""

    test: str
    seconds: float
    lines: dict[str, list[int]]


class Outcomes:
    """A pytest plugin that notes whether anything failed."""

    def __init__(self) -> None:
        self.failed: list[str] = []
        self.passed = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.passed += report.when == "call" and report.outcome == "passed"
        if report.outcome == "failed":
            self.failed.append(report.nodeid)


class Runner:
    """A pytest plugin that, instead of running the tests once, runs them on every mutant."""

    def __init__(self, group: str, changes: list[Change], results: Path, longest: float) -> None:
        self._group, self._changes, self._results = group, changes, results
        self._longest = longest
        self._outcomes = Outcomes()
        self._killers: dict[str, list[str]] = {}  # by where mutants are, the newest first

    def pytest_configure(self) -> None:
        from hypothesis import settings

        settings.register_profile("mutants", deadline=None, derandomize=True, database=None)
        settings.load_profile("mutants")

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        session.config.pluginmanager.register(self._outcomes)
        self._items = {item.nodeid: item for item in session.items}  # but those left out

    def pytest_runtestloop(self) -> bool:
        ran = self._map()
        for file in {change.file for change in self._changes}:
            functions(SOURCE / file)  # looked up once, for all forks
        forget_caches()
        _constants(), _source_lines(), [_text_of(one.test) for one in ran]  # once, for all forks
        gc.collect()
        gc.freeze()  # or forks would copy what they only look at
        for change, code, by in in_forks(self._changes, lambda one: self._test(one, ran)):
            _note(self._results, change, _outcome(code), by)
            if by:
                for place in (change.where, change.file):
                    self._killers.setdefault(place, []).insert(0, by)
        return True

    def _likely_first(self, change: Change, tests: list[Ran]) -> list[Ran]:
        """Tests that killed mutants nearby come first, then the quickest ones."""
        killers = [
            *self._killers.get(change.where, ())[:3],
            *self._killers.get(change.file, ())[:6],
        ]
        order = {name: place for place, name in reversed(list(enumerate(killers)))}
        return sorted(tests, key=lambda one: order.get(one.test, len(killers)))

    def _map(self) -> list[Ran]:
        """Run every test that is not known yet, each in a fork, and note what each of them does."""
        known = {one.test for one in tests_of(self._group)}
        missing = [name for name in self._items if name not in known]
        place = PLACE / f"{self._group}.tests.jsonl"
        for name, code, found in in_forks(missing, self._tell, LONGEST_TRACE):
            ran = found if code == 0 and found else json.dumps(Ran(name, LONGEST_TRACE, {}))
            with place.open("a") as file:
                file.write(ran + "\n")
        ran = {one.test: one for one in tests_of(self._group)}
        return [ran[name] for name in self._items if name in ran]

    def _tell(self, name: str) -> None:
        signal.signal(signal.SIGVTALRM, _too_long)
        by_of().write_text(json.dumps(self._trace(name)))
        os._exit(0)

    def _trace(self, name: str) -> Ran:
        """Run a test twice, timed and traced; one that fails or takes long covers nothing."""
        tracer, self._outcomes.failed, self._outcomes.passed = Tracer(), [], 0
        longest = float(GROUPS[self._group].get("longest_test", LONGEST_TEST))
        forget_caches()
        begin = time.process_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, longest + 0.2)  # what is imported first takes some
        self._run(name)
        seconds = time.process_time() - begin
        if not self._outcomes.failed and self._outcomes.passed:
            forget_caches()
            signal.setitimer(signal.ITIMER_VIRTUAL, 2 + 20 * longest)
            tracer.start()
            self._run(name)
            tracer.stop()
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        if self._outcomes.failed or not self._outcomes.passed:
            return Ran(name, LONGEST_TRACE, {})
        return Ran(name, round(seconds, 3), {f: sorted(n) for f, n in tracer.lines.items()})

    def _run(self, name: str) -> None:
        item = self._items[name]
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)

    def _test(self, change: Change, ran: list[Ran]) -> None:
        """Install a mutant in this process and run the tests that pass through it."""
        if not install(SOURCE / change.file, change.source):
            os._exit(3)
        tests = [one for one in ran if change.line in one.lines.get(change.file, ())]
        affordable = _affordable(tests or _mentioning(change, ran), self._longest)
        for one in self._likely_first(change, affordable):
            _limit(1 + 5 * one.seconds)
            self._run(one.test)
            if self._outcomes.failed:
                by_of().write_text(self._outcomes.failed[0])
                os._exit(1)
        os._exit(3 if change.of_constants else 0)


def forget_caches() -> None:
    """Clear what functions of the package remember, so that every test computes it anew."""
    for module in [m for name, m in list(sys.modules.items()) if name.startswith("tacit")]:
        for value in list(vars(module).values()):
            if hasattr(value, "cache_clear"):
                value.cache_clear()


def _too_long(*_: object) -> None:
    raise TimeoutError("a test takes too long as plain Python")


def import_loops(group: str) -> None:
    """Import the loops that are mutated, and those that call them, as plain Python."""
    import numba

    kernels = sorted(f"kernels.{path.stem}" for path in (SOURCE / "kernels").glob("*.py"))
    plain = GROUPS[group]["plain"]
    for name in (name for name in kernels if name not in plain):
        import_module(f"tacit.{name}")
    _compile_lanes()
    if "trusted.exact_normal" not in plain:
        _draw_noise()
    numba.config.DISABLE_JIT = True
    for name in plain:
        import_module(f"tacit.{name}")
    numba.config.DISABLE_JIT = False
    refuse_compiled(plain)
    for path in sorted(SOURCE.rglob("*.py")):  # all that is imported when first used
        name = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
        if path.parts[-2] in IMPORTED_LATE and "__" not in name:
            import_module(name)


def refuse_compiled(plain: list[str]) -> None:
    """Stop if a loop that is to be mutated is compiled: its mutants would do what it does.

    It was imported by another one, that is not in the list of plain ones.
    """
    from numba.extending import is_jitted

    for module in (f"tacit.{name}" for name in plain):
        for value in vars(import_module(module)).values():
            if is_jitted(value) and value.py_func.__module__ == module:
                raise ImportError(f"{module} is compiled; who imports it must be plain, too")


def _compile_lanes() -> None:
    """Compile once, for all forks, what is made of a processor's instructions."""
    import numpy as np

    from tacit.kernels.lanes import dot, two_dots
    from tacit.kernels.tiles import BROAD, add_whole_products, multiply, panels_of, room_for_whole

    square = np.ones((BROAD, BROAD), np.float32)
    multiply(panels_of(square), square, square.copy())
    add_whole_products(room_for_whole(1, 1), 1, np.zeros((1, 1), np.int64))
    singles = [np.ones(5, dtype=kind) for kind in (np.float32, np.float64)]
    for one in singles:
        for other in singles:
            dot(one, other)
            for two in singles:
                two_dots(one, two, other)


def _draw_noise() -> None:
    """Load the sampler's loops once, for all forks: that takes longer than most tests."""
    from tacit.trusted.sampler import SystemNoise, floor_normals

    floor_normals(SystemNoise(), 1, 40)


def import_mutant(group: str, change: Change, ran: list[Ran], longest: float) -> None:
    """Import a mutant in the place of its module, in this process, and run tests of it.

    Those that name it come first, and by themselves: others have more to import.
    """
    word = _word_of(change)
    named = (each for each in ran if word.search(_text_of(each.test)))
    naming = [one.test for one in _affordable(named, longest)]
    mentioning = _affordable(_mentioning(change, ran), longest)
    others = [one.test for one in mentioning if one.test not in naming]
    module = f"tacit.{change.file[:-3].replace('/', '.')}"
    MutantFinder(module, change.source).put_first()
    import_loops(group)
    _limit(60 + longest)
    for tests in filter(None, (naming, others)):
        outcomes = Outcomes()
        code = pytest.main([*OPTIONS, "-x", *tests], plugins=[outcomes])
        if code in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED):
            by_of().write_text((outcomes.failed or ["the tests cannot be imported"])[0])
            os._exit(1)
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            os._exit(3)  # pytest did not run: nothing is known of the mutant
    os._exit(0)


OPTIONS = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "timeout=300", "-m", "not slow",
           "-k", f"not ({CONFIG['tacit']['without']})", "--durations=0", "--tb=no",
           "-W", "ignore::pytest.PytestAssertRewriteWarning",
           "-W", "ignore:overflow encountered:RuntimeWarning",
           "-W", "ignore:invalid value encountered:RuntimeWarning",
           "-W", "ignore:divide by zero encountered:RuntimeWarning"]  # fmt: skip


def _word_of(change: Change) -> re.Pattern[str]:
    """What names the thing that a changed statement sets."""
    tree = ast.parse((SOURCE / change.file).read_text())
    around = [n for n in ast.walk(tree) if isinstance(n, ast.stmt)
              and n.lineno - len(getattr(n, "decorator_list", ())) <= change.line
              and change.line <= (n.end_lineno or 0)]  # fmt: skip
    innermost = around[-1]
    names = {n.id for n in ast.walk(innermost) if isinstance(n, ast.Name)}
    if isinstance(innermost, ast.FunctionDef | ast.ClassDef):
        names = {innermost.name}
    elif len(around) == 1 and isinstance(innermost, ast.Assign | ast.AnnAssign):
        names = _computed_from(_set_by(innermost))
    return re.compile(rf"\b({'|'.join(map(re.escape, names - {'float', 'int', 'np', 'math'}))})\b")


def _mentioning(change: Change, ran: list[Ran]) -> list[Ran]:
    """The tests that name what the changed statement sets, or run a line with such a name."""
    word = _word_of(change)
    places = {(file, number) for file, number, line in _source_lines() if word.search(line)}
    return [
        one for one in ran
        if word.search(_text_of(one.test))
        or any((file, line) in places for file, lines in one.lines.items() for line in lines)
    ]  # fmt: skip


def _text_of(test: str) -> str:
    """The source of a test function."""
    path, _, name = test.partition("::")
    return _functions_of(path).get(name.partition("[")[0].rpartition("::")[2], "")


@cache
def _functions_of(path: str) -> dict[str, str]:
    """The source of every function of a file."""
    nodes = ast.walk(ast.parse((ROOT / path).read_text()))
    return {each.name: ast.unparse(each) for each in nodes if isinstance(each, ast.FunctionDef)}


def _set_by(statement: ast.stmt) -> set[str]:
    return {n.id for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}  # fmt: skip


@cache
def _constants() -> list[tuple[str, set[str]]]:
    """Every statement of the package that sets constants, and which."""
    trees = (ast.parse(path.read_text()) for path in SOURCE.rglob("*.py"))
    return [(ast.unparse(each), _set_by(each)) for tree in trees for each in tree.body
            if isinstance(each, ast.Assign | ast.AnnAssign)]  # fmt: skip


@cache
def _source_lines() -> list[tuple[str, int, str]]:
    return [(str(path.relative_to(SOURCE)), number, line) for path in SOURCE.rglob("*.py")
            for number, line in enumerate(path.read_text().splitlines(), 1)]  # fmt: skip


def _computed_from(names: set[str]) -> set[str]:
    """Constants, and all constants of the package that are computed from them."""
    while True:
        word = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b")
        found = names.union(*(sets for text, sets in _constants() if word.search(text)))
        found.discard("__all__")
        if found == names:
            return names
        names = found


def _affordable(tests: Iterable[Ran], longest: float) -> list[Ran]:
    """The quickest tests, as many as fit into the time of one mutant."""
    chosen, total = [], 0.0
    for one in sorted(tests, key=lambda one: one.seconds):
        total += one.seconds
        if total > longest:
            break
        chosen.append(one)
    return chosen


def _limit(seconds: float) -> None:
    """End this process when it has used so many seconds of processor time."""
    signal.signal(signal.SIGVTALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def _outcome(code: int) -> str:
    if code < 0:
        return TIMED_OUT
    return {0: SURVIVED, 1: KILLED, 3: AT_IMPORT}.get(code, KILLED)


def _note(results: Path, change: Change, outcome: str, by: str) -> None:
    with results.open("a") as file:
        line = [change.key, change.line, outcome, by, digest_of(change.file)]
        file.write(json.dumps(line) + "\n")


def tests_of(group: str) -> list[Ran]:
    """What is known of the tests of a group; some may be gone by now."""
    return [Ran(*one) for one in _lines(PLACE / f"{group}.tests.jsonl")]


def _lines(path: Path) -> list[Any]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text().splitlines()]


def latest(results: Path) -> dict[str, str]:
    """What is known of each mutant of the source as it is now, the newest last."""
    lines = _lines(results)
    digests = {file: digest_of(file) for file in {one[0].partition(" | ")[0] for one in lines}}
    return {one[0]: one[2] for one in lines if one[4] == digests[one[0].partition(" | ")[0]]}


def digest_of(file: str) -> str:
    """The first digits of the SHA-256 of a source file, which say on what a mutant was run."""
    path = SOURCE / file
    return sha256(path.read_bytes()).hexdigest()[:12] if path.exists() else "gone"


def run_group(
    group: str, files: list[str], tests: list[str], wanted: tuple[str, ...], *, changed: bool
) -> None:
    """Test the mutants of some files of which is known what is wanted; "" is nothing.

    Survivors that are listed as harmless are not tested again, and what is listed comes last.
    """
    results = PLACE / f"{group}.jsonl"
    known = latest(results)
    longest = LONGEST_SURVIVOR if SURVIVED in wanted else LONGEST_MUTANT
    changes = [change for file in files for change in changes_of(SOURCE / file, file, PLACE)
               if known.get(change.key, "") in wanted and not (changed and is_as_it_was(change))
               and not (known.get(change.key) == SURVIVED and change.key in LISTED)]  # fmt: skip
    changes.sort(key=lambda change: change.key in LISTED)
    sys.stderr.write(f"{group}: {len(changes)} mutants\n")

    def quickly() -> None:
        import_loops(group)
        runner = Runner(group, changes, results, longest)
        pytest.main([*OPTIONS, *tests], plugins=[runner])

    os.waitpid(forked(PLACE / f"{group}.log", quickly), 0)
    if SKIP_IMPORTS:
        return
    known, ran = latest(results), tests_of(group)
    late = [change for change in changes if known.get(change.key) == AT_IMPORT]
    for change, code, by in in_forks(late, lambda one: import_mutant(group, one, ran, longest)):
        _note(results, change, _outcome(code), by)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("groups", nargs="*", default=list(GROUPS))
    parser.add_argument("--files", nargs="*", default=[])
    parser.add_argument("--tests", nargs="*", default=[], help="only these, of one group")
    parser.add_argument("--survivors", action="store_true", help="test survivors again")
    parser.add_argument("--changed", action="store_true", help="only what is not as it was")
    asked = parser.parse_args()
    os.chdir(ROOT)
    PLACE.mkdir(parents=True, exist_ok=True)
    for module in NEEDED_BY_ALL:
        with suppress(ImportError):
            import_module(module)
    wanted = ("", AT_IMPORT, SURVIVED) if asked.survivors else ("", AT_IMPORT)
    for group in asked.groups:
        files = [file for file in GROUPS[group]["files"] if not asked.files or file in asked.files]
        more = GROUPS[group].get("more", []) if asked.survivors else []
        tests = asked.tests or [*GROUPS[group]["tests"], *more]
        run_group(group, files, tests, wanted, changed=asked.changed)


if __name__ == "__main__":
    main()
