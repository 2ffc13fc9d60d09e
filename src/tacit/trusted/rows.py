"""Bounded rows: how much one person can contribute is decided here, and only here.

Rows stay inside this package and its engines (import contracts and a test of the syntax trees
see to that); they refuse to be pickled, and show nothing when printed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit._parallel import parallel_map, spans_of
from tacit.data.build import stored_range
from tacit.data.ratings import Ratings
from tacit.errors import DataError, PrivacyError
from tacit.kernels.loops import LOOPS, Loops
from tacit.kernels.rows import RowArrays, RowLimits, rows_hold
from tacit.trusted.described import Described

LONGEST_ROW = 1 << 23
"""Rows of more ratings are refused: margins for rounding cover rows of up to this length."""

_FEW = 1 << 14
"""With fewer ratings than this, starting threads takes longer than looking at all rows."""

_Csr = tuple[NDArray[np.int64], NDArray[Any], NDArray[np.float32]]  # indptr, items, values
Result = TypeVar("Result")
State = TypeVar("State")


class MapUsers(Protocol):
    """Runs a task on ranges lo <= user < hi that together cover all users."""

    def __call__(self, task: Callable[[int, int], Result]) -> list[Result]:
        """Return what the task gave for each range, in order."""
        ...


@dataclass(frozen=True)
class Run:
    """How an engine goes through users: in which ranges, and with which loops."""

    map_users: MapUsers
    loops: Loops = LOOPS


@dataclass(frozen=True, eq=False)
class RowBounds(Described):
    """How a row is bounded before anything is computed from it. All of it is public.

    Attributes:
        max_ratings: at most this many ratings of a user count, chosen pseudo-randomly; None: all.
        offsets: a public number per item, taken off its ratings.
        centre: whether each user's own mean is taken off her ratings (done locally, free).
        norm: the L2 norm that her row is scaled down to if it is longer: the paper's L.
        seed: of the choice. The choice depends on the seed and her own row, on nobody else's.
        bias_shrinkage: her mean is taken as if she had this many more ratings at zero.
        clip: what is left of a rating is clipped to [-clip, clip].
        by_sqrt_count: whether her row is divided by the root of its number of ratings.
        binarise: whether only which items she rated counts: every rating is taken to be 1.
        items: published items in rising order; only her ratings of these count. None: all.
    """

    max_ratings: int | None
    offsets: NDArray[np.float64]
    centre: bool
    norm: float
    seed: int = 0
    bias_shrinkage: float = 0.0
    clip: float = np.inf
    by_sqrt_count: bool = False
    binarise: bool = False
    items: NDArray[np.int64] | None = None

    def limits(self) -> RowLimits:
        """Return what the loops take; chosen rows are never longer than `max_ratings`."""
        return RowLimits(self.centre, self.bias_shrinkage, self.norm, self.by_sqrt_count, np.inf)


def all_ratings(n_items: int) -> RowBounds:
    """Return the bounds that leave rows as they are."""
    return RowBounds(None, np.zeros(n_items), False, np.inf)


class Rows:
    """The rows of some users, and the local state that follows from the releases so far."""

    def __init__(self, ratings: Ratings) -> None:
        """Take the ratings as they are, if they are rows; nothing is copied."""
        _check(ratings)
        self.__ratings = ratings
        self.__bounds: bytes | None = None
        self.__arrays: RowArrays | None = None
        self.__state: Any = None

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

    def bounded(self, bounds: RowBounds, run: Run) -> RowArrays:
        """Return the rows under these bounds, bounding them anew if their value changed."""
        if self.__arrays is None or self.__bounds != bounds.digest:
            self.__bounds, self.__arrays, self.__state = None, None, None
            self.__arrays = _bound(self.__ratings, bounds, run)
            self.__bounds = bounds.digest
        return self.__arrays

    def state(self, kind: type[State], bounds: RowBounds, run: Run) -> State:
        """Return the users' local state of this kind, made anew for other bounds."""
        arrays = self.bounded(bounds, run)
        if not isinstance(self.__state, kind):
            self.__state = kind(arrays)  # type: ignore[call-arg]
        state: State = self.__state
        return state


