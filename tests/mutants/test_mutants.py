"""Every mutant is caught: the tests named for it pass on the code as it is and fail on it.

The slow part runs each mutant's tests in a process of its own, one per core at a time.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.mutant import ROOT, SOURCE, Edit
from tests.mutants.table import MUTANTS, PAGE, page
from tests.mutants.trees import Nursery, dependents, mutated

# A mutant that fails on one of these is not a mistake that was caught, but one that was not made.
CLUMSY = {
    "NameError", "AttributeError", "ImportError", "ModuleNotFoundError", "SyntaxError",
    "IndentationError", "TypeError", "TypingError", "LoweringError", "UnsupportedError",
}  # fmt: skip


@cache
def functions_in(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text())
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_still_fits_the_code(name: str) -> None:
    """Its texts are there once each, in the order of its edits, and its catchers exist."""
    mutant = MUTANTS[name]
    texts = {edit.file: (SOURCE / edit.file).read_text() for edit in mutant.edits}
    for edit in mutant.edits:
        assert texts[edit.file].count(edit.old) == 1, edit.old
        assert edit.new != edit.old
        texts[edit.file] = texts[edit.file].replace(edit.old, edit.new)
    for text in texts.values():
        ast.parse(text)
    assert mutant.caught_by
    for test in mutant.caught_by:
        file, *_, function = test.partition("[")[0].split("::")
        assert function in functions_in(ROOT / file), test


def test_there_are_many_and_no_two_alike() -> None:
    edits = [mutant.edits for mutant in MUTANTS.values()]
    assert len(edits) >= 60
    assert len(set(edits)) == len(edits)


def test_the_page_shows_the_table() -> None:
    assert PAGE.read_text() == page(), "run python -m tests.mutants"


@pytest.fixture(scope="module")
def nursery(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Nursery]:
    """All mutants that are asked for, bred in the order of their tests."""
    asked = [
        item.callspec.params["name"]  # type: ignore[attr-defined]
        for item in request.session.items
        if getattr(item, "originalname", "") == "test_a_mutant_is_caught"
    ]
    nursery = Nursery(tmp_path_factory.mktemp("mutants"), asked)
    yield nursery
    nursery.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_caught(name: str, nursery: Nursery) -> None:
    """Its tests pass on the code as it is, and fail on the mutant for what they check."""
    catchers = set(MUTANTS[name].caught_by)
    real, found = nursery.real(), nursery.found(name)
    assert [test for test in catchers if real[test].result != "passed"] == []
    assert set(found) == catchers
    assert [test for test in catchers if found[test].result != "failed"] == [], "not noticed"
    assert [outcome for outcome in found.values() if outcome.exception in CLUMSY] == []


def test_texts_that_are_gone_or_not_alone_are_refused(tmp_path: Path) -> None:
    """The twin of the fitting above."""
    (tmp_path / "base" / "tacit").mkdir(parents=True)
    (tmp_path / "base" / "tacit" / "cores.py").write_text("one = 1\ntwo = 1\n")
    tree = mutated(tmp_path / "base", tmp_path / "right", [Edit("cores.py", "one = 1", "one = 2")])
    assert (tree / "tacit" / "cores.py").read_text() == "one = 2\ntwo = 1\n"
    assert (tmp_path / "base" / "tacit" / "cores.py").read_text() == "one = 1\ntwo = 1\n"
    for number, text in enumerate(["three", "= 1"]):
        with pytest.raises(ValueError, match=r"there [02]x"):
            mutated(tmp_path / "base", tmp_path / str(number), [Edit("cores.py", text, "")])


def test_loops_that_call_mutated_ones_are_compiled_anew() -> None:
    """Numba does not know which loops call which."""
    found = {path.stem for path in dependents(SOURCE / "kernels" / "rows.py")}
    assert {"rows", "residuals", "items", "solving", "normal_equations", "factors"} <= found
    assert "streams" not in found
