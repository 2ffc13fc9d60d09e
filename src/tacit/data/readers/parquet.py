"""Parquet files: looked at by the guard, then read by polars, wanted columns only."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tacit.data.readers.guard import checked_footer
from tacit.data.tables import Choice, Table, places_of, refusing

__all__ = ["read_parquet"]


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
