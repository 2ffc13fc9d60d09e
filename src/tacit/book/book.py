"""Book: one lifetime budget for everything that is ever learned from one population."""

import uuid
import warnings
from collections.abc import Iterable, Mapping
from datetime import datetime
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from tacit._validate import Range, check, path_of
from tacit.accounting.budget import Neighbours, PrivacyBudget, mu_of
from tacit.accounting.certificate import Certificate
from tacit.book import counter, statement
from tacit.book.account import ROUNDING, Account, FitRecord, Terms, account_of
from tacit.book.events import Event, next_event, now
from tacit.book.memory import Remember, digest_of
from tacit.book.refusal import refusal
from tacit.book.reservation import Reservation, begun_with, bind, token_of
from tacit.book.store import Store, Writer
from tacit.errors import BookError, ConfigError, TacitWarning

_KINDS = ("fit", "refit", "tune")


class Book:
    """One durable file for one population: what was spent, for what, and how much is left.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> book = Book.new(f"{folder.name}/people.book", epsilon=1.0)
    >>> with book.reserve(PrivacyBudget(0.1)) as fit:
    ...     round(book.spent_epsilon, 3), round(book.left_epsilon, 3)
    (0.1, 0.993)
    >>> round(book.spent_epsilon, 3)  # nothing was drawn
    0.0
    >>> folder.cleanup()

    *Guarantee:* fits of one book together cost at most its lifetime budget, whatever each of them
    was chosen by (docs/privacy/proofs.md, Lemma 32). It knows public numbers only.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open a book that is there, and check its chain and its counter."""
        self.path = path_of("path", path)
        self._store = Store(self.path)
        self.terms: Terms = self.account().terms

    def __repr__(self) -> str:
        """Name the file and its terms; `text()` says what was spent."""
        terms = self.terms
        return (
            f"Book({str(self.path)!r}, epsilon={terms.epsilon:g}, delta={terms.delta:g}, "
            f"neighbours={terms.neighbours.value!r})"
        )

    @classmethod
    def new(
        cls,
        path: str | PathLike[str],
        *,
        epsilon: float,
        delta: float = 1e-6,
        neighbours: str = "replace",
        yearly_epsilon: float | None = None,
    ) -> "Book":
        """Open a new book; its terms never change."""
        budget = PrivacyBudget(epsilon, delta, neighbours)  # type: ignore[arg-type]  # checked there
        words = f"a number above 0 and at most the epsilon of a lifetime, {budget.epsilon:g}"
        within = Annotated[float, Range(0, budget.epsilon, "(]", words)] | None
        yearly = check("yearly_epsilon", yearly_epsilon, within)
        terms = Terms(uuid.uuid4().hex, budget.epsilon, budget.delta, budget.neighbours, yearly)
        return cls.write(path, [{"event": "opened", **terms.to_json()}])

    @classmethod
    def write(cls, path: str | PathLike[str], contents: Iterable[Mapping[str, Any]]) -> "Book":
        """Make a new file of these events, dated now."""
        target = path_of("path", path)
        if counter.counter_path(target).exists() and not target.exists():
            raise BookError(
                f"{counter.counter_path(target)} is there: {target} was a book before; put it "
                "back, or give another name"
            )
        events: list[Event] = []
        for content in contents:
            events.append(next_event(events, content))
        account_of(events)
        _advance(Store.create(target, events))
        return cls(target)

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that it is in while it is used: nothing else may be written there."""
        logs = (self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))
        return (self.path, counter.counter_path(self.path), *logs)

    @property
    def neighbours(self) -> Neighbours:
        """The relation that all fits of the book have."""
        return self.terms.neighbours

    @property
    def epsilon(self) -> float:
        """The epsilon of a lifetime."""
        return self.terms.epsilon

    @property
    def delta(self) -> float:
        """The delta of a lifetime."""
        return self.terms.delta

    @property
    def spent_epsilon(self) -> float:
        """The epsilon of all fits so far together, at the book's delta."""
        return self.account().spent_epsilon

    @property
    def left_epsilon(self) -> float:
        """The epsilon of the largest fit that may still be made now."""
        account = self.account()
        return account.epsilon_for(min(account.left, account.left_this_year(now())))

    @property
    def fits(self) -> tuple[FitRecord, ...]:
        """Every fit, in order."""
        return self.account().fits

    def account(self) -> Account:
        """Return what the book comes to now."""
        mark = counter.read(self.path)  # first: others may write meanwhile
        events = self._store.events()
        counter.compare(self.path, mark, events)
        return account_of(events)

    def reserve(
        self,
        budget: PrivacyBudget,
        *,
        kind: str = "fit",
        checkpoint: str | PathLike[str] | None = None,
    ) -> Reservation:
        """Set the whole budget of a fit aside, or refuse; nothing is read or drawn before.

        A checkpoint folder that belongs to a fit of this book is that fit: it is not paid twice.

        Raises:
            LifetimeExceeded: the fit would pass the limit of a lifetime, or of a year.
        """
        self._check(budget, kind)
        with self._store.writing() as writer:
            account = self._checked(writer)
            if checkpoint is not None:
                record = token_of(checkpoint, account, budget, kind)
                if record is not None:
                    remembered = _remembered(writer.events[: record.event[0]])
                    return Reservation(self, record, begun_with(checkpoint, record, remembered))
            cost = mu_of(budget.epsilon, budget.delta) ** 2
            self._refuse(account, cost, budget, now())
            name = uuid.uuid4().hex
            begun = self._known(writer.memory(), writer.events) if kind == "refit" else {}
            if checkpoint is not None:
                bind(checkpoint, self.terms.population, name, begun)
            event = next_event(
                writer.events,
                {
                    "event": "reserved", "fit": name, "kind": kind, "cost": cost,
                    "epsilon": budget.epsilon, "delta": budget.delta,
                    "checkpoint": checkpoint is not None,
                },
            )  # fmt: skip
            writer.add(event)
            record = account_of(writer.events).fits[-1]
        _advance(self._store)
        _warn_of_clock(self.path, event)
        return Reservation(self, record, begun)

    def add(self, what: Mapping[str, Any], memory: Remember | None = None) -> None:
        """Add an event, and what is remembered with it; the sum of all events must stay sound.

        `memory` is told what is remembered by then, and says what is to be.

        It has the time of the event before it. A book is published, and how long a fit and each of
        its releases take depends on everyone's ratings: the clock is read when a fit is reserved,
        before its ratings are.
        """
        content = dict(what)
        with self._store.writing() as writer:
            self._checked(writer)
            if memory is not None:
                remembered = memory(self._known(writer.memory(), writer.events))
                content["memory"] = digest_of(remembered)
                writer.remember(remembered)
            writer.add(next_event(writer.events, content, at=writer.events[-1].moment))
            account_of(writer.events)
        _advance(self._store)

    def memory(self) -> dict[str, bytes]:
        """Return what refits remember: noisy releases, by name, as the book's chain knows them."""
        mark = counter.read(self.path)
        found, events = self._store.memory()
        counter.compare(self.path, mark, events)
        return self._known(found, events)

    def certificate(self) -> dict[str, Any]:
        """Return the lifetime certificate, from which anyone can recompute the total."""
        return statement.to_json(self.account())

    def text(self) -> str:
        """Return the lifetime certificate for a person."""
        return statement.to_text(self.account(), now())

    def verify(self, certificates: Mapping[str, Certificate] | None = None) -> list[str]:
        """Check the file, the chain, the counter, every sum; say which models are not in it."""
        given = certificates or {}
        if not all(isinstance(each, Certificate) for each in given.values()):
            raise ConfigError(
                "certificates: expected certificates by name, such as {'m': model.certificate}"
            )
        self._store.check()
        self.memory()
        return statement.problems_of(self.account(), given)

    def _check(self, budget: PrivacyBudget, kind: str) -> None:
        if not isinstance(budget, PrivacyBudget):
            raise ConfigError(f"budget={budget!r}: expected tacit.PrivacyBudget(epsilon, delta)")
        if kind not in _KINDS:
            raise ConfigError(f"kind={kind!r}: expected one of {', '.join(_KINDS)}")
        if budget.neighbours is not self.neighbours:
            raise ConfigError(
                f"neighbours={budget.neighbours.value!r}: the book {self.path} counts for "
                f"{self.neighbours.value!r}, and costs of two relations cannot be added; fit with "
                f"neighbours={self.neighbours.value!r} (on the command line: --neighbours)"
            )

    def _known(self, found: dict[str, bytes], events: Iterable[Event]) -> dict[str, bytes]:
        """Return what refits remember; refuse it if the chain knows another."""
        if digest_of(found) != _remembered(events):
            raise BookError(f"book {self.path}: what refits remember is not what was written")
        return found

    def _checked(self, writer: Writer) -> Account:
        counter.compare(self.path, counter.read(self.path), writer.events)
        account = account_of(writer.events)
        if account.terms != self.terms:
            raise BookError(f"book {self.path} was exchanged for another one while it was in use")
        return account

    def _refuse(
        self, account: Account, cost: float, budget: PrivacyBudget, moment: datetime
    ) -> None:
        """Raise an error if a cost would pass a limit."""
        terms = account.terms
        years = account.left_this_year(moment)
        room = min(account.left + ROUNDING * terms.limit, years + ROUNDING * terms.yearly_limit)
        if not cost <= room:
            raise refusal(str(self.path), account, cost, budget, years)


def _remembered(events: Iterable[Event]) -> str:
    """Return the fingerprint of what refits remember after these events."""
    found = digest_of({})
    for event in events:
        found = event.content.get("memory", found)
    return found


def _advance(store: Store) -> None:
    """Bring the counter up to the book, while nobody else writes: else it could go back."""
    try:
        with store.held() as last:
            counter.advance(store.path, last)
    except BookError as error:  # the events are written; only an old copy may pass unnoticed
        warnings.warn(f"{error}, but for its counter", TacitWarning, stacklevel=3)


def _warn_of_clock(path: Path, event: Event) -> None:
    """Say so if the clock is behind the book: what it showed stands in the event."""
    showed = event.content.get("clock")
    if showed is not None:
        warnings.warn(
            f"book {path}: the clock is behind the last event of the book, which is of {event.at}: "
            "it was set back, or was ahead then. This fit is dated as that event, and a yearly "
            "limit counts from there",
            TacitWarning,
            stacklevel=3,
        )
