"""Statistics of people's rows, each with the proof of its sensitivity.

A statistic is a public description: what is to be summed, how one user's term is bounded,
and hence how far one user can move the sum. An engine turns it into a BoundedSum, which only
`mechanism` can open. All sums are of integers (multiples of a unit that the mechanism sets), so
they are exact: no order of summation, thread count or rounding can change the bound.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.budget import Sensitivity
from tacit.errors import EngineError, PrivacyError
from tacit.kernels.residuals import StepArrays, covariance, energy, moments, product
from tacit.kernels.rows import RowArrays
from tacit.private.local import FittedValues, RankOneStep
from tacit.private.quantise import product_quanta, whole_below
from tacit.private.rows import EachRange, RowBounds, Rows

__all__ = [
    "BoundedSum",
    "DescentMoments",
    "OuterProducts",
    "ResidualCovariance",
    "ResidualEnergy",
    "ResidualProduct",
    "Statistic",
    "outer_products",
    "product_sensitivity",
    "sum_parts",
]

Units = NDArray[np.int64]
Fitted = NDArray[np.float32]
Part = Callable[[RowArrays, Fitted, StepArrays, int, int], Units]


class BoundedSum:
    """A sum over users before noise: integers, in multiples of `unit`. Shows nothing."""

    def __init__(self, units: Units, unit: float) -> None:
        """Wrap the integers; only the mechanism opens them."""
        self._units = units
        self.unit = unit

    def __repr__(self) -> str:
        return "<a sum before noise: nothing to see>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a sum before noise cannot be pickled")


class Statistic(Protocol):
    """What every statistic states about itself."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The L2 bound on what one user can change, for either relation."""
        ...

    @property
    def peak(self) -> float:
        """The most that one user adds to any one entry."""
        ...

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""
        ...

    @property
    def symmetric(self) -> bool:
        """Whether the sum is a symmetric matrix."""
        ...

    @property
    def term_bits(self) -> int:
        """How many bits one user's largest term may have for her loops to be exact."""
        ...

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Sum the users' terms, as integers, in multiples of `unit`."""
        ...


def outer_products(bound: float) -> Sensitivity:
    """Return the sensitivity of a sum of outer products of rows of norm at most `bound`."""
    return Sensitivity(add_remove=bound**2, replace=math.sqrt(2.0) * bound**2)


class OuterProducts:
    """What sums of outer products a a^T of bounded rows, ||a|| <= B, have in common.

    *Guarantee:* Frobenius norm. A user's term has norm ||a||^2 <= B^2, so add_remove is B^2.
    replace changes the sum by a a^T - b b^T, and ||a a^T - b b^T||^2 =
    ||a||^4 + ||b||^4 - 2 (a.b)^2 <= 2 B^4: sqrt2 B^2, reached by orthogonal a, b.
    """

    bounds: RowBounds
    bound: float

    @property
    def sensitivity(self) -> Sensitivity:
        """B^2, and sqrt2 B^2 when a row is replaced."""
        return outer_products(self.bound)

    @property
    def peak(self) -> float:
        """No entry of a a^T exceeds ||a||^2."""
        return self.bound**2

    @property
    def shape(self) -> tuple[int, int]:
        """Items by items."""
        return (self.bounds.offsets.size, self.bounds.offsets.size)


class _OfResiduals:
    """What statistics of the users' residuals after the published steps have in common."""

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]

    def _pass(self, rows: Rows, each: EachRange, part: Part) -> Units:
        """Bring local state up to date, and sum what `part` makes of each range of users.

        The newest step is left for the part's own pass over the ratings to take.
        """
        arrays = rows.bounded(self.bounds, each)
        state = rows.state(FittedValues, self.bounds, each)
        step = state.catch_up(self.steps, each)
        total = sum_parts(each(lambda lo, hi: part(arrays, state.values, step, lo, hi)))
        state.done(self.steps)
        return total


