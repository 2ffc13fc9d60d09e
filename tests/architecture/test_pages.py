"""Links to headings lead somewhere, and the glossary is in order."""

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
