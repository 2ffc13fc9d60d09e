"""Statistics of people's rows, each with the proof of its sensitivity.

A statistic is a public description: what is to be summed, how one user's term is bounded,
and hence how far one user can move the sum. An engine turns it into a BoundedSum, which only
`mechanism` can open. All sums are of integers (multiples of a unit that the mechanism sets), so
they are exact: no order of summation, thread count or rounding can change the bound.
"""

import math
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.items import weighted_sums
from tacit.kernels.residuals import Quanta, StepArrays, covariance
from tacit.private.rows import EachRange, RankOneStep, RowBounds, Rows

__all__ = ["BoundedSum", "ItemSums", "ResidualCovariance", "Statistic", "UserCount"]

Units = NDArray[np.int64]


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

    def units(self, rows: Rows, unit: float, each: EachRange[Units]) -> Units:
        """Sum the users' terms, as integers, in multiples of `unit`."""
        ...


@dataclass(frozen=True, eq=False)
class ResidualCovariance:
    """W = sum_i A_i^T A_i, the second moment of the users' residuals on Omega.

    A_i = P(Y_i - Y*_i) after the published `steps`, clipped to ||A_i|| <= `bound`.

    *Paper:* Algorithm 1, W^(t); with no steps Algorithm 4, W.
    *Guarantee:* Frobenius norm. A user's term a a^T has norm ||a||^2 <= B^2. add_remove changes
    the sum by one term: B^2. replace changes it by a a^T - b b^T, and
    ||a a^T - b b^T||^2 = ||a||^4 + ||b||^4 - 2 (a.b)^2 <= 2 B^4: sqrt2 B^2, reached by
    orthogonal a, b. A user's residual depends on her own row and on what is published only, so
    nobody else's term moves. The clip is made and checked in integers (kernels.residuals).
    """

    bounds: RowBounds
    steps: tuple[RankOneStep, ...]
    bound: float
    symmetric: bool = field(default=True, init=False)

    @property
    def sensitivity(self) -> Sensitivity:
        """B^2, and sqrt2 B^2 when a row is replaced."""
        return Sensitivity(add_remove=self.bound**2, replace=math.sqrt(2.0) * self.bound**2)

    @property
    def peak(self) -> float:
        """No entry of a a^T exceeds ||a||^2."""
        return self.bound**2

    @property
    def shape(self) -> tuple[int, int]:
        """Items by items."""
        return (self.bounds.offsets.size, self.bounds.offsets.size)

    def units(self, rows: Rows, unit: float, each: EachRange[Units]) -> Units:
        """Take the newest step and sum the outer products, in one pass over the ratings."""
        arrays = rows.bounded(self.bounds, each)  # type: ignore[arg-type]
        step = rows.catch_up(self.steps, each) or _no_step(self.shape[0])  # type: ignore[arg-type]
        quanta = _quanta(self.bound, unit)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            covariance(arrays, step, quanta, lo, hi, total)
            return total

        total = _sum_parts(each(part))
        rows.taken(self.steps)
        return total + np.triu(total, 1).T


def _no_step(items: int) -> StepArrays:
    return StepArrays(np.zeros(items), 0.0, 1.0, math.inf)


def _quanta(bound: float, unit: float) -> Quanta:
    """Return how rows become integers whose products are multiples of `unit`."""
    most_squared = math.floor(bound**2 / unit * (1 - 1e-12))
    return Quanta(bound, math.sqrt(unit), most_squared)


def _sum_parts(parts: list[Units]) -> Units:
    total = parts[0]
    for part in parts[1:]:
        total += part
    return total


@dataclass(frozen=True, eq=False)
class ItemSums:
    """For every item, the weighted sum of its ratings and the weighted number of them.

    User i, with d ratings y mapped to [-1, 1], adds y/sqrt(d) and 1/sqrt(d) to her items.

    *Paper:* none; it pays for the item means that Section 4 takes off without privacy.
    *Guarantee:* L2 norm of the pair (x, c). Her counts have norm <= 1 and |x_j| <= c_j, so
    add_remove is sqrt2. For replace, item by item,
    (x - x')^2 + (c - c')^2 <= (c + c')^2 + (c - c')^2 = 2 c^2 + 2 c'^2, which adds up to at
    most 4: the bound is 2, reached when all ratings turn from one end of the range to the other.
    """

    bounds: RowBounds
    rating_range: tuple[float, float]
    sensitivity: Sensitivity = field(
        default=Sensitivity(add_remove=math.sqrt(2.0), replace=2.0), init=False
    )
    peak: float = field(default=1.0, init=False)
    symmetric: bool = field(default=False, init=False)

    @property
    def shape(self) -> tuple[int, int]:
        """Sums and counts, by items."""
        return (2, self.bounds.offsets.size)

    def units(self, rows: Rows, unit: float, each: EachRange[Units]) -> Units:
        """Sum the users' weighted ratings and weights."""
        arrays = rows.bounded(self.bounds, each)  # type: ignore[arg-type]
        middle, half = sum(self.rating_range) / 2, (self.rating_range[1] - self.rating_range[0]) / 2
        radius = math.floor(1.0 / unit * (1 - 1e-12))

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            weighted_sums(arrays, middle, half, radius, lo, hi, total)
            return total

        return _sum_parts(each(part))


@dataclass(frozen=True, eq=False)
class UserCount:
    """How many users there are, for `add_remove`, where that number is not public.

    *Guarantee:* one user changes it by at most 1 (add_remove) or not at all (replace).
    """

    sensitivity: Sensitivity = field(default=Sensitivity(add_remove=1.0, replace=1.0), init=False)
    peak: float = field(default=1.0, init=False)
    shape: tuple[int, ...] = field(default=(1,), init=False)
    symmetric: bool = field(default=False, init=False)

    def units(self, rows: Rows, unit: float, each: EachRange[Units]) -> Units:  # noqa: ARG002
        """Count users, each as the largest number of units that is at most one."""
        one = math.floor(1.0 / unit * (1 - 1e-12))
        return np.array([rows.n_users * one], dtype=np.int64)
