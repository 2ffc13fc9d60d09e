"""People's rows, bounded: how much one person can contribute is decided here, and only here.

Rows never leave this package: they have no public attributes, refuse to be pickled, and show
nothing when printed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.errors import PrivacyError
from tacit.kernels.residuals import StepArrays, advance
from tacit.kernels.rows import RowArrays, choose, row_means_and_scales
from tacit.ratings import Ratings

__all__ = ["EachRange", "RankOneStep", "RowBounds", "Rows"]

Result = TypeVar("Result")
EachRange = Callable[[Callable[[int, int], Result]], list[Result]]
"""Runs a task on ranges lo <= user < hi that together cover all users."""


@dataclass(frozen=True, eq=False)
class RowBounds:
    """How a row is bounded before anything is computed from it. All of it is public.

    Attributes:
        most: at most this many ratings of a user count, chosen pseudo-randomly; None for all.
        offsets: a public number per item, taken off its ratings.
        centre: whether each user's own mean is taken off her ratings (done locally, free).
        norm: the L2 norm that her row is scaled down to if it is longer: the paper's L.
        seed: of the choice. The choice depends on the seed and her own row, on nobody else's.
    """

    most: int | None
    offsets: NDArray[np.float64]
    centre: bool
    norm: float
    seed: int = 0


@dataclass(frozen=True, eq=False)
class RankOneStep:
    """A published direction and how users move along it (Alg. 1, local update).

    Y_i <- project(keep Y_i - gain (A_i . v) v), rows on Omega scaled down to at most `norm`.
    """

    direction: NDArray[np.float64]
    gain: float
    keep: float
    norm: float

    def arrays(self) -> StepArrays:
        """Return what the kernels take."""
        return StepArrays(self.direction, self.gain, self.keep, self.norm)


class Rows:
    """The rows of some users, and the local state that follows from the releases so far.

    Local state is a function of (own row, published steps): it is brought up to date when a
    statistic asks for it, and can be lost at any time.
    """

    def __init__(self, ratings: Ratings) -> None:
        """Take the ratings as they are; nothing is copied."""
        self.__ratings = ratings
        self.__bounds: RowBounds | None = None
        self.__arrays: RowArrays | None = None
        self.__taken: list[RankOneStep] = []

    def __repr__(self) -> str:
        return "<rows of people's ratings: nothing to see>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("rows of people's ratings cannot be pickled")

    @property
    def n_users(self) -> int:
        """How many rows there are."""
        return self.__ratings.n_users

    @property
    def indptr(self) -> NDArray[np.int64]:
        """Where rows begin; used to share the work evenly."""
        return self.__ratings.indptr

    def bounded(self, bounds: RowBounds, each: EachRange[None]) -> RowArrays:
        """Return the rows under these bounds, bounding them anew if they changed."""
        if self.__arrays is None or self.__bounds is not bounds:
            self.__bounds = None
            self.__arrays = _bound(self.__ratings, bounds, each)
            self.__bounds, self.__taken = bounds, []
        return self.__arrays

    def catch_up(self, steps: tuple[RankOneStep, ...], each: EachRange[None]) -> StepArrays | None:
        """Take all steps but the newest, and return that one for the caller to take.

        None means that all were taken before. Until `taken` is called, a failure in between
        makes the next call begin from scratch.
        """
        if self.__arrays is None:
            raise PrivacyError("rows must be bounded before any step is taken")
        rows = self.__arrays
        done, self.__taken = self.__taken, []
        if len(done) > len(steps) or any(a is not b for a, b in zip(done, steps, strict=False)):
            done = []
        if not done:
            rows.fitted[:] = 0.0
        for step in steps[len(done) : -1]:
            arrays = step.arrays()
            each(lambda lo, hi, arrays=arrays: advance(rows, arrays, lo, hi))  # type: ignore[misc]
        return steps[-1].arrays() if len(done) < len(steps) else None

    def taken(self, steps: tuple[RankOneStep, ...]) -> None:
        """Say that local state now includes exactly these steps."""
        self.__taken = list(steps)


def _bound(ratings: Ratings, bounds: RowBounds, each: EachRange[None]) -> RowArrays:
    indptr, items, values = _choice(ratings, bounds, each)
    users = ratings.n_users
    rows = RowArrays(
        indptr=indptr,
        items=items,
        values=values,
        offsets=bounds.offsets,
        means=np.zeros(users),
        scales=np.ones(users),
        fitted=np.zeros(values.size, dtype=np.float32),
    )
    limits = (bounds.centre, bounds.norm, np.inf)
    each(lambda lo, hi: row_means_and_scales(rows, limits, lo, hi))
    return rows


def _choice(ratings: Ratings, bounds: RowBounds, each: EachRange[None]) -> tuple[Any, Any, Any]:
    """Return the ratings that count: all of them, untouched, if no row is too long."""
    lengths = np.diff(ratings.indptr)
    if bounds.most is None or not np.any(lengths > bounds.most):
        return ratings.indptr, ratings.items, ratings.values
    indptr = np.zeros_like(ratings.indptr)
    np.cumsum(np.minimum(lengths, bounds.most), out=indptr[1:])
    source = (ratings.indptr, ratings.items, ratings.values)
    chosen = (indptr, np.empty(indptr[-1], ratings.items.dtype), np.empty(indptr[-1], np.float32))
    each(lambda lo, hi: choose(source, chosen, bounds.most, bounds.seed, lo, hi))
    return chosen
