"""How far people's ratings spread, with the proof of its sensitivity."""

from dataclasses import dataclass, field

import numpy as np

from tacit.budget import Sensitivity
from tacit.errors import PrivacyError
from tacit.kernels.spreads import user_spreads
from tacit.private.quantise import whole_below
from tacit.private.rows import EachRange, RowBounds, Rows
from tacit.private.statistics import Units, sum_parts

__all__ = ["UserSpreads"]


@dataclass(frozen=True, eq=False)
class UserSpreads:
    """Sums over users of a level, its square and a variance, and how many users there are.

    A user's level l is the mean of her ratings without offsets, her variance v that of her ratings
    about it, or the `usual` one if she has a single rating. She adds ((1 + l/half)/2, (l/half)^2,
    v/cap, 1), each cut off to lie in [0, 1]. `half` and `cap` are positive, `usual` not negative.

    *Paper:* none.
    *Guarantee:* L2 norm. A user's term is a vector of four numbers in [0, 1] (integers from 0 to
    floor(1/unit)), so add_remove is at most 2, and for replace each of the four differs by at
    most 1: 2 as well. It is reached if levels beyond half are possible. With half of the range as
    `half` and half^2/2 as `cap` it is not: a row at the end has no variance. A single rating at
    the upper end, with (4/25) half^2 as the usual variance, comes to 1.761, and seven there with
    one at the lower to 1.756, whether the row is taken away or exchanged for an empty one.
    """

    bounds: RowBounds
    half: float
    cap: float
    usual: float
    sensitivity: Sensitivity = field(default=Sensitivity(add_remove=2.0, replace=2.0), init=False)
    peak: float = field(default=1.0, init=False)
    term_bits: int = field(default=50, init=False)
    shape: tuple[int, ...] = field(default=(4,), init=False)
    symmetric: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        """Refuse public numbers for which terms would not lie in [0, 1]."""
        numbers = (self.half, self.cap, self.usual, *self.bounds.offsets)
        if not (np.isfinite(numbers).all() and min(self.half, self.cap) > 0 <= self.usual):
            raise PrivacyError(
                f"half={self.half!r}, cap={self.cap!r}, usual={self.usual!r} and offsets: expected "
                "finite numbers, half and cap positive, usual not negative; nothing was summed"
            )

    def units(self, rows: Rows, unit: float, each: EachRange) -> Units:
        """Sum the users' four numbers."""
        arrays = rows.bounded(self.bounds, each)
        scale = (self.half, self.cap, self.usual)
        one = whole_below(1.0 / unit)

        def part(lo: int, hi: int) -> Units:
            total = np.zeros(self.shape, dtype=np.int64)
            user_spreads(arrays, scale, one, lo, hi, total)
            return total

        return sum_parts(each(part))
