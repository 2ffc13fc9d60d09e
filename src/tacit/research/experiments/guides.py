"""Rates of the theory, drawn beside measurements: how errors grow with users and items."""

import math
import statistics
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tacit.research.theory import TABLE_2, empirical_risk_at_best, generalisation_error, rank_one


class Rate(NamedTuple):
    """How an error ought to move.

    Attributes:
        title: what a figure calls it.
        at: its value for m, n and epsilon; constants are hidden.
    """

    title: str
    at: Callable[[int, int, float], float]


def _table_2(method: str) -> Rate:
    """A row of Table 2 at incoherence 1."""
    row = next(row for row in TABLE_2 if row.method == method)
    return Rate(f"Table 2, {method}", lambda users, items, _: row.error(users, items, 1.0))


def _seen(users: int, items: int, epsilon: float) -> float:
    """The root mean square error on seen entries, of which F-hat is half the square."""
    return math.sqrt(2 * empirical_risk_at_best(rank_one(users, items, epsilon)))


def _all(users: int, items: int, epsilon: float) -> float:
    """The root mean square error on all entries."""
    return math.sqrt(generalisation_error(rank_one(users, items, epsilon)).total)


BOUNDS = MappingProxyType(
    {
        "theorem-3.2": Rate("Theorem 3.2", _seen),
        "corollary-3.1": Rate("Corollary 3.1", _all),
        "table-2-frank-wolfe": _table_2("Private Frank-Wolfe"),
        "table-2-svd": _table_2("Private SVD"),
        "table-2-power-method": _table_2("Noisy power method"),
    }
)
"""Rates by the name they have in an experiment's file, as root mean squares or Frobenius norms."""


def slope(places: Sequence[float], values: Sequence[float]) -> float:
    """Return the least-squares slope in log-log.

    >>> round(slope([1, 10, 100], [5, 50, 500]), 6)
    1.0
    """
    logs = [[math.log(x) for x in numbers] for numbers in (places, values)]
    return statistics.linear_regression(*logs).slope
