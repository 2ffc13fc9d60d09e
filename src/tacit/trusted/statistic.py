r"""What a statistic is, and what a sum before noise is.

A statistic describes $f(D) = \sum_i \varphi(a_i)$: what is summed, how one user's term $\varphi(a)$
is bounded, and hence how far one user can move the sum. All of it is public. An engine turns it
into a `BoundedSum`, which only the mechanism can open. Sums are of integers (multiples of a unit
that the mechanism sets), so they are exact: no order of summation, number of threads or shards, or
rounding can change the bound.
"""

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.errors import EngineError, PrivacyError
from tacit.kernels.loops import Loops
from tacit.trusted.described import Described
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.sealing import seal, unseal

Integers = NDArray[np.int64]
Adder = Callable[[int, int, Integers], None]
"""Adds the terms of the users lo <= i < hi to a total."""


class Statistic(Described, ABC):
    """A sum over users. A frozen dataclass; its fields are public.

    A subclass states its sensitivity and shape, and names the loop that adds users' terms
    (`adder`). The loop comes from the engine, which may have others than this package's.
    """

    symmetric: bool = False
    """Whether the sum is a symmetric matrix."""
    term_bits: int = 50
    """How many bits one user's largest term may have for her loops to be exact."""
    bounds: RowBounds

    @property
    @abstractmethod
    def sensitivity(self) -> Sensitivity:
        """The L2 bound on what one user can change, for either relation."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, ...]:
        """The shape of the sum."""

    @property
    def max_entry(self) -> float:
        """The most that one user adds to any one entry: no entry exceeds the norm of her term."""
        return self.sensitivity.add_remove

    @property
    def loop_shape(self) -> tuple[int, ...]:
        """The shape of what the loop adds to, if it is another one."""
        return self.shape

    @abstractmethod
    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Return the loop that adds users' terms, in multiples of `unit`, given what they hold."""

    def local(self, rows: Rows, run: Run) -> tuple[Any, ...]:
        """Return what users hold: their bounded rows, and local state if there is any."""
        return (rows.bounded(self.bounds, run),)

    def finish(self, total: Integers) -> Integers:
        """Bring what the loop added up into the shape of the sum.

        Of a symmetric one it is the upper triangle, which is mirrored.
        """
        return total + np.triu(total, 1).T if self.symmetric else total.reshape(self.shape)

    def integer_sum(self, rows: Rows, unit: float, run: Run) -> Integers:
        """Sum the users' terms, as integers, in multiples of `unit`."""
        add = self.adder(self.local(rows, run), unit, run.loops)

        def part(lo: int, hi: int) -> Integers:
            total = np.zeros(self.loop_shape, dtype=np.int64)
            add(lo, hi, total)
            return total

        total, *others = run.map_users(part)
        for other in others:
            total += other
        return self.finish(total)

    def bounded_sum(self, rows: Rows, unit: float, run: Run) -> "BoundedSum":
        """Sum the users' terms; what engines call."""
        return BoundedSum(self.integer_sum(rows, unit, run), unit, self)


class BoundedSum:
    """A sum over users before noise: integers, in multiples of `unit`. Shows nothing.

    Partial sums of one statistic, of different users, can be added. To another trusted process they
    travel sealed (trusted.sealing), since pickling is refused.
    """

    def __init__(self, integers: Integers, unit: float, statistic: Statistic) -> None:
        """Wrap the integers; only the mechanism opens them."""
        self._exact_sum = integers
        self.unit = unit
        self._statistic = statistic

    def __repr__(self) -> str:
        return "<a sum before noise: nothing to see>"

    def __reduce__(self) -> NoReturn:
        raise PrivacyError("a sum before noise cannot be pickled; seal it")

    def is_of(self, statistic: Statistic, unit: float) -> bool:
        """Whether it is a sum of this statistic in this unit."""
        mine = self._statistic
        same = mine is statistic or mine.digest == statistic.digest
        return same and self.unit == unit and self._exact_sum.shape == statistic.shape

    def __add__(self, other: "BoundedSum") -> "BoundedSum":
        """Add a partial sum of the same statistic over other users."""
        if not other.is_of(self._statistic, self.unit):
            raise EngineError("partial sums of different statistics or units cannot be added")
        return BoundedSum(self._exact_sum + other._exact_sum, self.unit, self._statistic)

    def seal(self, key: bytes) -> bytes:
        """Return it as bytes that show nothing without the key of the fit."""
        head = json.dumps([self._statistic.digest.hex(), self.unit.hex()]).encode()
        return seal(head + b"\n" + self._exact_sum.astype("<i8").tobytes(), key)

    @classmethod
    def unseal(cls, sealed: bytes, key: bytes, statistic: Statistic) -> "BoundedSum":
        """Return the partial sum of this statistic that was sealed with this key, still closed."""
        head, _, body = unseal(sealed, key).partition(b"\n")
        digest, unit = json.loads(head)
        if digest != statistic.digest.hex():
            raise EngineError("a sealed sum is of another statistic than was asked for")
        integers = np.frombuffer(body, "<i8").astype(np.int64).reshape(statistic.shape)
        return cls(integers, float.fromhex(unit), statistic)


def any_vector(norm: float) -> Sensitivity:
    r"""Return the sensitivity of terms with $\|\varphi\| \le C$: $C$; $2C$ for opposite ones."""
    return Sensitivity(add_remove=norm, replace=2 * norm)


def nonnegative_vector(norm: float) -> Sensitivity:
    r"""Return the sensitivity of terms with $\|\varphi\| \le C$ and no negative entry.

    $\|\varphi - \varphi'\|^2 = \|\varphi\|^2 + \|\varphi'\|^2 - 2 \varphi\cdot\varphi' \le 2 C^2$.
    """
    return Sensitivity(add_remove=norm, replace=math.sqrt(2.0) * norm)


def nonnegative_number(most: float) -> Sensitivity:
    """Return the sensitivity of terms that are one number from 0 to `most`."""
    return Sensitivity(add_remove=most, replace=most)


def outer_product(bound: float) -> Sensitivity:
    r"""Return the sensitivity of terms $a a^T$ with $\|a\| \le B$, in the Frobenius norm.

    $\|a a^T\| = \|a\|^2 \le B^2$. For replace,
    $\|a a^T - b b^T\|^2 = \|a\|^4 + \|b\|^4 - 2 (a \cdot b)^2 \le 2 B^4$: $\sqrt2 B^2$, reached by
    orthogonal $a, b$.
    """
    return Sensitivity(add_remove=bound**2, replace=math.sqrt(2.0) * bound**2)
