"""One fit in a process of its own, which may be ended by kill -9 at a chosen place.

    python -m tests.faults.child FOLDER [STAGE NUMBER]
    python -m tests.faults.child --serve

The second form loads everything once and forks a process for every line on its standard input, a
JSON list [FOLDER, STAGE, NUMBER]; it answers with the exit code of that process, negative for a
signal.

FOLDER gets a `checkpoint`, a `model.tacit` and a `log`, to which every draw of noise and every use
of a release is added, with a fingerprint of its values, before the fit goes on.
"""

import hashlib
import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tacit
from tacit.engines.threads import ThreadEngine
from tacit.trusted import mechanism
from tacit.trusted.journal import Journal
from tests.conftest import ratings_for

CONFIG = tacit.FrankWolfe(rounds=4, item_means=0.2)

STAGES = (
    "before the sum",
    "after the sum",
    "noise drawn",
    "before the write",
    "half written",
    "written, not synced",
    "synced, not renamed",
    "renamed, folder not synced",
    "written",
    "used",
)
MODEL_STAGES = (
    "half written",
    "written, not synced",
    "synced, not renamed",
    "renamed, folder not synced",
)


class Killer:
    """Ends this process when a stage of a release is reached for the first time."""

    def __init__(self, log: Path, stage: str = "", number: int = 0) -> None:
        self.log, self.stage, self.number = log, stage, number
        self.now = 0
        self.armed = False

    def reach(self, stage: str) -> None:
        if stage == self.stage and self.now == self.number:
            os.kill(os.getpid(), signal.SIGKILL)

    def note(self, what: str, values: Any = None) -> None:
        sha = "" if values is None else hashlib.sha256(values.tobytes()).hexdigest()
        with self.log.open("a") as file:
            file.write(f"{what} {self.now} {sha}\n")


def wrap(owner: Any, name: str, make: Callable[[Any], Any]) -> None:
    setattr(owner, name, make(getattr(owner, name)))


def between(killer: Killer, before: str, after: str) -> Callable[[Any], Any]:
    """A function with a stage on either side."""

    def make(inner: Any) -> Any:
        def outer(*arguments: Any, **options: Any) -> Any:
            killer.reach(before)
            result = inner(*arguments, **options)
            killer.reach(after)
            return result

        return outer

    return make


def watch_releases(killer: Killer) -> None:
    """Note draws and uses, and count releases."""

    def released(inner: Any) -> Any:
        def outer(self: Any, name: str, statistic: Any) -> Any:
            killer.now += 1
            values = inner(self, name, statistic)
            killer.note("used", values)
            killer.reach("used")
            return values

        return outer

    def drawn(inner: Any) -> Any:
        def outer(*arguments: Any) -> Any:
            noise = inner(*arguments)
            killer.note("drawn")
            killer.reach("noise drawn")
            return noise

        return outer

    wrap(mechanism.Mechanism, "release", released)
    wrap(mechanism, "floor_normals", drawn)
    wrap(ThreadEngine, "sum", between(killer, "before the sum", "after the sum"))
    wrap(Journal, "write", between(killer, "before the write", "written"))


def watch_files(killer: Killer) -> None:
    """Stages of writing a file: of a release, or of the model once all releases are made."""

    class Halves:
        """A file that stops after the first half of what is written."""

        def __init__(self, file: Any) -> None:
            self._file = file

        def __enter__(self) -> "Halves":
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

        def write(self, content: bytes) -> None:
            self._file.write(content[: len(content) // 2])
            self._file.flush()
            killer.reach("half written")
            self._file.write(content[len(content) // 2 :])
            self._file.flush()
            killer.reach("written, not synced")

    wrap(os, "fdopen", lambda inner: lambda *arguments, **_: Halves(inner(*arguments)))
    wrap(Path, "replace", between(killer, "synced, not renamed", "renamed, folder not synced"))


def main(folder: Path, stage: str = "", number: int = 0) -> None:
    killer = Killer(folder / "log", stage, number)
    watch_releases(killer)
    watch_files(killer)
    model = tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder / "checkpoint")
    killer.now += 1
    model.save(folder / "model.tacit")


def serve() -> None:
    """Run a fit in a fork of this process for every line that is read."""
    for line in sys.stdin:
        child = os.fork()
        if child:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(1, f"{code}\n".encode())
            continue
        code = 1
        try:
            folder, stage, number = json.loads(line)
            main(Path(folder), stage, number)
            code = 0
        except BaseException:  # it must not go on as if it were the parent
            traceback.print_exc()
        finally:
            os._exit(code)


if __name__ == "__main__" and sys.argv[1:] == ["--serve"]:
    serve()
elif __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:3], *map(int, sys.argv[3:4]))
