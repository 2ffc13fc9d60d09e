"""The balance of a book: its terms, its fits, what is spent and what is left.

Costs are squared mu of Gaussian releases. They add up, whatever each fit was chosen by, as long as
the sum stays within a limit that was fixed when the book was opened (docs/privacy/proofs.md, Lemma
32). A fit counts with all that it reserved until it is closed; then with what its releases cost.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from tacit._damaged import MALFORMED
from tacit.accounting.budget import Neighbours, PrivacyBudget, epsilon_of, mu_of
from tacit.accounting.ledger import Entry
from tacit.accounting.release import Release
from tacit.book.events import Event
from tacit.errors import BookError, TacitError

ROUNDING = 1e-12
"""Costs that add up to the limit may pass it by this part of it in floating point."""
YEAR = timedelta(days=365)
_SLACK = 1e-9
_STATES = ("reserved", "closed", "stopped", "cancelled")


@dataclass(frozen=True)
class Terms:
    """What a book allows: fixed when it is opened.

    Attributes:
        population: a random name for the people whose ratings it is about.
        epsilon: of a lifetime: of all fits together.
        delta: of a lifetime.
        neighbours: the relation; all fits must have the same.
        yearly_epsilon: of any 365 days, at the same delta; None: no such limit.
    """

    population: str
    epsilon: float
    delta: float
    neighbours: Neighbours
    yearly_epsilon: float | None = None

    @property
    def limit(self) -> float:
        """The lifetime budget as a squared mu."""
        return mu_of(self.epsilon, self.delta) ** 2

    @property
    def yearly_limit(self) -> float:
        """The budget of any 365 days as a squared mu."""
        if self.yearly_epsilon is None:
            return math.inf
        return mu_of(self.yearly_epsilon, self.delta) ** 2

    def to_json(self) -> dict[str, Any]:
        """Return the plain form."""
        return {
            "population": self.population,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "neighbours": self.neighbours.value,
            "yearly_epsilon": self.yearly_epsilon,
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> "Terms":
        """Read the plain form, trusting nothing."""
        budget = PrivacyBudget(value["epsilon"], value["delta"], value["neighbours"])
        yearly = value["yearly_epsilon"]
        if yearly is not None:
            yearly = PrivacyBudget(yearly, budget.delta).epsilon
        name = value["population"]
        if not isinstance(name, str) or not 0 < len(name) <= 100 or not name.isprintable():
            raise BookError("its population has no name that can be read")
        return cls(name, budget.epsilon, budget.delta, budget.neighbours, yearly)


@dataclass
class FitRecord:
    """One fit of a book.

    Attributes:
        id: its random name.
        kind: "fit", "refit" or "tune".
        at: when it was reserved.
        event: the number and digest of that event.
        epsilon: what was asked for, at `delta`.
        reserved: the squared mu that was set aside.
        state: reserved (open, or killed), closed, stopped (by an error, at what it had cost) or
            cancelled (before anything was drawn).
        settled: what it cost, once it is known.
        releases: every release, in order.
        certificate: SHA-256 of the model's certificate.
    """

    id: str
    kind: str
    at: str
    event: tuple[int, str]
    epsilon: float
    delta: float
    reserved: float
    checkpoint: bool
    state: str = "reserved"
    settled: float = 0.0
    releases: list[Entry] = field(default_factory=list)
    certificate: str | None = None

    @property
    def cost(self) -> float:
        """What counts, as a squared mu: all that was reserved until the fit has ended."""
        return self.reserved if self.state == "reserved" else self.settled


@dataclass(frozen=True)
class Account:
    """What a book comes to."""

    terms: Terms
    fits: tuple[FitRecord, ...]
    events: tuple[Event, ...]

    @property
    def spent(self) -> float:
        """Everything that was spent or is reserved, as a squared mu."""
        return math.fsum(fit.cost for fit in self.fits)

    @property
    def left(self) -> float:
        """What may still be reserved of the lifetime budget, as a squared mu."""
        return max(self.terms.limit - self.spent, 0.0)

    @property
    def spent_epsilon(self) -> float:
        """The epsilon of all fits together, at the book's delta."""
        return epsilon_of(math.sqrt(self.spent), self.terms.delta)

    @property
    def left_epsilon(self) -> float:
        """The epsilon of the largest fit that the lifetime budget still allows."""
        return self.epsilon_for(self.left)

    def epsilon_for(self, cost: float) -> float:
        """Return the epsilon, at the book's delta, that a squared mu buys; rounded down."""
        for epsilon in (self.terms.epsilon, self.terms.yearly_epsilon):
            if epsilon is not None and cost == mu_of(epsilon, self.terms.delta) ** 2:
                return epsilon  # with nothing spent it is all of it, to the last digit
        found = epsilon_of(math.sqrt(max(cost, 0.0)), self.terms.delta)
        return 0.0 if found <= 0.0 else found * (1 - _SLACK)

    def spent_since(self, moment: datetime) -> float:
        """Return what was spent after a moment, as a squared mu."""
        return math.fsum(fit.cost for fit in self.fits if datetime.fromisoformat(fit.at) > moment)

    def left_this_year(self, moment: datetime) -> float:
        """Return what the 365 days that end at a moment leave, as a squared mu."""
        if self.terms.yearly_epsilon is None:
            return math.inf
        last = datetime.fromisoformat(self.events[-1].at)
        moment = max(moment, last)  # a clock that was set back opens no year that is closed
        return max(self.terms.yearly_limit - self.spent_since(moment - YEAR), 0.0)

    def fit(self, name: str) -> FitRecord | None:
        """Return a fit by its name."""
        return next((fit for fit in self.fits if fit.id == name), None)


