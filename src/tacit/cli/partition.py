"""tacit partition: ratings of any size and order into a store, which tacit fit streams."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import (
    AsJson,
    Duplicates,
    FeatureNames,
    Implicit,
    ItemColumn,
    ItemsPath,
    RatingColumn,
    UnknownItemsName,
    UserColumn,
    show_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tacit.data.store import Store

__all__ = ["run", "with_time_left"]


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(metavar="RATINGS...", help="CSV, TSV, :: or Parquet files, or a glob."),
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the store.")],
    rating_range: Annotated[
        tuple[float, float] | None, typer.Option(help="LO HI: the public range of ratings.")
    ] = None,
    implicit: Implicit = False,
    items: ItemsPath = None,
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
    from tacit.data.catalogue import Catalogue
    from tacit.data.partition import partition
    from tacit.data.ratings import Columns
    from tacit.errors import ConfigError

    if feature and items is None:
        raise ConfigError(f"--feature {feature[0]}: it is a column of --items FILE; give that too")
    catalogue = Catalogue.from_file(items, features=feature or ()) if items else None
    store = with_time_left(
        "partition",
        lambda tell: partition(
            list(ratings),
            output,
            rating_range=rating_range,
            columns=Columns(user_column, item_column, rating_column),
            duplicates=duplicates,  # type: ignore[arg-type]  # checked there
            catalogue=catalogue,
            unknown_items=unknown_items,  # type: ignore[arg-type]  # checked there
            implicit=implicit,
            shards=shards,
            progress=tell,
            overwrite=force,
        ),
    )
    if as_json:
        show_json({"store": str(output), "private": False, "shards": len(store.shards)})
    else:
        typer.echo(f"wrote {output}, which holds everyone's ratings: keep it private")
        typer.echo(f"fit it with: tacit fit {output} --epsilon E -o model.tacit")


def with_time_left(name: str, work: "Callable[[Callable[[float], None]], Store]") -> "Store":
    """Work with a bar that shows the share that is done, and about how long the rest takes."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn
    from rich.progress import TimeRemainingColumn as TimeLeft

    columns = TextColumn(name), BarColumn(), TaskProgressColumn(), TimeLeft(), TextColumn("left")
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0)
        return work(lambda share: bar.update(task, completed=share))
