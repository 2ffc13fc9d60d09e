"""tacit book: the lifetime budget of one population: open, show, plan, export, verify, merge."""

import json
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.options import AsJson, Force, WithExamples, show_json, spelled_out
from tacit.errors import BookError, ConfigError

if TYPE_CHECKING:
    from tacit.accounting.budget import Neighbours
    from tacit.accounting.certificate import Certificate
    from tacit.book.splits import PlannedRefit
    from tacit.research.theory import Case

app = typer.Typer(rich_markup_mode=None)

BookPath = Annotated[Path, typer.Argument(metavar="BOOK", help="A lifetime book (people.book).")]
_LARGEST = 1 << 30  # bytes of an exported book


@app.callback(invoke_without_command=True)
def _root(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@app.command(cls=WithExamples)
@spelled_out
def new(
    book: Annotated[Path, typer.Argument(metavar="BOOK", help="The new file (people.book).")],
    epsilon: Annotated[
        float, typer.Option(help="The privacy budget epsilon of all fits together.")
    ],
    delta: Annotated[
        float, typer.Option(help="The probability that epsilon may be exceeded.")
    ] = 1e-6,
    neighbours: Annotated[
        str, typer.Option(help="replace or add_remove; all fits have the same.")
    ] = "replace",
    yearly_epsilon: Annotated[
        float | None, typer.Option(help="At most this much in any 365 days.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Open the book of one population. Its terms never change."""
    from tacit.book import Book

    opened = Book.new(
        book, epsilon=epsilon, delta=delta, neighbours=neighbours, yearly_epsilon=yearly_epsilon
    )
    if as_json:
        show_json({"book": str(book), **opened.terms.to_json()})
        return
    typer.echo(opened.text())
    typer.echo(f"\nwrote {book}; keep it, and {book.name}.count beside it, with the ratings")


@app.command(cls=WithExamples)
@spelled_out
def show(book: BookPath, as_json: AsJson = False) -> None:
    """Say what was spent, for what, and what is left. The lifetime certificate."""
    from tacit.book import Book
    from tacit.book.statement import show_form

    found = Book(book)
    if as_json:
        show_json({"book": str(book), **show_form(found.account())})
        return
    typer.echo(found.text())


@app.command(cls=WithExamples)
@spelled_out
def plan(
    book: Annotated[
        Path | None, typer.Argument(metavar="BOOK", help="Plan what is left of this book.")
    ] = None,
    refits: Annotated[int, typer.Option(help="How many refits are planned.")] = 52,
    epsilon: Annotated[
        float | None,
        typer.Option(help="The budget of all refits together; by default what is left of BOOK."),
    ] = None,
    delta: Annotated[
        float, typer.Option(help="The probability that epsilon may be exceeded.")
    ] = 1e-6,
    split: Annotated[
        str, typer.Option(help="first (15 % at first, then equal), equal or geometric.")
    ] = "first",
    half_life: Annotated[
        float | None,
        typer.Option(help="Refits after which half of the knowledge is outdated; left out: never."),
    ] = None,
    users: Annotated[int, typer.Option(help="How many users, for the forecast.")] = 20_000,
    items: Annotated[int, typer.Option(help="How many items.")] = 400,
    per_user: Annotated[int, typer.Option(help="Ratings per user, on average.")] = 80,
    rating_range: Annotated[
        tuple[float, float], typer.Option(help="The public range of ratings.")
    ] = (1.0, 5.0),
    plot: Annotated[Path | None, typer.Option(help="Where a picture goes (.svg or .png).")] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Divide a budget among refits, and see what RMSE to expect of each. It reads no ratings."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.book.splits import planned_refits
    from tacit.research.theory import Case, Tastes
    from tacit.research.theory.problem import check_range

    if plot:
        from tacit.reporting.drawing import check_picture

        check_picture("--plot", plot, overwrite=force)
    check_range(rating_range)
    total, delta, neighbours = _to_divide(book, epsilon, delta)
    refitting = planned_refits(total, delta, refits, split, half_life)
    case = Case(
        users=users, items=items, per_user=min(per_user, items), rating_range=rating_range,
        budget=PrivacyBudget(total, delta, neighbours), tastes=Tastes.usual(rating_range),
    )  # fmt: skip
    if plot:
        from tacit.reporting.plan_figure import draw_lifetime

        draw_lifetime(refitting, case, plot, overwrite=force)
    _show_plan(refitting, case, split, as_json)
    if plot and not as_json:
        typer.echo(f"\nwrote {plot}")


def _to_divide(
    book: Path | None, epsilon: float | None, delta: float
) -> "tuple[float, float, Neighbours]":
    """Return epsilon, delta and the relation of what is planned."""
    from tacit.accounting.budget import Neighbours
    from tacit.book import Book
    from tacit.book.refusal import down
    from tacit.errors import TacitWarning

    if book is None:
        if epsilon is None:
            raise ConfigError("give --epsilon E, or a BOOK whose rest is planned")
        return epsilon, delta, Neighbours.REPLACE
    opened = Book(book)
    left = opened.left_epsilon
    total = left if epsilon is None else epsilon
    if total > left:
        warnings.warn(
            f"{book} has epsilon {down(left)} left, so a plan of epsilon {total:g} would "
            "be refused on the way; leave --epsilon out to plan what is left",
            TacitWarning,
            stacklevel=2,
        )
    return total, opened.delta, opened.neighbours


def _show_plan(refits: "list[PlannedRefit]", case: "Case", split: str, as_json: bool) -> None:
    from tacit.accounting.promise import rounded_up
    from tacit.research.theory.forecast import expected_of, forecast

    rows = [
        {
            **asdict(refit),
            "rmse": expected_of(case, refit).rmse,
            "rmse_alone": expected_of(case, refit, remembers=False).rmse,
        }
        for refit in refits
        if refit.number in (1, 4, 13, 26, len(refits))
    ]
    at_once = forecast(case)
    if as_json:
        epsilons = [refit.epsilon for refit in refits]
        show_json({
            "split": split, "refits": len(refits), "epsilons": epsilons, "shown": rows,
            "rmse_at_once": at_once.rmse, "rmse_own_mean": at_once.own_mean,
        })  # fmt: skip
        return
    first, rest = refits[0].epsilon, refits[-1].epsilon
    typer.echo(
        f"{len(refits)} refits, split {split!r}: the first at --epsilon {first:g}, the last at "
        f"--epsilon {rest:g}; together epsilon {rounded_up(refits[-1].spent_epsilon)}\n"
    )
    typer.echo("refit  epsilon   spent so far  expected RMSE  without memory")
    for row in rows:
        typer.echo(
            f"{row['number']:5d}  {row['epsilon']:<8.4g}  {row['spent_epsilon']:12.4f}  "
            f"{row['rmse']:13.4f}  {row['rmse_alone']:14.4f}"
        )
    typer.echo(
        f"\none fit with all of it: {at_once.rmse:.4f}; the user mean: {at_once.own_mean:.4f} "
        "(forecasts of Moments; docs/theory.md)"
    )


@app.command(cls=WithExamples)
@spelled_out
def export(
    book: BookPath,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the JSON goes.")],
    force: Force = False,
) -> None:
    """Write the lifetime certificate as JSON. It may be published: it has public numbers only."""
    from tacit._atomic import write_durably
    from tacit._outputs import Kind, Output, check_outputs
    from tacit.book import Book

    found = Book(book)
    check_outputs([Output("--output", output, Kind.LIFETIME)], found.files, force=force)
    content = json.dumps(found.certificate(), indent=1)
    write_durably(output, content.encode() + b"\n")
    typer.echo(f"wrote {output}")


@app.command(cls=WithExamples)
@spelled_out
def verify(
    book: Annotated[
        Path, typer.Argument(metavar="BOOK", help="A book, or what `tacit book export` wrote.")
    ],
    model: Annotated[
        list[Path] | None,
        typer.Option("--model", help="A published model that must be in it; may be repeated."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Recompute the total from the releases. Exit code 1 if it does not hold."""
    from tacit.accounting.budget import epsilon_of
    from tacit.accounting.promise import rounded_up, shown
    from tacit.book import Book
    from tacit.book.statement import problems_of

    models = _certificates(model or [])
    if _exported(book):
        account = _read_export(book)
        problems = problems_of(account, models)
    else:
        opened = Book(book)
        problems, account = opened.verify(models), opened.account()
    count = sum(fit.state != "cancelled" for fit in account.fits)
    spent = epsilon_of(account.spent**0.5, account.terms.delta)
    if as_json:
        show_json({
            "holds": not problems, "problems": problems, "epsilon": account.terms.epsilon,
            "delta": account.terms.delta, "spent_epsilon": spent, "fits": count,
        })  # fmt: skip
    else:
        typer.echo("DOES NOT HOLD: " + "; ".join(problems) if problems else "holds")
        typer.echo(
            f"{count} fit{'' if count == 1 else 's'} in the book, together epsilon "
            f"{rounded_up(spent)}; it promises at most {shown(account.terms.epsilon)}, at delta "
            f"{shown(account.terms.delta)}"
        )
        if models and not problems:
            typer.echo(f"in the book: {', '.join(models)}")
    if problems:
        raise typer.Exit(1)


@app.command(cls=WithExamples)
@spelled_out
def merge(
    books: Annotated[list[Path], typer.Argument(metavar="BOOKS...", help="Two books or more.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="The new book.")],
) -> None:
    """Bring books of one population together. Their fits count in one sum from then on."""
    from tacit.book import Book
    from tacit.book.merging import merge as merged

    made = merged([Book(path) for path in books], output)
    typer.echo(made.text())
    typer.echo(f"\nwrote {output}; use it alone from now on, and put the others away")


def _certificates(paths: list[Path]) -> "dict[str, Certificate]":
    from tacit.models import load

    return {str(path): load(path).certificate for path in paths}


def _exported(path: Path) -> bool:
    from tacit._outputs import Kind, is_of_kind

    return is_of_kind(path, Kind.LIFETIME)


def _read_export(path: Path) -> Any:
    from tacit.book.statement import from_json

    try:
        if path.stat().st_size > _LARGEST:
            raise BookError(f"{path} is larger than a lifetime certificate may be")
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        raise BookError(f"{path} cannot be read as a lifetime certificate") from None
    return from_json(content)
