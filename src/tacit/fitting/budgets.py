"""The budget that a caller gave, in either of its forms."""

from typing import Final

from tacit.accounting.budget import Accounting, PrivacyBudget
from tacit.errors import ConfigError


class NotGiven:
    """Tells a budget that was left out from `budget=None`, which asks for no privacy."""


NOT_GIVEN: Final = NotGiven()


def budget_of(
    budget: PrivacyBudget | NotGiven | None, epsilon: float | None, delta: float, neighbours: str
) -> PrivacyBudget | None:
    """Return the budget that a caller gave, in either form; None if no privacy is wanted."""
    if isinstance(budget, NotGiven):
        if epsilon is None:
            raise ConfigError(
                "give epsilon=..., or budget=PrivacyBudget(...); "
                "budget=None, by name, asks for a model that is NOT PRIVATE"
            )
        return PrivacyBudget(epsilon, delta, neighbours, Accounting.EXACT)  # type: ignore[arg-type]
    if epsilon is not None:
        raise ConfigError("give either epsilon=... or budget=..., not both")
    if budget is not None and not isinstance(budget, PrivacyBudget):
        raise ConfigError(f"budget={budget!r}: expected a PrivacyBudget, or None for no privacy")
    return budget
