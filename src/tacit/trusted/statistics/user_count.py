"""How many users there are."""

from dataclasses import dataclass
from typing import Any

from tacit.accounting.budget import Sensitivity
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import Rows, Run
from tacit.trusted.statistic import Adder, Integers, Statistic, nonnegative_number


@dataclass(frozen=True, eq=False)
class UserCount(Statistic):
    """How many users there are, for `add_remove`, where that number is not public.

    *Guarantee:* one user changes it by at most 1 (add_remove) or not at all (replace).
    """

    @property
    def sensitivity(self) -> Sensitivity:
        """1; replace never moves it."""
        return nonnegative_number(1.0)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number."""
        return (1,)

    def local(self, rows: Rows, run: Run) -> tuple[Any, ...]:  # noqa: ARG002
        """Return nothing: being there is enough."""
        return ()

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:  # noqa: ARG002
        """Count users, each as the largest number of units that is at most one."""
        one = whole_below(1.0 / unit)

        def add(lo: int, hi: int, total: Integers) -> None:
            total[0] += (hi - lo) * one

        return add
