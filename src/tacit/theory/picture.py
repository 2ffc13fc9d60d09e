"""A picture of a plan: bounds and noise against epsilon. Needs matplotlib."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tacit.budget import Neighbours
from tacit.durable import durable_file
from tacit.errors import ConfigError
from tacit.outputs import Kind, Output, check_replaceable
from tacit.theory.bounds import recommended_rounds
from tacit.theory.noise import compare_noise
from tacit.theory.plan import Plan, planned_bounds
from tacit.theory.problem import Problem

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["check_picture", "draw_plan"]

_ENDINGS = (".svg", ".png")
_INK, _QUIET, _FAINT, _GRID = "#2b2b2b", "#6f6f6f", "#a8a8a8", "#ececec"
_BLUE, _TEAL, _ORANGE = "#2f5d8a", "#3a8f7b", "#c8702a"
_POINTS = 60
_FEW_TICKS, _MANY_TICKS = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": _INK,
    "axes.edgecolor": _QUIET,
    "axes.labelcolor": _INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": _QUIET,
    "ytick.color": _QUIET,
    "svg.fonttype": "none",
    "svg.hashsalt": "tacit",
}


def check_picture(path: Path, *, overwrite: bool = False) -> None:
    """Refuse a picture that cannot be drawn, before anything is computed."""
    if path.suffix not in _ENDINGS:
        raise ConfigError(f"--plot {path}: expected a name that ends in .svg or .png")
    check_replaceable(Output("--plot", path, Kind.PICTURE), overwrite=overwrite)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ConfigError(
            '--plot needs matplotlib, which is not installed: pip install "tacit[figures]"'
        ) from None


def draw_plan(plan: Plan, path: Path, *, overwrite: bool = False) -> None:
    """Draw bounds (as RMSE) and noise against epsilon, on logarithmic axes."""
    check_picture(path, overwrite=overwrite)
    with _calm_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 4.8), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.04)  # type: ignore[union-attr,call-arg]
        left, right = figure.subplots(1, 2)
        epsilons = _epsilons(plan.problem)
        _draw_bounds(left, plan, epsilons)
        _draw_noise(right, plan, epsilons)
        _caption(figure, plan)
        _save(figure, path)


@contextmanager
def _calm_style() -> Iterator[None]:
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def _epsilons(problem: Problem) -> list[float]:
    """Return epsilons a factor of ten around the asked one, and at least from 0.1 to 5."""
    low = max(1e-9, min(0.1, problem.epsilon / 10))
    high = min(2 * math.log(1 / problem.delta), max(5.0, 10 * problem.epsilon))
    step = math.log(high / low) / (_POINTS - 1)
    return [min(high, low * math.exp(step * at)) for at in range(_POINTS)]


def _draw_bounds(axes: "Axes", plan: Plan, epsilons: list[float]) -> None:
    """Draw each bound as an RMSE, and the error of predicting nothing."""
    curves: list[list[float]] = [[], [], []]
    for epsilon in epsilons:
        problem = replace(plan.problem, epsilon=epsilon)
        bounds = planned_bounds(problem, recommended_rounds(problem), plan.neighbours)
        for curve, bound in zip(curves, bounds, strict=True):
            curve.append(bound.rmse)
    styles = ((_BLUE, "-"), (_BLUE, "--"), (_TEAL, "-"))
    for curve, bound, (colour, line) in zip(curves, plan.bounds, styles, strict=True):
        label = f"{bound.name}, {bound.place}"
        axes.plot(epsilons, curve, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes.axhline(
        plan.zero_rmse, color=_QUIET, linewidth=1, linestyle=":", label="predicting a user's mean"
    )
    axes.set_title("Bounds as RMSE: exact noise, hidden constants as 1")
    _finish(axes, plan)


def _draw_noise(axes: "Axes", plan: Plan, epsilons: list[float]) -> None:
    """Draw the noise sd of a round: the paper's, and the exact one for either relation."""
    problems = [replace(plan.problem, epsilon=epsilon) for epsilon in epsilons]
    found = {
        relation: [compare_noise(problem, plan.rounds, relation) for problem in problems]
        for relation in Neighbours
    }
    paper = [noise.paper for noise in found[Neighbours.REPLACE]]
    axes.plot(epsilons, paper, color=_ORANGE, linewidth=1.8, label="the paper's formula")
    styles = {Neighbours.REPLACE: (_BLUE, "-"), Neighbours.ADD_REMOVE: (_BLUE, "--")}
    for relation, noises in found.items():
        colour, line = styles[relation]
        exact = [noise.exact for noise in noises]
        label = f"exact, {relation.value}"
        axes.plot(epsilons, exact, color=colour, linestyle=line, linewidth=1.8, label=label)
    axes.set_title(f"Noise sd of a Frank-Wolfe round, T = {plan.rounds}")
    _finish(axes, plan)


def _finish(axes: "Axes", plan: Plan) -> None:
    """Give both panels the same axes, mark the asked epsilon, and add a legend."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("epsilon")
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_major_locator(LogLocator(subs=_MANY_TICKS if high < 10 * low else _FEW_TICKS))
        axis.set_major_formatter(FuncFormatter(_tick))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color=_GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)
    axes.axvline(plan.problem.epsilon, color=_FAINT, linewidth=1, zorder=1)
    axes.legend(
        frameon=False,
        fontsize=8,
        handlelength=1.7,
        columnspacing=1.2,
        ncols=2,
        loc="upper left",
        bbox_to_anchor=(-0.02, -0.15),
        borderaxespad=0,
    )


def _tick(value: float, _position: object) -> str:
    return f"{value:,.0f}" if 10 <= value < 1e9 else f"{value:g}"


def _caption(figure: "Figure", plan: Plan) -> None:
    problem = plan.problem
    figure.suptitle(
        f"{problem.users:,} users, {problem.items:,} items, "
        f"{problem.ratings / problem.users:,.0f} ratings a user, delta {problem.delta:g}, "
        f"{plan.neighbours.value}; the line marks epsilon {problem.epsilon:g}",
        fontsize=9.5,
        color=_QUIET,
    )


def _save(figure: "Figure", path: Path) -> None:
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with durable_file(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=metadata)
    except OSError as error:
        raise ConfigError(f"--plot {path} cannot be written: {error.strerror}") from None
