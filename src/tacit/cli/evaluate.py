"""tacit evaluate: accuracy on held-out ratings, for the owner of the data. NOT PRIVATE."""

from typing import Annotated

import typer

from tacit.cli.options import (
    AsJson,
    ItemColumn,
    ModelPath,
    RatingColumn,
    UserColumn,
    show_json,
)

__all__ = ["run"]


def run(
    model: ModelPath,
    train: Annotated[list[str], typer.Option(help="What users predict from; may be repeated.")],
    test: Annotated[list[str], typer.Option(help="Held-out ratings; may be repeated.")],
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    as_json: AsJson = False,
) -> None:
    """Measure accuracy (NOT PRIVATE). The figures come straight from held-out ratings."""
    import polars as pl

    from tacit.evaluation import evaluate
    from tacit.models import load
    from tacit.ratings import Ratings
    from tacit.tables import Columns, files_of, read_file

    found = load(model)
    columns = Columns(user_column, item_column, rating_column)
    rows = Ratings.from_file(
        train, rating_range=found.rating_range, columns=columns, catalogue=found.catalogue
    )
    tables = [pl.DataFrame(read_file(path, columns.roles)) for path in files_of(test)]
    held_out = pl.concat(tables, how="vertical_relaxed")
    accuracy = evaluate(found, rows, held_out)
    facts = {
        "rmse": accuracy.rmse,
        "mae": accuracy.mae,
        "ratings": accuracy.ratings,
        "users": accuracy.users,
        "skipped": accuracy.skipped,
        "label": "NOT PRIVATE",
    }
    if as_json:
        show_json(facts)
        return
    typer.echo("NOT PRIVATE: computed from held-out ratings, for the owner of the data")
    typer.echo(f"RMSE {accuracy.rmse:.4f}   MAE {accuracy.mae:.4f}")
    typer.echo(f"{accuracy.ratings} ratings of {accuracy.users} users, {accuracy.skipped} skipped")
