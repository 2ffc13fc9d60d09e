"""How well predictions hit held-out ratings. NOT PRIVATE: for people who own the ratings.

Every number here is computed from people's ratings without any noise, however private the model
is that is being measured. Do not publish it with the model.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._validate import Range, check
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError
from tacit.evaluation.held_out import HeldOut, match_held_out, predicted
from tacit.evaluation.notice import Measured
from tacit.trusted.selection import keep

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
class Accuracy(Measured):
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


def evaluate(model: Predictor, train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Let each test user predict from her own training row, and compare. NOT PRIVATE.

    Args:
        model: a published model.
        train: where test users' own rows are looked up, by user id.
        test: held-out ratings, as Ratings or as a frame with columns user, item and rating.

    Raises:
        ConfigError: the ratings are implicit.
        DataError: no held-out rating can be predicted, they cannot be used, or some are in train.
    """
    if getattr(train, "implicit", False):
        raise ConfigError("train: interactions without ratings have no RMSE; measure with rank")
    held_out = match_held_out(train, test, model.catalogue)
    return accuracy_of(held_out, predicted(model, train, held_out)[0])


def split(
    ratings: Ratings, fraction: float, rng: np.random.Generator | int
) -> tuple[Ratings, Ratings]:
    """Hold out a random share of all ratings: (train, test), over the same catalogue.

    Each rating is held out with chance `fraction`, whoever gave it. Everyone stays in train, now
    and then with an empty row (`evaluate` then counts her ratings as skipped); test has only
    people with held-out ratings. `rng` is a generator, or a seed for one.

    Raises:
        ConfigError: fraction is not between 0 and 1.
        DataError: the draw left nothing to train on or nothing to test on.
    """
    check("fraction", fraction, Annotated[float, Range(0, 1, "()")])
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise ConfigError(f"rng={rng!r}: expected a seed, or a numpy Generator") from None
    held = np.empty(len(ratings.values), np.bool_)
    for low in range(0, len(held), _CHUNK):
        part = held[low : low + _CHUNK]
        np.less(rng.random(len(part)), fraction, out=part)
    if held.all() or not held.any():
        raise DataError(
            f"fraction={fraction!r}: the draw left nothing to train on or nothing to test on; "
            "there are too few ratings for this fraction"
        )
    return keep_ratings(ratings, ~held, everyone=True), keep_ratings(ratings, held, everyone=False)


def keep_ratings(ratings: Ratings, kept: NDArray[np.bool_], *, everyone: bool) -> Ratings:
    """Return some of the ratings, of everyone or only of people who still have any."""
    some = keep(ratings, kept)
    return some if everyone else some.take_rows(np.flatnonzero(np.diff(some.indptr)))


def user_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict the user mean. A local rule: it costs no privacy and needs no model."""
    held_out = match_held_out(train, test, train.catalogue)
    own = train.take_rows(held_out.people)
    sums = np.add.reduceat(own.values, own.indptr[:-1], dtype=np.float64)
    return accuracy_of(held_out, (sums / np.diff(own.indptr))[held_out.person])


def item_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict each item's exact mean, or that of all ratings if it has none: a NOT PRIVATE rule."""
    held_out = match_held_out(train, test, train.catalogue)
    return accuracy_of(held_out, _item_means(train)[held_out.item])


def global_mean_accuracy(train: Ratings, test: Ratings | pl.DataFrame) -> Accuracy:
    """Predict the exact mean of all ratings: a NOT PRIVATE rule."""
    held_out = match_held_out(train, test, train.catalogue)
    mean = float(train.values.mean(dtype=np.float64))
    return accuracy_of(held_out, np.full(len(held_out.rating), mean))


def _item_means(train: Ratings) -> NDArray[np.float64]:
    """Return the mean rating of every item, in chunks so that no copy of all ratings is made."""
    sums, counts = np.zeros(train.n_items), np.zeros(train.n_items, np.int64)
    for low in range(0, len(train.values), _CHUNK):
        items, values = train.items[low : low + _CHUNK], train.values[low : low + _CHUNK]
        sums += np.bincount(items, values, train.n_items)
        counts += np.bincount(items, minlength=train.n_items)
    overall = float(sums.sum()) / max(int(counts.sum()), 1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), overall)


def accuracy_of(held_out: HeldOut, scores: NDArray[np.float64]) -> Accuracy:
    """Summarise the errors of all predictions."""
    error = scores - held_out.rating
    return Accuracy(
        rmse=math.sqrt(float(np.mean(error**2))),
        mae=float(np.mean(np.abs(error))),
        ratings=len(error),
        users=len(held_out.people),
        skipped=held_out.skipped,
    )
