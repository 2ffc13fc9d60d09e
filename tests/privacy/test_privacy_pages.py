"""Pages on privacy: mathematics that every renderer understands, and reviews with tests that exist.

GitHub runs Markdown over formulas: an underscore behind a bracket opens emphasis, and a backslash
before punctuation is eaten. What is typeset here must survive that, and mkdocs too.
"""

import re
from pathlib import Path

import pytest
from tests.paper.test_paper_map import QUOTED, ROOT, TEST, problem_of, rows_of

DOCS = ROOT / "docs"
REVIEWS = DOCS / "privacy" / "reviews.md"
PAGES = [DOCS / "privacy.md", DOCS / "notation.md", *sorted((DOCS / "privacy").glob("*.md"))]
CODE_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
CODE_SPAN = re.compile(r"`[^`]*`")
DISPLAYED = re.compile(r"\$\$(.*?)\$\$", re.DOTALL)
LIST = re.compile(r"^\s*([-+*#>]|\d+[.)]) ", re.MULTILINE)
INLINE = re.compile(r"\$([^$]*)\$")
EATEN = {
    r"[^\w\\]_": "an underscore behind punctuation or a blank can open emphasis",
    r"\\[^a-zA-Z]": "a backslash before punctuation is eaten; use a named macro",
    r"\*": "an asterisk can open emphasis",
    r"\|": "a bar ends a cell of a table; use \\lvert and \\rvert",
    r"<\S": "a less-than sign without a blank behind it can open a tag",
}


def problems_of(text: str) -> list[str]:
    """What could go wrong with the formulas of a page."""
    prose = CODE_SPAN.sub("code", CODE_BLOCK.sub("", text))
    displayed = DISPLAYED.findall(prose)
    problems = [f"no paragraph of its own: {part}" for part in _crowded(prose)]
    problems += [f"a line begins like a list: {part}" for part in displayed if LIST.search(part)]
    lines = DISPLAYED.sub("", prose).splitlines()
    problems += [f"a formula does not end in its line: {line}" for line in lines if _odd(line)]
    problems += [f"a letter, digit or blank touches it: {line}" for line in lines if _touched(line)]
    for formula in displayed + [part for line in lines for part in INLINE.findall(line)]:
        problems += [f"{why}: {formula}" for what, why in EATEN.items() if re.search(what, formula)]
        problems += [f"braces: {formula}"] if formula.count("{") != formula.count("}") else []
    return problems


def _crowded(prose: str) -> list[str]:
    """Displayed formulas that have no blank line before or behind them."""
    parts = re.split(r"\n\s*\n", prose)
    return [part for part in parts if "$$" in part and not re.fullmatch(r"\$\$[^$]*\$\$\s*", part)]


def _odd(line: str) -> bool:
    return line.count("$") % 2 == 1


def _touched(line: str) -> bool:
    """Whether a dollar sign is not seen as one: a blank inside, or a letter or digit outside."""
    if _odd(line):
        return False
    outside, inside = line.split("$")[::2], line.split("$")[1::2]
    blank = any(part != part.strip() or not part for part in inside)
    before = any(re.search(r"\w$", part) for part in outside[:-1])
    return blank or before or any(re.match(r"\w", part) for part in outside[1:])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS)))
def test_formulas_render_on_github_and_in_mkdocs(page: Path) -> None:
    assert problems_of(page.read_text()) == []


@pytest.mark.parametrize(
    "wrong",
    [
        r"the norm $w'_j$ of",
        r"a thin space $a\,b$ here",
        r"a product $a*b$ here",
        r"a size $|x|$ here",
        r"an order $a<b$ here",
        "a formula $a +\nb$ in two lines",
        r"a blank $ a$ inside",
        r"touched $a$b here",
        r"lost $\sqrt{2$ brace",
        "text\n$$a = b$$",
        "text\n\n$$a = b\n- c$$",
    ],
)
def test_formulas_that_would_not_render_are_noticed(wrong: str) -> None:
    assert problems_of(wrong)


def test_every_finding_says_how_it_was_mended_and_names_tests_that_exist() -> None:
    """Those about mutants name none: their own page has a test for each."""
    rows = [[cell.strip() for cell in row.split("|")[1:-1]] for row in rows_of(REVIEWS.read_text())]
    assert len(rows) >= 20
    assert [row for row in rows if len(row) != 3 or not all(row)] == []
    named = {row[0]: QUOTED.findall(row[2]) for row in rows if "mutants" not in row[0]}
    assert [found for found, tests in named.items() if not any(map(TEST.fullmatch, tests))] == []
    found = [problem_of(test) for tests in named.values() for test in tests]
    assert [problem for problem in found if problem] == []


def test_every_test_that_the_pages_name_exists_and_is_collected() -> None:
    named = [test for page in PAGES for test in QUOTED.findall(page.read_text()) if "::" in test]
    assert len(named) > 150
    assert [problem for test in named if (problem := problem_of(test))] == []
    assert [test for test in named if not test.rpartition("::")[2].startswith("test_")] == []


def test_every_name_of_the_notation_is_in_the_code() -> None:
    """Word by word: a class, an attribute, an argument or a module that is spelled like that."""
    sources = (ROOT / "src" / "tacit").rglob("*.py")
    words = {word for path in sources for word in re.findall(r"\w+", path.read_text())}
    words |= {path.stem for path in (ROOT / "src" / "tacit").rglob("*.py")}
    cells = [row.split("|")[3] for row in rows_of((DOCS / "notation.md").read_text())]
    assert len(cells) > 60
    quoted = [name for cell in cells for name in QUOTED.findall(cell)]
    assert [name for name in quoted if not set(re.findall(r"\w+", name)) <= words] == []


FALSE = {
    "limits.md": ["All rows are in one process.", "compares their names and number"],
    "howto/read-a-certificate.md": [
        "everything in it can be computed again",
        "every part of the model has a release",
    ],
    "privacy/side-channels.md": [
        "the certificate with all costs",
        "its cost is fixed in advance",
        "How many releases a fit makes is planned",
    ],
    "device.md": ["as `tacit verify` does, and says whether"],
}
"""Sentences that a review found to be false, by page."""


@pytest.mark.parametrize("page", FALSE)
def test_pages_do_not_say_what_was_found_to_be_false(page: str) -> None:
    """Each of them stood on its page when the review read it."""
    words = " ".join((DOCS / page).read_text().split())
    assert [sentence for sentence in FALSE[page] if sentence in words] == []
