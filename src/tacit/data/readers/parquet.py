"""Parquet files: looked at by the guard, then read by polars, wanted columns only."""

from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from tacit.data.readers.guard import Footer, checked_footer
from tacit.data.tables import Choice, Table, places_of, refusing


def read_parquet(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of a Parquet file."""
    footer, lazy, columns = _opened(path, wanted, optional)
    footer.check_columns(columns.values())
    return _collected(path, lazy, columns)


def parquet_batches(
    path: Path, wanted: Mapping[str, Choice], rows: int
) -> Iterator[tuple[Table, float]]:
    """The wanted roles, so many rows at a time, each with the share of the file that was read."""
    footer, lazy, columns = _opened(path, wanted, frozenset())
    footer.check_columns(columns.values(), in_groups=True)
    total = max(footer.rows(next(iter(columns.values()))), 1)
    for start in range(0, total, rows):
        table = _collected(path, lazy.slice(start, rows), columns)
        yield table, min(1.0, (start + rows) / total)


def _opened(
    path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]
) -> tuple[Footer, pl.LazyFrame, dict[str, str]]:
    """The footer, what polars is to read, and the column of each role."""
    footer = checked_footer(path)
    with refusing(_trouble(path)):
        lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
        names = list(lazy.collect_schema())
    places = places_of(str(path), names, wanted, optional)
    return footer, lazy, {role: names[k] for role, k in places.items()}


def _collected(path: Path, lazy: pl.LazyFrame, columns: Mapping[str, str]) -> Table:
    with refusing(_trouble(path)):
        frame = lazy.select(columns.values()).collect()
    return {role: frame.get_column(name) for role, name in columns.items()}


def _trouble(path: Path) -> str:
    return f"{path}: no whole Parquet file (cut short, damaged, or of another format)"


def parquet_rows(path: Path) -> int:
    """How many rows a Parquet file says it has."""
    chunks = checked_footer(path).chunks
    return sum(chunk.values for chunk in chunks if chunk.name == chunks[0].name)
