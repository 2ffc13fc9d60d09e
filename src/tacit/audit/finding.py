"""One line of an audit: what was promised, what an attack reached, and whether the promise held."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interval:
    """Confidence limits of a measured value: each holds with this confidence, by itself."""

    low: float
    high: float
    confidence: float


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
        interval: Confidence limits of `measured`, where it is an estimate from random trials. The
            promise then holds if the lower limit does not pass `limit`: `measured` itself may pass
            it by chance.
        control: Whether nothing is promised: the same attack on something that is not private,
            which shows that the attack works.
    """

    part: str
    subject: str
    claim: str
    measured: float
    limit: float
    holds: bool
    how: str
    interval: Interval | None = None
    control: bool = False
