"""Runs commands of tacit with everything turned up: python -m tests.privacy.loud_commands PLAN.

PLAN is a JSON file: a list of {name, words, colour, releases}. What each command says goes between
marks on stdout and stderr, with its exit code and the size of the model m.tacit. Where `releases`
names a file, the releases of the command are written there if it does not exist; if it does, all
sums are formed, and the releases of the file are used in place of what came of them.
"""

import hashlib
import json
import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

MARK = "======== "


def replay(path: Path, patch: Any) -> None:
    """Record the releases of a fit, or put recorded ones in the place of its own."""
    from tacit.trusted.mechanism import Mechanism

    plain = Mechanism._release
    kept = dict(np.load(path)) if path.exists() else {}
    forced = bool(kept)

    def release(self: Mechanism, number: int, *rest: Any) -> np.ndarray:
        values = plain(self, number, *rest)
        if forced:
            return kept[str(number)].copy()
        kept[str(number)] = values.copy()  # a method may use its release as scratch
        np.savez(path, **kept)
        return values

    patch(Mechanism, "_release", release)


def run(words: list[str]) -> object:
    from tacit.cli import main

    sys.argv = ["tacit", *words]
    try:
        main()
    except SystemExit as left:
        return left.code
    return None


def main(plan: str) -> None:
    logging.basicConfig(level=logging.DEBUG)
    logging.getLogger("numba").setLevel(logging.WARNING)  # it tells how it compiles: no data in it
    from tacit.trusted.mechanism import Mechanism

    plain = Mechanism._release
    for command in json.loads(Path(plan).read_text()):
        setattr(Mechanism, "_release", plain)  # noqa: B010
        if command["releases"]:
            replay(Path(command["releases"]), setattr)
        os.environ.pop("FORCE_COLOR", None)
        if command["colour"]:
            os.environ |= {"FORCE_COLOR": "1", "TERM": "xterm-256color", "COLUMNS": "60"}
        for stream in (sys.stdout, sys.stderr):
            stream.write(f"{MARK}{command['name']}\n")
            stream.flush()
        with warnings.catch_warnings():
            code = run(command["words"])
        sys.stdout.write(f"exit code {code}\n")
        if Path("m.tacit").exists():
            content = Path("m.tacit").read_bytes()
            same = hashlib.sha256(content).hexdigest() if command["releases"] else "not compared"
            sys.stdout.write(f"m.tacit: {len(content)} bytes, {same}\n")


if __name__ == "__main__":
    main(sys.argv[1])
