"""tacit evaluate: quality on held-out ratings, for the owner of the data. NOT PRIVATE."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.lists import show_lists
from tacit.cli.options import (
    AsJson,
    ItemColumn,
    ModelPath,
    RatingColumn,
    UserColumn,
    show_json,
)

if TYPE_CHECKING:
    from tacit.evaluation import Accuracy, Calibration, Ranking

__all__ = ["run"]


def run(
    model: ModelPath,
    train: Annotated[list[str], typer.Option(help="What users predict from; may be repeated.")],
    test: Annotated[list[str], typer.Option(help="Held-out ratings; may be repeated.")],
    k: Annotated[
        int | None, typer.Option("--k", help="Length of lists; 10, or all items if fewer.")
    ] = None,
    relevant: Annotated[
        float | None, typer.Option(help="Ratings from here on are good; 0.7 up the range if none.")
    ] = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    as_json: AsJson = False,
) -> None:
    """Measure quality (NOT PRIVATE). The figures come straight from held-out ratings."""
    import polars as pl

    from tacit.evaluation import calibrate, evaluate
    from tacit.models import load
    from tacit.ratings import Ratings
    from tacit.tables import Columns, files_of, read_file

    found = load(model)
    columns = Columns(user_column, item_column, rating_column)
    rows = Ratings.from_file(
        train,
        rating_range=None if found.implicit else found.rating_range,
        columns=columns,
        catalogue=found.catalogue,
        implicit=found.implicit,
    )
    roles = columns.pair if found.implicit else columns.roles
    tables = [pl.DataFrame(read_file(path, roles)) for path in files_of(test)]
    held_out = pl.concat(tables, how="vertical_relaxed")
    length = min(10, len(found.catalogue)) if k is None else k
    if found.implicit:
        show_lists(found, rows, held_out, length, as_json)
        return
    accuracy = evaluate(found, rows, held_out)
    ranking = _ranking((found, rows, held_out, length, relevant))
    calibration = calibrate(found, rows, held_out) if found.knows_std else None
    if as_json:
        _show_json(accuracy, ranking, calibration)
    else:
        _show(accuracy, ranking, calibration)


def _ranking(arguments: tuple[Any, ...]) -> "Ranking | None":
    """Rank; None if no held-out rating is relevant, which is no reason to show nothing at all."""
    from tacit.errors import DataError
    from tacit.evaluation import rank

    try:
        return rank(*arguments)
    except DataError:
        return None


def _show_json(
    accuracy: "Accuracy", ranking: "Ranking | None", calibration: "Calibration | None"
) -> None:
    parts = {"ranking": ranking, "calibration": calibration}
    facts = accuracy.to_json()
    del facts["notice"]
    facts |= {name: part and part.to_json() for name, part in parts.items()}
    show_json(facts | {"label": "NOT PRIVATE"})


def _show(
    accuracy: "Accuracy", ranking: "Ranking | None", calibration: "Calibration | None"
) -> None:
    """Print one table for a person, and what it was measured on."""
    from rich.console import Console
    from rich.table import Table

    typer.echo("NOT PRIVATE: computed from held-out ratings, for the owner of the data")
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("measure")
    table.add_column("found", justify="right")
    if calibration is not None:
        table.add_column("if stds were right", justify="right")
    for name, *values in _rows(accuracy, ranking, calibration):
        table.add_row(name, *(f"{value:.4f}" for value in values))
    Console(soft_wrap=True, markup=False, highlight=False).print(table)
    typer.echo(f"{accuracy.ratings} ratings of {accuracy.users} users, {accuracy.skipped} skipped")
    if ranking is None:
        typer.echo("no ranking: no held-out rating is high enough; give a lower --relevant")
    else:
        good = f"a rating of at least {ranking.relevant:g}"
        typer.echo(f"lists of {ranking.k} for {ranking.lists} users, {ranking.people} with {good}")
    if calibration is None:
        typer.echo("no stds: the local rule of this model knows no uncertainty")


def _rows(
    accuracy: "Accuracy", ranking: "Ranking | None", calibration: "Calibration | None"
) -> list[tuple[str, *tuple[float, ...]]]:
    """Name every figure; those of the stds stand beside what they should be."""
    rows: list[tuple[str, *tuple[float, ...]]] = [("RMSE", accuracy.rmse), ("MAE", accuracy.mae)]
    if ranking is not None:
        rows += [
            (f"NDCG@{ranking.k}", ranking.ndcg),
            (f"recall@{ranking.k}", ranking.recall),
            (f"coverage@{ranking.k}", ranking.coverage),
        ]
    if calibration is not None:
        rows += [
            ("within 1 std", calibration.within_one, calibration.expected_one),
            ("within 2 stds", calibration.within_two, calibration.expected_two),
            ("mean square of error/std", calibration.mean_square, calibration.expected_square),
        ]
        rows += [
            (f"RMSE where std is about {tenth.std:.3f}", tenth.rmse, tenth.expected)
            for tenth in calibration.deciles
        ]
    return rows
