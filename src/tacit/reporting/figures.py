"""Figures of an experiment: one panel a dataset, or one of growth. Needs matplotlib."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.reporting.drawing import (
    ENDINGS,
    GRID,
    INK,
    QUIET,
    calm_style,
    check_matplotlib,
    save_figure,
)
from tacit.reporting.style import Line, lines_of
from tacit.research.experiments.guides import BOUNDS
from tacit.research.experiments.spec import MEASURES, DatasetChoice, Experiment, MethodChoice
from tacit.research.experiments.summary import Point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_COLUMNS = 3
_PANEL = (3.6, 3.0)
_ALONE = (6.4, 4.2)
_BEYOND = 2.2  # how far right of the largest epsilon "no privacy" stands
_LONG = 1000.0  # from which on only powers of ten have their number
_STEEP = 6.0  # largest over smallest value from which on the axis is logarithmic
_ROOM_ABOVE = 1.12  # times the user mean: what is worse leaves the panel
_ROOM_BELOW = 10.0  # part of the least private error: what is less without privacy leaves the panel
_LEGEND_WIDTH = 2.15  # inches a column
_LEGEND_ROW = 0.18  # inches that each row beyond the usual ones adds to the height
_USUAL_ROWS = 4


def draw(experiment: Experiment, points: Sequence[Point], folder: Path) -> list[Path]:
    """Draw an experiment as SVG and as PNG; return the files, none if there is nothing to draw."""
    drawn = [point for point in points if point.values]
    if not drawn:
        return []
    check_matplotlib()
    with calm_style():
        figure, panels = _canvas(experiment, drawn)
        lines = lines_of(experiment)
        if experiment.axis == "epsilon":
            for axes, dataset in zip(panels, _shown(experiment, drawn), strict=True):
                _draw_panel(axes, experiment, dataset, drawn, lines)
        else:
            _draw_growth(panels[0], experiment, drawn, lines)
        _legend(figure, panels, [method.label for method in experiment.methods])
        figure.suptitle(experiment.title, fontsize=11, x=0.01, ha="left")
        files = [folder / f"{experiment.name}{ending}" for ending in ENDINGS]
        for file in files:
            save_figure(figure, file)
        return files


def _shown(experiment: Experiment, points: Sequence[Point]) -> list[DatasetChoice]:
    """Return the datasets that anything is known of."""
    known = [point.cell.dataset for point in points]
    return [dataset for dataset in experiment.datasets if dataset in known]


def _canvas(experiment: Experiment, points: Sequence[Point]) -> tuple["Figure", list["Axes"]]:
    """Return a figure with as many panels as there are datasets."""
    from matplotlib.figure import Figure

    count = len(_shown(experiment, points)) if experiment.axis == "epsilon" else 1
    columns = min(count, _COLUMNS)
    rows = math.ceil(count / columns)
    wide, high = _ALONE if count == 1 else (_PANEL[0] * columns, _PANEL[1] * rows)
    figure = Figure(figsize=(wide, high + 0.9), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1, wspace=0.03, hspace=0.04)  # type: ignore[union-attr,call-arg]
    grid = figure.subplots(rows, columns, squeeze=False)
    panels: list[Axes] = list(grid.flat)
    for empty in panels[count:]:
        empty.set_axis_off()
    return figure, panels[:count]


def _draw_panel(
    axes: "Axes",
    experiment: Experiment,
    dataset: DatasetChoice,
    points: Sequence[Point],
    lines: dict[str, Line],
) -> None:
    """Draw the measure against epsilon; what has no privacy stands at the right."""
    here = [point for point in points if point.cell.dataset == dataset]
    finite = [p.cell.epsilon for p in here if p.cell.epsilon and math.isfinite(p.cell.epsilon)]
    largest = max(finite, default=1.0)
    beyond = largest * _BEYOND
    for method in experiment.methods:
        mine = [point for point in here if point.cell.method == method]
        if not mine:
            continue
        if method.is_baseline:
            _across(axes, mine[0], lines[method.label])
        else:
            _curve(axes, method, mine, lines[method.label], beyond)
    _epsilon_axis(axes, sorted(set(finite)), beyond, any(_is_free(point) for point in here))
    _value_axis(axes, here, experiment.measure in ("rmse", "mae"))
    axes.set_title(dataset.label)
    axes.set_ylabel(MEASURES[experiment.measure])


def _is_free(point: Point) -> bool:
    return point.cell.epsilon is not None and math.isinf(point.cell.epsilon)


def _across(axes: "Axes", point: Point, line: Line) -> None:
    """Draw something that no epsilon changes."""
    look: dict[str, Any] = {"color": line.colour, "linestyle": line.dashes}
    label = point.cell.method.label
    axes.axhline(point.mean, linewidth=line.width, zorder=line.front, label=label, **look)


def _curve(
    axes: "Axes", method: MethodChoice, points: Sequence[Point], line: Line, beyond: float
) -> None:
    """Draw a method's private values as a line, and its form without privacy as a marker."""
    label = f"{method.label} †" if method.grid else method.label
    look: dict[str, Any] = {"color": line.colour, "capsize": 2, "elinewidth": 1}
    look |= {"marker": line.marker, "markersize": 4.2, "linewidth": line.width}
    look |= {"zorder": line.front}
    private = [p for p in points if p.cell.epsilon is not None and not _is_free(p)]
    if private:
        places = [point.cell.epsilon or 0.0 for point in private]
        _bars(axes, places, private, look | {"linestyle": line.dashes, "label": label})
    free = [point for point in points if _is_free(point)]
    if free:
        hollow = {"linestyle": "none", "markerfacecolor": "white"}
        _bars(axes, [beyond], free, look | hollow | ({} if private else {"label": label}))


