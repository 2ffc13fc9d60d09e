"""tacit partition: ratings of any size and order into a store, which tacit fit streams."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson, show_json
from tacit.cli.progress import stages
from tacit.cli.sources import GivenOrImplicit


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(metavar="RATINGS", help="CSV, TSV, :: or Parquet files, or a glob."),
    ],
    *,
    output: Annotated[Path, typer.Option("-o", "--output", help="The folder of the store.")],
    given: GivenOrImplicit,
    shards: Annotated[
        int | None, typer.Option(help="How many shards (about 8 million ratings each).")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a store that is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Bring ratings into a store on disk, by user. It may be larger than memory.

    The store holds everyone's ratings. It is private: its folder is readable by its owner only.
    """
    from tacit.data.partition import partition

    given.check_features()
    with stages() as tell:
        store = partition(
            list(ratings),
            output,
            **given.for_reading(),
            shards=shards,
            progress=lambda share: tell("partition", 0, 1, share),
            overwrite=force,
        )
    if as_json:
        show_json({"store": str(output), "private": False, "shards": len(store.shards)})
    else:
        typer.echo(f"wrote {output}, which holds everyone's ratings: keep it private")
        typer.echo(f"fit it with: tacit fit {output} --epsilon E -o model.tacit")
