"""The paper's two comparison tables, evaluated."""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class SampleComplexity:
    """A row of Table 1: what a method needs for an error over all entries that vanishes.

    Privacy parameters, logarithms and constants are hidden. In the setting of `rank_one`.
    """

    method: str
    source: str
    private: bool
    users_power: float | None
    """m must grow faster than n to this power; None: no bound is known."""

    def users(self, items: int) -> float | None:
        """Return the number of users that m must outgrow, n to a power."""
        return None if self.users_power is None else float(items) ** self.users_power

    def ratings(self, users: int, items: int) -> float | None:
        """Return the number of ratings that |Omega| must outgrow, m sqrt(n)."""
        return None if self.users_power is None else users * float(items) ** 0.5


TABLE_1 = (
    SampleComplexity("Nuclear norm minimisation", "[shalev2011large]", False, 1.0),
    SampleComplexity("Noisy SVD + kNN", "[MM09]", True, None),
    SampleComplexity("Noisy SGLD", "[liu2015fast]", True, None),
    SampleComplexity("Private Frank-Wolfe", "Alg. 1", True, 1.25),
)
"""*Paper:* Table 1."""


@dataclass(frozen=True)
class ApproximationError:
    """A row of Table 2: a bound on ||Y - Y*||_F when every entry is seen.

    In the setting of `unit_rows`: rank one, rows of norm at most 1, so that Y = 0 has an error of
    at most sqrt(m). Privacy parameters, logarithms and constants are hidden.
    """

    method: str
    source: str
    joint: bool
    """Joint differential privacy; the others keep the stricter standard kind."""
    formula: str
    error: Callable[[float, float, float], float]
    """Of m, n and mu."""
    rank: Callable[[float, float], float] = lambda _users, _items: 1.0
    """Rank of the output, of m and n."""

    def useful(self, users: int, items: int, incoherence: float) -> bool:
        """Whether the bound is below that of Y = 0."""
        return self.error(users, items, incoherence) < math.sqrt(users)


TABLE_2 = (
    ApproximationError(
        "Randomised response",
        "[BDMN05, ChanSS11, dwork2014analyze]",
        False,
        "sqrt(m + n)",
        lambda m, n, _: (m + n) ** 0.5,
    ),
    ApproximationError(
        "Gaussian measurement",
        "[HR12]",
        False,
        "sqrt(m) + sqrt(mu n / m)",
        lambda m, n, mu: m**0.5 + (mu * n / m) ** 0.5,
    ),
    ApproximationError(
        "Noisy power method", "[HR13]", False, "sqrt(mu)", lambda _m, _n, mu: mu**0.5
    ),
    ApproximationError(
        "Exponential mechanism", "[KapralovT13]", False, "m + n", lambda m, n, _: m + n
    ),
    ApproximationError(
        "Private Frank-Wolfe",
        "Alg. 1",
        True,
        "m^(3/10) n^(1/10)",
        lambda m, n, _: m**0.3 * n**0.1,
        rank=lambda m, n: m**0.4 / n**0.2,
    ),
    ApproximationError(
        "Private SVD",
        "Alg. 4",
        True,
        "sqrt(mu (n^2/m + m/n))",
        lambda m, n, mu: (mu * (n * n / m + m / n)) ** 0.5,
    ),
)
"""*Paper:* Table 2, as printed.

The row of Alg. 4 is Theorem B.3's second form at mu = 1; for larger mu that form has mu^2 before
n^2/m, and its first form, which knows ||Y*||_2, has n/m instead of n^2/m. The text calls all
earlier bounds trivial; sqrt(mu) is so only where mu is near m.
"""
