"""tacit plan: what the theory promises, before any budget is spent."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AsJson, Force, show_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tacit.theory import Plan

__all__ = ["run"]


def run(
    users: Annotated[int, typer.Option(help="How many users (m).")],
    items: Annotated[int, typer.Option(help="How many items (n).")],
    epsilon: Annotated[float, typer.Option(help="The privacy loss that may not be exceeded.")],
    delta: Annotated[float, typer.Option(help="... except with this probability.")] = 1e-6,
    per_user: Annotated[int, typer.Option("--per-user", help="Ratings of a user that count.")] = 80,
    rating_range: Annotated[
        tuple[float, float], typer.Option(help="LO HI: the public range of ratings.")
    ] = (-1.0, 1.0),
    nuclear_norm: Annotated[
        float | None, typer.Option(help="k; by the rule of a fit if left out.")
    ] = None,
    row_norm: Annotated[
        float | None, typer.Option(help="L; by the rule of a fit if left out.")
    ] = None,
    rank: Annotated[int, typer.Option(help="r of the hidden matrix, for SVD.")] = 1,
    incoherence: Annotated[
        float, typer.Option(help="mu of the hidden matrix, for SVD: 1 (even) to users/rank.")
    ] = 1.0,
    neighbours: Annotated[str, typer.Option(help="replace or add_remove.")] = "replace",
    tables: Annotated[
        bool, typer.Option("--tables", help="Show the paper's two comparison tables too.")
    ] = False,
    plot: Annotated[Path | None, typer.Option(help="Where a picture goes (.svg or .png).")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """See what the theory promises. Rounds, noise and error bounds, from public numbers only."""
    from tacit.budget import PrivacyBudget
    from tacit.theory import Problem, make_plan
    from tacit.theory.picture import check_picture, draw_plan

    if plot:
        check_picture(plot, overwrite=force)
    relation = PrivacyBudget(epsilon, delta, neighbours).neighbours  # type: ignore[arg-type]
    problem = Problem.by_rule(
        users=users,
        items=items,
        epsilon=epsilon,
        delta=delta,
        per_user=per_user,
        rating_range=rating_range,
        nuclear_norm=nuclear_norm,
        row_norm=row_norm,
        rank=rank,
        incoherence=incoherence,
    )
    plan = make_plan(problem, relation)
    if plot:
        draw_plan(plan, plot, overwrite=force)
    if as_json:
        show_json(plan.to_json())
        return
    _show(plan, {"k": nuclear_norm, "L": row_norm}, rating_range, tables=tables)
    if plot:
        typer.echo(f"\nwrote {plot}")


def _show(
    plan: "Plan",
    given: dict[str, float | None],
    rating_range: tuple[float, float],
    *,
    tables: bool,
) -> None:
    """Print a plan for a person."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    _show_facts(console, plan, given, rating_range)
    _show_noise(console, plan)
    _show_bounds(console, plan)
    if tables:
        _show_tables(console, plan)
    verdict = plan.verdict
    name = {"svd": "SVD", "frank-wolfe": "Frank-Wolfe"}[verdict.method]
    console.print(f"\nThe theory favours {name}: {verdict.reason}.")
    _print_table(console, "", ("", ""), [(" -", note) for note in plan.notes()])


def _show_facts(
    console: "Console",
    plan: "Plan",
    given: dict[str, float | None],
    rating_range: tuple[float, float],
) -> None:
    """Print what is taken as public, and the recommended rounds."""
    problem = plan.problem
    source = {name: "by rule" if value is None else "given" for name, value in given.items()}
    lo, hi = rating_range
    each = problem.ratings // problem.users
    rows = [
        ("users x items", f"{problem.users:,} x {problem.items:,}", ""),
        ("promise", f"epsilon {problem.epsilon:g}, delta {problem.delta:g}", plan.neighbours.value),
        ("ratings", f"{each:,} a user, {problem.ratings:,} in all", f"from {lo:g} to {hi:g}"),
        ("row norm L", f"{problem.row_norm:.4g}", source["L"]),
        ("nuclear norm k", f"{problem.nuclear_norm:.4g}", source["k"]),
        ("rounds T", f"{plan.rounds:,}", "Thm. 3.2, for seen ratings"),
        ("", f"{plan.rounds_for_all:,}", "Cor. 3.1, for all ratings"),
    ]
    _print_table(console, "", ("", "", ""), rows)


def _show_noise(console: "Console", plan: "Plan") -> None:
    """Print the noise by the paper's formula and exactly, the asked relation marked."""
    kinds = ((f"Frank-Wolfe, each of {plan.rounds:,}", plan.noise), ("SVD, once", plan.svd_noise))
    rows = [
        (
            name,
            noise.neighbours.value + (" *" if noise.neighbours is plan.neighbours else ""),
            _number(noise.paper),
            _number(noise.exact),
            f"{noise.ratio:.2f}",
        )
        for name, both in kinds
        for noise in both
    ]
    heads = ("noise sd", "neighbours", "> paper", "> exact", "> paper/exact")
    _print_table(console, "\n", heads, rows)


def _show_bounds(console: "Console", plan: "Plan") -> None:
    rows = [
        (
            bound.name,
            bound.place,
            f"{bound.exact.learning:.3g}",
            f"{bound.paper.privacy:.3g}",
            f"{bound.exact.privacy:.3g}",
            f"{bound.rmse:.3g}",
        )
        for bound in plan.bounds
    ]
    rows.append(("A user's own mean, at most", "", "", "", "", f"{plan.zero_rmse:.3g}"))
    heads = ("bound", "paper", "> learning", "> noise", "> exact noise", "> as RMSE")
    _print_table(console, "\n", heads, rows)


def _show_tables(console: "Console", plan: "Plan") -> None:
    """Print Tables 1 and 2 of the paper for this many users and items."""
    found = plan.to_json()
    needs = [
        (row["method"], row["source"], _count(row["users"]), _count(row["ratings"]))
        for row in found["table_1"]
    ]
    heads = ("Table 1: error vanishes", "source", "> users beyond", "> ratings beyond")
    _print_table(console, "\n", heads, needs)
    errors = [(row["method"], row["formula"], _number(row["error"])) for row in found["table_2"]]
    errors.append(("Y = 0", "sqrt(m)", _number(plan.problem.users**0.5)))
    titles = ("Table 2: all seen", "bound, rows of norm 1", "> ||Y - Y*||_F")
    _print_table(console, "\n", titles, errors)


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e12 else f"{value:.4g}"


def _count(value: float | None) -> str:
    return "no bound known" if value is None else f"{value:,.0f}"


def _print_table(
    console: "Console", before: str, heads: tuple[str, ...], rows: "Sequence[tuple[str, ...]]"
) -> None:
    """Print a plain table; a head that begins with > stands over numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(heads))
    for head in heads:
        table.add_column(head.removeprefix("> "), justify="right" if head[:1] == ">" else "left")
    for row in rows:
        table.add_row(*row)
    console.print(before, end="")
    console.print(table)
