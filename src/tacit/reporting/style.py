"""How methods are drawn in figures: in colours that colour-blind people can tell apart."""

from dataclasses import dataclass, replace
from typing import Any, Final

from tacit.reporting.drawing import INK, QUIET
from tacit.research.experiments.spec import Experiment, MethodChoice

# The colours of Okabe and Ito, without their yellow, which is too pale for a line.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7A5C99", "#8C6D31")
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)))
_BASELINE_DASHES: tuple[Any, ...] = ("--", "-.", (0, (3, 1.5, 1, 1.5, 1, 1.5)))
_YARDSTICK_DASHES: dict[str, Any] = {
    "user-mean": ":",
    "item-mean": (0, (1, 3)),
    "global-mean": (0, (1, 5)),
}


@dataclass(frozen=True)
class Line:
    """How a method is drawn, in every panel alike."""

    colour: str
    marker: str
    dashes: Any
    width: float = 1.5
    front: int = 3


_LEADER: Final = Line(INK, "o", "-", width=2.4, front=5)


def lines_of(experiment: Experiment) -> dict[str, Line]:
    """Give every method of an experiment its look: black for the one that ought to lead."""
    lines: dict[str, Line] = {}
    turn, bare = 0, 0
    for method in experiment.methods:
        if method.label == experiment.leader:
            lines[method.label] = _LEADER
        elif method.is_baseline:
            lines[method.label] = _baseline(method, bare)
            bare += not method.is_yardstick
        elif method.like in lines:
            forms = [one.like for one in experiment.methods if one.label in lines]
            lines[method.label] = _form_of(lines[method.like], forms.count(method.like) + 1)
        else:
            lines[method.label] = _coloured(turn)
            turn += 1
    return lines


def nth_line(turn: int) -> Line:
    """Give the methods of a figure without an experiment their look: the first is black."""
    return _LEADER if turn == 0 else _coloured(turn - 1)


def _coloured(turn: int) -> Line:
    """After eight methods colours come again, with other dashes and markers."""
    again, at = divmod(turn, len(_COLOURS))
    marker = _MARKERS[(at + 3 * again) % len(_MARKERS)]
    return Line(_COLOURS[at], marker, _DASHES[again % len(_DASHES)])


def _form_of(line: Line, number: int) -> Line:
    """Return the look of another form of a method: its colour, with other dashes and marker."""
    marker = _MARKERS[(_MARKERS.index(line.marker) + 3 * number) % len(_MARKERS)]
    return replace(line, marker=marker, dashes=_DASHES[number % len(_DASHES)])


def _baseline(method: MethodChoice, number: int) -> Line:
    """Yardsticks are dotted, a method without a private form is dashed; later ones dash-dotted."""
    usual = _BASELINE_DASHES[number % len(_BASELINE_DASHES)]
    dashes = _YARDSTICK_DASHES.get(method.algorithm, usual)
    return Line(QUIET if method.is_yardstick else INK, "", dashes, width=1.2, front=2)
