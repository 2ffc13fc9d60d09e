"""The input of a forecast: public numbers of a fit, and guesses about tastes."""

import math
from dataclasses import dataclass

from tacit.accounting.budget import PrivacyBudget
from tacit.errors import ConfigError
from tacit.research.theory.tastes import Tastes

_MOST_USERS = 10**10
_MOST_ITEMS = 10**6


@dataclass(frozen=True, kw_only=True)
class Case:
    """The public numbers of a fit, and the guesses a forecast rests on."""

    users: int
    items: int
    per_user: float
    """Ratings of a user, on average."""
    rating_range: tuple[float, float]
    budget: PrivacyBudget | None
    """None: no noise."""
    tastes: Tastes

    def __post_init__(self) -> None:
        """Check the numbers; the budget and the tastes have checked theirs."""
        for name, most in (("users", _MOST_USERS), ("items", _MOST_ITEMS)):
            value = getattr(self, name)
            if not 2 <= value <= most:
                raise ConfigError(f"{name}={value!r}: expected a whole number from 2 to {most:,}")
        if not 1 <= self.per_user <= self.items:
            raise ConfigError(
                f"per_user={self.per_user!r}: expected a number from 1 to the number of items "
                f"({self.items})"
            )
        sd = math.sqrt(self.tastes.within + self.tastes.user_sd**2)
        if not sd <= self.width / 2:
            raise ConfigError(
                f"rating_range={self.rating_range!r}: the assumed sds add up to {sd:.4g}, and no "
                f"ratings of this range vary by more than {self.width / 2:.4g}; assume less, or "
                "give the range"
            )

    @property
    def width(self) -> float:
        """How far apart the lowest and the highest rating are."""
        return self.rating_range[1] - self.rating_range[0]
