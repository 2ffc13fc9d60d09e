"""Print a plan: the forecast first, then the paper's bounds."""

from typing import TYPE_CHECKING, NamedTuple

from tacit.cli.options import plain_table, show_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from tacit.research.experiments.simulated import Simulated
    from tacit.research.theory import Expectation, Plan


class Shown(NamedTuple):
    """All that is shown.

    Attributes:
        expected: of `Moments`, the first step of the default method.
        plan: the paper's bounds; None where they do not apply.
        reason: why they do not.
        simulated: what was measured on synthetic ratings, if that was asked for.
        given: k and L, None where they follow the rule of a fit.
        tables: whether to show the paper's comparison tables.
    """

    expected: "Expectation"
    plan: "Plan | None"
    reason: str | None
    simulated: "Simulated | None"
    given: dict[str, float | None]
    tables: bool


def show(shown: Shown) -> None:
    """Print a plan for a person."""
    from rich.console import Console

    console = Console(markup=False, highlight=False)
    console.print(shown.expected.verdict())
    _show_facts(console, shown.expected)
    _show_expected(console, shown.expected)
    _show_needed(console, shown.expected)
    if shown.simulated:
        _show_simulated(console, shown.simulated)
    if shown.plan is None:
        console.print(f"\nThe paper's bounds do not apply. {shown.reason}.")
        return
    console.print("\nThe paper's bounds, for other methods: worst cases, not forecasts")
    _show_norms(console, shown.plan, shown.given)
    _show_noise(console, shown.plan)
    _show_bounds(console, shown.plan)
    if shown.tables:
        _show_tables(console, shown.plan)
    _print_table(console, "\n", ("", ""), [(" -", note) for note in shown.plan.notes()])


def _show_facts(console: "Console", expected: "Expectation") -> None:
    """Print what is taken as public, and what is assumed."""
    case, tastes = expected.case, expected.case.tastes
    lo, hi = case.rating_range
    promise = ""
    if case.budget:
        budget = case.budget
        promise = f"epsilon {budget.epsilon:g}, delta {budget.delta:g}, {budget.neighbours.value}"
    rows = [
        ("users x items", f"{case.users:,} x {case.items:,}"),
        ("promise", promise),
        ("ratings", f"{case.per_user:,} a user on average, from {lo:g} to {hi:g}"),
        (
            "assumed",
            f"sd of item effects {tastes.item_sd:.3g}, of user biases {tastes.user_sd:.3g}, "
            f"of noise {tastes.noise_sd:.3g}; {tastes.factors} latent factors "
            f"with {_percent(tastes.factor_share)} of the rest",
        ),
    ]
    _print_table(console, "\n", ("", ""), rows)


def _show_expected(console: "Console", expected: "Expectation") -> None:
    """Print expected RMSE with noise and without, what is learned, and of which method."""
    from tacit.research.theory.expectation import STARTS_FROM_MOMENTS

    private, free, tastes = expected.private, expected.without_noise, expected.case.tastes
    both = (private, free)
    own = f"{private.own_mean:.4f}"
    rows = [
        ("User mean", own, own),
        ("User and item bias", "", f"{private.biases:.4f}"),
        ("Moments", *(f"{each.rmse:.4f}" for each in both)),
        ("  its gain over the user mean", *(_percent(each.gain) for each in both)),
        ("  item effects learned", *(_percent(each.item_effects) for each in both)),
        (
            "  latent factors found",
            *(f"{each.factors_found} of {tastes.factors}" for each in both),
        ),
    ]
    _print_table(console, "\n", ("expected RMSE", "> with noise", "> without"), rows)
    console.print(f"\n{STARTS_FROM_MOMENTS}")


def _show_needed(console: "Console", expected: "Expectation") -> None:
    """Print how many users it takes."""
    from tacit.research.theory.expectation import about

    needed = expected.needed
    rows = [
        ("A tenth of the item effects is learned", needed.item_effects),
        ("The first latent factor is found", needed.first_factor),
        ("90 % of the gain without noise", needed.most_of_gain),
    ]
    told = [(name, about(users)) for name, users in rows]
    _print_table(console, "\n", ("users needed at this epsilon", "> "), told)


def _show_simulated(console: "Console", simulated: "Simulated") -> None:
    """Print what was measured on synthetic ratings beside the forecast for them."""
    rows = [
        ("User mean", simulated.own_mean, simulated.forecast_own_mean),
        ("Moments", simulated.rmse, simulated.forecast_rmse),
        ("Moments without noise", simulated.without_noise, simulated.forecast_without_noise),
    ]
    told = [(name, f"{found:.4f}", f"{formula:.4f}") for name, found, formula in rows]
    told.append(("Gain of Moments", _percent(simulated.gain), _percent(simulated.forecast_gain)))
    told.append(("The default of tacit fit", f"{simulated.default:.4f}", ""))
    told.append(("Gain of the default", _percent(simulated.default_gain), ""))
    head = f"synthetic, {simulated.family}: RMSE"
    _print_table(console, "\n", (head, "> measured", "> forecast"), told)


def _show_norms(console: "Console", plan: "Plan", given: dict[str, float | None]) -> None:
    """Print k, L and the recommended rounds."""
    source = {name: "by rule" if value is None else "given" for name, value in given.items()}
    problem = plan.problem
    rows = [
        ("row norm L", f"{problem.row_norm:.4g}", source["row_norm"]),
        ("nuclear norm k", f"{problem.nuclear_norm:.4g}", source["nuclear_norm"]),
        ("rounds T", f"{plan.rounds:,}", "Thm. 3.2, for seen ratings"),
        ("", f"{plan.rounds_for_all:,}", "Cor. 3.1, for all ratings"),
    ]
    _print_table(console, "", ("", "", ""), rows)


def _percent(part: float) -> str:
    return f"{100 * part:.1f} %"


def _show_noise(console: "Console", plan: "Plan") -> None:
    """Print the noise by the paper's formula and exactly, the asked relation marked."""
    kinds = ((f"Frank-Wolfe, each of {plan.rounds:,}", plan.noise), ("SVD, once", plan.svd_noise))
    rows = [
        (
            name,
            noise.neighbours.value + (" *" if noise.neighbours is plan.neighbours else ""),
            _figure(noise.paper),
            _figure(noise.exact),
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
    rows.append(("User mean, at most", "", "", "", "", f"{plan.zero_rmse:.3g}"))
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
    errors = [(row["method"], row["formula"], _figure(row["error"])) for row in found["table_2"]]
    errors.append(("Y = 0", "sqrt(m)", _figure(plan.problem.users**0.5)))
    titles = ("Table 2: all seen", "bound, rows of norm 1", "> ||Y - Y*||_F")
    _print_table(console, "\n", titles, errors)


def _figure(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= value < 1e12 else f"{value:.4g}"


def _count(value: float | None) -> str:
    return "no bound known" if value is None else f"{value:,.0f}"


def _print_table(
    console: "Console", before: str, heads: tuple[str, ...], rows: "Sequence[tuple[str, ...]]"
) -> None:
    """Print a plain table; a head that begins with > stands over numbers."""
    table = plain_table(*heads)
    for row in rows:
        table.add_row(*row)
    console.print(before, end="")
    show_table(table)
