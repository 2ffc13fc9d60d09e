"""Parquet files: looked at by the guard, then read by polars, wanted columns only."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from tacit.data.readers.guard import checked_footer
from tacit.data.tables import Choice, Table, places_of, refusing

__all__ = ["parquet_batches", "parquet_rows", "read_parquet"]


def read_parquet(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of a Parquet file."""
    footer = checked_footer(path)
    trouble = f"{path}: no whole Parquet file (cut short, damaged, or of another format)"
    with refusing(trouble):
        lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        names = list(lazy.collect_schema())
    places = places_of(str(path), names, wanted, optional)
    picked = [names[k] for k in places.values()]
    footer.check_columns(picked)
    with refusing(trouble):
        frame = lazy.select(picked).collect()
    return {role: frame.get_column(names[k]) for role, k in places.items()}


def parquet_batches(
    path: Path, wanted: Mapping[str, Choice], rows: int
) -> Iterator[tuple[Table, float]]:
    """The wanted roles, so many rows at a time, each with the share of the file that was read."""
    footer = checked_footer(path)
    trouble = f"{path}: no whole Parquet file (cut short, damaged, or of another format)"
    with refusing(trouble):
        lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        names = list(lazy.collect_schema())
    places = places_of(str(path), names, wanted, frozenset())
    picked = [names[k] for k in places.values()]
    footer.check_columns(picked, in_groups=True)
    total = footer.rows(picked[0])
    for start in range(0, max(total, 1), rows):
        with refusing(trouble):
            frame = lazy.select(picked).slice(start, rows).collect()
        share = min(1.0, (start + rows) / max(total, 1))
        yield {role: frame.get_column(names[k]) for role, k in places.items()}, share


def parquet_rows(path: Path) -> int:
    """How many rows a Parquet file says it has."""
    chunks = checked_footer(path).chunks
    return sum(chunk.values for chunk in chunks if chunk.name == chunks[0].name)
