"""What is as it was when all mutants were last run: python -m tests.mutants.earlier COMMIT.

A mutant of a definition that has not changed since is the mutant that was run then. Names of
modules may have changed, and what is said in docstrings; code has not. The digests of all
definitions of that commit are in earlier.json, so that the history need not be at hand.
"""

import ast
import json
import subprocess
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.mutants.generated import CONFIG, Change, first_line
from tests.mutants.mutant import ROOT, SOURCE

PLACE = Path(__file__).parent / "earlier.json"


def digests(source: str) -> dict[str, str]:
    """The digest of every statement of a module, but imports, by its name or its text."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module) and ast.get_docstring(
            node
        ):
            node.body = node.body[1:] or [ast.Pass()]
    return {
        _name(each): sha256(ast.dump(each).encode()).hexdigest()[:16]
        for each in tree.body
        if not isinstance(each, ast.Import | ast.ImportFrom)
    }


def _name(statement: ast.stmt) -> str:
    named = isinstance(statement, ast.FunctionDef | ast.ClassDef)
    return statement.name if named else ast.unparse(statement)  # type: ignore[attr-defined]


@cache
def _known() -> set[str]:
    return set(json.loads(PLACE.read_text())["digests"])


@cache
def unchanged_lines(file: str) -> frozenset[int]:
    """The lines of a file that belong to definitions that are as they were."""
    source = (SOURCE / file).read_text()
    same = {name for name, digest in digests(source).items() if digest in _known()}
    lines = (
        range(first_line(each), (each.end_lineno or each.lineno) + 1)
        for each in ast.parse(source).body
        if _as_compared(each) in same
    )
    return frozenset(number for part in lines for number in part)


def _as_compared(statement: ast.stmt) -> str:
    return "" if isinstance(statement, ast.Import | ast.ImportFrom) else _name(statement)


def is_as_it_was(change: Change) -> bool:
    """Whether a mutant was among those that were all run at that commit."""
    return change.line in unchanged_lines(change.file)


def main(commit: str) -> None:
    """Note the definitions of all files that are mutated, wherever they were at a commit."""

    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True,
                              text=True).stdout  # fmt: skip

    names = {
        Path(file).name for group in CONFIG["tacit"]["groups"].values() for file in group["files"]
    }
    names.add("local.py")
    rooms = ("src/tacit/private", "src/tacit/kernels", "src/tacit/accounting", "src/tacit/engines")
    files = git("ls-tree", "-r", "--name-only", commit, "src/tacit").split()
    found: set[str] = set()
    for file in files:
        if Path(file).name in names and (file.startswith(rooms) or file.count("/") == 2):
            found |= set(digests(git("show", f"{commit}:{file}")).values())
    PLACE.write_text(json.dumps({"commit": commit, "digests": sorted(found)}, indent=1) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
