r"""The grid of a sum: how many units a bound is (the loop itself is kernels/quantise.py).

A bound $b$ is $b/u$ units of size $u$. The quotient is computed in floating point, with a relative
error below $2^{-50}$. Taking off a part in $10^{12}$ first, and then rounding down, gives a whole
number $m$ with $m u \le b$ for certain. No other module leaves such a margin.
"""

import math

from tacit.errors import EngineError
from tacit.kernels.quantise import MOST_EXACT, Quanta

_MARGIN = 1e-12


def below(number: float) -> float:
    """Return a number that is surely below the exact value that was rounded to this one."""
    return number * (1 - _MARGIN)


def whole_below(number: float) -> int:
    """Return the largest whole number that is surely not above the exact value.

    >>> whole_below(3.0), whole_below(3.1)
    (2, 3)
    """
    return math.floor(below(number))


def norm_quanta(bound: float, unit: float) -> Quanta:
    """Return how vectors of norm at most `bound` become multiples of `unit`."""
    return _checked(Quanta(bound, unit, whole_below((bound / unit) ** 2)))


def product_quanta(bound: float, unit: float) -> Quanta:
    r"""Return how they become integers whose products are multiples of `unit`: $q = \sqrt u$."""
    return _checked(Quanta(bound, math.sqrt(unit), whole_below(bound**2 / unit)))


def _checked(quanta: Quanta) -> Quanta:
    """Refuse a grid so fine that squared norms would not be exact."""
    if quanta.most_squared > MOST_EXACT:
        raise EngineError("the grid is too fine for squared norms to be exact; nothing was summed")
    return quanta
