"""Writing a store: shard by shard, the manifest last, for its owner's eyes only."""

import hashlib
import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from io import BytesIO
from itertools import pairwise
from os import PathLike
from pathlib import Path

import numpy as np

from tacit._atomic import make_folder, reason_of, sync_folder, write_durably
from tacit.data.build import RatingRange, Rules
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.shard_file import encoded
from tacit.data.store import (
    CATALOGUE,
    FORMAT,
    MANIFEST,
    ShardInfo,
    Store,
    catalogue_frame,
    is_store,
    shard_path,
)
from tacit.errors import ConfigError, DataError

SCRATCH = "scratch"
"""A folder within the store for what is on its way; gone when the store is whole."""


class StoreWriter:
    """Writes a store: every shard by `add`, then `close`. Within `with`, a failure removes it all.

    >>> import tempfile
    >>> ratings = Ratings.from_arrays([1, 1, 2], [7, 8, 7], [5, 1, 4], rating_range=(1, 5))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with StoreWriter(Path(folder) / "store", (1, 5), ratings.catalogue) as writer:
    ...         writer.add(ratings)
    ...     Store.open(Path(folder) / "store").n_users
    2
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        rating_range: RatingRange | None,
        catalogue: Catalogue,
        *,
        implicit: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Make the folder, with mode 0700; one that is there must be empty.

        With `overwrite` it may be a store, which is then lost.
        """
        rules = Rules.checked(rating_range, "error", catalogue, implicit)
        self._range, self._implicit, self._catalogue = rules.rating_range, implicit, catalogue
        self.folder = check_folder(folder, overwrite=overwrite)
        self._shards: list[ShardInfo] = []
        with _writing(self.folder):
            _clear(self.folder)
            make_folder(self.folder)
            self.folder.chmod(0o700)

    def __enter__(self) -> "StoreWriter":
        """Return itself."""
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Finish the store, or remove what there is of it."""
        if error is None:
            self.close()
        else:
            _clear(self.folder)

    def use(self, catalogue: Catalogue) -> None:
        """Use this catalogue, which was not known before; no shard may have been written yet."""
        if self._shards:
            raise ConfigError("catalogue: shards were written with another one")
        self._catalogue = catalogue

    def add(self, ratings: Ratings) -> None:
        """Write a shard: rows of users who are in no other one."""
        same = ratings.rating_range == self._range and ratings.implicit == self._implicit
        if not same or ratings.n_items != len(self._catalogue):
            raise ConfigError("ratings: of another rating range or catalogue than the store")
        content = encoded(ratings)
        with _writing(self.folder):
            write_durably(shard_path(self.folder, len(self._shards)), content, owner_only=True)
        digest = hashlib.sha256(content).hexdigest()
        self._shards.append(ShardInfo(ratings.n_users, ratings.items.size, digest))

    def close(self) -> Store:
        """Write the catalogue and the manifest; return the store, which is whole now."""
        users, ratings = (sum(getattr(s, n) for s in self._shards) for n in ("users", "ratings"))
        if users < 2 or not ratings:
            _clear(self.folder)
            raise DataError("a store needs 2 users and a rating at the least; there are fewer")
        about, frame = catalogue_frame(self._catalogue)
        table = BytesIO()
        frame.write_parquet(table)
        manifest = {
            "format": FORMAT,
            "rating_range": list(self._range),
            "implicit": self._implicit,
            "catalogue": about | {"digest": hashlib.sha256(table.getvalue()).hexdigest()},
            "shards": [asdict(shard) for shard in self._shards],
        }
        with _writing(self.folder):
            write_durably(self.folder / CATALOGUE, table.getvalue(), owner_only=True)
            text = json.dumps(manifest, indent=1).encode()
            write_durably(self.folder / MANIFEST, text, owner_only=True)
            sync_folder(self.folder)
        return Store.open(self.folder)


def write_store(ratings: Ratings, folder: str | PathLike[str], shards: int) -> Store:
    """Write ratings that are in memory as a store of so many shards, or of one for each user."""
    count = max(1, min(shards, ratings.n_users))
    edges = np.linspace(0, ratings.n_users, count + 1).astype(np.int64).tolist()
    scale = None if ratings.implicit else ratings.rating_range
    writer = StoreWriter(folder, scale, ratings.catalogue, implicit=ratings.implicit)
    for lo, hi in pairwise(edges):
        writer.add(ratings.take_rows(np.arange(lo, hi)))
    return writer.close()


def check_folder(folder: str | PathLike[str], *, overwrite: bool) -> Path:
    """Refuse a place for a store where something else is, before anything is read."""
    place = Path(folder)
    try:
        there = place.exists() or place.is_symlink()
        if there and (place.is_symlink() or not place.is_dir()):
            raise ConfigError(f"store {place}: it is no folder; give another name")
        if not place.parent.is_dir():
            raise ConfigError(f"store {place}: its folder does not exist; make it, or give another")
        filled = there and any(place.iterdir())
    except ConfigError:
        raise
    except (OSError, ValueError) as error:
        raise ConfigError(f"store {place} cannot be written: {reason_of(error)}") from None
    if filled and not (overwrite and _is_ours(place)):
        what = "a store is there already" if is_store(place) else "the folder is not empty"
        raise ConfigError(
            f"store {place}: {what}; give another name"
            + (", or replace it with --force (in Python: overwrite=True)" * _is_ours(place))
        )
    return place


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds nothing but what a store has, whole or not."""
    names = {path.name for path in folder.iterdir()}
    shards = {name for name in names if name.startswith("shard-") and name.endswith(".safetensors")}
    parts = {name for name in names if name.startswith(".") and name.endswith(".part")}
    keys = {name for name in names if name.startswith(".fit-") and name.endswith(".key")}
    return names - shards - parts - keys <= {MANIFEST, CATALOGUE, SCRATCH}


def _clear(folder: Path) -> None:
    """Remove a store, the manifest first: what is left of it is no store at any time."""
    if not folder.is_dir():
        return
    (folder / MANIFEST).unlink(missing_ok=True)
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Say in plain words why a file of the store cannot be written."""
    try:
        yield
    except OSError as error:
        raise DataError(f"store {folder} cannot be written: {reason_of(error)}") from None
