"""Options that several verbs share."""

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from functools import wraps
from inspect import Parameter, Signature, isclass, signature
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer
from typer.core import TyperCommand
from typer.models import OptionInfo

from tacit._atomic import reason_of
from tacit.cli.spelling import as_typed, interrupted
from tacit.errors import ConfigError, TacitError

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl
    from rich.table import Table

    from tacit.data.tables import Columns
    from tacit.models import Model, Recommendation

INTERRUPTED = 130  # the exit code of a command that was interrupted
_NO_TERMINAL = 10_000  # columns, where nobody's screen has to hold them
_REASONS = 3  # own ratings that are named beside a recommendation

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file (.tacit).")]
ModelOutput = Annotated[
    Path, typer.Option("-o", "--output", help="Where the model file is written.")
]
RatingsPaths = Annotated[
    list[str],
    typer.Argument(
        metavar="RATINGS",
        help="CSV, TSV, :: (also .gz, .zip), Parquet, Arrow; a glob, or one store.",
    ),
]
RatingRange = Annotated[
    tuple[float, float] | None, typer.Option(help="The public range of ratings.")
]
OwnPath = Annotated[
    Path | None,
    typer.Option(
        "--ratings", help="Your own ratings: a file with columns item, rating (or item alone)."
    ),
]
ItemColumn = Annotated[str | None, typer.Option(help="The item column: its name, or its position.")]
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
Implicit = Annotated[
    bool,
    typer.Option(
        "--implicit", help="Read interactions (who bought or played what) instead of ratings."
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Overwrite a file of any kind that exists; input files are never overwritten.",
    ),
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


_WORDS = {Path: "PATH", str: "TEXT", int: "N", float: "NUMBER", tuple[float, float]: "LO HI"}
"""What stands after an option in the help, by its type."""


class OptionGroup:
    """Options that several verbs have: a parameter of such a dataclass stands for its fields."""


def spelled_out(run: Callable[..., None]) -> Callable[..., None]:
    """Return a verb with the fields of its option groups as options of its own."""
    options: list[Parameter] = []
    groups: dict[str, Any] = {}
    for name, option in signature(run).parameters.items():
        if isclass(option.annotation) and issubclass(option.annotation, OptionGroup):
            groups[name] = option.annotation
            options += signature(option.annotation).parameters.values()
        else:
            options.append(option)

    @wraps(run)
    def verb(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        run(**given)

    named = [_worded(option).replace(kind=Parameter.KEYWORD_ONLY) for option in options]
    verb.__signature__ = Signature(named)  # type: ignore[attr-defined]  # what typer reads
    return verb


def _worded(option: Parameter) -> Parameter:
    """Let the help say FILE or NUMBER after an option, where typer would name a type of Python."""
    kind, *notes = get_args(option.annotation)
    kinds = [each for each in get_args(kind) or (kind,) if each is not NoneType]
    for note in notes:
        if isinstance(note, OptionInfo) and note.metavar is None:
            note.metavar = _WORDS.get(kinds[0])
    return option


@dataclass(frozen=True)
class ColumnNames(OptionGroup):
    """Which columns of a file hold what."""

    user_column: Annotated[
        str | None, typer.Option(help="The user column: its name, or its position from 0.")
    ] = None
    item_column: ItemColumn = None
    rating_column: Annotated[
        str | None, typer.Option(help="The rating column: its name, or its position.")
    ] = None

    @property
    def columns(self) -> "Columns":
        """The same, for a reader."""
        from tacit.data.tables import Columns

        return Columns(self.user_column, self.item_column, self.rating_column)


@dataclass(frozen=True)
class Layout(ColumnNames):
    """How files of ratings are read: which columns, and what becomes of pairs given twice."""

    duplicates: Annotated[
        str, typer.Option(help="error, last or mean, for pairs of user and item given twice.")
    ] = "error"


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
                told = f"{error.filename}: {reason_of(error)}"
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


def read_own(path: Path | None, names: ColumnNames, *, implicit: bool = False) -> "pl.DataFrame":
    """Read a person's own ratings, or what she touched, by the columns of items and ratings."""
    import polars as pl

    from tacit.data.readers.registry import read_own_ratings

    if path is None:
        return pl.DataFrame({"item": [], "rating": []})
    return read_own_ratings(
        path, item=names.item_column, rating=names.rating_column, implicit=implicit
    )


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
    choosing = any(row.choice is not None for row in rows)
    columns = ["> predicted share" if model.implicit else "> predicted rating"]
    columns += ["> std"] * (stds is not None) + ["> choice"] * choosing
    columns += ["because"] * any(row.because is not None for row in rows)
    table = item_table(model, *columns)
    for at, row in enumerate(rows):
        title = [row.title] if model.catalogue.titles is not None else []
        spread = [] if stds is None else [f"{stds[at]:.2f}"]
        share = [f"{100 * (row.choice or 0):.2g} %"] if choosing else []
        score = _score(row.score, model)
        table.add_row(str(row.item), *title, score, *spread, *share, *_because(row, model))
    show_table(table)


def plain_table(*columns: str) -> "Table":
    """Return a table without lines; a column whose name begins with > is one of numbers."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=any(columns))
    for name in columns:
        side: Any = "right" if name[:1] == ">" else "left"
        cut: Any = "fold" if name == "item" else "ellipsis"  # an id that is cut names nothing
        table.add_column(name.removeprefix("> "), justify=side, overflow=cut)
    return table


def item_table(model: "Model", *columns: str) -> "Table":
    """Return a table of items: id and, where the model has titles, title; then other columns."""
    titled = model.catalogue.titles is not None
    return plain_table("item", *["title"] * titled, *columns)


def show_table(table: "Table") -> None:
    """Print a table for a person; in a pipe or a file, each row on one line."""
    from rich.console import Console

    whole = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    width = _NO_TERMINAL if whole else None
    console = Console(soft_wrap=True, markup=False, highlight=False, width=width)
    with console.capture() as drawn:
        console.print(table)
    # typer.echo would write UTF-8 to a stream that says it is ASCII
    sys.stdout.write("".join(f"{line.rstrip()}\n" for line in drawn.get().splitlines()))


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
