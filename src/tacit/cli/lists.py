"""What `tacit evaluate` shows for a model of interactions: lists, beside the most popular items."""

from typing import TYPE_CHECKING, Any

import typer

from tacit.cli.options import plain_table, show_json, show_table

if TYPE_CHECKING:
    import polars as pl

    from tacit.data.ratings import Ratings
    from tacit.models import Model

POPULARITY = "exact popularity"
"""The head of the column for lists of the most popular items, counted without noise."""
POPULARITY_NOTE = f"{POPULARITY} (NOT PRIVATE): everyone is shown what most people have in train"


def show_lists(
    model: "Model", train: "tuple[Ratings, int]", test: "pl.DataFrame", k: int, as_json: bool
) -> None:
    """Measure lists of k items and show them (NOT PRIVATE). Every held-out item is relevant."""
    from tacit.evaluation import ExactPopularity, rank

    rows, left_out = train
    found, popular = rank(model, rows, test, k), rank(ExactPopularity(rows), rows, test, k)
    if as_json:
        parts: dict[str, Any] = {"ranking": found.to_json(), "popularity": popular.to_json()}
        parts |= {"train_left_out": left_out}
        show_json({**parts, "label": "NOT PRIVATE"})
        return
    typer.echo("NOT PRIVATE: computed from held-out interactions, for the owner of the data")
    table = plain_table("measure", "> found", f"> {POPULARITY}")
    for name, shown in (("ndcg", "NDCG"), ("recall", "recall"), ("coverage", "coverage")):
        pair = (getattr(found, name), getattr(popular, name))
        table.add_row(f"{shown}@{k}", *(f"{value:.4f}" for value in pair))
    show_table(table)
    typer.echo(f"lists of {k} for {found.lists} users")
    typer.echo(POPULARITY_NOTE)
    show_left_out(left_out)


def show_left_out(rows: int) -> None:
    """Say how many training ratings are of items that the model does not have, if any."""
    if rows:
        typer.echo(f"{rows} training ratings left out: the model does not have their items")
