"""load: a named dataset as Ratings, checked against its published counts."""

from dataclasses import replace
from importlib import import_module
from os import PathLike
from pathlib import Path
from typing import Annotated

import numpy as np

from tacit._validate import Range, check
from tacit.data.ratings import Ratings
from tacit.datasets.paths import folder_of
from tacit.datasets.registry import dataset_named
from tacit.datasets.spec import Dataset
from tacit.errors import DataError
from tacit.trusted.selection import restricted


def load(
    dataset: str | Dataset,
    *,
    top: int | None = None,
    folder: str | PathLike[str] | None = None,
) -> Ratings:
    """Read a named dataset from its original files; nothing is ever downloaded here.

    The numbers of users, items and ratings are compared with the published ones. Jester and
    Yahoo! Music are rescaled to 0..5, as in the paper. The catalogue is the published list of
    items, which is public.

    `top` keeps the most rated items, as the paper does, and the users who rated any of them. That
    is a look at everyone's ratings that nothing pays for: it is NOT PRIVATE. The catalogue then
    is not public, and a certificate says so.

    Args:
        dataset: a name (`tacit data list` shows them), or a description.
        top: how many of the most rated items to keep (the paper: 400 and 900); None keeps all.
        folder: where its files are; None is the folder of its name in the folder that TACIT_DATA
            names, or in `~/.cache/tacit`.

    Raises:
        ConfigError: there is no dataset of this name, or it has not got so many items.
        DataError: files are missing, damaged, or not the whole dataset.
    """
    known = dataset if isinstance(dataset, Dataset) else dataset_named(dataset)
    words = f"a whole number from 2 to {known.counts.items}, the number of items of {known.name}"
    check("top", top, Annotated[int, Range(2, known.counts.items, words=words)] | None)
    reader = import_module(f"tacit.datasets.{known.reader}")
    ratings: Ratings = reader.read(known, Path(folder) if folder else folder_of(known))
    _verify(ratings, known)
    return ratings if top is None else _most_rated(ratings, top)


def _verify(ratings: Ratings, dataset: Dataset) -> None:
    """Refuse ratings whose numbers are not the published ones."""
    found = (ratings.n_users, ratings.n_items, ratings.values.size)
    expected = dataset.counts._asdict()
    wrong = [
        name for (name, count), here in zip(expected.items(), found, strict=True) if count != here
    ]
    if wrong:
        raise DataError(
            f"{dataset.title}: the number of {' and of '.join(wrong)} is not the published one "
            f"({', '.join(f'{count:,} {name}' for name, count in expected.items())}); "
            "the files are not the whole dataset: get them again"
        )


def _most_rated(ratings: Ratings, top: int) -> Ratings:
    """The most rated items, ties by their order, and the users who rated any; NOT PRIVATE."""
    counts = np.bincount(ratings.items, minlength=ratings.n_items)
    chosen = np.sort(np.argsort(-counts, kind="stable")[:top])
    kept = restricted(ratings, chosen)
    filled = kept.take_rows(np.flatnonzero(np.diff(kept.indptr)))
    return replace(filled, catalogue=replace(filled.catalogue, public=False))
