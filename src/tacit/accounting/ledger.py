"""The ledger: every release of a fit and its cost; it refuses what would exceed the budget.

It knows public numbers only. All releases of a fit are reserved before any data is read; each
is spent before its noise is drawn; and what was not reserved cannot be spent.

Three things may be left open until they are known: how large the sensitivity of a release is
(`reserve(..., scaled=True)`: the noise grows and shrinks with it), which releases a step of a fit
makes (`part`: a share of the budget that is set aside as a whole), and how releases that are
reserved and not yet spent divide what is set aside for them (`redivide`). None of it can make
releases cost more together than was set aside for them.
"""

import math
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, replace

from tacit.accounting.budget import PrivacyBudget, Sensitivity, mu_of
from tacit.accounting.release import Release
from tacit.errors import BudgetExceeded, ConfigError, PrivacyError

_ROUNDING = 1e-12
"""Shares that add up to one may pass it by this much in floating point.

That is once at each depth of parts inside parts, and twice in the cost of a scaled release: it
stays far within the 10^-10 that `mu_of` is on the private side.
"""


@dataclass(frozen=True)
class Entry:
    """One release: what it is, its sensitivity under the fit's relation, and noise sd."""

    release: Release
    sensitivity: float
    noise_sd: float

    @property
    def name(self) -> str:
        """The release as people read it."""
        return self.release.name

    @property
    def mu(self) -> float:
        """The cost, sensitivity / noise sd; infinite for a release without noise."""
        return self.sensitivity / self.noise_sd if self.noise_sd > 0 else math.inf


@dataclass(frozen=True)
class _Reservation:
    """A reservation: the release as planned, its share, and whether its sensitivity is open."""

    entry: Entry
    share: float
    scaled: bool


@dataclass(frozen=True)
class _Book:
    """What all parts of a ledger share."""

    plans: dict[Release, _Reservation]
    spent: list[Entry]


