"""Held-out ratings: matched with the training rows of those who gave them, and predicted."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ids import clean_ids, rows_of, rows_text
from tacit.data.ratings import Ratings
from tacit.data.tables import Columns, read_frame
from tacit.errors import ConfigError, DataError
from tacit.models.bulk import check_same_kind, pair_predictions
from tacit.models.model import Model
from tacit.models.rules import Floats, Pairs

Integers = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class HeldOut:
    """Held-out ratings that can be predicted, in order of people.

    `people` are rows of the training ratings; `person` says which of them gave each rating.
    """

    people: NDArray[np.int64]
    person: NDArray[np.int64]
    item: NDArray[np.int64]
    rating: NDArray[np.float32]
    skipped: int


def match_held_out(train: Ratings, test: Ratings | pl.DataFrame, catalogue: Catalogue) -> HeldOut:
    """Find the training row and the catalogue position of every held-out rating.

    Raises:
        DataError: none can be predicted, or a pair of user and item is in `train` as well.
    """
    if not isinstance(train, Ratings):
        raise ConfigError(
            f"train={type(train).__name__}: expected tacit.Ratings; the order is model, train, test"
        )
    if isinstance(test, Ratings):
        if test.implicit != train.implicit:
            raise ConfigError("train and test: read both with implicit=True, or neither")
        rows = np.repeat(_rows_of(train, test.user_ids), np.diff(test.indptr))
        items, ratings = catalogue.positions(test.catalogue.ids)[test.items], test.values
    else:
        users, item_ids, ratings = _columns(test, train)
        rows, items = _rows_of(train, users), catalogue.positions(item_ids)
    known = np.flatnonzero((rows >= 0) & (items >= 0))
    if len(known) == 0:
        raise DataError(
            "test: no held-out rating is of a user with training ratings and of an item in the "
            "catalogue; check that train and test come from the same people"
        )
    _refuse_seen(train, rows[known], _in_train(train, items[known], catalogue))
    known = known[np.argsort(rows[known], kind="stable")]
    people, person = np.unique(rows[known], return_inverse=True)
    return HeldOut(people, person, items[known], ratings[known], len(rows) - len(known))


def predicted(
    model: Any, train: Ratings, held_out: HeldOut, *, spread: bool = False
) -> tuple[Floats, Floats]:
    """Return the score of every held-out rating, and its std if `spread`.

    A published model solves once for each user; anything else is asked for blocks of all items.
    """
    own = train.take_rows(held_out.people)
    if isinstance(model, Model):
        check_same_kind(model, own)
        starts = np.searchsorted(held_out.person, np.arange(len(held_out.people) + 1))
        return pair_predictions(model, own, Pairs(starts, held_out.item), spread=spread)
    scores, stds = np.empty(len(held_out.item)), np.empty(len(held_out.item) if spread else 0)
    blocks = model.predict_rows_with_std(own) if spread else model.predict_rows(own)
    for start, block, *more in blocks:
        low, high = np.searchsorted(held_out.person, (start, start + len(block)))
        where = (held_out.person[low:high] - start, held_out.item[low:high])
        scores[low:high] = block[where]
        for spreads in more:
            stds[low:high] = spreads[where]
    return scores, stds


def _in_train(train: Ratings, items: Integers, catalogue: Catalogue) -> Integers:
    """Return positions in the training catalogue, -1 for an item that it does not have."""
    if train.catalogue is catalogue:
        return items
    return train.catalogue.positions(catalogue.ids)[items]


def _refuse_seen(train: Ratings, rows: Integers, items: Integers) -> None:
    """Refuse held-out ratings that users predict from: they say nothing of other ratings."""
    seen = int(np.count_nonzero(_seen(train, rows, items)))
    if seen:
        raise DataError(
            f"test: {rows_text(seen)} with a pair of user and item that is in train as well, so "
            "nothing is held out there; split the ratings into two parts that have no pair in "
            "common (tacit.evaluation.split does), fit on one, and give it as train"
        )


def _seen(train: Ratings, rows: Integers, items: Integers) -> NDArray[np.bool_]:
    """Say of each pair whether it is in train: a binary search in each sorted row, all at once."""
    low, end = train.indptr[rows], train.indptr[rows + 1]
    high, last = end.copy(), max(len(train.items) - 1, 0)
    for _ in range(train.n_items.bit_length()):
        middle = (low + high) // 2
        before = (low < high) & (train.items[np.minimum(middle, last)] < items)
        high = np.where(before, high, np.minimum(middle, high))
        low = np.where(before, middle + 1, low)
    return np.asarray((low < end) & (train.items[np.minimum(low, last)] == items))


def _columns(
    frame: pl.DataFrame, train: Ratings
) -> tuple[pl.Series, pl.Series, NDArray[np.float32]]:
    """Return users, items and ratings of a frame; one held-out rating of one person is enough."""
    if train.implicit:
        return _pairs(frame)
    table = read_frame(frame, Columns())
    users, items = clean_ids(table["user"]), clean_ids(table["item"])
    name, ratings = table["rating"].name, table["rating"].cast(pl.Float32, strict=False)
    low, high = (float(np.float32(bound)) for bound in train.rating_range)
    wrong = len(ratings) - int(ratings.is_between(low, high).sum())
    if wrong:
        raise DataError(f"column {name!r}: {rows_text(wrong)} without a rating in the rating range")
    repeated = len(users) - pl.DataFrame({"user": users, "item": items}).n_unique()
    if repeated:
        raise DataError(
            f"columns {users.name!r} and {items.name!r}: {rows_text(repeated)} with a pair of "
            "user and item given before; hold each rating out once (on the command line: "
            "--duplicates)"
        )
    return users, items, ratings.to_numpy()


def _pairs(frame: pl.DataFrame) -> tuple[pl.Series, pl.Series, NDArray[np.float32]]:
    """Return users and items of a frame of interactions, each pair once, and ones."""
    table = read_frame(frame, Columns(), implicit=True)
    pairs = pl.DataFrame({role: clean_ids(column) for role, column in table.items()})
    pairs = pairs.unique(maintain_order=True)
    return pairs["user"], pairs["item"], np.ones(len(pairs), np.float32)


def _rows_of(train: Ratings, user_ids: pl.Series) -> NDArray[np.int64]:
    """Return the training row of every user id, -1 for a user without training ratings."""
    rows = rows_of(user_ids, train.user_ids)
    return np.where(np.diff(train.indptr)[rows] > 0, rows, -1)
