"""partition: ratings in files of any order and size in, a store of shards by user out.

Two passes, neither of which holds all ratings:

1. Files are read a batch at a time. A user's shard is a hash of her id, and what is read goes to a
   scratch file of its shard.
2. Each scratch file is read whole, put into rows, checked as `Ratings` checks them, and written.

So memory is that of a batch or a shard, whichever is larger. The scratch files hold everyone's
ratings: they lie within the store's private folder, and are removed as they are used up.
"""

import shutil
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._atomic import make_folder
from tacit._validate import Range, check
from tacit.data.build import (
    NO_ROWS,
    Duplicates,
    RatingRange,
    Rules,
    UnknownItems,
    assembled,
    check_values,
    joined,
    with_ones,
)
from tacit.data.catalogue import Catalogue
from tacit.data.ids import clean_ids, cuts_of, join_ids, pieces_of, unify_ids
from tacit.data.ratings import Ratings, columns_of
from tacit.data.readers.registry import files_of, read_batches, rows_about
from tacit.data.store import Store
from tacit.data.store_writer import SCRATCH, StoreWriter, check_folder
from tacit.data.tables import ColumnChoice, Columns, Table
from tacit.errors import ConfigError, DataError, UnknownItemsError

RATINGS_A_SHARD = 8_000_000
"""How many ratings a shard has, about, when the caller does not say how many shards to make."""
_BATCH = 4_000_000
_MOST_SHARDS = 65_536
_FIRST_PASS = 0.5  # of the time, as it is shown
_GUESS = Columns()
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_INTEGER = r"^(0|-?[1-9][0-9]*)$"

Progress = Callable[[float], None]
"""Called with the share of the work that is done, from 0 to 1."""


def partition(
    source: str | PathLike[str] | list[str | PathLike[str]],
    folder: str | PathLike[str],
    *,
    rating_range: RatingRange | None = None,
    columns: ColumnChoice = _GUESS,
    duplicates: Duplicates = "error",
    catalogue: Catalogue | None = None,
    unknown_items: UnknownItems = "error",
    implicit: bool = False,
    shards: int | None = None,
    progress: Progress | None = None,
    overwrite: bool = False,
) -> Store:
    """Write a store of the ratings in some files, which may be larger than memory and unsorted.

    Args:
        source: as in `Ratings.from_file`, and so are the next six.
        folder: where the store goes: a new folder, or an empty one.
        rating_range: (lowest, highest) rating that is possible, or the name of a dataset.
        columns: which columns to read.
        duplicates: what to do with a user's second rating of an item.
        catalogue: the public list of items.
        unknown_items: what to do with ratings of other items.
        implicit: whether there are no ratings, only users and items.
        shards: into how many; None is so many that each has about 8 million ratings.
        progress: called with the share of the work that is done.
        overwrite: whether a store that is there may be replaced.
    """
    rules = Rules.checked(rating_range, duplicates, catalogue, implicit, unknown_items)
    check("shards", shards, Annotated[int, Range(1, _MOST_SHARDS)] | None)
    roles = columns_of(columns, implicit)
    paths, place = files_of(source), check_folder(folder, overwrite=overwrite)
    _refuse_inputs_within(place, paths)
    count = shards or _shards_for(paths)
    tell = progress or _tell_nobody
    known = catalogue or Catalogue(pl.Series([0, 1]), public=False)  # until all were seen
    given = None if implicit else rules.rating_range
    writer = StoreWriter(place, given, known, implicit=implicit, overwrite=overwrite)
    with writer:
        scratch = _Scratch(place / SCRATCH, count)
        scatter = _Scatter(rules, scratch)
        for at, path in enumerate(paths):
            for table, share in read_batches(path, roles, _BATCH):
                scatter.take(table)
                tell(_FIRST_PASS * (at + share) / len(paths))
        found = scatter.catalogue()
        writer.use(found)
        part = replace(rules, catalogue=found, fewest_users=0)
        for number in range(count):
            _settle(scratch, number, part, writer, as_text=scatter.text_users)
            tell(_FIRST_PASS + (1 - _FIRST_PASS) * (number + 1) / count)
        scratch.remove()
    return Store.open(place)


def _tell_nobody(_share: float) -> None:
    pass


