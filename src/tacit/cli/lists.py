"""What `tacit evaluate` shows for a model of interactions: lists, beside the most popular items."""

from typing import TYPE_CHECKING

import typer

from tacit.cli.options import show_json

if TYPE_CHECKING:
    import polars as pl

    from tacit.models import Model
    from tacit.ratings import Ratings

__all__ = ["show_lists"]


def show_lists(
    model: "Model", train: "Ratings", test: "pl.DataFrame", k: int, as_json: bool
) -> None:
    """Measure lists of k items and show them (NOT PRIVATE). Every held-out item is relevant."""
    from rich.console import Console
    from rich.table import Table

    from tacit.evaluation import ExactPopularity, rank

    found, popular = rank(model, train, test, k), rank(ExactPopularity(train), train, test, k)
    if as_json:
        parts = {"ranking": found.to_json(), "popularity": popular.to_json()}
        show_json({**parts, "label": "NOT PRIVATE"})
        return
    typer.echo("NOT PRIVATE: computed from held-out interactions, for the owner of the data")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure")
    table.add_column("found", justify="right")
    table.add_column("the most popular, exactly", justify="right")
    for name, shown in (("ndcg", "NDCG"), ("recall", "recall"), ("coverage", "coverage")):
        pair = (getattr(found, name), getattr(popular, name))
        table.add_row(f"{shown}@{k}", *(f"{value:.4f}" for value in pair))
    Console(soft_wrap=True, markup=False, highlight=False).print(table)
    typer.echo(f"lists of {k} for {found.lists} users")