@dataclass(frozen=True, eq=False)
class ResidualCovariance(_OfResiduals, OuterProducts):
    """W = sum_i A_i^T A_i, the second moment of the users' residuals on Omega.

    A_i = P(Y_i - Y*_i) after the published `steps`, clipped to ||A_i|| <= `bound`. Where `items`
    are given, published ones in increasing order, W has these rows and columns only.

    *Paper:* Algorithm 1, W^(t); with no steps Algorithm 4, W.
    *Guarantee:* that of OuterProducts. A user's residual depends on her own row and on what is
    published only, so nobody else's term moves. The clip is made and checked in integers
    (kernels.residuals), on all of her residual; a part of it is no longer than the whole.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    items: NDArray[np.int64] | None = None
    symmetric: bool = field(default=True, init=False)
    term_bits: int = field(default=52, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Items by items, of those that are asked for."""
        size = self.bounds.offsets.size if self.items is None else self.items.size
        return (size, size)

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Take the newest step and sum the outer products, in one pass over the ratings."""
        quanta, places = (
            product_quanta(self.bound, unit),
            _places(self.items, self.bounds.offsets.size),
        )

        def part(arrays: RowArrays, fitted: Fitted, step: StepArrays, lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            covariance(arrays, fitted, step, quanta, places, lo, hi, total)
            return total

        total = self._pass(rows, each, part)
        return total + np.triu(total, 1).T


def _places(items: NDArray[np.int64] | None, n_items: int) -> NDArray[np.int32]:
    """Return where each item is in a matrix of these items, -1 where it is not."""
    places = np.full(n_items, -1, dtype=np.int32)
    chosen = np.arange(n_items) if items is None else items
    if np.any(np.diff(chosen) <= 0) or np.any(chosen < 0) or np.any(chosen >= n_items):
        raise PrivacyError("the items of a matrix must rise, each once; nothing was summed")
    places[chosen] = np.arange(chosen.size)
    return places


def sum_parts(parts: list[Units]) -> Units:
    """Add up what the ranges of users gave."""
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


@dataclass(frozen=True, eq=False)
class ResidualProduct(_OfResiduals):
    """(sum_i A_i^T A_i) V for a block V of orthonormal columns: nothing items-by-items exists.

    Residuals as in ResidualCovariance.

    *Paper:* Algorithm 2, A^T A v, and its block form.
    *Guarantee:* Frobenius norm. A user's term a (a^T V) has norm at most ||a||^2 <= B^2, so
    add_remove is B^2. For one column under replace, (a a^T - b b^T) v is at most the largest
    eigenvalue in size of a a^T - b b^T, which has one of either sign, neither beyond B^2: B^2.
    For several columns it is at most ||a a^T - b b^T||_F <= sqrt2 B^2. Entries are rounded to
    the grid, which moves a term by less than 2^-22 B^2 (checked); floating point before that, for
    rows of up to 2^28 ratings, and columns that are orthonormal to 1e-9 (checked) add less than
    twice as much. The bounds are enlarged by 2^-20 for all of it.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    block: NDArray[np.float64]
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=52, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """B^2, and sqrt2 B^2 for several columns when a row is replaced; a little enlarged."""
        return product_sensitivity(self.bound, self.block.shape[1])

    @property
    def peak(self) -> float:
        """No entry of a (a^T V) exceeds ||a||^2."""
        return self.bound**2

    @property
    def shape(self) -> tuple[int, ...]:
        """Items by columns."""
        return self.block.shape

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Take the newest step and sum the products, in one pass over the ratings."""
        _check_orthonormal(self.block)
        _check_rounding(unit, self.block.size, self.bound)

        def part(arrays: RowArrays, fitted: Fitted, step: StepArrays, lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            product(arrays, fitted, step, self.block, (self.bound, unit), lo, hi, total)
            return total

        return self._pass(rows, each, part)


def product_sensitivity(bound: float, columns: int) -> Sensitivity:
    """Return the sensitivity of a ResidualProduct (proved there)."""
    term = bound**2 * (1 + 2.0**-20)
    return Sensitivity(add_remove=term, replace=term if columns == 1 else math.sqrt(2.0) * term)


def _check_orthonormal(block: NDArray[np.float64]) -> None:
    """Refuse columns that are not orthonormal: the sensitivity would not hold (Alg. 2's slip)."""
    columns = block.shape[1]
    if not np.allclose(block.T @ block, np.eye(columns), rtol=0.0, atol=1e-9 / columns):
        raise PrivacyError("the columns of a product must be orthonormal; nothing was summed")


def _check_rounding(unit: float, entries: int, bound: float) -> None:
    """Refuse a grid on which rounding could move a user's term by more than 2^-22 B^2."""
    if math.sqrt(entries) * unit > 2.0**-22 * bound**2:
        raise EngineError("the grid is too coarse for so many items, columns and users; use fewer")


@dataclass(frozen=True, eq=False)
class ResidualEnergy(_OfResiduals):
    """||A v||^2 = sum_i (A_i . v)^2 for a unit vector v: the eigenvalue that belongs to it.

    *Paper:* Algorithm 2, its last line; there it is not paid for.
    *Guarantee:* a user's term lies in [0, B^2] (clipped there in integers), so either relation
    changes the sum by at most B^2.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    direction: NDArray[np.float64]
    shape: tuple[int, ...] = field(default=(1,), init=False)
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=52, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """B^2 for either relation."""
        return Sensitivity(add_remove=self.bound**2, replace=self.bound**2)

    @property
    def peak(self) -> float:
        """The whole term."""
        return self.bound**2

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Take the newest step and sum the energies, in one pass over the ratings."""
        _check_orthonormal(self.direction[:, None])
        limits = (self.bound, unit, whole_below(self.bound**2 / unit))

        def part(arrays: RowArrays, fitted: Fitted, step: StepArrays, lo: int, hi: int) -> Units:
            return np.array([energy(arrays, fitted, step, self.direction, limits, lo, hi)])

        return self._pass(rows, each, part)


@dataclass(frozen=True, eq=False)
class DescentMoments(_OfResiduals):
    """Five sums over users that a line search and a duality gap need.

    With A_i the residual, Y_i the fitted row and w_i = (A_i . v) v, all on Omega: the sums of
    A.A, A.Y, Y.Y, Y.w and w.w. Residuals as in ResidualCovariance, whose steps keep
    ||Y_i|| <= L; so ||A_i|| <= 2 L.

    *Paper:* Algorithm 3 and Equation (duality gap) in its proof.
    *Guarantee:* each of a user's five terms lies in [-4 L^2, 4 L^2] (clipped there), so
    add_remove is sqrt5 4 L^2, and replace twice that.
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    direction: NDArray[np.float64]
    shape: tuple[int, ...] = field(default=(5,), init=False)
    symmetric: bool = field(default=False, init=False)
    term_bits: int = field(default=50, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """The norm of five terms of at most 4 L^2; twice that when a row is replaced."""
        norm = math.sqrt(5.0) * self.peak
        return Sensitivity(add_remove=norm, replace=2 * norm)

    @property
    def peak(self) -> float:
        """The most that one term can be."""
        return 4 * self.bounds.norm**2

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Take the newest step and sum the moments, in one pass over the ratings."""
        limits = (self.peak, whole_below(self.peak / unit))

        def part(arrays: RowArrays, fitted: Fitted, step: StepArrays, lo: int, hi: int) -> Units:
            found: Units = moments(arrays, fitted, step, self.direction, limits, lo, hi)
            return found

        return self._pass(rows, each, part)
