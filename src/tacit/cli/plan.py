"""tacit plan: what to expect of a fit, before any budget is spent."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, OptionGroup, show_json

if TYPE_CHECKING:
    from tacit.research.experiments.simulated import Simulated
    from tacit.research.theory import Case, Plan


@dataclass(frozen=True)
class Guesses(OptionGroup):
    """What is assumed of the ratings: public guesses, `Tastes.usual` where none is given."""

    item_sd: Annotated[
        float | None, typer.Option(help="Guess: sd of item effects (0.11 of the range).")
    ] = None
    user_sd: Annotated[
        float | None, typer.Option(help="Guess: sd of user biases (0.1 of the range).")
    ] = None
    noise_sd: Annotated[
        float | None, typer.Option(help="Guess: sd of the residual noise (0.19 of the range).")
    ] = None
    factors: Annotated[int | None, typer.Option(help="Guess: latent factors (12).")] = None
    factor_share: Annotated[
        float | None,
        typer.Option(help="Guess: share of the variance beyond biases that they explain (0.25)."),
    ] = None
    factor_decay: Annotated[
        float | None, typer.Option(help="Guess: ratio of variances of successive factors (0.75).")
    ] = None
    skew: Annotated[
        float | None,
        typer.Option(help="Guess: popularity falls with rank to this power (0.8); 0: all alike."),
    ] = None
    activity_spread: Annotated[
        float | None, typer.Option(help="Guess: sd of log(number of ratings of a user) (0.6).")
    ] = None


@dataclass(frozen=True)
class Bounds(OptionGroup):
    """What the paper's bounds need besides."""

    nuclear_norm: Annotated[
        float | None, typer.Option(help="For the paper's bounds: k; by the rule of a fit.")
    ] = None
    row_norm: Annotated[
        float | None, typer.Option(help="For the paper's bounds: L; by the rule of a fit.")
    ] = None
    rank: Annotated[int, typer.Option(help="For SVD's bound: r, rank of the hidden matrix.")] = 1
    incoherence: Annotated[
        float, typer.Option(help="For SVD's bound: mu, from 1 (even) to users/rank.")
    ] = 1.0


def run(
    *,
    users: Annotated[int, typer.Option(help="How many users (m).")],
    items: Annotated[int, typer.Option(help="How many items (n).")],
    epsilon: Annotated[
        float, typer.Option(help="The privacy budget epsilon; smaller is more private.")
    ],
    delta: Annotated[
        float, typer.Option(help="The probability that epsilon may be exceeded.")
    ] = 1e-6,
    per_user: Annotated[int, typer.Option("--per-user", help="Ratings per user, on average.")] = 80,
    rating_range: Annotated[
        tuple[float, float], typer.Option(help="The public range of ratings.")
    ] = (-1.0, 1.0),
    neighbours: Annotated[str, typer.Option(help="replace or add_remove.")] = "replace",
    simulate: Annotated[
        str | None,
        typer.Option(
            help="Also fit synthetic ratings of this size and measure: popular, few, wide, sparse "
            "or missing-not-at-random.",
        ),
    ] = None,
    guesses: Guesses,
    bounds: Bounds,
    tables: Annotated[
        bool, typer.Option("--tables", help="Show the paper's two comparison tables too.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Where a picture goes (.svg or .png).")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """See what to expect of a fit. RMSE, users needed and bounds, from public numbers only."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.cli.planned import Shown, show
    from tacit.reporting.drawing import check_picture
    from tacit.reporting.plan_figure import draw_plan
    from tacit.research.experiments.simulated import check_simulation
    from tacit.research.theory import Case, Tastes, expect
    from tacit.research.theory.problem import check_counts, check_range

    if plot:
        check_picture("--plot", plot, overwrite=force)
    check_counts(users=users, items=items, per_user=per_user)
    check_range(rating_range)
    case = Case(
        users=users,
        items=items,
        per_user=min(per_user, items),
        rating_range=rating_range,
        budget=PrivacyBudget(epsilon, delta, neighbours),  # type: ignore[arg-type]
        tastes=Tastes.usual(rating_range, **asdict(guesses)),
    )
    if simulate:
        check_simulation(case, simulate)
    plan, reason = _bounds(case, asdict(bounds))
    expected = expect(case)
    simulated = _simulated(case, simulate) if simulate else None
    if plot:
        draw_plan(expected, plan, plot, overwrite=force)
    if as_json:
        show_json(_json(expected.to_json(), plan, reason, simulated))
        return
    norms = {"nuclear_norm": bounds.nuclear_norm, "row_norm": bounds.row_norm}
    show(Shown(expected, plan, reason, simulated, norms, tables))
    if plot:
        typer.echo(f"\nwrote {plot}")


def _bounds(case: "Case", settings: dict[str, Any]) -> "tuple[Plan | None, str | None]":
    """Return the paper's bounds, or why they do not apply."""
    from tacit.research.theory import Problem, make_plan
    from tacit.research.theory.problem import out_of_scope

    budget = case.budget
    if budget is None:
        return None, "without a budget there is no noise to bound"
    promise = {"epsilon": budget.epsilon, "delta": budget.delta}
    reason = out_of_scope(case.users, case.items, budget.epsilon, budget.delta)
    if reason:
        return None, reason
    problem = Problem.by_rule(
        users=case.users,
        items=case.items,
        per_user=round(case.per_user),
        rating_range=case.rating_range,
        **promise,
        **settings,
    )
    return make_plan(problem, budget.neighbours), None


def _simulated(case: "Case", family: str) -> "Simulated":
    """Fit synthetic ratings, and show how far it is."""
    from rich.console import Console

    from tacit.research.experiments.simulated import simulate

    with Console(stderr=True).status("simulation") as status:
        return simulate(case, family, progress=lambda step: status.update(f"simulation: {step}"))


def _json(
    expected: dict[str, Any],
    plan: "Plan | None",
    reason: str | None,
    simulated: "Simulated | None",
) -> dict[str, Any]:
    """Return everything with stable keys; what does not apply is null."""
    from tacit.research.theory.plan import PLAN_KEYS

    return {
        "expected": expected,
        "simulated": simulated.to_json() if simulated else None,
        "bounds_do_not_apply": reason,
        **(plan.to_json() if plan else dict.fromkeys(PLAN_KEYS)),
    }
