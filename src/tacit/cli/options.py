"""Options that several verbs share."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from tacit.models import Model, Recommendation

__all__ = [
    "AsJson",
    "ItemColumn",
    "ModelPath",
    "OwnPath",
    "RatingColumn",
    "UserColumn",
    "read_own",
    "show_json",
    "show_scores",
]

ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model file (.tacit).")]
OwnPath = Annotated[
    Path | None,
    typer.Option("--ratings", help="Your own ratings: a file with columns item, rating."),
]
UserColumn = Annotated[str | None, typer.Option(help="Name of the user column.")]
ItemColumn = Annotated[str | None, typer.Option(help="Name of the item column.")]
RatingColumn = Annotated[str | None, typer.Option(help="Name of the rating column.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON with stable keys.")]


def show_json(content: dict[str, Any]) -> None:
    """Print one JSON document."""
    typer.echo(json.dumps(content, indent=2, ensure_ascii=False, default=str))


def read_own(path: Path | None) -> "pl.DataFrame":
    """Read a person's own ratings; no file means none."""
    import polars as pl

    from tacit.tables import read_own_ratings

    return pl.DataFrame({"item": [], "rating": []}) if path is None else read_own_ratings(path)


def show_scores(model: "Model", rows: "Iterable[Recommendation]", as_json: bool, key: str) -> None:
    """Print items with their predicted ratings, as a table for a person or as JSON."""
    if as_json:
        entries = [{"item": r.item, "title": r.title, "score": r.score} for r in rows]
        show_json({key: entries, "private": model.private})
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("item")
    if model.catalogue.titles is not None:
        table.add_column("title")
    table.add_column("predicted rating", justify="right")
    for row in rows:
        title = [row.title] if model.catalogue.titles is not None else []
        table.add_row(str(row.item), *title, f"{row.score:.2f}")
    Console(soft_wrap=True, markup=False, highlight=False).print(table)
