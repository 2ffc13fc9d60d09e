"""tacit refit: fit the ratings of today, and remember what earlier refits released."""

from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tacit.cli.fit import algorithm_of, report
from tacit.cli.options import (
    AsJson,
    Duplicates,
    FeatureNames,
    Force,
    ItemColumn,
    ItemsPath,
    RatingColumn,
    Settings,
    Strict,
    Threads,
    TitleColumn,
    TopItems,
    UnknownItemsName,
    UserColumn,
)
from tacit.cli.progress import Quiet
from tacit.cli.sources import Address, EngineName, Given, Listed, Source, Where, Workers, learned

__all__ = ["run"]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(
            metavar="RATINGS",
            help="CSV, TSV, :: (also .gz, .zip), Parquet, Arrow; a glob, or one store.",
        ),
    ],
    book: Annotated[Path, typer.Option(help="The lifetime book; it pays, and remembers.")],
    epsilon: Annotated[float, typer.Option(help="What this refit may spend.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.")],
    rating_range: Annotated[
        tuple[float, float] | None, typer.Option(help="LO HI: the public range of ratings.")
    ] = None,
    items: ItemsPath = None,
    title_column: TitleColumn = None,
    feature: FeatureNames = None,
    unknown_items: UnknownItemsName = "error",
    top_items: TopItems = None,
    algorithm: Annotated[str | None, typer.Option(help="moments; the default if left out.")] = None,
    settings: Settings = None,
    forget: Annotated[
        bool, typer.Option("--forget", help="Begin anew: use no earlier release.")
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder that lets a killed refit go on.")
    ] = None,
    threads: Threads = None,
    engine: EngineName = None,
    address: Address = None,
    workers: Workers = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Duplicates = "error",
    strict: Strict = False,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Refit: combine what is released now with earlier refits of the book. Writes a model file."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.book import Book
    from tacit.fitting.booked import reserved

    opened = Book(book)
    budget = PrivacyBudget(epsilon, opened.delta, opened.neighbours)
    where = Where(engine, threads, address, workers)
    where.check()
    columns = user_column, item_column, rating_column
    listed = Listed(items, title_column, feature)
    given = Given(rating_range, columns, duplicates, listed, unknown_items)
    config = algorithm_of(algorithm, settings or [], None) if algorithm or settings else None
    source = Source.of(ratings, given)
    read = source.reader(output, items, book, checkpoint=checkpoint, force=force)
    options: dict[str, Any] = {"checkpoint": checkpoint, "top_items": top_items}
    options |= {"epsilon": epsilon, "strict": strict, "forget": forget}
    from tacit.fitting.refit import refit

    with reserved(opened, budget, checkpoint, (), kind="refit") as place:
        options["book"] = place or opened
        model = learned(where, read, partial(refit, algorithm=config, **options))
    model.save(output, overwrite=force)
    report(model, output, as_json)
