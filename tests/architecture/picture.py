"""Draws the picture of packages and the table of layers of docs/architecture.md from the code.

python -m tests.architecture.picture writes both into the page.
"""

import ast
import textwrap
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tacit"
PAGE = ROOT / "docs" / "architecture.md"
PICTURE = ("```\nsrc/tacit/\n", "```\n")
LAYERS = ("| layers, from the top down |\n|---|\n", "\nAnd, across those lines")
IN_FULL = ("trusted",)  # what a reviewer reads: one line for each module
LEFT, WIDTH = 20, 110


def first_line(path: Path) -> str:
    """What a module says of itself, in its first sentence."""
    text = ast.get_docstring(ast.parse(path.read_text())) or ""
    return " ".join(text.partition("\n\n")[0].split()).split(". ")[0].rstrip(".")


def entry(name: str, text: str, depth: int) -> str:
    """A line of the picture, with the name on the left and what it is on the right."""
    head = f"{'  ' * depth}{name}".ljust(LEFT - 1) + " "
    return textwrap.fill(text, WIDTH, initial_indent=head, subsequent_indent=" " * LEFT)


def modules_of(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]


def package(folder: Path, depth: int = 1) -> list[str]:
    """A package: what it is for, its modules, and the packages in it."""
    lines = ["", entry(f"{folder.name}/", first_line(folder / "__init__.py"), depth)]
    if folder.name in IN_FULL:
        lines += [entry(path.stem, first_line(path), depth + 1) for path in modules_of(folder)]
    elif modules := modules_of(folder):
        lines.append(entry("", ", ".join(path.stem for path in modules), depth))
    for inner in sorted(path.parent for path in folder.glob("*/__init__.py")):
        lines += package(inner, depth + 1)[1:]
    return lines


def picture(source: Path = SOURCE) -> str:
    """The tree of packages below the folder of the source."""
    root = [path for path in sorted(source.glob("*.py")) if path.name != "__main__.py"]
    lines = [entry(path.name, first_line(path), 1) for path in root]
    for folder in sorted(path.parent for path in source.glob("*/__init__.py")):
        lines += package(folder)
    return "\n".join(lines) + "\n"


def layers() -> str:
    """The layers of the import contract, one row each."""
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (found,) = [c for c in config["tool"]["importlinter"]["contracts"] if c["type"] == "layers"]
    rows = [[name.strip() for name in layer.split("|")] for layer in found["layers"]]
    shown = [", ".join(f"`{name.removeprefix('tacit.')}`" for name in row) for row in rows]
    return "".join(f"| {row} |\n" for row in shown)


def between(text: str, ends: tuple[str, str]) -> str:
    """What stands between two marks of a page."""
    return text.partition(ends[0])[2].partition(ends[1])[0]


def with_block(text: str, ends: tuple[str, str], block: str) -> str:
    """A page with another block between two marks."""
    before, mark, rest = text.partition(ends[0])
    return before + mark + block + ends[1] + rest.partition(ends[1])[2]


def main() -> None:
    text = with_block(PAGE.read_text(), PICTURE, picture())
    PAGE.write_text(with_block(text, LAYERS, layers()))


if __name__ == "__main__":
    main()
