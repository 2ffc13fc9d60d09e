"""tacit refit: fit the ratings of today, and remember what earlier refits released."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.fit import algorithm_of, checked_files, report, with_bar
from tacit.cli.options import (
    AsJson,
    Duplicates,
    Force,
    ItemColumn,
    ItemsPath,
    RatingColumn,
    Settings,
    Strict,
    Threads,
    TopItems,
    UnknownItemsName,
    UserColumn,
)

__all__ = ["run"]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(metavar="RATINGS...", help="CSV, TSV, :: or Parquet files, or a glob."),
    ],
    book: Annotated[Path, typer.Option(help="The lifetime book; it pays, and remembers.")],
    epsilon: Annotated[float, typer.Option(help="What this refit may spend.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the model goes.")],
    rating_range: Annotated[
        tuple[float, float] | None, typer.Option(help="LO HI: the public range of ratings.")
    ] = None,
    items: ItemsPath = None,
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
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Duplicates = "error",
    strict: Strict = False,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Refit: combine what is released now with earlier refits of the book. Writes a model file."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.book import Book
    from tacit.fitting.booked import reserved

    opened = Book(book)
    budget = PrivacyBudget(epsilon, opened.delta, opened.neighbours)
    config = algorithm_of(algorithm, settings or [], None) if algorithm or settings else None
    paths = checked_files(ratings, output, [items, book], checkpoint=checkpoint, force=force)
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Columns, Ratings
    from tacit.engines import ThreadEngine
    from tacit.fitting.refit import refit

    engine = ThreadEngine(threads)
    with reserved(opened, budget, checkpoint, (), kind="refit") as place:
        rows = Ratings.from_file(
            paths,
            rating_range=rating_range,
            columns=Columns(user_column, item_column, rating_column),
            duplicates=duplicates,  # type: ignore[arg-type]  # checked there
            catalogue=Catalogue.from_file(items) if items else None,
            unknown_items=unknown_items,  # type: ignore[arg-type]  # checked there
        )
        model = with_bar(
            lambda bar: refit(
                rows, config, book=place or opened, epsilon=epsilon, engine=engine,
                checkpoint=checkpoint, progress=bar, top_items=top_items, strict=strict,
                forget=forget,
            )
        )  # fmt: skip
    model.save(output, overwrite=force)
    report(model, output, as_json)
