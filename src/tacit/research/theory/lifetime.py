"""What to expect of refits that remember, week by week, before anything is spent."""

from collections.abc import Sequence
from dataclasses import replace

from tacit.accounting.budget import PrivacyBudget
from tacit.book.splits import PlannedRefit
from tacit.errors import ConfigError
from tacit.research.theory.case import Case
from tacit.research.theory.forecast import Forecast, forecast


def expected_of(case: Case, refit: PlannedRefit, *, remembers: bool = True) -> Forecast:
    """Return the forecast of a refit: that of one fit which would know as much."""
    if case.budget is None:
        raise ConfigError("budget=None: a plan of refits needs an epsilon")
    epsilon = refit.remembered_epsilon if remembers else refit.epsilon
    budget = PrivacyBudget(epsilon, case.budget.delta, case.budget.neighbours)
    return forecast(replace(case, budget=budget))


def shown(refits: Sequence[PlannedRefit]) -> list[PlannedRefit]:
    """Return the first refit, a few on the way, and the last."""
    count = len(refits)
    numbers = sorted({1, 4, 13, 26, count} & set(range(1, count + 1)))
    return [refits[number - 1] for number in numbers]
