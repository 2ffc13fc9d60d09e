"""One line of an audit: what was promised, what an attack reached, and whether the promise held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """What one attack measured against one promise.

    Attributes:
        part: The part of the audit: "certificate", "sensitivity", "rating", "game",
            "membership", "reconstruction" or "noise".
        subject: What was attacked, e.g. the name of a release or of an algorithm.
        claim: What was promised, in one sentence.
        measured: What the attack reached, on the scale of `limit`.
        limit: The value that the promise does not allow `measured` to pass.
        holds: Whether the promise held against this attack.
        how: The attack, in one sentence.
    """

    part: str
    subject: str
    claim: str
    measured: float
    limit: float
    holds: bool
    how: str
