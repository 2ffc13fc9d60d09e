"""Work that is done in forks of this process, one or a few at a time, each with an end."""

import os
import signal
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TypeVar

from tests.mutants.mutant import ROOT
from tests.mutants.run import forked

PLACE = ROOT / "build" / "mutants"
WORKERS = int(os.environ.get("WORKERS", os.cpu_count() or 1))
LONGEST_WAIT = 300.0  # by the clock, for a mutant that waits for nothing; a busy machine is slow
LONGEST_SLEEP = 10.0  # by the clock, of all threads of a process
Task = TypeVar("Task")


def in_forks(
    tasks: Iterable[Task], work: Callable[[Task], None], longest: float = LONGEST_WAIT
) -> Iterator[tuple[Task, int, str]]:
    """Do each task in a fork, some at a time; yield it, its exit code, and the test that failed."""
    running: dict[int, tuple[Task, float]] = {}
    waits: dict[int, Wait] = {}
    waiting = iter(tasks)
    while True:
        for task in islice(waiting, WORKERS - len(running)):
            child = forked(PLACE / "fork.log", lambda task=task: work(task))  # type: ignore[misc]
            running[child] = task, time.monotonic() + longest
            waits[child] = Wait(child)
        if not running:
            return
        time.sleep(0.005)
        for child, (task, end) in list(running.items()):
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                del running[child]
                yield task, os.waitstatus_to_exitcode(status), _read(by_of(child))
            elif time.monotonic() > end or waits[child].is_long():
                os.kill(child, signal.SIGKILL)


class Wait:
    """Notices a process that has done nothing at all for a while: it waits for what a fork lacks.

    One that is merely slow on a busy machine is ready to run, and is left alone.
    """

    def __init__(self, process: int) -> None:
        self._tasks = Path(f"/proc/{process}/task")
        self._looked = self._busy = time.monotonic()

    def is_long(self) -> bool:
        now = time.monotonic()
        if now - self._looked < 1.0 or not self._tasks.exists():
            return False
        self._looked = now
        with suppress(OSError):
            states = [_read_state(each / "stat") for each in self._tasks.iterdir()]
            if set(states) - {"S"}:
                self._busy = now
        return now - self._busy > LONGEST_SLEEP


def _read_state(stat: Path) -> str:
    return stat.read_text().rpartition(")")[2].split()[0]


def by_of(process: int | None = None) -> Path:
    """Where a fork leaves the name of the test that failed."""
    return PLACE / f"by-{process or os.getpid()}"


def _read(path: Path) -> str:
    text = path.read_text() if path.exists() else ""
    path.unlink(missing_ok=True)
    return text
