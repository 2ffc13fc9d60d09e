"""refit: a fit that remembers what earlier ones of the same book have released."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

from tacit._validate import check
from tacit.accounting.budget import Neighbours, PrivacyBudget, epsilon_of
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import Algorithm, Facts, LatentFactors, Moments, algorithm_from
from tacit.book import Book, Reservation
from tacit.book.memory import Remember, digest_of
from tacit.data.store import RatingsOrStore
from tacit.engines.base import Engine
from tacit.errors import BookError, ConfigError
from tacit.fitting.booked import book_of, reserved, terms_of
from tacit.fitting.fit import (
    FitContext,
    Options,
    Outcome,
    automatic,
    check_kind,
    run_plan,
    settings_of,
)
from tacit.fitting.joining import joined
from tacit.fitting.memory import Memory
from tacit.fitting.parameters import Parameters
from tacit.fitting.provenance import given_settings
from tacit.fitting.remembering import Remembering
from tacit.models import Model

_FORESEEN = 1.0  # refits: classes of people are told apart that will be legible after so many
_PLANNED = "their costs and number were planned, not chosen by what they released"
_RELEASES = (LatentFactors, Moments)


@dataclass(frozen=True)
class Refit:
    """The plan of `refit`: one algorithm, and what is remembered."""

    algorithm: Algorithm
    given: list[tuple[str, Any]]
    reservation: Reservation
    forget: bool = False

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that it depends on: a checkpoint is of one state of the memory."""
        return {
            **settings_of(self.algorithm),
            "memory": digest_of(self._content),
            "forget": self.forget,
        }

    @property
    def _content(self) -> Mapping[str, bytes]:
        """What was remembered when it was reserved, however much later it goes on."""
        return {} if self.forget else self.reservation.begun

    @property
    def _lifetime(self) -> PrivacyBudget:
        terms = self.reservation.book.terms
        return PrivacyBudget(terms.epsilon, terms.delta, terms.neighbours)

    def reserve(self, ledger: Ledger, facts: Facts) -> Callable[[FitContext], Outcome]:
        """Reserve as for the budget that leaves as much noise as there will be with the memory.

        That is this refit's, and as much of what was spent before as the drift has left.
        """
        memory = Memory(self._content)
        mine = self.reservation.record.reserved
        earlier = float(memory.about.get("spent", 0.0))
        together = earlier + mine
        planned = replace(facts, budget=self._budget_of(memory.kept * earlier + mine))
        self.algorithm.reserve(ledger, planned)

        def run(context: FitContext) -> Outcome:
            self._compare(memory, context.ratings)
            memory.about.setdefault("began", self.reservation.record.event[0])
            horizon = min(max(self._lifetime.mu**2 / mine, 1.0), _FORESEEN)
            ids = context.ratings.catalogue.ids.to_list()
            mechanism = Remembering(context.mechanism.within(ledger), memory, ids, horizon)
            known = replace(planned, earlier=Parameters(memory, ids))
            rule = self.algorithm.run(mechanism, known)
            memory.about["spent"] = together
            self.reservation.memory = self._remember(memory, earlier, mine)
            outcome = Outcome.of(rule, self.algorithm, planned)
            public = {
                **outcome.public,
                **({ReleaseKind.EARLIER_REFITS.value: _PLANNED} if earlier else {}),
            }
            return replace(outcome, public=public, earlier=earlier)

        return run

    def _remember(self, memory: Memory, earlier: float, mine: float) -> Remember:
        """Return what to write: what this refit knows, and what another has written meanwhile.

        A refit that begins anew begins anew.
        """
        content, begun = memory.to_bytes(), digest_of(self._content)

        def remembered(written: Mapping[str, bytes]) -> dict[str, bytes]:
            if self.forget or digest_of(written) == begun:
                return content
            return joined(memory, earlier, mine, written).to_bytes()

        return remembered

    def _compare(self, memory: Memory, ratings: RatingsOrStore) -> None:
        """Refuse to combine releases of fits with other settings."""
        about = {
            "algorithm": {k: v for k, v in settings_of(self.algorithm).items() if v is not None},
            "rating_range": [float(end) for end in ratings.rating_range],
        }
        if memory.settings and memory.settings != about:
            raise ConfigError(
                "the book remembers refits with other settings of the algorithm, or another rating "
                "range; give the same, or begin anew with forget=True (--forget)"
            )
        memory.about |= about

    def _budget_of(self, cost: float) -> PrivacyBudget:
        """Return the budget of a squared mu, at the delta and for the relation of the book."""
        lifetime = self._lifetime
        epsilon = epsilon_of(min(math.sqrt(cost), lifetime.mu), lifetime.delta)
        return replace(lifetime, epsilon=min(epsilon, lifetime.epsilon))


def refit(
    ratings: RatingsOrStore,
    algorithm: Algorithm | type[Algorithm] | str | None = None,
    *,
    book: Book | Reservation | str | PathLike[str],
    epsilon: float,
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    progress: Callable[[int, int], None] | None = None,
    top_items: int | None = None,
    strict: bool = False,
    forget: bool = False,
) -> Model:
    """Fit the ratings of today, and combine what is released with earlier refits of the book.

    Args:
        ratings: everyone's ratings, as they are now.
        algorithm: `LatentFactors(...)` (the default) or `Moments(...)`, its class or its name; the
            same in every refit.
        book: the lifetime book of these people. What refits remember is kept in it.
        epsilon: what this refit may spend, at the book's delta and for its relation.
        engine: as for `fit`.
        checkpoint: as for `fit`; it holds what was remembered when the refit began, too.
        progress: as for `fit`.
        top_items: as for `fit`; the choice is made anew each time.
        strict: as for `fit`.
        forget: whether to begin anew, without what earlier refits released.
    """
    check("forget", forget, bool)
    place = book_of(book)
    options = Options.checked(
        "exact", None, top_items, checkpoint=checkpoint, progress=progress, strict=strict
    )
    config = algorithm_from(algorithm)
    given = [] if config is None else list(given_settings(config))
    implicit = isinstance(ratings, RatingsOrStore) and ratings.implicit
    chosen = _chosen(config, implicit)
    delta, neighbours = terms_of(place, None, None)
    budget = PrivacyBudget(epsilon, delta, Neighbours(neighbours))
    with reserved(place, budget, checkpoint, (), kind="refit") as reservation:
        if reservation is None:
            raise BookError("book=None: a refit needs one; `tacit.Book.new(path, ...)` makes it")
        plan = Refit(chosen, given, reservation, forget)
        return run_plan(ratings, plan, budget, engine, replace(options, book=reservation))


def _chosen(algorithm: Algorithm | None, implicit: bool) -> Algorithm:
    """Return the algorithm of a refit; only some release what can be combined."""
    chosen = algorithm or automatic(implicit)
    if not isinstance(chosen, _RELEASES) or getattr(chosen, "eigen", "auto") == "block":
        raise ConfigError(
            f"algorithm={chosen.name}: a refit combines releases of a fixed form, as LatentFactors "
            "and Moments (but for eigen='block') make them; fit(..., book=...) pays for each fit "
            "by itself (on the command line: tacit fit --book)"
        )
    check_kind(chosen, implicit)
    return chosen
