"""A store: ratings on disk in shards by user, for more of them than fit into memory.

A store is a folder with

- `manifest.json`, written last: rating range, catalogue, and for each shard its number of users, of
  ratings, and a SHA-256. A folder without it is no store;
- `catalogue.parquet`: ids, and titles and features of items where they are known;
- `shard-00000.safetensors`, ...: rows of users as `Ratings` has them (indptr, items, values), and
  their ids. Every user is in one shard, whole.

It holds everyone's ratings, and is as private as they are: the folder has mode 0700, its files
0600. Shards are read whole rather than mapped, so that what was checked is what is summed, and
memory is what the process says it is.
"""

import hashlib
import json
from dataclasses import dataclass, field, replace
from io import BytesIO
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, Protocol

import numpy as np
import polars as pl

from tacit._atomic import reason_of
from tacit.data.catalogue import Catalogue
from tacit.data.features import FeatureColumn, ItemFeatures
from tacit.data.ratings import Ratings
from tacit.data.shard_file import UNSOUND_SHARD, decoded, read_whole
from tacit.errors import ConfigError, DataError, PrivacyError

MANIFEST, CATALOGUE = "manifest.json", "catalogue.parquet"
FORMAT = "tacit-store/1"
_FEATURE = "feature "


class View(Protocol):
    """What is seen of everyone's ratings: each row by itself, by a public rule."""

    def __call__(self, ratings: Ratings) -> Ratings:
        """Return what is seen of these ratings; every user keeps her row."""
        ...

    def catalogue(self, catalogue: Catalogue) -> Catalogue:
        """Return the catalogue of what is seen."""
        ...


@dataclass(frozen=True)
class ShardInfo:
    """One shard: how many users and ratings it has, and the SHA-256 of its file."""

    users: int
    ratings: int
    digest: str


@dataclass(frozen=True, eq=False, repr=False)
class Store:
    """Ratings on disk, in shards by user; `tacit.partition` and `tacit partition` make one.

    `tacit.fit(tacit.Store.open("store"), epsilon=1.0)` streams it: one shard is in memory at a
    time, and the next one is being read.

    Nothing of anyone's ratings shows in `repr` or in an error, and pickling is refused.
    """

    folder: Path
    rating_range: tuple[float, float]
    catalogue: Catalogue
    implicit: bool
    shards: tuple[ShardInfo, ...]
    stamp: str
    """SHA-256 of the manifest, and so of all that is in the store."""
    stored_catalogue: Catalogue
    """The catalogue of the shards as they are on disk, of which views may show less."""
    views: tuple[View, ...] = ()
    _sound: set[int] = field(default_factory=set)

    @classmethod
    def open(cls, folder: str | PathLike[str]) -> "Store":
        """Open a store; only its manifest and catalogue are read."""
        place = Path(folder)
        if not (place / MANIFEST).is_file():
            raise DataError(
                f"{place}: no store: it has no {MANIFEST}, which is written last; make one with "
                "tacit partition RATINGS -o STORE"
            )
        try:
            content = (place / MANIFEST).read_bytes()
            about = json.loads(content)
            if about["format"] != FORMAT:
                raise ValueError("another format")
            catalogue = _read_catalogue(place, about["catalogue"])
            low, high = about["rating_range"]
            shards = tuple(ShardInfo(**each) for each in about["shards"])
            stamp = hashlib.sha256(content).hexdigest()
            scale, implicit = (float(low), float(high)), about["implicit"]
            made = cls(place, scale, catalogue, implicit, shards, stamp, catalogue)
            made._check_numbers()
        except OSError as error:
            raise DataError(f"{place}: cannot be read ({reason_of(error)})") from None
        except UNSOUND_SHARD as error:
            raise _damaged(place, MANIFEST, error) from None
        return made

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return sum(shard.users for shard in self.shards)

    @property
    def n_items(self) -> int:
        """How many items the catalogue has."""
        return len(self.catalogue)

    def __len__(self) -> int:
        """How many users there are."""
        return self.n_users

    def __repr__(self) -> str:
        """Show where it is and nothing that comes from anyone's ratings."""
        return f"Store({str(self.folder)!r})"

    def __reduce__(self) -> NoReturn:
        """Refuse to be pickled: open it where it is used."""
        raise PrivacyError("a Store cannot be pickled; open it where it is used")

    def digest(self) -> str:
        """A SHA-256 of all that is here, to know the same ratings again; not to be published."""
        return self.stamp

    def view(self, view: View) -> "Store":
        """Return the same store, of which less is seen: the rule is applied as shards are read."""
        catalogue = view.catalogue(self.catalogue)
        return replace(self, catalogue=catalogue, views=(*self.views, view))

    def shard(self, number: int, *, ids: bool = True) -> Ratings:
        """Read one shard; without `ids` those of its users are left out, as sums need none.

        The first time, its SHA-256 is compared with the manifest's.
        """
        if not 0 <= number < len(self.shards):
            raise ConfigError(f"number={number}: the store has {len(self.shards)} shards, from 0")
        info, path = self.shards[number], shard_path(self.folder, number)
        content = read_whole(path)
        if number not in self._sound:
            if hashlib.sha256(content).hexdigest() != info.digest:
                raise _damaged(self.folder, path.name, None)
            self._sound.add(number)
        try:
            user_ids, arrays = decoded(content, ids=ids)
            if (arrays[0].size - 1, arrays[1].size) != (info.users, info.ratings):
                raise ValueError("other counts")
        except UNSOUND_SHARD as error:
            raise _damaged(self.folder, path.name, error) from None
        fixed = self.rating_range, self.stored_catalogue, user_ids
        ratings = Ratings(*fixed, *arrays, self.implicit)
        for view in self.views:
            ratings = view(ratings)
        return ratings

    def _check_numbers(self) -> None:
        """Refuse numbers that cannot be right."""
        low, high = self.rating_range
        counts = [n for s in self.shards for n in (s.users, s.ratings)]
        if not low < high or not all(type(n) is int and n >= 0 for n in counts):
            raise ValueError("numbers")
        if self.n_users < 2 or len(self.catalogue) < 2 or type(self.implicit) is not bool:
            raise ValueError("too few")


