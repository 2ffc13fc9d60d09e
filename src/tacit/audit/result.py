"""What an audit found, for a person, a machine or a browser."""

import math
from dataclasses import asdict, dataclass
from itertools import groupby
from textwrap import wrap
from typing import Any

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.promise import shown
from tacit.audit.finding import Finding
from tacit.errors import ConfigError
from tacit.reporting.markup import Section, escape, page, sentences, table

_FORMAT = "tacit-audit/1"
QUESTIONS = {
    "certificate": "Do the listed releases cost what the certificate claims? (epsilon)",
    "sensitivity": "How far can one person move each sum? (L2 norm)",
    "rating": "How far can a single rating of one person move what is released? (cost mu)",
    "game": "Can anyone tell whether a crafted person was there? (lower bound of epsilon)",
    "membership": "Can someone who knows everyone else tell whose row it was? (advantage)",
    "reconstruction": "Can someone who knows everyone else read her ratings off? (share read)",
    "noise": "Is the noise what the ledger says, and is there nothing in its low bits? (deviation; "
    "advantage)",
}
"""What each part of an audit asks."""


@dataclass(frozen=True)
class Audit:
    """The findings about one configuration.

    Attributes:
        name: the algorithm.
        budget: what was promised; None where nothing was.
        findings: what each attack measured.
        seed: what made noise repeatable; None: the operating system's noise.
    """

    name: str
    budget: PrivacyBudget | None
    findings: tuple[Finding, ...]
    seed: int | None = None

    @property
    def holds(self) -> bool:
        """Whether every promise held against every attack, and there was one."""
        return bool(self.findings) and all(finding.holds for finding in self.findings)

    @property
    def broken(self) -> tuple[Finding, ...]:
        """The findings against the promise."""
        return tuple(finding for finding in self.findings if not finding.holds)

    def to_json(self) -> dict[str, Any]:
        """Return the machine's form, with stable keys; what is not finite is null."""
        budget = self.budget
        return {
            "format": _FORMAT,
            "holds": self.holds,
            "algorithm": self.name,
            "epsilon": budget.epsilon if budget else None,
            "delta": budget.delta if budget else None,
            "neighbours": budget.neighbours.value if budget else None,
            "accounting": budget.accounting.value if budget else None,
            "seed": self.seed,
            "findings": [_finding_json(finding) for finding in self.findings],
        }

    def text(self) -> str:
        """Return the person's form: a table for each part."""
        lines = [self._title(), f"  {self._about()}"]
        for part, group in groupby(self.findings, lambda finding: finding.part):
            findings = list(group)
            lines += ["", f"{part}: {QUESTIONS.get(part, '')}".rstrip(), *_rows(findings)]
            lines += wrap(_legend(findings), 98, initial_indent="  ", subsequent_indent="  ")
            if len(findings) > 1 and len({finding.how for finding in findings}) == 1:
                lines += wrap(findings[0].how, 98, initial_indent="  ", subsequent_indent="  ")
        lines += ["", self.conclusion()]
        return "\n".join(lines)

    def conclusion(self) -> str:
        """Return the last line: whether everything held, or what did not."""
        if self.holds:
            return f"HOLDS: {len(self.findings)} findings, none against the promise"
        if not self.findings:
            return "NOTHING WAS ATTACKED"
        told = "; ".join(
            f"{finding.part}, {finding.subject}: {_measured_text(finding.measured)}"
            f"{_between(finding)} where {_measured_text(finding.limit)} is the limit"
            for finding in self.broken
        )
        return f"DOES NOT HOLD: {told}"

    def page(self) -> str:
        """Return the same as a page for a browser, in the style of `tacit report`."""
        told = f"<p>{escape(self.conclusion())}</p>"
        sections = [Section("verdict", "The verdict", told, _HELD if self.holds else _NOT_HELD)]
        for part, group in groupby(self.findings, lambda finding: finding.part):
            sections.append(_section(part, list(group), self.name))
        lead = f"{self._about()} An attack that fails proves nothing; one that succeeds does."
        footer = "This page loads nothing from a network."
        return page(self._title(), self._title(), lead, sections, footer, brand="tacit · audit")

    def _title(self) -> str:
        if self.budget is None:
            return f"AUDIT of {self.name}: nothing is promised"
        return (
            f"AUDIT of {self.name}: epsilon {shown(self.budget.epsilon)}, delta "
            f"{shown(self.budget.delta)}, {self.budget.neighbours.value}"
        )

    def _about(self) -> str:
        if self.seed is not None:
            return f"Synthetic people only. Noise: seed {self.seed}."
        return (
            "Synthetic people only. Noise of the game: the operating system; of all other parts: "
            "seed 0, so that they repeat."
        )


