"""What an audit found, for a person, a machine or a browser."""

import html
import math
from dataclasses import asdict, dataclass
from itertools import groupby
from textwrap import wrap
from typing import Any

from tacit.audit.finding import Finding
from tacit.budget import PrivacyBudget
from tacit.errors import ConfigError

__all__ = ["QUESTIONS", "Audit", "check_page"]

_FORMAT = "tacit-audit/1"
QUESTIONS = {
    "certificate": "Do the listed releases cost what the certificate claims? (epsilon)",
    "sensitivity": "How far can one person move each sum? (L2 norm)",
    "rating": "How far can a single rating of one person move what is released? (cost mu)",
    "game": "Can anyone tell whether a crafted person was there? (lower bound of epsilon)",
    "membership": "Can someone who knows everyone else tell whose row it was? (advantage)",
    "reconstruction": "Can someone who knows everyone else read her ratings off? (share read)",
    "noise": "Is the noise what the ledger says, and is there nothing in its low bits?",
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
            f"{finding.part}, {finding.subject}: {_number(finding.measured)} where "
            f"{_number(finding.limit)} is the limit"
            for finding in self.broken
        )
        return f"DOES NOT HOLD: {told}"

    def page(self) -> str:
        """Return the same as a page for a browser."""
        rows = "".join(_html_row(finding) for finding in self.findings)
        heads = "".join(
            f"<th>{head}</th>" for head in ("", "part", "what", "found", "limit", "claim", "attack")
        )
        return (
            '<!doctype html><html lang="en"><meta charset="utf-8">'
            f"<title>{html.escape(self._title())}</title><style>{_STYLE}</style>"
            f"<h1>{html.escape(self._title())}</h1><p>{html.escape(self._about())}</p>"
            f"<table><tr>{heads}</tr>{rows}</table><p>{html.escape(self.conclusion())}</p></html>\n"
        )

    def _title(self) -> str:
        if self.budget is None:
            return f"AUDIT of {self.name}: nothing is promised"
        return (
            f"AUDIT of {self.name}: epsilon {self.budget.epsilon:g}, delta {self.budget.delta:g}, "
            f"{self.budget.neighbours.value}"
        )

    def _about(self) -> str:
        noise = "the operating system" if self.seed is None else f"seed {self.seed}"
        return f"Made-up people only. Noise of the game: {noise}."


_STYLE = (
    "body{font:15px/1.4 sans-serif;margin:2em;max-width:80em}table{border-collapse:collapse}"
    "td,th{padding:.3em .6em;text-align:left;border-bottom:1px solid #ccc;vertical-align:top}"
    ".no{background:#fdd}"
)


def _finding_json(finding: Finding) -> dict[str, Any]:
    values = asdict(finding)
    for name in ("measured", "limit"):
        values[name] = values[name] if math.isfinite(values[name]) else None
    return values


def _rows(findings: list[Finding]) -> list[str]:
    """Return a line for each finding: the verdict, what was attacked, found, limit, share."""
    width = max(len(finding.subject) for finding in findings)
    head = f"  {'':5}  {'':{width}}  {'found':>9}  {'limit':>9}  {'share':>6}"
    return [head, *(_row(finding, width) for finding in findings)]


def _row(finding: Finding, width: int) -> str:
    verdict = "holds" if finding.holds else "FAILS"
    share = finding.measured / finding.limit if finding.limit else math.nan
    shown = f"{100 * share:.0f} %" if math.isfinite(share) else ""
    numbers = f"{_number(finding.measured):>9}  {_number(finding.limit):>9}  {shown:>6}"
    return f"  {verdict}  {finding.subject:{width}}  {numbers}".rstrip()


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else "-"


def _html_row(finding: Finding) -> str:
    verdict = "holds" if finding.holds else "FAILS"
    cells = (
        verdict,
        finding.part,
        finding.subject,
        _number(finding.measured),
        _number(finding.limit),
        finding.claim,
        finding.how,
    )
    mark = "" if finding.holds else ' class="no"'
    return f"<tr{mark}>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"


def check_page(path: str) -> None:
    """Refuse a name for a page that says no form."""
    if not path.endswith((".txt", ".json", ".html")):
        raise ConfigError(f"output={path!r}: expected a name that ends in .txt, .json or .html")
