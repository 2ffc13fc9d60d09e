"""A figure of lists: recall against epsilon, with methods without privacy as lines across.

What is drawn is NOT PRIVATE: it is measured on new users' ratings. Needs matplotlib.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tacit.errors import ConfigError
from tacit.evaluation.new_users import Estimate
from tacit.reporting.drawing import GRID, INK, QUIET, calm_style, check_picture, save_figure
from tacit.reporting.style import Line, nth_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["ListPoint", "draw_lists"]

_BEYOND = 2.2  # how far right of the largest epsilon "no privacy" stands
_PEER_DASHES: tuple[Any, ...] = ("--", "-.", ":", (0, (1, 3)), (0, (8, 2)))


class ListPoint(NamedTuple):
    """The quality of a method's lists at one epsilon; None is without privacy."""

    epsilon: float | None
    quality: Estimate


def draw_lists(
    path: Path,
    curves: Mapping[str, Sequence[ListPoint]],
    peers: Mapping[str, float],
    title: str,
    *,
    overwrite: bool = False,
) -> None:
    """Draw recall@20 against epsilon: a curve a method, with its intervals, and a line a peer.

    The first curve is drawn in black; peers have no privacy.
    """
    check_picture("--figure", path, overwrite=overwrite)
    if not any(curves.values()):
        raise ConfigError("curves: there is no point to draw; give at least one")
    with calm_style():
        figure, axes = _canvas()
        for (label, height), dashes in zip(peers.items(), _dashes(len(peers)), strict=True):
            _across(axes, label, height, dashes)
        beyond = _BEYOND * max(_epsilons(curves), default=1.0)
        for turn, (label, points) in enumerate(curves.items()):
            _curve(axes, label, points, nth_line(turn), beyond)
        _axes(axes, curves, beyond)
        axes.set_title(title)
        save_figure(figure, path)


def _canvas() -> tuple["Figure", "Axes"]:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.6, 4.4), layout="constrained")
    return figure, figure.subplots()


def _dashes(count: int) -> list[Any]:
    return [_PEER_DASHES[at % len(_PEER_DASHES)] for at in range(count)]


def _epsilons(curves: Mapping[str, Sequence[ListPoint]]) -> list[float]:
    """Return every epsilon that is there, once."""
    found = {p.epsilon for points in curves.values() for p in points if p.epsilon is not None}
    return sorted(found)


def _across(axes: "Axes", label: str, height: float, dashes: Any) -> None:
    """Draw a method without privacy, which no epsilon changes."""
    look = {"color": QUIET, "linewidth": 1.2, "linestyle": dashes, "zorder": 2}
    axes.axhline(height, label=f"{label}, no privacy", **look)


def _curve(
    axes: "Axes", label: str, points: Sequence[ListPoint], line: Line, beyond: float
) -> None:
    """Draw private points as a line, and the form without privacy as a hollow marker."""
    look: dict[str, Any] = {"color": line.colour, "marker": line.marker, "markersize": 4.5}
    look |= {"linewidth": line.width, "capsize": 2, "elinewidth": 1, "zorder": line.front}
    private = [p for p in points if p.epsilon is not None]
    free = [p for p in points if p.epsilon is None]
    if private:
        _bars(axes, [p.epsilon or 0.0 for p in private], private, look | {"label": label})
    if free:
        hollow = {"linestyle": "none", "markerfacecolor": "white"}
        named = {} if private else {"label": label}
        _bars(axes, [beyond] * len(free), free, look | hollow | named)


def _bars(axes: "Axes", places: list[float], points: Sequence[ListPoint], look: Any) -> None:
    means = [p.quality.mean for p in points]
    below = [p.quality.mean - p.quality.low for p in points]
    above = [p.quality.high - p.quality.mean for p in points]
    axes.errorbar(places, means, yerr=(below, above), **look)


def _axes(axes: "Axes", curves: Mapping[str, Sequence[ListPoint]], beyond: float) -> None:
    """Put a tick at every epsilon and one for no privacy; recall begins at 0."""
    from matplotlib.ticker import FixedLocator, NullLocator

    epsilons = _epsilons(curves)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([*epsilons, beyond]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([*(f"{epsilon:g}" for epsilon in epsilons), "none"])
    axes.set_xlim(min([*epsilons, beyond]) / 1.2, beyond * 1.25)
    axes.set_ylim(bottom=0.0)
    axes.set_xlabel("epsilon (none: no privacy)")
    axes.set_ylabel("recall@20 of new users (NOT PRIVATE)")
    axes.grid(True, axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)
    axes.figure.legend(loc="outside right upper", frameon=False, fontsize=8.5, labelcolor=INK)
