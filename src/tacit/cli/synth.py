"""tacit synth: synthetic ratings, drawn by a rule, at any size."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit._atomic import reason_of
from tacit.cli.options import AsJson, Force, show_json
from tacit.cli.progress import Quiet, say, status
from tacit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl


def run(
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Where the ratings go (.parquet or .csv).")
    ],
    kind: Annotated[
        str,
        typer.Option(
            help="rank-one (the paper's), tastes (realistic), or a family for experiments: "
            "popular, few, wide, sparse, missing-not-at-random."
        ),
    ] = "tastes",
    users: Annotated[
        int | None, typer.Option(help="How many users (20000, or what is usual for the family).")
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="How many items (400, or what is usual for the family).")
    ] = None,
    per_user: Annotated[
        int | None,
        typer.Option(
            "--per-user",
            help="Ratings a user: on average for tastes, the median for families (80, or usual).",
        ),
    ] = None,
    test: Annotated[Path | None, typer.Option(help="Where held-out ratings go.")] = None,
    titles: Annotated[
        Path | None, typer.Option("--items-out", help="Where the public list of items goes.")
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same ratings.")] = 0,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Synthesise ratings. The paper's rank-one matrix, a realistic catalogue, or a hard family."""
    from tacit.datasets.synthetic import synthesise

    check_tables({"--output": output, "--test": test, "--items-out": titles}, force)
    held_out = 0.01 if test else 0.0
    with status("drawing ratings"):
        made = synthesise(
            kind, users=users, items=items, per_user=per_user, seed=seed, test_fraction=held_out
        )
    write_frame(made.train, output)
    if test:
        write_frame(made.test, test)
    if titles:
        write_frame(made.items, titles)
    lo, hi = made.rating_range
    if as_json:
        written = {"train": output, "test": test, "items": titles, "rating_range": [lo, hi]}
        show_json(
            {name: str(path) if isinstance(path, Path) else path for name, path in written.items()}
        )
    else:
        say(f"wrote {output}; fit it with --rating-range {lo:g} {hi:g}")


def check_tables(files: dict[str, Path | None], force: bool, inputs: "Iterable[Path]" = ()) -> None:
    """Refuse names of no known form, and files that are there: nobody knows whose they are."""
    from tacit._outputs import Kind, Output, check_outputs

    given = [(name, path) for name, path in files.items() if path is not None]
    for name, path in given:
        if path.suffix not in {".parquet", ".csv"}:
            raise ConfigError(f"{name} {path}: expected a name that ends in .parquet or .csv")
    check_outputs([Output(name, path, Kind.RATINGS) for name, path in given], inputs, force=force)


def write_frame(frame: "pl.DataFrame", path: Path) -> None:
    """Write a frame as its file name says, whole or not at all."""
    from tacit._atomic import durable_file

    try:
        with durable_file(path) as file:
            frame.write_csv(file) if path.suffix == ".csv" else frame.write_parquet(file)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {reason_of(error)}") from None
