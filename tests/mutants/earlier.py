"""What is as it was when its mutants were last run: python -m tests.mutants.earlier COMMIT.

A mutant of a definition that has not changed since is the mutant that was run then. Names of
modules may have changed, and what is said in docstrings; code has not. earlier.json has the digest
of every definition whose mutants have all been run, with the commit at which that was, so that
neither the history nor the results need be at hand.
"""

import ast
import json
import sys
from functools import cache
from hashlib import sha256
from pathlib import Path

from tests.mutants.generated import CONFIG, Change, first_line
from tests.mutants.mutant import SOURCE

PLACE = Path(__file__).parent / "earlier.json"
FILES = [file for group in CONFIG["tacit"]["groups"].values() for file in group["files"]]


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
def known() -> dict[str, str]:
    """The commit at which all mutants of a definition were run, by its digest."""
    return dict(json.loads(PLACE.read_text()))


@cache
def unchanged_lines(file: str) -> frozenset[int]:
    """The lines of a file that belong to definitions that are as they were."""
    parts = (lines for digest, lines in definitions(file) if digest in known())
    return frozenset(number for lines in parts for number in lines)


def definitions(file: str) -> list[tuple[str, range]]:
    """The digest and the lines of every statement of a module, but imports."""
    source = (SOURCE / file).read_text()
    found = digests(source)
    return [
        (found[_name(each)], range(first_line(each), (each.end_lineno or each.lineno) + 1))
        for each in ast.parse(source).body
        if _name(each) in found
    ]


def is_as_it_was(change: Change) -> bool:
    """Whether a mutant is of a definition whose mutants were all run before."""
    return change.line in unchanged_lines(change.file)


Place = tuple[str, int]
"""A file and a line of it."""


def noted(commit: str, ran: set[Place], others: set[Place], alive: set[Place]) -> dict[str, str]:
    """The commit at which all mutants of each definition were run: this one, or one before.

    Args:
        commit: the code as it is.
        ran: where mutants are that were run on it, and were killed or are harmless.
        others: where there are mutants that were not.
        alive: those of them that survive.
    """
    found = {}
    for file in FILES:
        for digest, lines in definitions(file):
            places = {(file, line) for line in lines}
            if places & ran and not places & others:
                found[digest] = commit
            elif digest in known() and not places & alive:
                found[digest] = known()[digest]
    return found


def main(commit: str) -> None:
    """Write down what is known after a run on the code as it is at a commit."""
    from tests.mutants.report import EARLIER, SURVIVED, found

    ran, others, alive = set(), set(), set()
    for one in found():
        now = one.is_settled and one.outcome != EARLIER
        (ran if now else others).add((one.file, one.line))
        if one.outcome == SURVIVED and not one.reason:
            alive.add((one.file, one.line))
    text = json.dumps(noted(commit, ran, others, alive), indent=1, sort_keys=True)
    PLACE.write_text(text + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
