"""Options that several verbs share."""

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from tacit.cli.spelling import as_typed, interrupted
from tacit.errors import ConfigError, TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.table import Table

    from tacit.models import Model, Recommendation

__all__ = [
    "INTERRUPTED",
    "AccountingName",
    "AsJson",
    "BookOption",
    "Delta",
    "Duplicates",
    "FeatureNames",
    "Force",
    "Implicit",
    "ItemColumn",
    "ItemsPath",
    "ModelPath",
    "NeighboursName",
    "NoPrivacy",
    "NoiseSeed",
    "OwnPath",
    "RatingColumn",
    "Settings",
    "Strict",
    "Threads",
    "TitleColumn",
    "TopItems",
    "UnknownItemsName",
    "UserColumn",
    "WithExamples",
    "WithSettings",
    "item_table",
    "read_own",
    "show_json",
    "show_scores",
    "show_table",
]

INTERRUPTED = 130  # the exit code of a command that was interrupted
_NO_TERMINAL = 10_000  # columns, where nobody's screen has to hold them
_REASONS = 3  # own ratings that are named beside a recommendation

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file (.tacit).")]
OwnPath = Annotated[
    Path | None,
    typer.Option(
        "--ratings", help="Your own ratings: a file with columns item, rating (or item alone)."
    ),
]
UserColumn = Annotated[
    str | None, typer.Option(help="The user column: its name, or its position from 0.")
]
ItemColumn = Annotated[str | None, typer.Option(help="The item column, likewise.")]
RatingColumn = Annotated[str | None, typer.Option(help="The rating column, likewise.")]
ItemsPath = Annotated[
    Path | None, typer.Option(help="Public catalogue: a file with columns item, title.")
]
TitleColumn = Annotated[
    str | None, typer.Option(help="The column of titles in --items; a usual name is found.")
]
FeatureNames = Annotated[
    list[str] | None,
    typer.Option(
        "--feature",
        metavar="NAME",
        help="A column of --items that is a public feature of items; may be repeated.",
    ),
]
UnknownItemsName = Annotated[
    str,
    typer.Option(
        "--unknown-items",
        help="error, or drop to leave out ratings of items that --items does not list.",
    ),
]
TopItems = Annotated[
    int | None,
    typer.Option(help="Only the so many most rated items, by a count that is paid for."),
]
Strict = Annotated[
    bool,
    typer.Option("--strict", help="Refuse what looks computed from the ratings, or taken from."),
]
Implicit = Annotated[
    bool,
    typer.Option("--implicit", help="There are no ratings, only users and what they touched."),
]
BookOption = Annotated[
    Path | None,
    typer.Option("--book", help="The lifetime book of these people; it pays before data is read."),
]
Delta = Annotated[
    float | None, typer.Option(help="... except with this probability; 1e-6, or that of --book.")
]
NeighboursName = Annotated[
    str | None, typer.Option(help="replace (default, or that of --book) or add_remove.")
]
AccountingName = Annotated[str, typer.Option(help="exact, or paper for comparison.")]
NoPrivacy = Annotated[
    bool, typer.Option("--no-privacy", help="No noise: the model is NOT PRIVATE.")
]
Threads = Annotated[int | None, typer.Option(help="Threads; all cores if left out.")]
Duplicates = Annotated[str, typer.Option(help="error, last or mean, for pairs given twice.")]
NoiseSeed = Annotated[int | None, typer.Option(help="Repeatable noise: NOT PRIVATE.")]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace a file that is there, whatever it is; never an input."),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of the algorithm, as listed below; may be repeated.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


class WithExamples(TyperCommand):
    """A verb whose help ends with examples, and whose errors name its options."""

    def invoke(self, ctx: Any) -> Any:
        """Run the verb; an error speaks of what was typed."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except (TacitError, OSError) as error:
            if isinstance(error, OSError) and error.filename is None:
                raise  # of no file
            options = {
                each.name or "": max(each.opts, key=len)
                for each in self.params
                if each.param_type_name == "option"
            }
            if isinstance(error, OSError):
                told = f"{error.filename}: {error.strerror}"
                raise ConfigError(as_typed(told, options, ctx.params)) from None
            error.args = (as_typed(str(error), options, ctx.params),)
            raise
        except KeyboardInterrupt:
            typer.echo(f"tacit: {interrupted(ctx.params)}", err=True)
            raise typer.Exit(INTERRUPTED) from None

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Show the examples of this verb, one on a line however long."""
        from tacit.cli.examples import EXAMPLES

        verb, above = ctx.info_name, ctx.parent
        while above is not None and above.parent is not None:
            verb, above = f"{above.info_name} {verb}", above.parent
        if verb in EXAMPLES:
            with formatter.section("Examples"):
                for example in EXAMPLES[verb]:
                    formatter.write(f"{'':{formatter.current_indent}}{example}\n")


