"""Writes docs/privacy/mutation-testing.md from the last run: python -m tests.mutants.report."""

import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.mutants.earlier import is_as_it_was
from tests.mutants.generated import changes_of
from tests.mutants.mutant import ROOT, SOURCE
from tests.mutants.systematic import (
    AT_IMPORT,
    GROUPS,
    HARMLESS,
    PLACE,
    SURVIVED,
    digest_of,
    latest,
)

PAGE = ROOT / "docs" / "privacy" / "mutation-testing.md"
EARLIER = "earlier"  # run before, and what it is a mutant of has not changed
HEAD = (Path(__file__).parent / "mutation-testing.head.md").read_text()


class Found(NamedTuple):
    """One mutant and what came of it: "" if it was not run."""

    file: str
    line: int
    key: str
    outcome: str
    reason: str

    @property
    def is_settled(self) -> bool:
        """Whether it was run, now or before, and was killed or is harmless."""
        return self.outcome not in ("", AT_IMPORT, SURVIVED) or bool(self.reason)


def found() -> list[Found]:
    """Every mutant of every file, with what is known of it."""
    everything = []
    for group, settings in GROUPS.items():
        known = latest(PLACE / f"{group}.jsonl")
        for file in settings["files"]:
            for change in changes_of(SOURCE / file, file, PLACE):
                outcome = known.get(change.key, "")
                if outcome in ("", AT_IMPORT) and is_as_it_was(change):
                    outcome = EARLIER
                in_error = change.in_error and outcome == SURVIVED
                survived = outcome in (SURVIVED, EARLIER)
                reason = reason_of(change.key, in_error) if survived else ""
                everything.append(Found(file, change.line, change.key, outcome, reason))
    return everything


def reason_of(key: str, in_error: bool) -> str:
    """Why a survivor is harmless, or nothing."""
    if in_error:
        return "It is inside the text of an error."
    for entry in HARMLESS:
        if key in entry["mutants"]:
            return str(entry["reason"])
    return ""


def page(everything: list[Found]) -> str:
    """Return the text of the page."""
    return "\n".join([HEAD, _table(everything), _survivors(everything)])


def _table(everything: list[Found]) -> str:
    lines = ["## What came of it", "",
             "| file | source | mutants | killed | harmless | survive | as before | not run "
             "| killed, of those that are not harmless |",
             "|---|---|---|---|---|---|---|---|---|"]  # fmt: skip
    files = dict.fromkeys(one.file for one in everything)
    for file in files:
        own = [one for one in everything if one.file == file]
        lines.append(_row(f"`{file}` | `{digest_of(file)}`", own))
    return "\n".join([*lines, _row("all | ", everything), ""])


def _row(name: str, of: list[Found]) -> str:
    harmless = sum(bool(one.reason) for one in of)
    survive = sum(one.outcome == SURVIVED and not one.reason for one in of)
    missing = sum(one.outcome in ("", AT_IMPORT) for one in of)
    earlier = sum(one.outcome == EARLIER and not one.reason for one in of)
    killed = len(of) - harmless - survive - missing - earlier
    share = f"{100 * killed / (killed + survive):.1f} %" if killed + survive else ""
    counts = (len(of), killed, harmless, survive, earlier, missing)
    return f"| {name} | {' | '.join(map(str, counts))} | {share} |"


def _survivors(everything: list[Found]) -> str:
    lines = ["## Survivors that are harmless, and why", ""]
    reasons = dict.fromkeys(one.reason for one in everything if one.reason)
    for reason in reasons:
        lines += [f"**{reason}**", "", *_listed(one for one in everything if one.reason == reason)]
    open_ones = [one for one in everything if one.outcome == SURVIVED and not one.reason]
    lines += ["## Survivors that change something", ""]
    return "\n".join([*lines, *(_listed(open_ones) if open_ones else ["None."])]) + "\n"


def _listed(survivors) -> list[str]:  # type: ignore[no-untyped-def]
    counted = Counter(one.key for one in survivors)
    lines = []
    for key, times in counted.items():
        file, where, change = key.split(" | ", 2)
        old, new = change.rsplit(" -> ", 1) if change.count(" -> ") == 1 else (change, "")
        again = f" ({times} times)" if times > 1 else ""
        lines.append(f"- `{file}`, `{where}`: `{old}` becomes `{new}`{again}")
    return [*lines, ""]


def main() -> None:
    everything = found()
    PAGE.write_text(page(everything))
    left = [one.key for one in everything if one.outcome == SURVIVED and not one.reason]
    sys.stderr.write("\n".join([*left, f"{len(left)} survivors without a reason\n"]))


if __name__ == "__main__":
    main()
