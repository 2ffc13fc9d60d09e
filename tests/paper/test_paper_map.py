"""docs/paper_map.md: every row names code and a test that exist, or says why there is none."""

import ast
import re
from functools import cache, reduce
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = ROOT / "docs" / "paper_map.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
QUOTED = re.compile(r"`([^`]+)`")
CODE = re.compile(r"(tacit(?:\.\w+)*):([\w.]+)")
TEST = re.compile(r"(tests/[\w/]+\.py)::(\w+(?:::\w+)?)")
NUMBERED = [
    *(f"Alg. {n}" for n in range(1, 6)),
    *(f"Eq. ({n})" for n in range(1, 19)),
    *(f"Remark {n}" for n in range(1, 7)),
    *(f"Lemma {n}" for n in ("B.4", "D.1", "D.2", "D.3", "D.4", "D.5")),
    *(f"Thm. {n}" for n in ("3.1", "3.2", "3.3", "A.1", "B.1", "B.3", "D.6")),
    *("Def. 2.1", "Def. 2.2", "Def. B.2", "Cor. 3.1", "Informal Thm. 1.1"),
    *("Table 1", "Table 2", "Fig. 1", "Fig. 2", "Fig. 3"),
]
WITHOUT_CODE = ("not yet", "proof step")


def rows_of(text: str) -> list[str]:
    """The rows of all tables, without their heads."""
    lines = text.splitlines()
    rules = {at for at, line in enumerate(lines) if re.fullmatch(r"\|[-| ]+\|", line)}
    heads = {at - 1 for at in rules}
    rows = (at for at, line in enumerate(lines) if line.startswith("|"))
    return [lines[at] for at in rows if at not in rules | heads]


@cache
def functions_in(path: Path) -> dict[str, ast.FunctionDef]:
    """The functions of a file by the names that pytest takes: `test_it`, or `TestThat::test_it`."""
    found = {}
    for node in ast.parse(path.read_text()).body:
        inside = node.body if isinstance(node, ast.ClassDef) else [node]
        prefix = f"{node.name}::" if isinstance(node, ast.ClassDef) else ""
        found |= {prefix + each.name: each for each in inside if isinstance(each, ast.FunctionDef)}
    return found


def problem_of(reference: str) -> str | None:
    """What is wrong with a reference to code or to a test; None for anything else."""
    if match := TEST.fullmatch(reference):
        path = ROOT / match[1]
        found = path.is_file() and match[2] in functions_in(path)
        return None if found else f"no such test: {reference}"
    if match := CODE.fullmatch(reference):
        try:
            reduce(getattr, match[2].split("."), import_module(match[1]))
        except (ImportError, AttributeError):
            return f"no such code: {reference}"
        return None
    return f"not a reference: {reference}" if ":" in reference else None


def problems_of(text: str) -> list[str]:
    """What is wrong with the references in a text."""
    return [problem for quoted in QUOTED.findall(text) if (problem := problem_of(quoted))]


def problems_of_row(row: str) -> list[str]:
    """What is wrong with a row: its references, or that it says neither where nor why not."""
    quoted = QUOTED.findall(row)
    code = any(CODE.fullmatch(reference) for reference in quoted)
    test = any(TEST.fullmatch(reference) for reference in quoted)
    excused = any(cell.strip() in WITHOUT_CODE for cell in row.split("|"))
    told = not (code or test) if excused else code and test
    return problems_of(row) + ([] if told else [f"neither code and test nor why not: {row}"])


def test_every_row_resolves() -> None:
    rows = rows_of(MAP.read_text())
    assert len(rows) > 40
    assert [problem for row in rows for problem in problems_of_row(row)] == []


def checks_something(function: ast.FunctionDef) -> bool:
    """Whether a test can fail: it asserts, expects an error, or hands over to what asserts."""
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func).rpartition(".")[2]
            if called == "raises" or called.startswith("assert"):
                return True
    return False


def test_every_test_of_the_map_checks_something() -> None:
    """What it checks is for readers to judge; that it is more than a name is not."""
    named = {match.groups() for match in TEST.finditer(MAP.read_text())}
    assert len(named) > 60
    idle = []
    for path in sorted({path for path, _ in named}):
        idle += [
            f"{path}::{name}"
            for name, function in functions_in(ROOT / path).items()
            if (path, name) in named and not checks_something(function)
        ]
    assert idle == []


def test_a_test_that_checks_nothing_is_noticed() -> None:
    for source, checks in (("assert x", True), ("len(x)", False), ("assert_identical(x)", True)):
        (function,) = ast.parse(f"def test_it(x):\n    {source}").body
        assert isinstance(function, ast.FunctionDef)
        assert checks_something(function) is checks


def test_every_numbered_thing_of_the_paper_has_a_row() -> None:
    places = [place for row in rows_of(MAP.read_text()) for place in row.split("|")[1].split(", ")]
    assert [thing for thing in NUMBERED if thing not in [place.strip() for place in places]] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_references_on_every_page_resolve(page: Path) -> None:
    prose = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
    references = [q for q in QUOTED.findall(prose) if TEST.match(q) or CODE.match(q)]
    assert [problem for quoted in references if (problem := problem_of(quoted))] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_to_other_pages_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text())
    assert [target for target in targets if not (page.parent / target).exists()] == []


GOOD_CODE = "`tacit.accounting.budget:delta_of`"
GOOD_TEST = "`tests/paper/test_paper_map.py::test_a_wrong_row_is_noticed`"


@pytest.mark.parametrize(
    "row",
    [
        f"| Alg. 9 | no such module | `tacit.no_such_room:Thing` | {GOOD_TEST} |",
        f"| Alg. 9 | no such name | `tacit.accounting.budget:no_such_name` | {GOOD_TEST} |",
        f"| Alg. 9 | no method | `tacit.accounting.budget:PrivacyBudget.no_such` | {GOOD_TEST} |",
        f"| Alg. 9 | no such file | {GOOD_CODE} | `tests/paper/test_nothing.py::test_it` |",
        f"| Alg. 9 | no such test | {GOOD_CODE} | `tests/paper/test_paper_map.py::test_nothing` |",
        f"| Alg. 9 | no class | {GOOD_CODE} | `tests/test_promise.py::test_fit_and_tune_warn` |",
        f"| Alg. 9 | no test | {GOOD_CODE} | |",
        f"| Alg. 9 | no code | | {GOOD_TEST} |",
        "| Alg. 9 | neither | | |",
        f"| Alg. 9 | both | not yet | {GOOD_TEST} |",
        f"| Alg. 9 | both | proof step | {GOOD_TEST} |",
        "| Alg. 9 | not yet, in the wrong place | | |",
        f"| Alg. 9 | misspelt | `tacit.accounting.budget::delta_of` | {GOOD_TEST} |",
    ],
)
def test_a_wrong_row_is_noticed(row: str) -> None:
    """The twin: the same check finds fault with synthetic rows, and none with a right one."""
    assert problems_of_row(row)
    assert not problems_of_row(f"| Alg. 9 | right | {GOOD_CODE} | {GOOD_TEST} |")
    for excuse in WITHOUT_CODE:
        assert not problems_of_row(f"| Alg. 9 | right | {excuse} | |")
