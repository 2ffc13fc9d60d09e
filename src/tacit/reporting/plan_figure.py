"""Pictures of plans: of one fit, and of refits under one budget. Need matplotlib."""

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tacit.accounting.budget import Neighbours, PrivacyBudget
from tacit.book.splits import PlannedRefit
from tacit.reporting.drawing import GRID, QUIET, calm_style, check_picture, save_figure
from tacit.research.theory.bounds import recommended_rounds
from tacit.research.theory.case import Case
from tacit.research.theory.expectation import Expectation
from tacit.research.theory.forecast import expected_of, forecast
from tacit.research.theory.noise import compare_noise
from tacit.research.theory.plan import Plan, planned_bounds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_FAINT = "#a8a8a8"
_BLUE, _TEAL, _ORANGE = "#2f5d8a", "#3a8f7b", "#c8702a"
_POINTS = 60
_FORECASTS = 13
_REFITS = 14
_OWN_MEAN, _BIASES = "user mean", "user and item bias, no noise"
_NO_NOISE = "Moments, no noise"
_LINES = ((QUIET, ":"), (_ORANGE, "--"), (_TEAL, "-"))
_FEW_TICKS, _MANY_TICKS = (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0)


def draw_plan(
    expected: Expectation, plan: Plan | None, path: Path, *, overwrite: bool = False
) -> None:
    """Draw expected RMSE against epsilon and users; below it, bounds and noise if they apply."""
    check_picture("--plot", path, overwrite=overwrite)
    with _new_figure(2 if plan else 1) as (figure, axes):
        case = expected.case
        epsilon = case.budget.epsilon if case.budget else math.nan
        _draw_by_epsilon(axes[0, 0], case, epsilon)
        _draw_by_users(axes[0, 1], case)
        if plan:
            epsilons = _epsilons(epsilon, plan.problem.delta)
            _draw_bounds(axes[1, 0], plan, epsilons)
            _draw_noise(axes[1, 1], plan, epsilons)
        _caption(figure, case)
        save_figure(figure, path)


def draw_lifetime(
    refits: Sequence[PlannedRefit], case: Case, path: Path, *, overwrite: bool = False
) -> None:
    """Draw the epsilon that is spent so far, and the RMSE of refits with and without memory."""
    check_picture("--plot", path, overwrite=overwrite)
    with _new_figure(1) as (figure, axes):
        numbers = [refit.number for refit in refits]
        left, right = axes[0]
        left.plot(numbers, [refit.spent_epsilon for refit in refits], color=_BLUE, label="spent")
        left.plot(
            numbers, [refit.epsilon for refit in refits], color=QUIET, ls=":", label="each refit"
        )
        left.set(title="epsilon", xlabel="refit", ylim=(0, None))
        left.legend(frameon=False)
        at = np.unique(np.geomspace(1, len(refits), _REFITS).round().astype(int))
        chosen = [refits[number - 1] for number in at]
        together = [expected_of(case, refit).rmse for refit in chosen]
        alone = [expected_of(case, refit, remembers=False).rmse for refit in chosen]
        right.plot(at, together, color=_BLUE, label="refits that remember")
        right.plot(at, alone, color=_ORANGE, ls="--", label="each by itself")
        right.axhline(forecast(case).rmse, color=QUIET, ls=":", label="one fit with all of it")
        right.set(title="expected RMSE (Moments)", xlabel="refit")
        right.legend(frameon=False)
        save_figure(figure, path)


def _draw_by_epsilon(axes: "Axes", case: Case, epsilon: float) -> None:
    """Draw the expected RMSE of Moments against epsilon."""
    budget = case.budget or PrivacyBudget(epsilon)
    epsilons = _epsilons(epsilon, budget.delta, _FORECASTS)
    cases = [replace(case, budget=replace(budget, epsilon=each)) for each in epsilons]
    free = forecast(replace(case, budget=None))
    lines = [(free.own_mean, _OWN_MEAN), (free.biases, _BIASES), (free.rmse, _NO_NOISE)]
    for (height, label), (colour, line) in zip(lines, _LINES, strict=True):
        axes.axhline(height, color=colour, linestyle=line, linewidth=1.2, label=label)
    _draw_forecast(axes, epsilons, cases)
    axes.set_title("Expected RMSE against epsilon")
    _finish(axes, "epsilon", epsilon)


