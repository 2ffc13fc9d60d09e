"""A picture of the reconstruction attack: what someone who knows everyone else reads about Ada.

Rows of coloured cells, one for each of her ratings: the truth, what is read off a model without
privacy, what is read off a private one, and what is guessed with no model at all. Needs matplotlib.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.audit.population import Law, Levels
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.reconstruction import Reading, read_rows, steps_of_reading
from tacit.audit.target import Target
from tacit.reporting.drawing import ENDINGS, INK, QUIET, calm_style, check_picture, save_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DISHES = ("lentil soup", "plum cake", "rye bread", "fish stew", "apple pie", "spinach")
# From blue (1) to orange (5), for all eyes; the first is for what was not rated.
_FILLS = ("#f1f1ef", "#2b6ca3", "#8db9d8", "#efe6d2", "#eeaa6d", "#c4591b")
_LIGHT_ON = (1, 5)  # levels whose colour asks for light digits
_RIGHT: Final = "#1d7a46"


@dataclass(frozen=True)
class _Line:
    """A row of cells: its words, what is in it, and the average share; None: the truth itself."""

    title: str
    words: str
    row: Levels
    average: float | None


def files_of_picture(path: Path) -> list[Path]:
    """The files that are drawn: the given one, or two for a name with no ending."""
    return [path] if path.suffix else [path.with_suffix(ending) for ending in ENDINGS]


def draw(
    path: Path,
    subject: Target,
    seed: int = 0,
    people: int = 40,
    *,
    overwrite: bool = False,
    steps: Steps = NO_PROGRESS,
) -> None:
    """Read synthetic people's ratings with and without privacy, and draw one who is typical.

    A path with no ending gives two files, .svg and .png.
    """
    files = files_of_picture(path)
    for file in files:
        check_picture("picture", file, overwrite=overwrite)
    steps.plan(2 * steps_of_reading(people))
    free, law = read_rows(subject, None, people, seed, steps)
    private, _ = read_rows(subject, subject.budget, people, seed, steps)
    lines = _lines(free, private, law, subject.budget.epsilon)
    with calm_style():
        figure = _drawn(lines, people)
        for file in files:
            save_figure(figure, file)


def _lines(free: Reading, private: Reading, law: Law, epsilon: float) -> list[_Line]:
    """Return the rows of the picture, for the person who is closest to the average in all."""
    blind = Reading(free.truth, np.tile(law.best_guess, (len(free.truth), 1)))
    away = sum(
        np.abs(np.mean(each.truth == each.read, axis=1) - each.share)
        for each in (free, private, blind)
    )
    ada = int(np.argmin(away))
    return [
        _Line("Ada's ratings", "what she told the service", free.truth[ada], None),
        _Line("Without privacy", "read off an exact model", free.read[ada], free.share),
        _Line("With privacy", f"the same, epsilon {epsilon:g}", private.read[ada], private.share),
        _Line("No model at all", "guessed from what people like", law.best_guess, blind.share),
    ]


def _drawn(lines: list[_Line], people: int) -> "Figure":
    """Draw the rows, from the top down."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.2, 4.7))
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_xlim(0, 9.2)
    axes.set_ylim(4.7, 0)
    axes.set_axis_off()
    axes.text(0.3, 0.42, "What can someone who knows everyone else read about Ada?", size=14)
    _heads(axes, people)
    for at, line in enumerate(lines):
        _row(axes, line, lines[0].row, 1.5 + 0.68 * at + (0.12 if at else 0.0))
    _legend(axes, 4.45)
    return figure


def _heads(axes: "Axes", people: int) -> None:
    """Name the dishes, and what is counted at the right."""
    for at, dish in enumerate(_DISHES):
        axes.text(3.05 + 0.74 * at, 1.05, dish, size=8.5, color=QUIET, ha="center")
    axes.text(7.95, 0.85, "read rightly", size=8.5, color=QUIET, ha="center")
    axes.text(7.62, 1.05, "Ada", size=8.5, color=QUIET, ha="center")
    axes.text(8.42, 1.05, f"{people} people", size=8.5, color=QUIET, ha="center")


def _row(axes: "Axes", line: _Line, truth: Levels, top: float) -> None:
    """Draw one row: its words, its cells, and how much of it is right."""
    axes.text(0.3, top, line.title, size=11, weight="bold", va="center")
    axes.text(0.3, top + 0.2, line.words, size=8.5, color=QUIET, va="center")
    for at, level in enumerate(line.row):
        compared = None if line.average is None else bool(level == truth[at])
        _cell(axes, (3.05 + 0.74 * at, top + 0.06), int(level), compared)
    if line.average is not None:
        right = int(np.sum(line.row == truth))
        look = {"size": 11, "va": "center", "ha": "center"}
        axes.text(7.62, top + 0.07, f"{right} of {truth.size}", **look)  # type: ignore[arg-type]
        axes.text(8.42, top + 0.07, f"{100 * line.average:.0f} %", **look)  # type: ignore[arg-type]


def _cell(axes: "Axes", middle: tuple[float, float], level: int, right: bool | None) -> None:
    """Draw one rating; a frame marks what was read rightly, what is wrong fades."""
    from matplotlib.patches import FancyBboxPatch

    across, down = middle
    frame = _RIGHT if right else "none"
    box = FancyBboxPatch(
        (across - 0.3, down - 0.2), 0.6, 0.4, boxstyle="round,pad=0,rounding_size=0.06",
        facecolor=_FILLS[level], edgecolor=frame, linewidth=2.2,
        alpha=0.35 if right is False else 1.0,
    )  # fmt: skip
    axes.add_patch(box)
    ink = "white" if level in _LIGHT_ON and right is not False else INK
    text = f"{level}" if level else "–"
    axes.text(across, down + 0.01, text, size=12, color=ink, ha="center", va="center")


def _legend(axes: "Axes", down: float) -> None:
    axes.text(
        0.3, down,
        "1: poor, 5: great, –: not rated. Green frame: read rightly. Pale: wrong. "
        "Everyone is synthetic; Ada is the person closest to the averages.",
        size=8.5, color=QUIET, va="center",
    )  # fmt: skip
