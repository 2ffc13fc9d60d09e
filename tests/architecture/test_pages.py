"""Links to headings lead somewhere; the glossary is in order, and pages link its terms."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GLOSSARY = ROOT / "docs" / "glossary.md"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def slug(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors_of(page: Path) -> set[str]:
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)}


def broken_links(page: Path, text: str) -> list[str]:
    """Links with an anchor that the linked page does not have."""
    links = re.findall(r"\]\(([^)#:\s]*)#([^)]+)\)", text)
    return [
        f"{target}#{anchor}"
        for target, anchor in links
        if anchor not in anchors_of(page.parent / target if target else page)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_linked_headings_exist(page: Path) -> None:
    assert broken_links(page, page.read_text()) == []


def test_a_broken_link_is_noticed() -> None:
    text = "[good](glossary.md#epsilon) and [bad](glossary.md#no-such-term)"
    assert broken_links(GLOSSARY, text) == ["glossary.md#no-such-term"]


def entries() -> dict[str, str]:
    """The terms of the glossary and what is said about each."""
    parts = re.split(r"^### ", GLOSSARY.read_text(), flags=re.MULTILINE)[1:]
    return {term: text.strip() for term, _, text in (part.partition("\n") for part in parts)}


def test_the_glossary_is_in_alphabetical_order() -> None:
    letters = [re.sub(r"[^a-z]", "", term.lower()) for term in entries()]
    assert letters == sorted(set(letters))


def test_every_term_of_the_field_has_a_reference() -> None:
    """Terms marked *(tacit)* are this package's own, and three more are plain words."""
    plain = {"Row", "Standard error", "Synthetic data"}
    without = {term for term, text in entries().items() if not re.search(r"\b(19|20)\d\d\b", text)}
    assert {term for term in without if not entries()[term].startswith("*(tacit)*")} == plain


def test_the_list_of_pages_has_them_all() -> None:
    """Each page of docs/, and each folder of pages; the front page shows where the list is."""
    listed = set(re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text()))
    pages = {path.name for path in (ROOT / "docs").glob("*.md")} - {"README.md"}
    folders = {path.parent.name + "/README.md" for path in (ROOT / "docs").glob("*/README.md")}
    assert pages | folders <= listed
    assert "](docs/README.md)" in (ROOT / "README.md").read_text()


TERMS = (
    "accountant",
    "alternating least squares",
    "certificate",
    "checkpoint",
    "choice factor",
    "delta",
    "EASE",
    "epsilon",
    "held-out rating",
    "implicit feedback",
    "incoherence",
    "joint differential privacy",
    "latent factor",
    "ledger",
    "local rule",
    "matrix completion",
    "missing not at random",
    "NDCG",
    "neighbouring relation",
    "noisy power method",
    "nuclear norm",
    "Oja's method",
    "post-processing",
    "posterior",
    "privacy budget",
    "residual",
    "ridge regression",
    "RMSE",
    "sensitivity",
    "shrinkage",
    "standard error",
    "trust zone",
    "user moments",
)
"""Terms of the glossary that are not plain words as well."""

RECORDS = {
    "architecture.md", "dependencies.md", "docs/README.md", "glossary.md", "mutants.md",
    "mutation-testing.md", "notation.md", "paper_map.md", "proofs.md", "reviewing.md", "reviews.md",
}  # fmt: skip
"""Tables, and what is written for reviewers; so are decisions and results."""


def prose(text: str) -> str:
    """A page without code, formulas, links, titles of books, headings and heads of tables."""
    for apart in (
        r"^```.*?^```", r"<!--.*?-->", r"\$\$.*?\$\$", r"`[^`]*`", r"\$[^$\n]+\$",
        r"!?\[[^\]]*\]\([^)]*\)", r"<[^>\n]*>", r"(?<![*\w])\*(?![*\s])[^*]+?\*(?!\*)",
        r"^#.*?$", r"^\|[^\n]*\n(?=\|[-| :]+\|$)",
    ):  # fmt: skip
        text = re.sub(apart, " ", text, flags=re.DOTALL | re.MULTILINE)
    return " ".join(text.split())


def unlinked(text: str) -> list[str]:
    """Terms that a page uses and never links to the glossary."""
    words = prose(text)
    used = [term for term in TERMS if re.search(rf"(?<![\w-]){term}(s|es)?(?![\w-])", words, re.I)]
    return [term for term in used if f"glossary.md#{slug(term)})" not in text]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_terms_are_linked_where_a_page_uses_them(page: Path) -> None:
    names = {page.name, page.relative_to(ROOT).as_posix()}
    if not names & RECORDS and page.parent.name not in (ROOT.name, "decisions", "results"):
        assert unlinked(page.read_text()) == []


def test_a_term_without_a_link_is_noticed() -> None:
    text = "`epsilon` in code; the [ledger](glossary.md#ledger), a ledger, and the posterior."
    assert unlinked(text) == ["posterior"]