_HELD = '<span class="badge">holds</span>'
_NOT_HELD = '<span class="badge not">DOES NOT HOLD</span>'


def _section(part: str, findings: list[Finding], name: str) -> Section:
    """Return what one attack found: a table, and below it how it was tried."""
    intervals = any(finding.interval for finding in findings)
    heads = ["What was attacked", "Verdict", "Found", *["Interval"] * intervals, "Limit"]
    rows = [
        [
            finding.subject.removeprefix(f"{name}: ").removeprefix(f"{name}, "),
            "holds" if finding.holds else "FAILS",
            _measured_text(finding.measured),
            *[_interval(finding)] * intervals,
            _measured_text(finding.limit),
        ]
        for finding in findings
    ]
    failed = [k for k, finding in enumerate(findings) if not finding.holds]
    told = table(QUESTIONS.get(part, part), heads, rows, numbers=2, marked=failed)
    notes = [_legend(findings), *dict.fromkeys(finding.how for finding in findings)]
    badge = _NOT_HELD if failed else _HELD
    return Section(part, part.capitalize(), told + sentences(filter(None, notes)), badge)


def _finding_json(finding: Finding) -> dict[str, Any]:
    values = asdict(finding)
    for name in ("measured", "limit"):
        values[name] = values[name] if math.isfinite(values[name]) else None
    return values


def _rows(findings: list[Finding]) -> list[str]:
    """Return a line for each finding: the verdict, what was attacked, and numbers.

    An estimate from random trials has its confidence interval beside it; what is computed exactly
    has the share of the limit that it reached.
    """
    width = max(len(finding.subject) for finding in findings)
    intervals = any(finding.interval for finding in findings)
    shares = not all(finding.interval for finding in findings)
    columns = ["found", *["interval"] * intervals, "limit", *["share"] * shares]
    cells = [dict.fromkeys(columns, "") | _cells(finding) for finding in findings]
    lines = [_line("", "", {column: column for column in columns}, columns, width)]
    for finding, each in zip(findings, cells, strict=True):
        verdict = "holds" if finding.holds else "FAILS"
        lines.append(_line(verdict, finding.subject, each, columns, width))
    return lines


def _line(verdict: str, what: str, cells: dict[str, str], columns: list[str], width: int) -> str:
    """Return one line of a table, its cells to the right."""
    numbers = "  ".join(f"{cells[column]:>{_WIDTHS[column]}}" for column in columns)
    return f"  {verdict:5}  {what:{width}}  {numbers}".rstrip()


_WIDTHS = {"found": 9, "interval": 16, "limit": 9, "share": 6}


def _cells(finding: Finding) -> dict[str, str]:
    """Return the numbers of a finding as text, by column."""
    cells = {"found": _measured_text(finding.measured), "limit": _measured_text(finding.limit)}
    share = finding.measured / finding.limit if finding.limit else math.nan
    if finding.interval:
        return cells | {"interval": _interval(finding)}
    return cells | ({"share": f"{100 * share:.0f} %"} if math.isfinite(share) else {})


def _legend(findings: list[Finding]) -> str:
    """Say what an interval is, and what "holds" then means."""
    intervals = [finding.interval for finding in findings if finding.interval]
    if not intervals:
        return ""
    text = (
        f"interval: confidence limits of what was found, {100 * intervals[0].confidence:g} % each. "
        "It holds if the lower one is not above the limit; what was found may be, by chance."
    )
    if any(finding.control for finding in findings):
        text += " Lines of what is not private are controls, and show that the attack works."
    return text


def _interval(finding: Finding) -> str:
    interval = finding.interval
    return f"{interval.low:.3f} to {interval.high:.3f}" if interval else ""


def _between(finding: Finding) -> str:
    return f" ({_interval(finding)})" if finding.interval else ""


def _measured_text(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def check_page(path: str) -> None:
    """Refuse a name for a page that says no form."""
    if not path.endswith((".txt", ".json", ".html")):
        raise ConfigError(f"output={path!r}: expected a name that ends in .txt, .json or .html")
