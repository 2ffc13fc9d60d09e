"""Every mutant is caught: the tests named for it pass on the code as it is and fail on it.

The slow part runs each mutant's tests in a process of its own, one per core at a time.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from tests.mutants.edits import Edit, edited
from tests.mutants.mutant import ROOT, SOURCE
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


@cache
def plainly(text: str) -> str:
    """A module as edits write it."""
    return ast.unparse(ast.parse(text))


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_still_fits_the_code(name: str) -> None:
    """What it replaces is there once, in the order of its edits, and its catchers exist."""
    mutant = MUTANTS[name]
    texts = {edit.file: (SOURCE / edit.file).read_text() for edit in mutant.edits}
    for edit in mutant.edits:
        changed = edited(texts[edit.file], edit)
        assert changed != plainly(texts[edit.file])
        texts[edit.file] = changed
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


MODULE = """\
class Box:
    def size(self):
        total = 1   # a comment
        for part in (self.first,
                     self.second):
            total += part
        return total + 1

    def again(self):
        return self.first + self.second
"""


@pytest.mark.parametrize(
    ("where", "old", "new", "line"),
    [
        ("Box.size", "total + 1", "total - 1", "return total - 1"),
        ("Box.size", "(self.first, self.second)", "(self.first,)", "for part in (self.first,):"),
        ("Box.size", "total = 1", "total = 2", "total = 2"),
        ("Box.size", "total += part", "", "pass"),
        ("Box", "self.first + self.second", "self.first", "return self.first"),
        ("", "total += part", "if part:\n    total += part", "if part:"),
    ],
)
def test_an_edit_is_made_whatever_the_formatting(where: str, old: str, new: str, line: str) -> None:
    changed = edited(MODULE, Edit("box.py", where, old, new))
    assert line in [each.strip() for each in changed.splitlines()]
    assert line not in [each.strip() for each in ast.unparse(ast.parse(MODULE)).splitlines()]


@pytest.mark.parametrize(
    ("where", "old", "found"),
    [("Box.size", "total + 2", "0x"), ("Box", "self.first", "2x"), ("Box.none", "total", "0 of")],
)
def test_code_that_is_gone_or_not_alone_is_refused(where: str, old: str, found: str) -> None:
    """The twin: a place that a mutant does not have is never taken for one that it has."""
    with pytest.raises(ValueError, match=found):
        edited(MODULE, Edit("box.py", where, old, "0"))


def test_a_mutated_tree_leaves_the_code_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "base" / "tacit").mkdir(parents=True)
    (tmp_path / "base" / "tacit" / "box.py").write_text(MODULE)
    edit = Edit("box.py", "Box.size", "total = 1", "total = 2")
    tree = mutated(tmp_path / "base", tmp_path / "other", [edit])
    assert "total = 2" in (tree / "tacit" / "box.py").read_text()
    assert (tmp_path / "base" / "tacit" / "box.py").read_text() == MODULE


def test_loops_that_call_mutated_ones_are_compiled_anew() -> None:
    """Numba does not know which loops call which."""
    found = {path.stem for path in dependents(SOURCE / "kernels" / "rows.py")}
    assert {"rows", "residuals", "items", "solving", "normal_equations", "factors"} <= found
    assert "quantise" not in found