def _draw_by_users(axes: "Axes", case: Case) -> None:
    """Draw the expected RMSE against the number of users, at the asked epsilon."""
    high, step = min(100 * case.users, 10**10), 10 ** (4 / (_FORECASTS - 1))
    low = max(case.users / 100, 10.0)
    users = [low * step**at for at in range(_FORECASTS) if low * step**at <= high]
    cases = [replace(case, users=round(each)) for each in users]
    free = [forecast(replace(each, budget=None)) for each in cases]
    curves = [[getattr(each, name) for each in free] for name in ("own_mean", "biases", "rmse")]
    labels = (_OWN_MEAN, _BIASES, _NO_NOISE)
    for curve, label, (colour, line) in zip(curves, labels, _LINES, strict=True):
        axes.plot(users, curve, color=colour, linestyle=line, linewidth=1.2, label=label)
    _draw_forecast(axes, users, cases)
    axes.set_title("Expected RMSE against users")
    _finish(axes, "users", case.users)


def _draw_forecast(axes: "Axes", places: list[float], cases: list[Case]) -> None:
    found = [forecast(each).rmse for each in cases]
    axes.plot(places, found, color=_BLUE, linewidth=2.2, label="Moments")


@contextmanager
def _new_figure(rows: int) -> "Iterator[tuple[Figure, Any]]":
    """Give a figure with so many rows of two empty panels."""
    with calm_style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(10, 4.6 * rows), layout="constrained")
        figure.get_layout_engine().set(w_pad=0.12, h_pad=0.1, wspace=0.04)  # type: ignore[union-attr,call-arg]
        yield figure, figure.subplots(rows, 2, squeeze=False)


def _epsilons(epsilon: float, delta: float, points: int = _POINTS) -> list[float]:
    """Return epsilons a factor of ten around the asked one, and at least from 0.1 to 5."""
    low = max(1e-9, min(0.1, epsilon / 10))
    high = max(min(2 * math.log(1 / delta), max(5.0, 10 * epsilon)), epsilon)
    step = math.log(high / low) / (points - 1)
    return [min(high, low * math.exp(step * at)) for at in range(points)]


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
        plan.zero_rmse, color=QUIET, linewidth=1, linestyle=":", label="predicting a user's mean"
    )
    axes.set_yscale("log")
    axes.set_title("Bounds as RMSE: exact noise, hidden constants as 1")
    _finish(axes, "epsilon", plan.problem.epsilon)


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
    axes.set_yscale("log")
    axes.set_title(f"Noise sd of a Frank-Wolfe round, T = {plan.rounds}")
    _finish(axes, "epsilon", plan.problem.epsilon)


def _finish(axes: "Axes", name: str, asked: float) -> None:
    """Mark what is asked for, and give a panel its axes, grid and legend."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    axes.set_xlabel(name)
    logarithmic = [axis for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"]
    for axis in logarithmic:
        low, high = axis.get_view_interval()
        decades = math.log10(high / low)
        ticks = _MANY_TICKS if decades < 1 else _FEW_TICKS if decades < 2.6 else (1.0,)
        axis.set_major_locator(LogLocator(subs=ticks))
        axis.set_major_formatter(FuncFormatter(_tick))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(True, which="major", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(which="both", length=0)
    axes.axvline(asked, color=_FAINT, linewidth=1, zorder=1)
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


def _caption(figure: "Figure", case: Case) -> None:
    budget = case.budget
    promise = f"epsilon {budget.epsilon:g}, delta {budget.delta:g}" if budget else "no noise"
    figure.suptitle(
        f"{case.users:,} users, {case.items:,} items, {case.per_user:,.0f} ratings a user, "
        f"{promise}; thin vertical lines mark what was asked for",
        fontsize=9.5,
        color=QUIET,
    )