def _shards_for(paths: list[Path]) -> int:
    """How many shards files of this size should have."""
    rows = sum(rows_about(path) for path in paths)
    return min(max(1, -(-rows // RATINGS_A_SHARD)), _MOST_SHARDS)


def _refuse_inputs_within(folder: Path, paths: list[Path]) -> None:
    """Refuse a store in whose folder an input lies: it is cleared before anything is written."""
    place = folder.resolve()
    for path in paths:
        if path.resolve().is_relative_to(place):
            raise ConfigError(f"store {folder}: the input {path} lies in it; give another folder")


class _Scratch:
    """One file a shard, for what belongs to it, in the order in which it was read."""

    def __init__(self, folder: Path, shards: int) -> None:
        self.folder, self.shards = folder, shards
        make_folder(folder)

    def add(self, frame: pl.DataFrame, shard: NDArray[np.uint16]) -> None:
        """Add every row to the file of its shard."""
        marked = frame.with_columns(pl.Series("shard", shard))
        parts = marked.partition_by("shard", as_dict=True, include_key=False, maintain_order=True)
        for (number,), rows in parts.items():
            content = BytesIO()
            rows.write_ipc(content, compression="lz4")
            with self._path(number).open("ab") as file:
                file.write(struct.pack("<Q", content.tell()))
                file.write(content.getbuffer())

    def take(self, number: int) -> Iterator[pl.DataFrame]:
        """Return what was added for a shard, and let go of its file."""
        path = self._path(number)
        if not path.exists():
            return
        with path.open("rb") as file:
            while size := file.read(8):
                yield pl.read_ipc(BytesIO(file.read(struct.unpack("<Q", size)[0])))
        path.unlink()

    def remove(self) -> None:
        """Remove what is left."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self.folder / f"part-{number:05d}"


@dataclass
class _Scatter:
    """The first pass: cleans what is read, and brings it to its shard."""

    rules: Rules
    scratch: _Scratch
    text_users: bool = False
    _items: pl.Series | None = None
    _rows: int = 0

    def take(self, table: Table) -> None:
        """Take a batch of rows."""
        if not len(table["user"]):
            return
        names = {role: column.name for role, column in table.items()}
        clean = joined([with_ones(table) if self.rules.implicit else table])
        rating = clean["rating"]
        check_values(pieces_of(rating, cuts_of([rating])), rating.name, self.rules.rating_range)
        self._see(clean["item"], names["item"])
        self.text_users |= clean["user"].dtype == pl.String
        self._rows += len(rating)
        shard = _hashed(clean["user"], self.scratch.shards)
        self.scratch.add(pl.DataFrame([clean[r].alias(r) for r in clean]), shard)

    def catalogue(self) -> Catalogue:
        """The catalogue: the one that was given, or all items that were seen."""
        if not self._rows or self._items is None:
            raise DataError(NO_ROWS)
        if self.rules.catalogue is not None:
            return self.rules.catalogue
        if len(self._items) < 2:
            raise DataError(f"{len(self._items)} item in all; at least 2 are needed")
        return Catalogue(unify_ids(self._items.sort()), public=False)

    def _see(self, items: pl.Series, name: str) -> None:
        """Note new items; where there is a catalogue, refuse others early if they are an error."""
        new = items.unique()
        known = self._items
        self._items = new if known is None else join_ids([known, new]).unique()
        if self.rules.catalogue is None or self.rules.unknown_items == "drop":
            return
        strange = self.rules.catalogue.positions(new) < 0
        if np.any(strange):
            rows = int(items.is_in(new.filter(pl.Series(strange)).implode()).sum())
            raise UnknownItemsError(name, rows)


def _hashed(users: pl.Series, shards: int) -> NDArray[np.uint16]:
    """The shard of each user, by her id; an integer and its own text are one id."""
    numbers: NDArray[Any]
    if users.dtype == pl.String:
        whole = users.str.contains(_INTEGER)
        parsed = users.set(~whole, None).cast(pl.Int64, strict=False)
        beyond = users.set(~whole, None).cast(pl.UInt64, strict=False)
        bits = parsed.reinterpret(signed=False) if len(parsed) else parsed.cast(pl.UInt64)
        numbers = bits.fill_null(beyond).fill_null(users.hash(0)).to_numpy()
    elif users.dtype == pl.UInt64:
        numbers = users.to_numpy()
    else:
        numbers = users.cast(pl.Int64).to_numpy().view(np.uint64)
    mixed = (numbers * _MULTIPLIER) >> np.uint64(32)
    return ((mixed * np.uint64(shards)) >> np.uint64(32)).astype(np.uint16)


def _settle(
    scratch: _Scratch, number: int, rules: Rules, writer: StoreWriter, *, as_text: bool
) -> None:
    """Put what belongs to a shard into rows, and write it; a shard without users is left out."""
    tables: list[Table] = []
    for frame in scratch.take(number):
        users = frame["user"].cast(pl.String) if as_text else frame["user"]
        tables.append({"user": clean_ids(users), "item": frame["item"], "rating": frame["rating"]})
    if tables:
        catalogue, user_ids, rows = assembled(joined(tables), rules)
        scale = rules.rating_range
        writer.add(Ratings(scale, catalogue, user_ids, *rows, rules.implicit))
