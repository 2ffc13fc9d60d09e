"""tacit evaluate: accuracy on held-out ratings, for the owner of the data. NOT PRIVATE."""

from typing import Annotated

import typer

from tacit.cli.options import AsJson, ModelPath, show_json

__all__ = ["run"]


def run(
    model: ModelPath,
    train: Annotated[
        list[str], typer.Option(help="Ratings that users predict from; may be repeated.")
    ],
    test: Annotated[list[str], typer.Option(help="Held-out ratings; may be repeated.")],
    as_json: AsJson = False,
) -> None:
    """Measure a model on held-out ratings. The figures come straight from them: NOT PRIVATE."""
    from tacit.evaluation import evaluate
    from tacit.models import load
    from tacit.ratings import Ratings

    found = load(model)
    rows = [
        Ratings.from_file(source, rating_range=found.rating_range, catalogue=found.catalogue)
        for source in (train, test)
    ]
    accuracy = evaluate(found, *rows)
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
