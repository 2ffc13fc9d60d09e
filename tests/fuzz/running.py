"""Mutants read in child processes, so that one that ends, hangs or fills a process is noticed."""

import json
import subprocess
import sys
import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = 4 << 30
"""How much a child may grow, in bytes of address space, beyond what it has when all is loaded."""


@dataclass
class Tally:
    """What came of a number of mutants."""

    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    sound: dict[str, str] = field(default_factory=dict)
    peak: int = 0
    """The most memory that a child had, in KiB."""
    noise: list[str] = field(default_factory=list)
    """What children wrote to their standard error."""


def run(subject: str, first: int, last: int, *, room: int = ROOM, seconds: float = 20) -> Tally:
    """Read the mutants of a subject; one that takes longer than `seconds` counts as hanging."""
    tally = Tally()
    while first < last:
        first = _run_child(tally, subject, (first, last, room), seconds)
    return tally


def _run_child(tally: Tally, subject: str, span: tuple[int, int, int], seconds: float) -> int:
    """Run one child until it ends; return the number of the mutant to go on with."""
    command = [sys.executable, "-m", "tests.fuzz.child", subject, *map(str, span)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    current, at, hung = None, span[0], []
    with subprocess.Popen(command, cwd=ROOT, errors="replace", **pipes) as child:  # type: ignore[call-overload]
        listener = threading.Thread(target=lambda: tally.noise.extend(child.stderr))
        listener.start()
        for line in _lines(child, seconds, hung):
            facts = json.loads(line)
            if "begins" in facts:
                current = at = facts["begins"]
            elif "number" in facts:
                current, at = None, facts["number"] + 1
                _count(tally, facts["number"], facts["outcome"])
            elif "sound" in facts:
                tally.sound[facts["sound"]] = facts["outcome"]
            else:
                tally.peak = max(tally.peak, facts["peak"])
        code = child.wait()
        listener.join()
    if code == 0:
        return span[1]
    if current is None:
        raise RuntimeError(f"the child ended with {code} outside a mutant: {tally.noise[-5:]}")
    _count(tally, current, "WRONG: hangs" if hung else f"WRONG: the process ended with {code}")
    return at + 1


def _lines(child: "subprocess.Popen[str]", seconds: float, hung: list[bool]):  # type: ignore[no-untyped-def]
    """Lines of a child, which is killed when one takes too long (the first may take longer)."""

    def kill() -> None:
        hung.append(True)
        child.kill()

    patience = 120.0
    while True:
        timer = threading.Timer(patience, kill)
        timer.start()
        line = child.stdout.readline()  # type: ignore[union-attr]
        timer.cancel()
        if not line.endswith("\n"):
            return
        patience = seconds if "begins" in line or "number" in line else 120.0
        yield line


def _count(tally: Tally, number: int, outcome: str) -> None:
    if outcome.startswith("WRONG"):
        tally.wrong.append(f"{number}: {outcome}")
        outcome = "WRONG"
    tally.outcomes[outcome] += 1
