"""How well predictions hit held-out ratings. NOT PRIVATE: for people who own the ratings.

Every number here is computed from people's ratings without any noise, however private the model
is that is being measured. Do not publish it with the model.
"""

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.catalogue import Catalogue
from tacit.errors import ConfigError, DataError
from tacit.ids import clean_ids, rows_text
from tacit.ratings import Columns, Ratings
from tacit.tables import read_frame

__all__ = [
    "NOTICE",
    "Accuracy",
    "Predictor",
    "evaluate",
    "global_mean_accuracy",
    "item_mean_accuracy",
    "split",
    "user_mean_accuracy",
]

NOTICE = "NOT PRIVATE: measured on people's held-out ratings, without noise"
_CHUNK = 1 << 22  # ratings looked at together where a pass over all of them is needed


class Predictor(Protocol):
    """What can be evaluated: a published model."""

    @property
    def catalogue(self) -> Catalogue:
        """The items of the columns of `predict_rows`."""
        ...

    def predict_rows(self, ratings: Ratings) -> Iterator[tuple[int, NDArray[Any]]]:
        """Yield (first row, scores of a block of users for every item)."""
        ...


@dataclass(frozen=True, repr=False)
class Accuracy:
    """Errors over held-out ratings. NOT PRIVATE.

    Attributes:
        rmse: root of the mean squared error.
        mae: mean absolute error.
        ratings: how many held-out ratings were predicted.
        users: how many people gave them.
        skipped: held-out ratings that cannot be predicted: of an unknown item, or of a person
            without training ratings.
    """

    rmse: float
    mae: float
    ratings: int
    users: int
    skipped: int

    def to_json(self) -> dict[str, Any]:
        """Return all fields, and the notice that they are not private."""
        return {"notice": NOTICE, **asdict(self)}

    def __repr__(self) -> str:
        """Show all fields, labelled."""
        fields = ", ".join(f"{name}={value!r}" for name, value in asdict(self).items())
        return f"Accuracy(NOT PRIVATE: {fields})"


@dataclass(frozen=True, repr=False)
class _HeldOut:
    """Held-out ratings that can be predicted, in order of people.

    `people` are rows of the training ratings; `person` says which of them gave each rating.
    """

    people: NDArray[np.int64]
    person: NDArray[np.int64]
    item: NDArray[np.int64]
    rating: NDArray[np.float32]
    skipped: int


