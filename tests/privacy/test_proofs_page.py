"""docs/privacy/proofs.md and reviewing.md: every lemma has a test, every statistic a lemma.

The pages must agree with the code: bounds in the table are evaluated, releases of algorithms are
compared with what their modules import, and lengths of files with the files.
"""

import ast
import math
import operator
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.paper.test_paper_map import QUOTED, ROOT, TEST, functions_in, problem_of

from tacit.accounting.budget import Sensitivity
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    DescentMoments,
    ExpectedEquations,
    ExpectedGradient,
    FactorGradient,
    FactorMoments,
    FilledCovariance,
    HeldOutLosses,
    Holdout,
    ItemCounts,
    ItemSums,
    LatentModel,
    NormalEquations,
    RatingCount,
    ResidualCovariance,
    ResidualEnergy,
    ResidualProduct,
    RowNorms,
    RowSums,
    UserCount,
    UserMoments,
)

PROOFS = ROOT / "docs" / "privacy" / "proofs.md"
REVIEWING = ROOT / "docs" / "privacy" / "reviewing.md"
SOURCE = ROOT / "src" / "tacit"


def sections(text: str) -> dict[str, str]:
    """Every part of a page that states something to be proved, by its heading."""
    parts = re.split(r"^#{2,3} (.*)$", text, flags=re.MULTILINE)
    pairs = zip(parts[1::2], parts[2::2], strict=True)
    return {head: body for head, body in pairs if head.startswith(("Lemma", "Theorem"))}


@cache
def statistics() -> frozenset[str]:
    """The classes of the trust zone that sum over users."""
    found: set[str] = set()
    for path in (SOURCE / "trusted").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef) and not node.name.endswith("Statistic"):
                methods = {part.name for part in node.body if isinstance(part, ast.FunctionDef)}
                found |= {node.name} if "adder" in methods else set()
    return frozenset(found)


def named_tests(text: str) -> list[str]:
    return [quoted for quoted in QUOTED.findall(text) if TEST.fullmatch(quoted)]


def problems_of(text: str, names: frozenset[str]) -> list[str]:
    """What is missing or wrong on a page of proofs."""
    parts = sections(text)
    problems = [f"{head}: no test" for head, body in parts.items() if not named_tests(body)]
    problems += [problem for test in named_tests(text) if (problem := problem_of(test))]
    problems += [f"{head}: no proof" for head, body in parts.items() if "*Proof.*" not in body]
    stated = {name for head in parts for name in QUOTED.findall(head)}
    return problems + [f"{name}: no lemma" for name in sorted(names - stated)]


def test_every_statistic_has_a_lemma_and_every_lemma_a_test() -> None:
    assert len(statistics()) >= 15
    assert problems_of(PROOFS.read_text(), statistics()) == []


@pytest.mark.parametrize(
    "change",
    [
        ("### Lemma 21: `RowSums`", "### Lemma 21: `RowTotals`"),
        ("::test_the_covariance_bound_is_reached", "::test_the_covariance_bound_is_missed"),
        ("*Proof.* She is there or not", "She is there or not"),
        ("- `tests/privacy/test_sensitivity.py::test_the_user_count_bound_is_reached`", ""),
    ],
)
def test_a_gap_in_the_page_is_noticed(change: tuple[str, str]) -> None:
    """The twin: the same check finds fault with the page once something is taken out of it."""
    text = PROOFS.read_text()
    assert change[0] in text
    assert problems_of(text.replace(*change), statistics())


