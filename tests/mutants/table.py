"""All mutants, and the page that shows them."""

from tests.mutants.edits import Edit
from tests.mutants.mutant import ROOT, Mutant
from tests.mutants.of_accounts import ACCOUNTS
from tests.mutants.of_book import BOOKS
from tests.mutants.of_bounds import BOUNDS
from tests.mutants.of_leaving import LEAVING
from tests.mutants.of_noise import NOISE

GROUPS: dict[str, tuple[Mutant, ...]] = {
    "Noise, and where it is kept": NOISE,
    "Bounds: what one person can add": BOUNDS,
    "Accounts: what is paid, and what is said of it": ACCOUNTS,
    "The lifetime book: what is paid over the years": BOOKS,
    "What leaves by another door": LEAVING,
}
MUTANTS: dict[str, Mutant] = {mutant.name: mutant for group in GROUPS.values() for mutant in group}
PAGE = ROOT / "docs" / "privacy" / "mutants.md"

_HEAD = """\
# Mutants

A test that has never failed may be a test that cannot. So the code is broken on purpose, in {count}
ways in which a tired engineer might break it, and for each of them at least one test must notice.
Every mutant is a small change of a named function: an expression or a few statements of it, and
what takes their place, compared as syntax trees (`tests/mutants/edits.py`). So neither formatting
nor comments nor a change elsewhere in the file matters to it. It is made in a copy of the package,
and the tests named beside it are run on that copy: all of them must fail, each on what it checks
and not on a name that is missing or a type that does not fit. The same tests must pass on the code
as it is.

`make test` checks that what a mutant replaces is still in its function, exactly once, so that a
mutant cannot become meaningless without anyone noticing. `make test-all` and `.ci/run` breed them
all (`tests/mutants/test_mutants.py::test_a_mutant_is_caught`). This page is written by
`python -m tests.mutants` from the same table.

What it does not show: that there is no mistake which no test catches. Someone who thinks of one
adds it to the table in `tests/mutants/`, and the test that was missing. [Mutation
testing](mutation-testing.md) is the systematic search for such mistakes.
"""


def page() -> str:
    """Return the text of docs/privacy/mutants.md."""
    parts = [_HEAD.format(count=len(MUTANTS))]
    for title, group in GROUPS.items():
        rows = "\n".join(_row(mutant) for mutant in group)
        head = "| mutant | where | what it would do | caught by |\n|---|---|---|---|\n"
        parts.append(f"## {title}\n\n{head}{rows}\n")
    return "\n".join(parts)


def _row(mutant: Mutant) -> str:
    where = ", ".join(f"`{place}`" for place in dict.fromkeys(map(_place, mutant.edits)))
    tests = ", ".join(f"`{name}`" for name in dict.fromkeys(map(_plain, mutant.caught_by)))
    return f"| {mutant.name} | {where} | {mutant.harm} | {tests} |"


def _place(edit: Edit) -> str:
    return f"{edit.file}: {edit.where}" if edit.where else edit.file


def _plain(test: str) -> str:
    """Return a test without its parameters."""
    return test.partition("[")[0]
