"""Many users' lists or predictions, from a file of ratings to a file; for recommend and predict."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

if TYPE_CHECKING:
    import polars as pl

    from tacit.data.ratings import Ratings
    from tacit.data.tables import Columns
    from tacit.models import Model

__all__ = ["BulkOutput", "Request", "ratings_of_all", "refuse_alone", "say_written", "write_frames"]

BulkOutput = Annotated[
    Path | None,
    typer.Option(
        "--output",
        "-o",
        help="For many users at once: --ratings has columns user, item, rating, and everyone's "
        "result goes to this file (.parquet or .csv).",
    ),
]
_FORMATS = (".parquet", ".csv")


class Request(NamedTuple):
    """What is read and written for many users."""

    output: Path
    inputs: "list[Path]"
    columns: "Columns"
    duplicates: str

    @classmethod
    def checked(
        cls, output: Path, ratings: Path | None, others: Iterable[Path], given: tuple[Any, ...]
    ) -> "Request":
        """Refuse what would be lost before anything is read.

        `given` are the columns, --duplicates and --force.
        """
        from tacit._outputs import Kind, Output, check_outputs
        from tacit.data.readers.registry import files_of
        from tacit.data.tables import Columns
        from tacit.errors import ConfigError

        *names, duplicates, force = given
        if ratings is None:
            raise ConfigError(f"-o {output}: give everyone's ratings with --ratings")
        if output.suffix.lower() not in _FORMATS:
            raise ConfigError(f"-o {output}: expected a name that ends in .parquet or .csv")
        inputs = files_of(ratings)
        check_outputs([Output("-o", output, Kind.RATINGS)], [*inputs, *others], force=force)
        return cls(output, inputs, Columns(*names), duplicates)


def refuse_alone(given: dict[str, bool]) -> None:
    """Refuse options that say something about many users, where there is one."""
    from tacit.errors import ConfigError

    for name, there in given.items():
        if there:
            raise ConfigError(f"{name} goes with -o FILE, for many users; leave it out, or give -o")


def ratings_of_all(model: "Model", request: Request) -> "tuple[Ratings, int]":
    """Read everyone's ratings, and count those of items that the model does not have."""
    from tacit.data.build import Rules
    from tacit.data.ratings import Ratings
    from tacit.data.readers.registry import read_file
    from tacit.errors import UnknownItemsError

    scale = None if model.implicit else model.rating_range
    columns = request.columns
    roles = columns.pair if model.implicit else columns.roles

    def read(unknown: str) -> Ratings:
        rules = Rules.checked(scale, request.duplicates, model.catalogue, model.implicit, unknown)
        tables = [read_file(path, roles) for path in request.inputs]
        return Ratings.of_tables(tables, replace(rules, fewest_users=1))

    try:
        return read("error"), 0
    except UnknownItemsError as error:
        return read("drop"), error.rows


def write_frames(output: Path, schema: "dict[str, Any]", frames: "Iterator[pl.DataFrame]") -> None:
    """Write frames to a file as they come; it is there whole or not at all."""
    import polars as pl
    from polars.io.plugins import register_io_source

    from tacit._atomic import durable_file
    from tacit.errors import ConfigError

    def source(*_: object) -> "Iterator[pl.DataFrame]":
        return frames

    lazy = register_io_source(source, schema=schema)
    try:
        with durable_file(output) as file:
            if output.suffix.lower() == ".csv":
                lazy.sink_csv(file)
            else:
                lazy.sink_parquet(file)
    except pl.exceptions.ComputeError:  # what polars makes of an error of the file it writes to
        raise ConfigError(f"{output}: cannot be written; is the disk full?") from None


def say_written(request: Request, left_out: int) -> None:
    """Say what was written, and how many ratings are of items that the model does not have."""
    typer.echo(f"wrote {request.output}")
    if left_out:
        typer.echo(f"{left_out} ratings left out: the model does not have their items")