def _check(ratings: Ratings) -> None:
    """Refuse what is no set of rows: all bounds are proved for rows, and for nothing else."""
    indptr, items, values = ratings.indptr, ratings.items, ratings.values
    plain = indptr.dtype == np.int64 and items.dtype.kind == "u" and values.dtype == np.float32
    whole = indptr.size > 0 and indptr[0] == 0 and indptr[-1] == items.size == values.size
    limits = (ratings.n_items, *stored_range(*ratings.rating_range), LONGEST_ROW)
    if plain and whole and _hold((indptr, items, values), limits):
        return
    raise DataError(
        "ratings: not as the from_... methods of Ratings make them: rows one after another, items "
        "of the catalogue in increasing order, each once, values in the rating range, and at most "
        f"{LONGEST_ROW:,} ratings in a row; make them by one of those methods"
    )


def _hold(rows: tuple[Any, Any, Any], limits: tuple[Any, ...]) -> bool:
    """Whether all rows hold, looked at by all cores; indptr may be anything between its ends."""
    if rows[1].size < _FEW:
        return bool(rows_hold(rows, limits, 0, rows[0].size - 1))
    spans = spans_of(np.maximum.accumulate(rows[0]))
    return all(parallel_map(lambda span: rows_hold(rows, limits, *span), spans))


def _bound(ratings: Ratings, bounds: RowBounds, run: Run) -> RowArrays:
    every = ratings.indptr, ratings.items, ratings.values
    inside = _of_items(every, bounds, ratings.n_items, run)
    indptr, items, values = _choice(inside, bounds, run)
    if bounds.binarise:
        values = np.broadcast_to(np.float32(1.0), values.shape)
    users = ratings.n_users
    means, scales = np.zeros(users), np.ones(users)
    rows = RowArrays(indptr, items, values, bounds.offsets, means, scales, bounds.clip)
    limits = bounds.limits()
    run.map_users(lambda lo, hi: run.loops.row_means_and_scales(rows, limits, lo, hi))
    return rows


def _of_items(source: _Csr, bounds: RowBounds, n_items: int, run: Run) -> _Csr:
    """Return the ratings of the items that count."""
    if bounds.items is None:
        return source
    if np.any(np.diff(bounds.items, prepend=-1, append=n_items) <= 0):
        raise PrivacyError("the items that count must rise, each once; nothing was summed")
    counts = np.zeros(n_items, dtype=np.bool_)
    counts[bounds.items] = True
    lengths = np.zeros(source[0].size - 1, dtype=np.int64)
    run.map_users(lambda lo, hi: run.loops.lengths_inside(source, counts, lengths, lo, hi))
    kept = _room_for(lengths, source)
    run.map_users(lambda lo, hi: run.loops.keep_inside(source, counts, kept, lo, hi))
    return _like_ratings(kept)


def _choice(source: _Csr, bounds: RowBounds, run: Run) -> _Csr:
    """Return at most `max_ratings` of each row: all, untouched, if no row is too long."""
    lengths, most = np.diff(source[0]), bounds.max_ratings
    if most is None or not np.any(lengths > most):
        return source
    chosen = _room_for(np.minimum(lengths, most), source)
    run.map_users(lambda lo, hi: run.loops.choose(source, chosen, most, bounds.seed, lo, hi))
    return _like_ratings(chosen)


def _room_for(lengths: NDArray[np.int64], source: _Csr) -> _Csr:
    """Return empty rows of these lengths."""
    indptr = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=indptr[1:])
    return indptr, np.empty(indptr[-1], source[1].dtype), np.empty(indptr[-1], np.float32)


def _like_ratings(rows: _Csr) -> _Csr:
    """Make arrays read-only, as all ratings are: loops are compiled once for both."""
    for array in rows:
        array.flags.writeable = False
    return rows
