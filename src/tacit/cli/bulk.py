"""Many users' lists or predictions, from a file of ratings to a file; for recommend and predict."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from tacit.cli.options import Layout
from tacit.cli.sources import own_ratings
from tacit.errors import ConfigError

if TYPE_CHECKING:
    import polars as pl

    from tacit.data.ratings import Ratings
    from tacit.models import Model

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
    layout: Layout

    @classmethod
    def checked(
        cls,
        output: Path,
        ratings: Path | None,
        others: Iterable[Path],
        layout: Layout,
        force: bool,
    ) -> "Request":
        """Refuse what would be lost before anything is read."""
        from tacit._outputs import Kind, Output, check_outputs
        from tacit.data.readers.registry import files_of

        if ratings is None:
            raise ConfigError(f"-o {output}: give everyone's ratings with --ratings")
        if output.suffix.lower() not in _FORMATS:
            raise ConfigError(f"-o {output}: expected a name that ends in .parquet or .csv")
        inputs = files_of(ratings)
        check_outputs([Output("-o", output, Kind.RATINGS)], [*inputs, *others], force=force)
        return cls(output, inputs, layout)

    def ratings_for(self, model: "Model") -> "tuple[Ratings, int]":
        """Read everyone's ratings, and count those of items that the model does not have."""
        return own_ratings(model, self.inputs, self.layout)

    def write(
        self, schema: "dict[str, Any]", frames: "Iterator[pl.DataFrame]", left_out: int
    ) -> None:
        """Write frames to the file as they come, whole or not at all, and say so.

        `left_out` ratings are of items that the model does not have.
        """
        import polars as pl
        from polars.io.plugins import register_io_source

        from tacit._atomic import durable_file

        def source(*_: object) -> "Iterator[pl.DataFrame]":
            return frames

        lazy = register_io_source(source, schema=schema)
        try:
            with durable_file(self.output) as file:
                if self.output.suffix.lower() == ".csv":
                    lazy.sink_csv(file)
                else:
                    lazy.sink_parquet(file)
        except pl.exceptions.ComputeError:  # what polars makes of an error of the file it writes to
            raise ConfigError(f"{self.output}: cannot be written; is the disk full?") from None
        typer.echo(f"wrote {self.output}")
        if left_out:
            typer.echo(f"{left_out} ratings left out: the model does not have their items")


def refuse_alone(layout: Layout, others: dict[str, bool]) -> None:
    """Refuse options that say something about many users, where there is one."""
    twice = layout.duplicates != "error"
    given = {"--user-column": bool(layout.user_column), "--duplicates": twice, **others}
    for name, there in given.items():
        if there:
            raise ConfigError(f"{name} goes with -o FILE, for many users; leave it out, or give -o")