RatingsOrStore = Ratings | Store
"""Everyone's ratings, in memory or on disk."""


def is_store(path: str | PathLike[str]) -> bool:
    """Whether a folder looks like a store: the manifest is there."""
    try:
        return (Path(path) / MANIFEST).is_file()
    except (OSError, ValueError):
        return False


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / f"shard-{number:05d}.safetensors"


def catalogue_frame(catalogue: Catalogue) -> tuple[dict[str, Any], pl.DataFrame]:
    """What the manifest says of a catalogue, and its table."""
    table = {"id": catalogue.ids.alias("id")}
    if catalogue.titles is not None:
        table["title"] = catalogue.titles
    features = catalogue.features
    for at, column in enumerate([] if features is None else features.values.T):
        table[f"{_FEATURE}{at}"] = pl.Series(np.ascontiguousarray(column))
    columns = None if features is None else [list(column) for column in features.columns]
    return {"public": catalogue.public, "features": columns}, pl.DataFrame(table)


def _read_catalogue(folder: Path, about: dict[str, Any]) -> Catalogue:
    """The catalogue of a store, if it is the one that the manifest means."""
    path = folder / CATALOGUE
    content = read_whole(path)
    if hashlib.sha256(content).hexdigest() != about["digest"]:
        raise _damaged(folder, CATALOGUE, None)
    frame = pl.read_parquet(BytesIO(content))
    titles = frame["title"] if "title" in frame.columns else None
    features = None
    if about["features"] is not None:
        columns = tuple(FeatureColumn(*column) for column in about["features"])
        values = [frame[f"{_FEATURE}{at}"].to_numpy() for at in range(len(columns))]
        features = ItemFeatures(columns, np.column_stack(values))
    return Catalogue(frame["id"], titles, about["public"] is True, features)


def _damaged(folder: Path, name: str, error: BaseException | None) -> DataError:
    kind = type(error).__name__ if error else "its content is not what the manifest says"
    return DataError(f"store {folder}: {name} is damaged ({kind}); partition the ratings anew")
