"""How far a command is, and how long it may still take; nothing of it is computed from ratings.

Steps are releases, fits or attacks, all of them planned in advance. Time is not protected
(docs/limits.md). What is shown goes to a terminal on stderr, and nowhere else.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

if TYPE_CHECKING:
    from tacit.engines import Engine
    from tacit.models import Model

_OVERRUN = 0.3  # a step that takes longer than expected takes this part of its time more
_QUIET = [False]
_COMPILING = "the first time that a method runs on a machine its loops are compiled: up to a minute"
_SLOW = 8.0  # seconds of one step after which that is said


def _set_quiet(value: bool) -> bool:
    _QUIET[0] = value
    return value


Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", callback=_set_quiet, help="Print only errors, notes and JSON."),
]
"""A verb that has this option need not look at it: `say` and the bars below do."""


def is_quiet() -> bool:
    """Whether this command was asked to be quiet."""
    return _QUIET[0]


def reset_quiet() -> None:
    """Forget what an earlier command of this process was asked."""
    _QUIET[0] = False


def say(text: str = "") -> None:
    """Print for a person, unless she asked for quiet."""
    if not is_quiet():
        typer.echo(text)


class Pace:
    """How much of some steps is done and how long the rest takes, by the steps so far.

    Within a step the share moves on with time. A step that takes longer than those before it
    raises the time that is left, instead of leaving it at a second.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with no step planned."""
        self._clock = clock
        self._began = self._last = clock()
        self.done, self.planned, self.within = 0, 0, 0.0

    def update(self, done: int, planned: int, within: float = 0.0) -> None:
        """Take note of how many steps are done, of how many, and of the share of the next one."""
        if done != self.done:
            self._last = self._clock()
        self.done, self.planned, self.within = done, planned, within

    @property
    def seconds(self) -> float:
        """How long it has taken so far."""
        return self._clock() - self._began

    @property
    def waiting(self) -> float:
        """How long the step has taken that is at work."""
        return self._clock() - self._last

    def _each(self) -> float:
        """The seconds a step is expected to take; NaN while nothing tells."""
        return (self._last - self._began) / self.done if self.done else math.nan

    def share(self) -> float | None:
        """Return the part that is done, from 0 to 1; None while nothing tells."""
        if not self.planned or not self.done + self.within:
            return None
        part = self.waiting / max(self._each(), 1e-6)
        # Where nobody tells: half of it when it has taken what was expected.
        within = self.within or part / (1 + part)
        return min(1.0, (self.done + within) / self.planned)

    def left(self) -> float | None:
        """Return the seconds that are left; None while nothing tells."""
        if self.planned and self.within:
            done = self.done + self.within
            return self.seconds * max(self.planned - done, 0.0) / done
        if not self.planned or not self.done:
            return None
        rest = self.planned - self.done
        each, waiting = self._each(), self.waiting
        if rest <= 0:
            return max(each - waiting, _OVERRUN * waiting)
        slower = (self._last - self._began + waiting) / (self.done + 1)
        return max(each - waiting, _OVERRUN * waiting) + (rest - 1) * max(each, slower)

    def text(self) -> str:
        """Say the time that it took, and what is left."""
        left = self.left()
        told = "" if left is None else f", about {duration(left)} left"
        return f"{duration(self.seconds)}{told}"


def duration(seconds: float) -> str:
    """Write seconds as a person says them.

    >>> duration(0.2), duration(75), duration(4000)
    ('1 s', '1 min 15 s', '1 h 06 min')
    """
    whole = max(1, math.ceil(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


class _Board:
    """What is shown: a line for every stage that has begun."""

    def __init__(self) -> None:
        self.paces: dict[str, Pace] = {}

    def __rich__(self) -> Any:
        from rich.console import Group
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        grid = Table.grid(padding=(0, 1))
        for name, pace in self.paces.items():
            share = pace.share()
            bar = ProgressBar(
                total=None if share is None else 1.0,
                completed=share or 0.0,
                width=30,
                pulse=share is None,
                animation_time=pace.seconds,
            )
            count = f"{pace.done}/{pace.planned}" if pace.planned else ""
            grid.add_row(Text(name), bar, Text(count), Text(pace.text()))
        last = next(reversed(self.paces.values()), None)
        if last is not None and last.waiting > _SLOW:
            return Group(grid, Text(_COMPILING, style="dim"))
        return grid


class Tell(Protocol):
    """Who is told (stage, steps done, steps in all, share of the step that is at work).

    (stage, 0, 0) where nobody knows how many steps there are.
    """

    def __call__(self, stage: str, done: int, planned: int, within: float = 0.0) -> None:
        """Take note of it."""
        ...


@contextmanager
def stages() -> Iterator[Tell]:
    """Show a line for each stage that tells how far it is; yield who is told."""
    from rich.console import Console
    from rich.live import Live

    console, board = Console(stderr=True), _Board()
    shown = console.is_terminal and not is_quiet()
    live = Live(board, console=console, transient=True, refresh_per_second=4)

    def tell(stage: str, done: int, planned: int, within: float = 0.0) -> None:
        board.paces.setdefault(stage, Pace()).update(done, planned, within)
        if shown and done == 0:
            live.refresh()

    with live if shown else nullcontext():
        yield tell


@contextmanager
def status(what: str) -> Iterator[None]:
    """Show what is at work, and for how long, where nothing counts steps."""
    with stages() as tell:
        tell(what, 0, 0)
        yield


def with_bar(
    fit: "Callable[[Callable[[int, int], None]], Model]", engine: "Engine | None" = None
) -> "Model":
    """Fit with a bar that counts releases, which are planned in advance and reveal nothing.

    What is worked out after the last release counts as one more step. An engine that streams a
    store tells how much of a sum is done.
    """
    with stages() as tell:
        steps = 0, 0
        tell("releases", *steps)

        def progress(done: int, planned: int) -> None:
            nonlocal steps
            steps = done, planned + 1
            tell("releases", *steps)

        if engine is not None and hasattr(engine, "progress"):
            engine.progress = lambda share: tell("releases", *steps, share)
        return fit(progress)
