"""The quick way in, for large Parquet files that are sorted by user, as most are.

Ratings are taken over batch by batch while the file is being read, so that they are never in
memory twice. Whatever is out of the ordinary, wrong ratings included, ends this way in without
a word, and the files are read again in the general way, which sorts, and says what is wrong.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tacit.assembly import (
    Parts,
    Rules,
    any_unknown,
    check_rows,
    placed,
    refuse_fewer_than_two,
    stored_range,
)
from tacit.ids import Numbered
from tacit.parquet_guard import checked_footer
from tacit.tables import Columns, head_of, is_parquet, places_of
from tacit.text_tables import attempt

if TYPE_CHECKING:
    from tacit.kernels.ordered import OrderedRows

__all__ = ["read_ordered"]

_FEWEST = 1 << 20
"""With fewer ratings than this the general way is as quick."""

_PEEK = 1000
_INTEGERS = (pl.Int32, pl.Int64, pl.UInt32)
_FLOATS = (pl.Float32, pl.Float64)
_MOST_ITEMS = 1 << 24


@dataclass(frozen=True)
class _Query:
    """The three columns of a Parquet file, not yet read."""

    lazy: pl.LazyFrame
    names: dict[str, str]
    signed: bool
    rows: int
    peek: pl.DataFrame


def read_ordered(paths: Sequence[Path], columns: Columns, rules: Rules) -> Parts | None:
    """Read Parquet files that are sorted by user; None if they are not, or not plain enough."""
    found = [attempt(partial(_query, path, columns)) for path in paths]
    queries = [query for query in found if query is not None]
    if len(queries) < len(paths) or sum(query.rows for query in queries) < _FEWEST:
        return None
    rows = attempt(lambda: _taken_over(queries, rules))
    return None if rows is None else _finished(rows, queries[0].names, rules)


def _query(path: Path, columns: Columns) -> _Query | None:
    """Prepare to read a file, if it is Parquet with plain columns and begins in order."""
    if not is_parquet(path, head_of(path)):
        return None
    footer = checked_footer(path)
    lazy = pl.scan_parquet(path, glob=False, hive_partitioning=False)
    schema = lazy.collect_schema()
    names = list(schema)
    chosen = {role: names[k] for role, k in places_of(str(path), names, columns.roles).items()}
    kinds = [schema[name] for name in chosen.values()]
    if kinds[0] not in _INTEGERS or kinds[1] not in _INTEGERS or kinds[2] not in _FLOATS:
        return None
    footer.check_columns(chosen.values())
    lazy = lazy.select(chosen.values())
    peek = lazy.head(_PEEK).collect()
    if not peek.get_column(chosen["user"]).is_sorted():
        return None
    rows = int(lazy.select(pl.len()).collect().item())
    return _Query(lazy, chosen, kinds[0] != pl.UInt32, rows, peek)


def _taken_over(queries: Sequence[_Query], rules: Rules) -> "OrderedRows | None":
    """Take over all batches, or None as soon as one does not fit."""
    from tacit.kernels.ordered import OrderedRows

    values = queries[0].peek.to_series(2)
    limits = tuple(values.to_numpy().dtype.type(bound) for bound in rules.rating_range)
    stored = stored_range(*rules.rating_range)
    total = sum(query.rows for query in queries)
    rows = OrderedRows(total, _room_for_items(queries, rules), (*limits, *stored))
    for query in queries:
        if query.peek.dtypes[2] != values.dtype:
            return None
        for batch in query.lazy.collect_batches(maintain_order=True):
            if not _appended(rows, batch, query.signed):
                return None
    return rows if rows.complete else None


def _room_for_items(queries: Sequence[_Query], rules: Rules) -> int:
    """How many item numbers to allow: 16 bits of them, unless the first ratings show more."""
    highest = max(int(query.peek.to_series(1).max() or 0) for query in queries)  # type: ignore[arg-type]
    few = highest < 1 << 16 and (rules.catalogue is None or len(rules.catalogue) <= 1 << 16)
    return 1 << 16 if few else _MOST_ITEMS


def _appended(rows: "OrderedRows", batch: pl.DataFrame, signed: bool) -> bool:
    """Hand over one batch; say whether it fits."""
    if any(column.null_count() for column in batch):
        return False
    users, items, values = (column.rechunk().to_numpy() for column in batch)
    users, items = (
        array.view(np.int32) if array.dtype == np.uint32 else array for array in (users, items)
    )
    return rows.append(users, items, values, signed=signed)


def _finished(rows: "OrderedRows", names: dict[str, str], rules: Rules) -> Parts | None:
    """Find the catalogue, then sort, merge and check as in the general way.

    None if items are unknown that must not be: the general way counts them and says so.
    """
    occur = rows.items
    numbers = Numbered([], 0, int(occur[-1]) + 1)
    catalogue, positions = placed(numbers, occur, rules.catalogue)
    if rules.unknown_items == "error" and any_unknown(occur, positions):
        return None
    refuse_fewer_than_two(names["item"], "item", len(catalogue))
    users = rows.users
    merged = rows.finish(positions, len(catalogue), rules.duplicates == "mean")
    check_rows(merged, names, rules.duplicates)
    refuse_fewer_than_two(names["user"], "user", users.size)
    return Parts(catalogue, pl.Series("user", users), *merged.packed(np.arange(users.size)))
