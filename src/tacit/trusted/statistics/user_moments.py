"""Moments of the users' own means and variances."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tacit.accounting.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import whole_below
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Adder, Statistic


@dataclass(frozen=True, eq=False)
class UserMoments(Statistic):
    r"""Sums over users of a bias, its square and a variance, and how many users there are.

    A user's bias $l$ is the mean of her ratings without offsets, her variance $v$ that of her
    ratings about it, or the `usual` one if she has a single rating. She adds
    $((1 + l/h)/2, (l/h)^2, v/\text{cap}, 1)$, $h$ = `half`, each cut off to lie in $[0, 1]$. `half`
    and `cap` are positive, `usual` not negative.

    *Paper:* none.
    *Guarantee:* L2 norm. A user's term is a vector of four numbers in $[0, 1]$ (integers from 0 to
    $\lfloor 1/u \rfloor$), so add_remove is at most 2, and for replace each of the four differs by
    at most 1: 2 as well. It is reached if biases beyond half are possible. With half of the range
    as `half` and $h^2/2$ as `cap` it is not: a row at the end has no variance. A single rating at
    the upper end, with $(4/25) h^2$ as the usual variance, comes to 1.761, and seven there with
    one at the lower to 1.756, whether the row is taken away or exchanged for an empty one.
    """

    bounds: RowBounds
    half: float
    cap: float
    usual: float

    def __post_init__(self) -> None:
        """Refuse public numbers for which terms would not lie in [0, 1]."""
        numbers = (self.half, self.cap, self.usual, *self.bounds.offsets)
        if not (np.isfinite(numbers).all() and min(self.half, self.cap) > 0 <= self.usual):
            raise PrivacyError(
                f"half={self.half!r}, cap={self.cap!r}, usual={self.usual!r} and offsets: expected "
                "finite numbers, half and cap positive, usual not negative; nothing was summed"
            )

    @property
    def sensitivity(self) -> Sensitivity:
        """2 for either relation."""
        return Sensitivity(add_remove=2.0, replace=2.0)

    @property
    def max_entry(self) -> float:
        """Each of the four is at most 1."""
        return 1.0

    @property
    def shape(self) -> tuple[int, ...]:
        """Four numbers."""
        return (4,)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Add the users' four numbers."""
        scale = (self.half, self.cap, self.usual)
        return partial(loops.user_moments, *local, scale, whole_below(1.0 / unit))
