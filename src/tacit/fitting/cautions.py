"""What a fit warns of before anything is spent; it looks at public numbers alone."""

import warnings
from collections.abc import Iterable
from typing import Any

from tacit.accounting.budget import Accounting, PrivacyBudget, mu_of
from tacit.accounting.promise import Grade, grade_of, shown, weakness
from tacit.algorithms import Facts
from tacit.errors import TacitWarning

_RANKS = ("rank", "start_rank")


def warn_beforehand(
    facts: Facts, given: Iterable[tuple[str, Any]], reasons_not_private: tuple[str, ...]
) -> None:
    """Warn of a delta, a budget and settings that will not do what they seem to."""
    said = [*_large_delta(facts), *_high_rank(facts, given)]
    if facts.budget is not None and not reasons_not_private:  # else it says NOT PRIVATE anyway
        said += _weak_promise(facts.budget)
    for text in said:
        warnings.warn(text, TacitWarning, stacklevel=4)


def _large_delta(facts: Facts) -> list[str]:
    """Delta is the chance that the promise fails; with many users it must be far below 1/users."""
    if not facts.budget or not facts.n_users or facts.budget.delta < 1 / facts.n_users:
        return []
    return [
        f"delta={shown(facts.budget.delta)} is not below one over the number of users "
        f"({facts.n_users}): a method that publishes one random user's row would satisfy it; "
        "choose a smaller delta"
    ]


def _weak_promise(budget: PrivacyBudget) -> list[str]:
    """Speak of the whole budget. The paper's calibration may spend less, and be worth more."""
    mu = mu_of(budget.epsilon, budget.delta)
    weak = weakness(budget, mu)
    if not weak:
        return []
    none = grade_of(budget, mu) is Grade.NONE
    sure = budget.accounting is Accounting.EXACT
    word = f"the model {'will' if sure else 'may'} say NOT PRIVATE"
    word = word if none else f"the promise {'is' if sure else 'may be'} weak"
    return [
        f"epsilon={shown(budget.epsilon)}, delta={shown(budget.delta)}, {budget.neighbours}: "
        f"{word}: {weak}; choose a smaller epsilon or delta"
    ]


def _high_rank(facts: Facts, given: Iterable[tuple[str, Any]]) -> list[str]:
    """There are at most as many factors as items."""
    return [
        f"{name}={value}: there can be no more factors than items, and there are {facts.n_items}; "
        f"{facts.n_items} is used"
        for name, value in given
        if name.rpartition(" ")[2] in _RANKS and value > facts.n_items
    ]
