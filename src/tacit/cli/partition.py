"""tacit partition: ratings of any size and order into a store, which tacit fit streams."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import (
    AsJson,
    Duplicates,
    FeatureNames,
    Implicit,
    ItemColumn,
    ItemsPath,
    RatingColumn,
    TitleColumn,
    UnknownItemsName,
    UserColumn,
    show_json,
)
from tacit.cli.progress import stages
from tacit.cli.sources import Given, Listed

__all__ = ["run"]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(metavar="RATINGS", help="CSV, TSV, :: or Parquet files, or a glob."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the store.")],
    rating_range: Annotated[
        tuple[float, float] | None, typer.Option(help="LO HI: the public range of ratings.")
    ] = None,
    implicit: Implicit = False,
    items: ItemsPath = None,
    title_column: TitleColumn = None,
    feature: FeatureNames = None,
    unknown_items: UnknownItemsName = "error",
    shards: Annotated[
        int | None, typer.Option(help="How many shards (about 8 million ratings each).")
    ] = None,
    user_column: UserColumn = None,
    item_column: ItemColumn = None,
    rating_column: RatingColumn = None,
    duplicates: Duplicates = "error",
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring ratings into a store on disk, by user. It may be larger than memory.

    The store holds everyone's ratings. It is private: its folder is readable by its owner only.
    """
    from tacit.data.partition import partition
    from tacit.data.ratings import Columns

    columns = user_column, item_column, rating_column
    listed = Listed(items, title_column, feature)
    given = Given(rating_range, columns, duplicates, listed, unknown_items, implicit)
    given.check_features()
    with stages() as tell:
        store = partition(
            list(ratings),
            output,
            rating_range=rating_range,
            columns=Columns(*columns),
            duplicates=duplicates,  # type: ignore[arg-type]  # checked there
            catalogue=given.catalogue(),
            unknown_items=unknown_items,  # type: ignore[arg-type]  # checked there
            implicit=implicit,
            shards=shards,
            progress=lambda share: tell("partition", 0, 1, share),
            overwrite=force,
        )
    if as_json:
        show_json({"store": str(output), "private": False, "shards": len(store.shards)})
    else:
        typer.echo(f"wrote {output}, which holds everyone's ratings: keep it private")
        typer.echo(f"fit it with: tacit fit {output} --epsilon E -o model.tacit")