def evaluate(model: Predictor, train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Let each test user predict from her own training row, and compare. NOT PRIVATE.

    Args:
        model: a published model.
        train: where test users' own rows are looked up, by user id.
        test: held-out ratings, as Ratings or as a frame with columns user, item and rating.

    Raises:
        DataError: no held-out rating can be predicted, or they cannot be used.
    """
    held_out = _match(train, test, model.catalogue)
    predicted = np.empty(len(held_out.rating), np.float64)
    for start, scores in model.predict_rows(train.take_rows(held_out.people)):
        low, high = np.searchsorted(held_out.person, (start, start + len(scores)))
        block = slice(low, high)
        predicted[block] = scores[held_out.person[block] - start, held_out.item[block]]
    return _accuracy(held_out, predicted)


def split(ratings: Ratings, fraction: float, rng: np.random.Generator) -> tuple[Ratings, Ratings]:
    """Hold out a random share of all ratings: (train, test), over the same catalogue.

    Each rating is held out with chance `fraction`, whoever gave it. Everyone stays in train, now
    and then with an empty row (`evaluate` then counts her ratings as skipped); test has only
    people with held-out ratings.

    Raises:
        ConfigError: fraction is not between 0 and 1.
        DataError: the draw left nothing to train on or nothing to test on.
    """
    if not isinstance(fraction, float) or not 0.0 < fraction < 1.0:
        raise ConfigError(f"fraction={fraction!r}: expected a number between 0 and 1")
    held = np.empty(len(ratings.values), np.bool_)
    for low in range(0, len(held), _CHUNK):
        part = held[low : low + _CHUNK]
        np.less(rng.random(len(part)), fraction, out=part)
    if held.all() or not held.any():
        raise DataError(
            f"fraction={fraction!r}: the draw left nothing to train on or nothing to test on; "
            "there are too few ratings for this fraction"
        )
    return _keep(ratings, ~held, everyone=True), _keep(ratings, held, everyone=False)


def _keep(ratings: Ratings, kept: NDArray[np.bool_], *, everyone: bool) -> Ratings:
    """Return some of the ratings, of everyone or only of people who still have any."""
    filled = np.diff(ratings.indptr) > 0
    counts = np.zeros(ratings.n_users, np.int64)
    counts[filled] = np.add.reduceat(kept, ratings.indptr[:-1][filled], dtype=np.int64)
    people = np.full(ratings.n_users, fill_value=True) if everyone else counts > 0
    return Ratings(
        ratings.rating_range,
        ratings.catalogue,
        ratings.user_ids.filter(pl.Series(people)),
        np.concatenate((np.zeros(1, np.int64), np.cumsum(counts[people]))),
        ratings.items[kept],
        ratings.values[kept],
    )


def user_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict each user's own mean. A local rule: it costs no privacy and needs no model."""
    held_out = _match(train, test, train.catalogue)
    own = train.take_rows(held_out.people)
    sums = np.add.reduceat(own.values, own.indptr[:-1], dtype=np.float64)
    return _accuracy(held_out, (sums / np.diff(own.indptr))[held_out.person])


def item_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict each item's exact mean, or that of all ratings if it has none: a NOT PRIVATE rule."""
    held_out = _match(train, test, train.catalogue)
    return _accuracy(held_out, _item_means(train)[held_out.item])


def global_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict the exact mean of all ratings: a NOT PRIVATE rule."""
    held_out = _match(train, test, train.catalogue)
    mean = float(train.values.mean(dtype=np.float64))
    return _accuracy(held_out, np.full(len(held_out.rating), mean))


def _item_means(train: Ratings) -> NDArray[np.float64]:
    """Return the mean rating of every item, in chunks so that no copy of all ratings is made."""
    sums, counts = np.zeros(train.n_items), np.zeros(train.n_items, np.int64)
    for low in range(0, len(train.values), _CHUNK):
        items, values = train.items[low : low + _CHUNK], train.values[low : low + _CHUNK]
        sums += np.bincount(items, values, train.n_items)
        counts += np.bincount(items, minlength=train.n_items)
    overall = float(sums.sum()) / max(int(counts.sum()), 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), overall)


def _match(train: Ratings, test: Ratings | pl.DataFrame, catalogue: Catalogue) -> _HeldOut:
    """Find the training row and the catalogue position of every held-out rating."""
    if isinstance(test, Ratings):
        rows = np.repeat(_rows_of(train, test.user_ids), np.diff(test.indptr))
        items, ratings = catalogue.positions(test.catalogue.ids)[test.items], test.values
    else:
        users, item_ids, ratings = _columns(test, train.rating_range)
        rows, items = _rows_of(train, users), catalogue.positions(item_ids)
    known = np.flatnonzero((rows >= 0) & (items >= 0))
    if len(known) == 0:
        raise DataError(
            "test: no held-out rating is of a user with training ratings and of an item in the "
            "catalogue; check that train and test come from the same people"
        )
    known = known[np.argsort(rows[known], kind="stable")]
    people, person = np.unique(rows[known], return_inverse=True)
    return _HeldOut(people, person, items[known], ratings[known], len(rows) - len(known))


def _columns(
    frame: pl.DataFrame, rating_range: tuple[float, float]
) -> tuple[pl.Series, pl.Series, NDArray[np.float32]]:
    """Return users, items and ratings of a frame; one held-out rating of one person is enough."""
    table = read_frame(frame, Columns())
    users, items = clean_ids(table["user"]), clean_ids(table["item"])
    name, ratings = table["rating"].name, table["rating"].cast(pl.Float32, strict=False)
    low, high = (float(np.float32(bound)) for bound in rating_range)
    wrong = len(ratings) - int(ratings.is_between(low, high).sum())
    if wrong:
        raise DataError(f"column {name!r}: {rows_text(wrong)} without a rating in the rating range")
    repeated = len(users) - pl.DataFrame({"user": users, "item": items}).n_unique()
    if repeated:
        raise DataError(
            f"columns {users.name!r} and {items.name!r}: {rows_text(repeated)} with a pair of "
            "user and item given before; hold each rating out once"
        )
    return users, items, ratings.to_numpy()


def _rows_of(train: Ratings, user_ids: pl.Series) -> NDArray[np.int64]:
    """Return the training row of every user id, -1 for a user without training ratings."""
    rows = pl.DataFrame({"id": train.user_ids}).with_row_index("row")
    rows = rows.filter(pl.Series(np.diff(train.indptr) > 0))
    wanted = pl.DataFrame({"id": user_ids})
    if train.user_ids.dtype != user_ids.dtype:
        rows, wanted = rows.cast({"id": pl.String}), wanted.cast({"id": pl.String})
    found = wanted.join(rows, on="id", how="left", maintain_order="left")["row"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy()


def _accuracy(held_out: _HeldOut, predicted: NDArray[np.float64]) -> Accuracy:
    """Summarise the errors of all predictions."""
    error = predicted - held_out.rating
    return Accuracy(
        rmse=math.sqrt(float(np.mean(error**2))),
        mae=float(np.mean(np.abs(error))),
        ratings=len(error),
        users=len(held_out.people),
        skipped=held_out.skipped,
    )