def account_of(events: Sequence[Event]) -> Account:
    """Add events up; anything that no book of tacit holds is a BookError."""
    fits: dict[str, FitRecord] = {}
    try:
        opened = events[0].content
        if opened["event"] != "opened":
            raise BookError("its first event does not open it")
        terms = Terms.of(opened)
        for event in events[1:]:
            _apply(event, fits)
    except BookError:
        raise
    except (TacitError, *MALFORMED):
        raise BookError("an event of the book has no meaning that this version knows") from None
    return Account(terms, tuple(fits.values()), tuple(events))


def _apply(event: Event, fits: dict[str, FitRecord]) -> None:
    content = event.content
    what = content["event"]
    if what == "reserved":
        name = str(content["fit"])
        if name in fits:
            raise BookError(f"event {event.number} reserves a fit a second time")
        fits[name] = _reserved(event, content)
        return
    if what == "merged":
        return
    fit = fits[content["fit"]]
    if fit.state != "reserved":
        raise BookError(f"event {event.number} is of a fit that has ended")
    if what == "released":
        _release(fit, content)
    elif what in _STATES[1:]:
        _end(fit, what, content)
    else:
        raise BookError(f"event {event.number} is of a kind that this version does not know")


def _reserved(event: Event, content: Mapping[str, Any]) -> FitRecord:
    budget = PrivacyBudget(content["epsilon"], content["delta"])
    at = str(content.get("at", event.at))
    if datetime.fromisoformat(at).tzinfo is None:
        raise BookError(f"event {event.number} has a time of no known zone")
    reserved = _number(content["cost"])
    if not math.isclose(reserved, mu_of(budget.epsilon, budget.delta) ** 2, rel_tol=_SLACK):
        raise BookError(f"event {event.number} reserves another cost than its epsilon and delta")
    return FitRecord(
        str(content["fit"]), str(content["kind"]), at, (event.number, event.digest),
        budget.epsilon, budget.delta, reserved, bool(content["checkpoint"]),
    )  # fmt: skip


def _release(fit: FitRecord, content: Mapping[str, Any]) -> None:
    entry = Entry(
        Release.from_json(content["release"]),
        _number(content["sensitivity"]),
        _number(content["noise_sd"]),
    )
    if entry.noise_sd <= 0 or content["number"] != len(fit.releases) + 1:
        raise BookError("a release of the book has no noise, or is not the next one")
    fit.releases.append(entry)


def _end(fit: FitRecord, state: str, content: Mapping[str, Any]) -> None:
    fit.state = state
    cost = 0.0 if state == "cancelled" else _number(content["cost"])
    recorded = total_cost(fit.releases)
    if not recorded * (1 - _SLACK) <= cost <= fit.reserved * (1 + _SLACK):
        raise BookError("a fit of the book cost more than it reserved, or less than its releases")
    if state == "closed" and not math.isclose(cost, recorded, rel_tol=_SLACK):
        raise BookError("a fit of the book is closed at another cost than its releases have")
    fit.settled = cost
    fit.certificate = str(content["certificate"]) if state == "closed" else None


def total_cost(entries: Iterable[Entry]) -> float:
    """Return what releases cost together, as a squared mu."""
    return math.fsum(entry.mu**2 for entry in entries)


def _number(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        raise BookError("a number of the book is impossible")
    return float(value)