def _bars(axes: "Axes", places: Sequence[float], points: Sequence[Point], look: Any) -> None:
    means, errors = [point.mean for point in points], [point.error for point in points]
    axes.errorbar(places, means, yerr=errors, **look)


def _epsilon_axis(axes: "Axes", epsilons: Sequence[float], beyond: float, free: bool) -> None:
    """Put a tick at every epsilon, and one at the right for no privacy."""
    from matplotlib.ticker import FixedLocator, NullLocator

    axes.set_xscale("log")
    ticks = [*epsilons, *([beyond] if free else [])]
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([f"{epsilon:g}" for epsilon in epsilons] + ["none"] * free)
    if ticks:
        axes.set_xlim(min(ticks) / 1.2, max(ticks) * 1.25)
    if free and epsilons:
        axes.axvline(math.sqrt(max(epsilons) * beyond), color=GRID, linewidth=3, zorder=0)
    axes.set_xlabel("epsilon (none: no privacy)" if free else "epsilon")
    _quiet(axes)


def _value_axis(axes: "Axes", points: Sequence[Point], errors: bool) -> None:
    """Choose the height: logarithmic for steep errors; what is far from the others leaves."""
    means = [point.mean for point in points]
    free = [p.mean for p in points if p.cell.method.algorithm == "user-mean"]
    high = max(means)
    if free and high > _ROOM_ABOVE * max(free):
        high = max(free) * _ROOM_ABOVE
        _count_those_outside(axes, [p.cell.method.label for p in points if p.mean > high], "above")
    least = min((point.mean for point in points if not _is_free(point)), default=0.0)
    below = [p for p in points if errors and _is_free(p) and p.mean < least / _ROOM_BELOW]
    if below:
        _count_those_outside(axes, [point.cell.method.label for point in below], "below")
    low = min(point.mean - point.error for point in points if point not in below)
    if errors and low > 0 and high / low > _STEEP:
        axes.set_yscale("log")
        _plain_ticks(axes, high / low)
        axes.set_ylim(low / 1.25, high * 1.15)
        return
    room = 0.06 * (high - low or abs(high) or 1.0)
    axes.set_ylim(low - room, high + room)


def _count_those_outside(axes: "Axes", labels: Sequence[str], where: str) -> None:
    """Say below a panel how many methods have values that are too large or too small for it."""
    count = len(set(labels))
    text = "1 method also goes" if count == 1 else f"{count} methods also go"
    axes.set_xlabel(f"{axes.get_xlabel()}\n{text} {where} the panel", fontsize=8.5)


