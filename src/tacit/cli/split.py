"""tacit split: a file of ratings into one to fit on and one that is held out."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AsJson, ColumnNames, Force, Implicit, show_json
from tacit.cli.progress import Quiet, say
from tacit.cli.synth import check_tables, write_frame
from tacit.errors import DataError

if TYPE_CHECKING:
    import polars as pl

    from tacit.data.tables import Choice


def run(
    ratings: Annotated[
        list[str],
        typer.Argument(
            metavar="RATINGS", help="CSV, TSV, :: (also .gz, .zip), Parquet, Arrow; a glob."
        ),
    ],
    *,
    output: Annotated[
        Path,
        typer.Option("-o", "--output", help="Where ratings to fit on go (.parquet or .csv)."),
    ],
    test: Annotated[Path, typer.Option(help="Where held-out ratings go (.parquet or .csv).")],
    share: Annotated[float, typer.Option(help="The share of all ratings that is held out.")] = 0.1,
    by: Annotated[
        str, typer.Option(help="time (the latest of all ratings are held out) or random.")
    ] = "time",
    seed: Annotated[int, typer.Option(min=0, help="With --by random: the random seed.")] = 0,
    implicit: Implicit = False,
    names: ColumnNames,
    time_column: Annotated[
        str | None, typer.Option(help="The column of times: its name, or its position.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Split ratings into two files, one to fit and one to test.

    Columns are written as user, item, rating and time. Of pairs of user and item that would be in
    both files, only the rating to fit on is kept. Both files are people's ratings: neither is to be
    published.
    """
    from tacit.data.readers.registry import files_of
    from tacit.evaluation import split_table

    inputs = files_of(ratings)
    check_tables({"--output": output, "--test": test}, force, inputs)
    columns = names.columns
    wanted = {**(columns.pair if implicit else columns.roles), "time": time_column}
    table = _read(inputs, wanted, needs_time=by == "time" or time_column is not None)
    train, held_out = split_table(table, share=share, by=by, seed=seed)
    write_frame(train, output)
    write_frame(held_out, test)
    if as_json:
        show_json({"train": str(output), "test": str(test), "by": by, "share": share})
        return
    say(f"wrote {output} and {test}; both are private")
    say(f"tacit fit {output} ..., then tacit evaluate MODEL --train {output} --test {test}")


def _read(paths: list[Path], wanted: "dict[str, Choice]", *, needs_time: bool) -> "pl.DataFrame":
    """Read the wanted columns of all files; one of times may be missing where none is needed."""
    import polars as pl

    from tacit.data.readers.registry import read_file

    optional = frozenset() if needs_time else frozenset({"time"})
    try:
        tables = [pl.DataFrame(read_file(path, wanted, optional)) for path in paths]
    except DataError as error:
        if wanted["time"] is not None or not needs_time or "time column" not in str(error):
            raise
        raise DataError(f"{error} Without times: --by random") from None
    return pl.concat(tables, how="diagonal_relaxed")
