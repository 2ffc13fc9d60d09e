"""The message of a refused fit: what was asked, what is left, and what that would buy."""

import math

from tacit.accounting.budget import PrivacyBudget, mu_of
from tacit.book.account import Account
from tacit.errors import LifetimeExceeded


def refusal(
    path: str, account: Account, cost: float, budget: PrivacyBudget, left_this_year: float
) -> LifetimeExceeded:
    """Return the error for a fit that would pass a limit."""
    terms = account.terms
    yearly = left_this_year < account.left
    left = min(account.left, left_this_year)
    total = terms.yearly_epsilon if yearly else terms.epsilon
    span = "for any 365 days" if yearly else "for a lifetime"
    asked = f"a fit at epsilon {budget.epsilon:g}, delta {budget.delta:g}"
    have = account.epsilon_for(left)
    message = (
        f"book {path}: {asked} would pass the limit of epsilon {total:g} at delta {terms.delta:g} "
        f"{span}; epsilon {down(have)} is left{_buys(left, have, budget)}. Nothing was read and "
        "nothing was spent"
    )
    return LifetimeExceeded(message, asked=cost, left=left)


def _buys(left: float, have: float, budget: PrivacyBudget) -> str:
    """Say how many smaller fits what is left would buy."""
    if float(down(have)) <= 0:
        return ", which buys no fit"
    words = f", which buys one fit at epsilon {down(have)}"
    smaller = budget.epsilon / 10
    count = math.floor(left / mu_of(smaller, budget.delta) ** 2)
    return f"{words}, or {count} at epsilon {smaller:g}" if count > 1 else words


def down(epsilon: float) -> str:
    """Write an epsilon with four digits, rounded down, so that what is shown can be spent.

    >>> down(0.99999), down(0.0), down(1e-9)
    ('0.9999', '0', '1e-09')
    """
    if epsilon <= 0:
        return "0"
    digits = 3 - math.floor(math.log10(epsilon))
    shift = 10.0**digits
    return f"{math.floor(epsilon * shift * (1 + 1e-12)) / shift:.4g}"
