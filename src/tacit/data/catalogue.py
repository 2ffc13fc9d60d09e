"""The catalogue: which items there are, in which order, and what people call them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._validate import check
from tacit.data.features import ItemFeatures
from tacit.data.ids import clean_ids, rows_text, unify_ids
from tacit.data.readers.registry import read_file
from tacit.data.tables import Choice, column_of, feature_role
from tacit.errors import ConfigError, DataError


@dataclass(frozen=True, eq=False, repr=False)
class Catalogue:
    """Item ids in a fixed order, with titles and features where they are known.

    Ids are integers or text, each once. `public` says that the list was drawn up without looking
    at anyone's ratings; a list taken from the ratings is not public, and a certificate says so.
    `features` are public facts about the items, a frame or a dict {name: column} with a row for
    each: categories (text), numbers, or vectors (`tacit.data.features`).

    >>> catalogue = Catalogue(["tea", "coffee"], titles=["Green tea", None])
    >>> catalogue.positions(["coffee", "milk"])
    array([ 1, -1])
    >>> catalogue.title(0), catalogue.title(1)
    ('Green tea', 'coffee')
    """

    ids: pl.Series
    titles: pl.Series | None = None
    public: bool = True
    features: ItemFeatures | None = None

    def __post_init__(self) -> None:
        """Check the ids and the titles and bring them to their types."""
        given: object = self.ids
        if isinstance(given, str) or hasattr(given, "columns"):
            raise ConfigError(
                f"ids is a {type(given).__name__}; give the ids themselves, such as "
                "Catalogue(frame['item'], frame['title']), or read a file with Catalogue.from_file"
            )
        check("public", self.public, bool)
        ids = unify_ids(clean_ids(column_of("item", self.ids)))
        repeated = len(ids) - ids.n_unique()
        if repeated:
            raise DataError(
                f"catalogue: {rows_text(repeated)} with an item id given before; list each once"
            )
        object.__setattr__(self, "ids", ids)
        if self.titles is not None:
            object.__setattr__(self, "titles", _titles(self.titles, len(ids)))
        if self.features is not None:
            object.__setattr__(self, "features", _features(self.features, len(ids)))

    @classmethod
    def from_file(
        cls,
        path: str | PathLike[str],
        *,
        item: Choice = None,
        title: Choice = None,
        features: Sequence[str] = (),
        public: bool = True,
    ) -> "Catalogue":
        """Read a catalogue: a CSV, TSV or Parquet file with columns item and, maybe, title.

        Args:
            path: the file.
            item: column of the item ids, by name or position; None guesses (`item`, `movieId`...).
            title: column of the titles; None guesses, and does without when there is none.
            features: columns that are features of the items, by name. In a text file a column is
                one of numbers if all its cells are, and one of categories otherwise.
            public: False if the list was made from the ratings, so that the certificate says so.
        """
        if isinstance(features, str) or not all(isinstance(name, str) for name in features):
            raise ConfigError(f"features={features!r}: expected a list of column names")
        wanted: dict[str, Choice] = {"item": item, "title": title}
        wanted |= {feature_role(name): name for name in features}
        table = read_file(Path(path), wanted, frozenset({"title"}))
        if not len(table["item"]):
            raise DataError(f"{path}: the catalogue has no items")
        facts: Any = {name: table[feature_role(name)] for name in features} or None
        try:
            return cls(table["item"], table.get("title"), public=public, features=facts)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None

    def __len__(self) -> int:
        """How many items there are."""
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        """Whether two catalogues have the same ids, titles and standing, in the same order."""
        if not isinstance(other, Catalogue):
            return NotImplemented
        return (
            self.public == other.public
            and _same(self.ids, other.ids)
            and _same(self.titles, other.titles)
            and _same_features(self.features, other.features)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Say what a public list holds; of one taken from ratings no more than that it is."""
        if not self.public:
            return "Catalogue(public=False)"
        parts = [f"{len(self):,} items"] + ["titles"] * (self.titles is not None)
        parts += ["features"] * (self.features is not None)
        return f"Catalogue({', '.join(parts)}, public=True)"

    def positions(self, ids: "pl.Series | NDArray[Any] | Sequence[Any]") -> NDArray[np.int64]:
        """Position of each id, -1 where it is not in the catalogue.

        Ids are compared by value; where one side is text and the other integers, as text.
        """
        wanted = column_of("item", ids)
        gaps = wanted.null_count()
        cleaned = clean_ids(wanted.drop_nulls() if gaps else wanted)
        as_text = pl.String in (cleaned.dtype, self.ids.dtype)
        known = self._by_text if as_text else self._by_number
        keys = (cleaned.cast(pl.String) if as_text else cleaned).to_list()
        found = np.array([known.get(key, -1) for key in keys], dtype=np.int64)
        if not gaps:
            return found
        positions = np.full(len(wanted), -1, dtype=np.int64)
        positions[wanted.is_not_null().to_numpy()] = found
        return positions

    def rows(self, positions: NDArray[np.int64]) -> "Catalogue":
        """Return the catalogue of some of the items, in this order."""
        titles = None if self.titles is None else self.titles.gather(positions)
        features = None if self.features is None else self.features.rows(positions)
        return Catalogue(self.ids.gather(positions), titles, self.public, features)

    def title(self, position: int) -> str:
        """What to call an item: its title, or its id where it has none."""
        if not 0 <= position < len(self):
            raise ConfigError(f"position={position}: the catalogue has {len(self)} items, from 0")
        title = None if self.titles is None else self.titles[position]
        return str(self.ids[position]) if title is None else str(title)

    @cached_property
    def _by_number(self) -> dict[int, int]:
        return {key: place for place, key in enumerate(self.ids.to_list())}

    @cached_property
    def _by_text(self) -> dict[str, int]:
        return {key: place for place, key in enumerate(self.ids.cast(pl.String).to_list())}


def _titles(titles: object, count: int) -> pl.Series:
    """Titles as text, as many as there are ids; an empty one is none."""
    column = column_of("title", titles)
    if len(column) != count:
        raise DataError(f"catalogue: {len(column)} titles for {count} items")
    text = column.cast(pl.String)
    return text.set(text == "", None)


def _features(features: object, count: int) -> ItemFeatures:
    """Features as numbers, a row for each id."""
    made = features if isinstance(features, ItemFeatures) else ItemFeatures.of(features, count)
    if len(made.values) != count:
        raise DataError(f"features: {len(made.values)} rows for {count} items")
    return made


def _same_features(one: ItemFeatures | None, other: ItemFeatures | None) -> bool:
    if one is None or other is None:
        return one is other
    same = one.columns == other.columns
    return same and np.array_equal(one.values, other.values, equal_nan=True)


def _same(one: pl.Series | None, other: pl.Series | None) -> bool:
    if one is None or other is None:
        return one is other
    return one.dtype == other.dtype and one.equals(other)