class WithSettings(WithExamples):
    """A verb whose help lists the settings of an algorithm: of --algorithm, where that is given."""

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Say each setting's default, and what it may be."""
        super().format_epilog(ctx, formatter)
        from tacit._validate import settings_of
        from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS

        known = ALGORITHMS | IMPLICIT_ALGORITHMS
        given = ctx.params.get("algorithm")
        name = given if given in known else _usual(ctx)
        config = known[name]()
        rows = [
            (f"{s.name}={getattr(config, s.name)}", s.expected) for s in settings_of(type(config))
        ]
        with formatter.section(f"Settings of {name}, for --set"):
            formatter.write_dl(rows)
        formatter.write_paragraph()
        formatter.write_text(
            f"Those of another: tacit fit --algorithm NAME --help ({', '.join(known)})."
        )


def _usual(ctx: Any) -> str:
    """Return the algorithm of a command that names none."""
    return "interactions" if ctx.params.get("implicit") else "latent-factors"


def show_json(content: dict[str, Any]) -> None:
    """Print one JSON document."""
    plain = "utf" not in (sys.stdout.encoding or "utf").lower()
    typer.echo(json.dumps(content, indent=2, ensure_ascii=plain, default=str))


def read_own(
    path: Path | None, columns: tuple[str | None, str | None], *, implicit: bool = False
) -> "pl.DataFrame":
    """Read a person's own ratings, or what she touched, by the columns of items and ratings."""
    import polars as pl

    from tacit.data.readers.registry import read_own_ratings

    if path is None:
        return pl.DataFrame({"item": [], "rating": []})
    item, rating = columns
    return read_own_ratings(path, item=item, rating=rating, implicit=implicit)


def show_scores(
    model: "Model",
    rows: "Sequence[Recommendation]",
    as_json: bool,
    key: str,
    stds: list[float] | None = None,
) -> None:
    """Print items with their predicted ratings, as a table for a person or as JSON."""
    if as_json:
        entries = [_entry(row) for row in rows]
        if stds is not None:
            entries = [{**entry, "std": std} for entry, std in zip(entries, stds, strict=True)]
        show_json({key: entries, "private": model.private})
        return
    table = item_table(model)
    table.add_column("predicted share" if model.implicit else "predicted rating", justify="right")
    if stds is not None:
        table.add_column("std", justify="right")
    choosing = any(row.choice is not None for row in rows)
    if choosing:
        table.add_column("choice", justify="right")
    if any(row.because is not None for row in rows):
        table.add_column("because")
    for at, row in enumerate(rows):
        title = [row.title] if model.catalogue.titles is not None else []
        spread = [] if stds is None else [f"{stds[at]:.2f}"]
        share = [f"{100 * (row.choice or 0):.2g} %"] if choosing else []
        score = _score(row.score, model)
        table.add_row(str(row.item), *title, score, *spread, *share, *_because(row, model))
    show_table(table)


def item_table(model: "Model") -> "Table":
    """Return a table with columns for an item's id and, where the model has titles, its title."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("item", overflow="fold")  # an id that is cut names nothing
    if model.catalogue.titles is not None:
        table.add_column("title")
    return table


def show_table(table: "Table") -> None:
    """Print a table for a person; in a pipe or a file, each row on one line."""
    from rich.console import Console

    whole = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = _NO_TERMINAL if whole else None
    Console(soft_wrap=True, markup=False, highlight=False, width=width).print(table)


def _score(value: float, model: "Model", sign: str = "") -> str:
    """Return a prediction as text, or with the sign "+" what something adds to it."""
    return f"{value:{sign}.4f}" if model.implicit else f"{value:{sign}.2f}"


def _because(row: "Recommendation", model: "Model") -> list[str]:
    """Return the largest contributions as text, and what there is without any."""
    if row.because is None or row.baseline is None:
        return []
    added = [f"{_score(r.contribution, model, '+')} {r.title}" for r in row.because[:_REASONS]]
    others = row.because[_REASONS:]
    if others:
        rest = _score(sum(reason.contribution for reason in others), model, "+")
        added.append(f"{rest} {len(others)} others")
    return [", ".join([_score(row.baseline, model), *added])]


def _entry(row: "Recommendation") -> dict[str, Any]:
    """Return one item for JSON, without what the model does not know or was not asked for."""
    return {name: value for name, value in asdict(row).items() if value is not None}
