"""Whether predictions are as far off as they say. NOT PRIVATE: for people who own the ratings.

A model that says std s of a prediction p says that the rating is about N(p, s^2). Ratings cannot
leave the rating range, so what is compared with is that normal law, with all that would lie beyond
an end of the range put on that end. Near an end, more ratings than 68.3 % are then within one std,
and the mean of z^2, z = (rating - p)/s, is below one. `expected_...` says what would be found, on
average, if every std were right.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.evaluation.accuracy import Accuracy, accuracy_of, evaluate
from tacit.evaluation.held_out import HeldOut, match_held_out, predicted
from tacit.evaluation.notice import Measured

Floats = NDArray[np.float64]
_GROUPS = 10
_FAR = 40.0  # stds beyond which a normal law has nothing that a float could hold


class UncertainPredictor(Protocol):
    """What can be calibrated: a published model that knows how far off it may be."""

    @property
    def catalogue(self) -> Catalogue:
        """The items of the columns of `predict_rows_with_std`."""
        ...

    def predict_rows_with_std(
        self, ratings: Ratings
    ) -> Iterator[tuple[int, NDArray[Any], NDArray[Any]]]:
        """Yield (first row, scores, stds) of a block of users for every item."""
        ...


@dataclass(frozen=True)
class Reliability:
    """One tenth of the held-out ratings, by their predicted std.

    Attributes:
        std: root of the mean square of the predicted stds.
        expected: the RMSE to expect of those in this rating range.
        rmse: the RMSE that was found.
        ratings: how many there are.
    """

    std: float
    expected: float
    rmse: float
    ratings: int


@dataclass(frozen=True, repr=False)
class Calibration(Measured):
    """Held-out ratings against predicted stds. NOT PRIVATE.

    Attributes:
        within_one: share of ratings within one std of the prediction; 68.3 % of a normal law.
        within_two: within two; 95.4 %.
        mean_square: mean of z^2; 1 for a normal law. Above what is expected, stds are too small.
        expected_one: what within_one would be if all stds were right, in this rating range.
        expected_two: likewise.
        expected_square: likewise.
        deciles: predicted std against the error found, smallest stds first. With fewer than ten
            ratings, one each.
        ratings: how many held-out ratings were predicted.
        users: how many people gave them.
        skipped: held-out ratings that cannot be predicted, as in Accuracy.
    """

    within_one: float
    within_two: float
    mean_square: float
    expected_one: float
    expected_two: float
    expected_square: float
    deciles: tuple[Reliability, ...]
    ratings: int
    users: int
    skipped: int


class _Predicted(NamedTuple):
    """Predictions of held-out ratings: score, std, error over std, and its expected square."""

    score: Floats
    std: Floats
    z: Floats
    square: Floats


def calibrate(
    model: UncertainPredictor, train: Ratings, test: Ratings | pl.DataFrame
) -> Calibration:
    """Let each test user predict with stds from her own training row, and compare. NOT PRIVATE.

    Args:
        model: a published model whose local rule knows its uncertainty.
        train: where test users' own rows are looked up, by user id.
        test: held-out ratings, as Ratings or as a frame with columns user, item and rating.

    Raises:
        ConfigError: the model's local rule knows no uncertainty.
        DataError: no held-out rating can be predicted, they cannot be used, or some are in train.
    """
    held_out = match_held_out(train, test, model.catalogue)
    found = predicted(model, train, held_out, spread=True)
    return _calibration(held_out, found, train.rating_range)


def measure(
    model: Any, train: Ratings, test: Ratings | pl.DataFrame
) -> tuple[Accuracy, Calibration | None]:
    """Return what `evaluate` and `calibrate` do, each user solving once. NOT PRIVATE.

    There is no calibration of a model whose local rule knows no uncertainty.
    """
    if train.implicit or not model.knows_std:
        return evaluate(model, train, test), None
    held_out = match_held_out(train, test, model.catalogue)
    found = predicted(model, train, held_out, spread=True)
    return accuracy_of(held_out, found[0]), _calibration(held_out, found, train.rating_range)


def _calibration(
    held_out: HeldOut, found: tuple[Floats, Floats], rating_range: tuple[float, float]
) -> Calibration:
    """Compare held-out ratings with scores and stds."""
    scores, stds = found
    z = (held_out.rating - scores) / stds
    square = _expected_squares(scores, stds, rating_range)
    predictions = _Predicted(scores, stds, z, square)
    return Calibration(
        within_one=float(np.mean(np.abs(z) <= 1.0)),
        within_two=float(np.mean(np.abs(z) <= 2.0)),
        mean_square=float(np.mean(z**2)),
        expected_one=_expected_share(predictions, 1.0, rating_range),
        expected_two=_expected_share(predictions, 2.0, rating_range),
        expected_square=float(np.mean(square)),
        deciles=_deciles(predictions),
        ratings=len(z),
        users=len(held_out.people),
        skipped=held_out.skipped,
    )


def _expected_share(
    predicted: _Predicted, width: float, rating_range: tuple[float, float]
) -> float:
    """Return the share within `width` stds; a side that reaches the end of the range is whole."""
    from scipy.special import ndtr

    reach = width * predicted.std
    inside_low = predicted.score - reach > rating_range[0]
    inside_high = predicted.score + reach < rating_range[1]
    return 1.0 - float(ndtr(-width)) * float(np.mean(inside_low) + np.mean(inside_high))


def _expected_squares(scores: Floats, stds: Floats, rating_range: tuple[float, float]) -> Floats:
    """Return E z^2 of a normal law whose tails beyond the range are put on its ends.

    With a <= 0 <= b the ends in stds: the integral of z^2 phi(z) from a to b, + a^2 Phi(a) +
    b^2 Phi(-b).
    """
    from scipy.special import ndtr

    low, high = (np.clip((end - scores) / stds, -_FAR, _FAR) for end in rating_range)
    middle = ndtr(high) - ndtr(low) - (high * _density(high) - low * _density(low))
    return np.asarray(middle + low**2 * ndtr(low) + high**2 * ndtr(-high))


def _density(z: Floats) -> Floats:
    """Return the density of the standard normal law."""
    return np.asarray(np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi))


def _deciles(predicted: _Predicted) -> tuple[Reliability, ...]:
    """Return tenths of the ratings, by their predicted std."""
    order = np.argsort(predicted.std, kind="stable")
    groups = np.array_split(order, min(_GROUPS, len(order)))
    return tuple(_reliability(*(array[group] for array in predicted)) for group in groups)


def _reliability(score: Floats, std: Floats, z: Floats, square: Floats) -> Reliability:
    return Reliability(
        std=_root_mean(std**2),
        expected=_root_mean(square * std**2),
        rmse=_root_mean((z * std) ** 2),
        ratings=len(score),
    )


def _root_mean(squares: Floats) -> float:
    return float(np.sqrt(np.mean(squares)))