def _draw_growth(
    axes: "Axes", experiment: Experiment, points: Sequence[Point], lines: dict[str, Line]
) -> None:
    """Draw the measure against users or items, both logarithmic, with rates beside it."""
    for method in experiment.methods:
        for at, epsilon in enumerate(experiment.epsilons_of(method)):
            mine = [p for p in points if (p.cell.method, p.cell.epsilon) == (method, epsilon)]
            if mine:
                look = _growth_look(lines[method.label], mine[0], at)
                _bars(axes, [_size(experiment, point) for point in mine], mine, look)
    for guide in experiment.guides:
        _draw_guide(axes, experiment, guide.bound, [p for p in points if _of(p, guide.method)])
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_ticks(axes, 1.0)
    sizes = sorted({_size(experiment, point) for point in points})
    axes.set_xticks(sizes, [f"{size:,.0f}" for size in sizes])
    axes.minorticks_off()
    axes.set_xlabel(f"number of {experiment.axis}")
    axes.set_ylabel(MEASURES[experiment.measure])
    _quiet(axes)


def _size(experiment: Experiment, point: Point) -> float:
    return float(getattr(point.cell.dataset, experiment.axis))


def _of(point: Point, label: str) -> bool:
    finite = point.cell.epsilon is None or math.isfinite(point.cell.epsilon)
    return point.cell.method.label == label and finite


def _growth_look(line: Line, point: Point, turn: int) -> dict[str, Any]:
    """A method has its colour; a form without privacy is hollow and thin."""
    free = _is_free(point)
    several = "" if point.cell.epsilon is None else f", epsilon {point.cell.epsilon:g}"
    label = point.cell.method.label + (", no privacy" if free else several)
    look: dict[str, Any] = {"color": line.colour, "marker": line.marker or "x", "label": label}
    look |= {"markersize": 4.2, "capsize": 2, "elinewidth": 1, "zorder": line.front}
    look |= {"linewidth": 0.8 if free else line.width, "linestyle": "--" if turn else line.dashes}
    return look | ({"markerfacecolor": "white"} if free else {})


def _draw_guide(axes: "Axes", experiment: Experiment, bound: str, points: Sequence[Point]) -> None:
    """Draw a rate through the first point of its method."""
    if not points or points[0].cell.epsilon is None:
        return
    epsilon = points[0].cell.epsilon
    sizes = [_size(experiment, point) for point in points]
    rates = [BOUNDS[bound].at(p.cell.dataset.users, p.cell.dataset.items, epsilon) for p in points]
    scaled = [points[0].mean * rate / rates[0] for rate in rates]
    axes.plot(sizes, scaled, color=QUIET, linewidth=1, linestyle=":", zorder=1)
    place = {"xytext": (3, 0), "textcoords": "offset points", "va": "center", "clip_on": False}
    axes.annotate(BOUNDS[bound].title, (sizes[-1], scaled[-1]), fontsize=7.5, color=QUIET, **place)  # type: ignore[arg-type]


def _plain_ticks(axes: "Axes", ratio: float) -> None:
    """Write the numbers of a logarithmic axis as they are; fewer if it is long."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if ratio < _LONG else (1.0,)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _quiet(axes: "Axes") -> None:
    axes.grid(True, axis="y", which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)


def _legend(figure: "Figure", panels: Sequence["Axes"], order: Sequence[str]) -> None:
    """Put one legend for all panels below them, where it covers nothing."""
    found: dict[str, Any] = {}
    for axes in panels:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            found.setdefault(label, handle)
    places = {label: at for at, label in enumerate(order)}
    found = dict(sorted(found.items(), key=lambda one: _place(one[0], places)))
    width = max(_LEGEND_WIDTH, 0.85 + 0.068 * max(map(len, found)))
    columns = max(1, int(figure.get_figwidth() / width))
    rows = math.ceil(len(found) / columns)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * max(0, rows - _USUAL_ROWS))
    figure.legend(
        found.values(),
        found.keys(),
        loc="outside lower left",
        ncols=min(columns, len(found)),
        frameon=False,
        fontsize=8.5,
        labelcolor=INK,
        handlelength=3.4,
    )


def _place(label: str, places: Mapping[str, int]) -> int:
    """Return where a label belongs: as its method, which it begins with."""
    whole = label.removesuffix(" †")
    begun = [at for name, at in places.items() if whole.startswith(name)]
    return places.get(whole, min(begun, default=len(places)))
