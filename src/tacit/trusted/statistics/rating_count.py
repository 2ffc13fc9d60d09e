r"""How many ratings there are."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Integers, Statistic, nonnegative_number


@dataclass(frozen=True, eq=False)
class RatingCount(Statistic):
    r"""$|\Omega|$, the number of ratings that count.

    *Paper:* Algorithm 4 takes it as known.
    *Guarantee:* a user has between 0 and `max_ratings` ratings, so either relation changes the sum
    by at most `max_ratings`.
    """

    bounds: RowBounds
    max_ratings: int

    @property
    def sensitivity(self) -> Sensitivity:
        """The most ratings that a user may have, for either relation."""
        return nonnegative_number(float(self.max_ratings))

    @property
    def shape(self) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:  # noqa: ARG002
        """Count ratings, each as the largest number of units that is at most one."""
        indptr, one = local[0].indptr, whole_below(1.0 / unit)

        def add(lo: int, hi: int, total: Integers) -> None:
            counted = np.minimum(np.diff(indptr[lo : hi + 1]), self.max_ratings).sum()
            total[0] += int(counted) * one

        return add