ITEMS = 6
B, C, L, RHO, XI = 3.0, 0.7, 1.5, 0.9, 4
BOUNDS = RowBounds(XI, np.zeros(ITEMS), True, L)
SYMBOLS = {"B": B, "C": C, "L": L, "rho": RHO, "xi": XI}
OPERATIONS: dict[type, Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def product(columns: int) -> ResidualProduct:
    return ResidualProduct(BOUNDS, (), B, np.eye(ITEMS)[:, :columns])


def equations(ratio: float) -> NormalEquations:
    ones = np.ones(ITEMS)
    return NormalEquations(BOUNDS, np.ones((ITEMS, 2)), ones, ones, 1.0, ratio)


LARGE_RHO = 2.5
LATENT = LatentModel(np.ones((ITEMS, 2)), np.ones(ITEMS), np.ones((ITEMS, 1)), np.ones((1, 2)))
CASES: dict[tuple[str, str], Any] = {
    ("ResidualCovariance", ""): ResidualCovariance(BOUNDS, (), B),
    ("FilledCovariance", ""): FilledCovariance(BOUNDS, (), (1.0,), (B,)),
    ("ResidualProduct", "one column"): product(1),
    ("ResidualProduct", "several columns"): product(3),
    ("ResidualEnergy", ""): ResidualEnergy(BOUNDS, (), B, np.eye(ITEMS)[0]),
    ("FactorGradient", ""): FactorGradient(BOUNDS, np.ones((ITEMS, 2)), 1.0, C),
    ("NormalEquations", r"$\rho^2 \le 2$"): equations(RHO),
    ("NormalEquations", r"$\rho^2 \ge 2$"): equations(LARGE_RHO),
    ("FactorMoments", ""): FactorMoments(BOUNDS, LATENT, B),
    ("ExpectedGradient", ""): ExpectedGradient(BOUNDS, LATENT, C, 1.0),
    ("ExpectedEquations", ""): ExpectedEquations(BOUNDS, LATENT, C, True),
    ("ItemSums", ""): ItemSums(BOUNDS, (1.0, 5.0)),
    ("ItemCounts", ""): ItemCounts(ITEMS),
    ("RowSums", ""): RowSums(RowBounds(XI, np.zeros(ITEMS), True, B)),
    ("RowNorms", ""): RowNorms(BOUNDS, np.array([1.0, 2.0])),
    ("UserMoments", ""): UserMoments(BOUNDS, 1.0, 1.0, 1.0),
    ("HeldOutLosses", ""): HeldOutLosses((), ITEMS, (1.0, 5.0), Holdout(0.1, 0), C),
    ("RatingCount", ""): RatingCount(BOUNDS, XI),
    ("UserCount", ""): UserCount(),
    ("DescentMoments", "never released with a budget"): DescentMoments(
        BOUNDS, (), np.eye(ITEMS)[0]
    ),
}


def bounds_of(text: str) -> dict[tuple[str, str], Sensitivity]:
    """The table of sensitivities, evaluated."""
    found = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if len(cells) != 5 or not cells[2].startswith("$"):
            continue
        case = (cells[0].strip("`"), cells[1])
        symbols = SYMBOLS | ({"rho": LARGE_RHO} if r"\ge" in cells[1] else {})
        formulas = [ast.parse(_in_python(cells[k]), mode="eval") for k in (2, 3)]
        found[case] = Sensitivity(*(_evaluate(formula, symbols) for formula in formulas))
    return found


def _in_python(formula: str) -> str:
    """Translate a formula of LaTeX: powers, roots, and products that are written without a sign."""
    tokens = re.findall(r"[a-zA-Z]+|\d+|[-+/^(){}]", formula)
    written = ""
    for before, token in zip(["+", *tokens], tokens, strict=False):
        factor = before[-1] in ")}" or before.isdigit() or before in SYMBOLS
        times = " * " if factor and re.match(r"[a-zA-Z\d(]", token) else ""
        written += times + {"^": "**", "{": "(", "}": ")"}.get(token, token)
    return written


def test_formulas_are_translated() -> None:
    assert _in_python(r"$\sqrt{2} B^2 (1 + 2^{-20})$") == "sqrt(2) * B**2 * (1+2**(-20))"
    assert _in_python(r"$\sqrt{2} (1 + \rho^2/2)$") == "sqrt(2) * (1+rho**2/2)"


def _evaluate(node: ast.AST, symbols: dict[str, Any]) -> float:
    """Evaluate a formula of numbers, symbols, sqrt and four operations."""
    if isinstance(node, ast.Expression):
        return _evaluate(node.body, symbols)
    if isinstance(node, ast.BinOp):
        left, right = _evaluate(node.left, symbols), _evaluate(node.right, symbols)
        return float(OPERATIONS[type(node.op)](left, right))
    if isinstance(node, ast.UnaryOp):
        return -_evaluate(node.operand, symbols)
    if isinstance(node, ast.Call):
        return math.sqrt(_evaluate(node.args[0], symbols))
    return float(symbols[node.id] if isinstance(node, ast.Name) else ast.literal_eval(node))


def differing(text: str) -> list[tuple[str, str]]:
    """The cases whose stated bounds are not those of the code."""
    stated = bounds_of(text)
    pairs = ((case, stated.get(case), statistic.sensitivity) for case, statistic in CASES.items())
    return [
        case
        for case, page, code in pairs
        if page is None
        or not math.isclose(page.add_remove, code.add_remove, rel_tol=1e-12)
        or not math.isclose(page.replace, code.replace, rel_tol=1e-12)
    ]


def test_the_table_has_the_bounds_of_the_code() -> None:
    assert {name for name, _ in CASES} == statistics()
    assert set(bounds_of(PROOFS.read_text())) == set(CASES)
    assert differing(PROOFS.read_text()) == []


def test_a_wrong_bound_in_the_table_is_noticed() -> None:
    """The twin: the relation's other bound in the table is found out."""
    wrong = PROOFS.read_text().replace("| $C$ | $2 C$ | yes", "| $C$ | $C$ | yes")
    assert differing(wrong) == [("ExpectedGradient", ""), ("HeldOutLosses", "")]


def releases_of(text: str) -> dict[str, set[str]]:
    """For each module named in the table of algorithms, the statistics in its row."""
    found = {}
    for line in text.splitlines():
        if module := re.match(r"\|[^|]*`(tacit\.algorithms\.\w+):\w+`", line):
            found[module[1]] = set(QUOTED.findall(line.split("|")[2]))
    return found


def imported(module: str) -> frozenset[str]:
    """The statistics that a module of algorithms imports from the trust zone, or takes out of it.

    It may import the package of statistics and name them as its attributes.
    """
    path = SOURCE.joinpath(*module.split(".")[1:]).with_suffix(".py")
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    trusted = [node.names for node in found if (node.module or "").startswith("tacit.trusted")]
    taken = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    return statistics() & ({name.name for names in trusted for name in names} | taken)


def test_the_table_of_algorithms_names_every_statistic_they_use() -> None:
    rows = releases_of(PROOFS.read_text())
    modules = {f"tacit.algorithms.{path.stem}" for path in (SOURCE / "algorithms").glob("*.py")}
    using = {module for module in modules if imported(module)}
    assert using == set(rows)
    missing = {module: imported(module) - rows[module] for module in using}
    assert [f"{module}: {names}" for module, names in missing.items() if names] == []


def lengths_of(text: str) -> dict[str, int]:
    """The files of the reviewer's list, with the lengths that it gives."""
    found = re.findall(r"^\| `(src/[\w/.]+)` \| (\d+) \|", text, re.MULTILINE)
    return {path: int(lines) for path, lines in found}


def wrong_lengths(text: str) -> list[str]:
    """Files that are not there or whose length is off by more than 15 %, and a wrong total."""
    wrong = []
    for path, stated in lengths_of(text).items():
        file = ROOT / path
        lines = len(file.read_text().splitlines()) if file.is_file() else -1
        if abs(lines - stated) > 0.15 * stated:
            wrong.append(f"{path}: {stated} stated, {lines} found")
    in_all = re.search(r"about ([\d,]+) lines in all", text)
    total = sum(lengths_of(text).values())
    if in_all is None or abs(int(in_all[1].replace(",", "")) - total) > 0.02 * total:
        wrong.append(f"{total} lines in all")
    return wrong


def test_the_reviewers_list_has_the_lengths_of_the_files() -> None:
    text = REVIEWING.read_text()
    assert len(lengths_of(text)) >= 6
    assert wrong_lengths(text) == []
    assert wrong_lengths(
        text.replace(
            "| `src/tacit/accounting/ledger.py` | ", "| `src/tacit/accounting/ledger.py` | 9"
        )
    )
    assert wrong_lengths(re.sub(r"[\d,]+ lines in all", "1,000 lines in all", text))


@pytest.mark.parametrize("page", ["proofs.md", "threat-model.md", "reviewing.md"])
def test_headings_that_are_linked_to_exist(page: str) -> None:
    """Links with an anchor, within the pages on privacy and from the entry page."""
    folder = PROOFS.parent
    for target, anchor in re.findall(r"\]\(([^)#:]*)#([^)]+)\)", (folder / page).read_text()):
        linked = (folder / target if target else folder / page).read_text()
        assert anchor in {slug(head) for head in re.findall(r"^#+ (.*)$", linked, re.MULTILINE)}


def slug(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_the_tests_that_are_named_are_collected() -> None:
    """A name that does not begin with test_ would exist and never run."""
    for test in named_tests(PROOFS.read_text()) + named_tests(REVIEWING.read_text()):
        path, _, name = test.partition("::")
        assert name.rpartition("::")[2].startswith("test_")
        assert name in functions_in(Path(ROOT / path))