class Ledger:
    """Writes down releases against a budget; `budget=None` is the non-private book.

    >>> from tacit.accounting.release import ReleaseKind
    >>> ledger = Ledger(PrivacyBudget(epsilon=1.0))
    >>> bound = Sensitivity(add_remove=1.0, replace=2.0)
    >>> sums = Release(ReleaseKind.ITEM_SUMS)
    >>> entry = ledger.reserve(sums, bound, share=0.25)
    >>> ledger.spend(sums, bound).mu == entry.mu
    True
    >>> ledger.reserve(Release(ReleaseKind.GRADIENT, (1,)), bound, share=0.8)
    Traceback (most recent call last):
    ...
    tacit.errors.BudgetExceeded: release 'gradient 1' asks for mu^2 = 0.0448232 and 0.0420217 is ...
    """

    def __init__(self, budget: PrivacyBudget | None) -> None:
        """Open an empty book."""
        self.budget = budget
        self._book = _Book({}, [])
        self._taken: list[float] = []  # of this part: squared mu of releases, and of its own parts
        self._share = 1.0
        self._part: tuple[int, ...] = ()
        # Whatever the accounting that calibrates noise, the claim is checked exactly.
        self._limit = math.inf if budget is None else mu_of(budget.epsilon, budget.delta) ** 2

    @property
    def private(self) -> bool:
        """Whether a budget is kept at all."""
        return self.budget is not None

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Every release of the book that was spent, in order."""
        return tuple(self._book.spent)

    @property
    def reserved(self) -> tuple[Entry, ...]:
        """Every release of the book that was reserved, spent or not, in order."""
        return tuple(plan.entry for plan in self._book.plans.values())

    @property
    def left(self) -> float:
        """What may still be reserved here, as a squared mu."""
        return self._limit - math.fsum(self._taken) if self.private else math.inf

    def part(self, share: float, candidate: int | None = None) -> "Ledger":
        """Set a share of the budget aside, as a whole, for a step that plans its own releases.

        In what comes back, shares are shares of this part. In the one book that all parts share,
        its releases belong to the trial of this candidate of a search, if one is given.

        >>> from tacit.accounting.release import ReleaseKind
        >>> ledger = Ledger(PrivacyBudget(epsilon=1.0))
        >>> half = ledger.part(0.5, candidate=1)
        >>> half.reserve(Release(ReleaseKind.ITEM_SUMS), Sensitivity(1.0, 2.0), share=1.0).name
        'candidate 1: item sums'
        >>> math.isclose(ledger.left, half.reserved[0].mu ** 2)
        True
        """
        what = "a part" if candidate is None else f"the part of candidate {candidate}"
        _check_share(what, share)
        self._take(what, share * self._limit)
        part = copy(self)
        part._taken, part._limit = [], share * self._limit
        part._share = self._share * share
        part._part = self._part if candidate is None else (*self._part, candidate)
        return part

    def reserve(
        self, release: Release, sensitivity: Sensitivity, share: float, *, scaled: bool = False
    ) -> Entry:
        """Set `share` of the budget's squared mu aside for a release, or refuse.

        A `scaled` one may turn out to have another sensitivity, which depends on earlier releases;
        its noise is then scaled, so that it costs the same.
        """
        full = self._here(release)
        _check_share(f"release {full.name!r}", share)
        if full in self._book.plans:
            raise ConfigError(f"two releases are named {full.name!r}; give each its own number")
        plan = _Reservation(self._price(full, sensitivity, share * self._share), share, scaled)
        self._take(full.name, plan.entry.mu**2)
        self._book.plans[full] = plan
        return plan.entry

    def redivide(self, shares: Mapping[Release, float]) -> None:
        """Give releases that are reserved here and not spent other shares; no more in total.

        The shares may follow from earlier releases: costs that are chosen on the way add up as
        fixed ones do, as long as their sum is bounded in advance (docs/privacy/proofs.md). All
        releases must be `scaled` ones.

        >>> from tacit.accounting.release import ReleaseKind
        >>> ledger = Ledger(PrivacyBudget(epsilon=1.0))
        >>> one, two = Release(ReleaseKind.COVARIANCE, (1,)), Release(ReleaseKind.GRADIENT, (1,))
        >>> for release in (one, two):
        ...     _ = ledger.reserve(release, Sensitivity(1.0, 2.0), share=0.5, scaled=True)
        >>> ledger.redivide({one: 0.9, two: 0.1})
        >>> round(ledger.planned(one).mu / ledger.planned(two).mu, 6)
        3.0
        """
        old = {release: self._open_plan(release) for release in shares}
        for release, share in shares.items():
            _check_share(f"release {release.name!r}", share)
        new = {
            release: replace(plan, entry=_with_share(plan, shares[release]), share=shares[release])
            for release, plan in old.items()
        }
        before, after = _total_cost(old.values()), _total_cost(new.values())
        room = max(self.left, -_ROUNDING * self._limit) + _ROUNDING * self._limit
        if self.private and after - before > min(_ROUNDING * before, room):
            raise PrivacyError(
                "releases cannot be given more together than was reserved for them; nothing changed"
            )
        self._taken.append(after - before if self.private else 0.0)
        self._book.plans.update({self._here(release): plan for release, plan in new.items()})

    def _open_plan(self, release: Release) -> "_Reservation":
        """Return the reservation of a release that may still be given another share."""
        full = self._here(release)
        plan = self._book.plans.get(full)
        spent = full in (entry.release for entry in self._book.spent)
        if plan is None or spent or not plan.scaled:
            raise PrivacyError(
                f"release {full.name!r} is not reserved as a scaled one, or is spent already; its "
                "share cannot change"
            )
        return plan

    def planned(self, release: Release, sensitivity: Sensitivity | None = None) -> Entry:
        """Return what a release that is reserved here would be, with this sensitivity."""
        full = self._here(release)
        plan = self._book.plans.get(full)
        if plan is None:
            raise PrivacyError(f"release {full.name!r} was not reserved")
        if sensitivity is None or not plan.scaled:
            return plan.entry
        return self._price(full, sensitivity, plan.share * self._share)

    def spend(self, release: Release, sensitivity: Sensitivity) -> Entry:
        """Write a reserved release down; what was not reserved as it is now is refused."""
        full = self._here(release)
        plan = self._book.plans.get(full)
        spent = full in (entry.release for entry in self._book.spent)
        if plan is None or spent or not self._covers(plan, sensitivity):
            raise PrivacyError(
                f"release {full.name!r} was not reserved with this sensitivity, or is spent "
                "already; nothing was drawn"
            )
        entry = self.planned(release, sensitivity)
        self._book.spent.append(entry)
        return entry

    def _here(self, release: Release) -> Release:
        """Return a release as the book knows it: with the part that this ledger is of."""
        if not isinstance(release, Release):
            raise ConfigError(
                f"release={release!r}: expected a Release, such as "
                "Release(ReleaseKind.COVARIANCE, (1,)), of tacit.accounting.release"
            )
        return replace(release, part=self._part)

    def _covers(self, plan: "_Reservation", sensitivity: Sensitivity) -> bool:
        """Whether a reservation pays for a release of this sensitivity."""
        if not plan.scaled:
            return self._bound(sensitivity) == plan.entry.sensitivity
        entry = self._price(plan.entry.release, sensitivity, plan.share * self._share)
        return 0 < entry.sensitivity < math.inf and entry.mu <= plan.entry.mu * (1 + _ROUNDING)

    def _take(self, name: str, cost: float) -> None:
        """Take a cost from what is left here, or refuse."""
        if self.private and cost > self.left + _ROUNDING * self._limit:
            raise BudgetExceeded(name, asked=cost, left=max(self.left, 0.0))
        self._taken.append(cost)

    def _price(self, release: Release, sensitivity: Sensitivity, share: float) -> Entry:
        sd = 0.0 if self.budget is None else self.budget.noise_sd(sensitivity, share)
        return Entry(release, self._bound(sensitivity), sd)

    def _bound(self, sensitivity: Sensitivity) -> float:
        if self.budget is None:
            return sensitivity.replace
        return sensitivity.under(self.budget.neighbours)


def _with_share(plan: _Reservation, share: float) -> Entry:
    """Return a reserved release with the noise of another share."""
    return replace(plan.entry, noise_sd=plan.entry.noise_sd * math.sqrt(plan.share / share))


def _total_cost(plans: Iterable[_Reservation]) -> float:
    """Return what reservations cost together, as a squared mu."""
    return math.fsum(plan.entry.mu**2 for plan in plans)


def _check_share(what: str, share: float) -> None:
    if not 0.0 < share <= 1.0 + _ROUNDING:
        raise ConfigError(f"share={share!r} of {what}: expected a number in (0, 1]")
