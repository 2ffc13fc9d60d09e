"""The ledger: every release of a fit, what it costs, and a stop before the budget is passed.

It knows public numbers only. All releases of a fit are reserved before any data is read; each
is spent before its noise is drawn; and what was not reserved cannot be spent.
"""

import math
from dataclasses import dataclass

from tacit.budget import PrivacyBudget, Sensitivity, mu_of
from tacit.errors import BudgetExceeded, ConfigError, PrivacyError

__all__ = ["Entry", "Ledger"]

_ROUNDING = 1e-9  # shares that add up to one may pass it by this much in floating point


@dataclass(frozen=True)
class Entry:
    """One release: its name, sensitivity under the fit's relation, and noise sd."""

    name: str
    sensitivity: float
    noise_sd: float

    @property
    def mu(self) -> float:
        """The cost, sensitivity / noise sd; infinite for a release without noise."""
        return self.sensitivity / self.noise_sd if self.noise_sd > 0 else math.inf


class Ledger:
    """Writes down releases against a budget; `budget=None` is the non-private book.

    >>> ledger = Ledger(PrivacyBudget(epsilon=1.0))
    >>> bound = Sensitivity(add_remove=1.0, replace=2.0)
    >>> entry = ledger.reserve("means", bound, share=0.25)
    >>> ledger.spend("means", bound).mu == entry.mu
    True
    >>> ledger.reserve("more", bound, share=0.8)
    Traceback (most recent call last):
    ...
    tacit.errors.BudgetExceeded: release 'more' asks for mu^2 = 0.0448232 and 0.0420217 is left...
    """

    def __init__(self, budget: PrivacyBudget | None) -> None:
        """Open an empty book."""
        self.budget = budget
        self._reserved: dict[str, Entry] = {}
        self._spent: list[Entry] = []
        # Whatever the accounting that calibrates noise, the claim is checked exactly.
        self._limit = math.inf if budget is None else mu_of(budget.epsilon, budget.delta) ** 2

    @property
    def private(self) -> bool:
        """Whether a budget is kept at all."""
        return self.budget is not None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every release that was spent, in order."""
        return tuple(self._spent)

    @property
    def reserved(self) -> tuple[Entry, ...]:
        """Every release that was reserved, spent or not, in order."""
        return tuple(self._reserved.values())

    @property
    def left(self) -> float:
        """What may still be reserved, as a squared mu."""
        return self._limit - math.fsum(entry.mu**2 for entry in self._reserved.values())

    def reserve(self, name: str, sensitivity: Sensitivity, share: float) -> Entry:
        """Set `share` of the budget's squared mu aside for a release, or refuse."""
        if not 0.0 < share <= 1.0 + _ROUNDING:
            raise ConfigError(f"share={share!r} of release {name!r}: expected a number in (0, 1]")
        if name in self._reserved:
            raise ConfigError(f"two releases are named {name!r}; give each its own name")
        entry = self._price(name, sensitivity, share)
        if self.private and entry.mu**2 > self.left + _ROUNDING * self._limit:
            raise BudgetExceeded(name, asked=entry.mu**2, left=max(self.left, 0.0))
        self._reserved[name] = entry
        return entry

    def spend(self, name: str, sensitivity: Sensitivity) -> Entry:
        """Write a reserved release down; what was not reserved as it is now is refused."""
        entry = self._reserved.get(name)
        if entry is None or entry in self._spent or self._bound(sensitivity) != entry.sensitivity:
            raise PrivacyError(
                f"release {name!r} was not reserved with this sensitivity, or is spent already; "
                "nothing was drawn"
            )
        self._spent.append(entry)
        return entry

    def _price(self, name: str, sensitivity: Sensitivity, share: float) -> Entry:
        sd = 0.0 if self.budget is None else self.budget.noise_sd(sensitivity, share)
        return Entry(name, self._bound(sensitivity), sd)

    def _bound(self, sensitivity: Sensitivity) -> float:
        if self.budget is None:
            return sensitivity.replace
        return sensitivity.under(self.budget.neighbours)
