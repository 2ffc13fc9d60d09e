"""The public numbers that the paper's bounds are made of."""

import math
from dataclasses import dataclass, replace
from typing import Annotated, Any

from tacit._validate import Range, Validated, check
from tacit.accounting.budget import PrivacyBudget
from tacit.errors import ConfigError

_LARGEST = 1e30  # far beyond any use, and no power in a bound overflows
_Whole = Annotated[int, Range(1, _LARGEST, words="a whole number of at least 1")]
_Size = Annotated[float, Range(1 / _LARGEST, _LARGEST, words="a positive number, up to 1e+30")]


@dataclass(frozen=True, kw_only=True)
class Problem(Validated):
    """A matrix-completion problem, by the numbers that the paper's theorems name.

    Everything here is taken as public. The bounds assume at least as many users as items and
    epsilon <= 2 ln(1/delta), as the paper does throughout.

    >>> Problem(users=10_000, items=100, ratings=10**5, nuclear_norm=1e3, row_norm=3, epsilon=1.0)
    Problem(users=10000, items=100, ratings=100000, nuclear_norm=1000.0, row_norm=3, epsilon=1.0,
        delta=1e-06, rank=1, condition=1.0, incoherence=1.0, spectral_norm=None)
    """

    users: _Whole
    """m."""
    items: _Whole
    """n."""
    ratings: _Whole
    """|Omega|: how many entries are seen."""
    nuclear_norm: _Size
    """k: a bound on the nuclear norm of the hidden matrix."""
    row_norm: _Size
    """L: a bound on the norm of a user's seen entries."""
    epsilon: float
    """The promise."""
    delta: float = 1e-6
    """The promise."""
    rank: _Whole = 1
    """r, for Theorem B.3."""
    condition: _Size = 1.0
    """kappa = (largest singular value) / (r-th), for Theorem B.3."""
    incoherence: _Size = 1.0
    """mu of Definition B.2, for Theorem B.3: 1 is as even as can be, users/rank the worst."""
    spectral_norm: _Size | None = None
    """||Y*||_2, for Theorem B.3; None: k/r, as if r equal singular values added up to k."""

    def __post_init__(self) -> None:
        """Check every number."""
        super().__post_init__()
        PrivacyBudget(self.epsilon, self.delta)
        _check_together(self)

    @property
    def top_singular_value(self) -> float:
        """||Y*||_2: the given one, or k/r."""
        return self.nuclear_norm / self.rank if self.spectral_norm is None else self.spectral_norm

    @property
    def density(self) -> float:
        """|Omega| / (m n): the share p of entries that is seen."""
        return self.ratings / (self.users * self.items)

    @classmethod
    def by_rule(
        cls,
        *,
        users: int,
        items: int,
        epsilon: float,
        per_user: int = 80,
        rating_range: tuple[float, float] = (-1.0, 1.0),
        nuclear_norm: float | None = None,
        row_norm: float | None = None,
        **others: Any,
    ) -> "Problem":
        """Take k and L as a Frank-Wolfe fit with its default settings would.

        >>> problem = Problem.by_rule(users=500_000, items=400, epsilon=0.5)
        >>> problem.ratings, round(problem.nuclear_norm), round(problem.row_norm, 3)
        (40000000, 7071, 4.472)
        """
        from tacit.algorithms.preparation import default_nuclear_norm
        from tacit.estimation.row_norms import default_row_norm

        check_counts(users=users, items=items, per_user=per_user)
        check_range(rating_range)
        most = min(per_user, items)
        if nuclear_norm is None:
            nuclear_norm = default_nuclear_norm(users, items, rating_range)
        if row_norm is None:
            row_norm = default_row_norm(most, rating_range)
        return cls(
            users=users,
            items=items,
            ratings=users * most,
            nuclear_norm=nuclear_norm,
            row_norm=row_norm,
            epsilon=epsilon,
            **others,
        )


def rank_one(users: int, items: int, epsilon: float, delta: float = 1e-6) -> Problem:
    """Return the paper's setting: rank one, entries in [-1, 1], sqrt(n) of them seen a user.

        |Omega| = m sqrt(n),     k = sqrt(m n),     L = n^(1/4).

    *Paper:* Remarks 1, 3 and 5.
    """
    check("items", items, _Whole)
    return _entries_of_one(users, items, round(math.sqrt(items)), epsilon, delta)


def every_entry(users: int, items: int, epsilon: float, delta: float = 1e-6) -> Problem:
    """Return the same with every entry seen: |Omega| = m n, k = sqrt(m n), L = sqrt(n).

    *Paper:* Remark 2, low-rank approximation.
    """
    return _entries_of_one(users, items, items, epsilon, delta)


def _entries_of_one(users: int, items: int, per_user: int, epsilon: float, delta: float) -> Problem:
    """Return a matrix of rank one whose entries have size 1, so many of them seen a user."""
    return Problem(
        users=users,
        items=items,
        ratings=users * per_user,
        nuclear_norm=math.sqrt(users * items),
        row_norm=math.sqrt(per_user),
        epsilon=epsilon,
        delta=delta,
    )


def unit_rows(users: int, items: int, epsilon: float, delta: float = 1e-6) -> Problem:
    """Return the setting of Table 2: rank one, every entry seen, rows of norm at most 1.

        |Omega| = m n,     k = ||Y*||_2 = sqrt(m),     L = 1.

    *Paper:* Section 1.2, the interlude on low-rank approximation.
    """
    seen = every_entry(users, items, epsilon, delta)
    return replace(seen, nuclear_norm=math.sqrt(users), row_norm=1.0)


def check_counts(**counts: object) -> None:
    """Refuse what is not a whole number of at least 1."""
    for name, value in counts.items():
        check(name, value, _Whole)


def check_range(rating_range: tuple[float, float]) -> None:
    """Refuse a range of ratings that is none."""
    lo, hi = rating_range
    if not (math.isfinite(lo) and math.isfinite(hi) and lo < hi):
        raise ConfigError(
            f"rating_range={lo:g} {hi:g}: expected two numbers, the smaller one first"
        )


def out_of_scope(users: int, items: int, epsilon: float, delta: float) -> str | None:
    """Return why the paper's bounds do not apply to these numbers; None if they do."""
    limit = 2 * math.log(1 / delta)
    if users < items:
        return f"users={users}: the paper's bounds need at least as many users as items ({items})"
    if not 1e-9 <= epsilon <= limit:
        return (
            f"epsilon={epsilon:g}: the paper's bounds need an epsilon from 1e-9 to "
            f"2 ln(1/delta) = {limit:.4g}"
        )
    return None


def _check_together(problem: Problem) -> None:
    """Check what the paper assumes of several numbers at once."""
    users, items = problem.users, problem.items
    if items < 2:
        raise ConfigError(f"items={items}: expected at least 2")
    reason = out_of_scope(users, items, problem.epsilon, problem.delta)
    if reason:
        raise ConfigError(reason)
    if problem.ratings > users * items:
        raise ConfigError(f"ratings={problem.ratings}: expected at most users x items")
    if problem.rank > items:
        raise ConfigError(f"rank={problem.rank}: expected at most the number of items ({items})")
    if problem.condition < 1:
        raise ConfigError(f"condition={problem.condition!r}: expected at least 1")
