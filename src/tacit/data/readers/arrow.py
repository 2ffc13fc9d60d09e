"""Arrow IPC files (Feather, version 2): read by polars, wanted columns only."""

from collections.abc import Mapping
from pathlib import Path

import polars as pl

from tacit._resources import physical_memory
from tacit.data.tables import Choice, Table, places_of, refusing
from tacit.errors import DataError

_CELL = 8


def read_arrow(path: Path, wanted: Mapping[str, Choice], optional: frozenset[str]) -> Table:
    """The wanted roles of an Arrow IPC file.

    Declared lengths are checked by polars itself; how many rows there may be, and so how much
    a small file can unpack to, is checked here.
    """
    with path.open("rb") as stream:
        if stream.read(4) == b"FEA1":
            raise DataError(
                f"{path}: Feather version 1, which few programs still read; write it again as "
                "Parquet, or as Feather version 2"
            )
    trouble = f"{path}: no whole Arrow IPC file (cut short, damaged, or of another format)"
    with refusing(trouble):
        lazy = pl.scan_ipc(path, glob=False)
        names = list(lazy.collect_schema())
        rows = int(lazy.select(pl.len()).collect().item())
    places = places_of(str(path), names, wanted, optional)
    if rows * _CELL * len(places) > physical_memory():
        raise DataError(f"{path}: {rows:,} rows are more than this machine has memory for")
    with refusing(trouble):
        frame = lazy.select([names[k] for k in places.values()]).collect()
    return {role: frame.get_column(names[k]) for role, k in places.items()}
