"""tune: a search among a few candidates that is paid for from the same budget as the fit.

Every candidate is fitted, with a small part of the budget, to what is left when a tenth of
everyone's own ratings is held out. One more release compares them on the held-out ratings. The
best is then fitted to all ratings with the rest of the budget. All of it is in one certificate.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Annotated, Any

import numpy as np

from tacit._validate import Range, Seed, check
from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms import Algorithm, Facts, algorithm_from
from tacit.book import Book, Reservation
from tacit.data.store import RatingsOrStore
from tacit.engines.base import Engine
from tacit.errors import ConfigError
from tacit.fitting.booked import book_of, reserved, terms_of
from tacit.fitting.budgets import NOT_GIVEN, NotGiven, budget_of
from tacit.fitting.fit import (
    FitContext,
    Options,
    Outcome,
    check_kind,
    reasons_not_private,
    run_plan,
    settings_of,
)
from tacit.fitting.provenance import given_settings
from tacit.models import Model
from tacit.models.rules import LocalRule
from tacit.trusted.statistics import HeldOutLosses, Holdout
from tacit.trusted.views import NotHeldOut, seen

LOSSES = Release(ReleaseKind.HELD_OUT_LOSSES)
"""The release that compares the candidates."""
CHOSEN = "chosen candidate"
"""The line of the certificate that names the winner."""
_LOSS_PART = 0.2  # of the search's share, for the comparison
_LOSS_CLIP = 0.1  # how far one user's losses may lie apart, in units of (hi - lo)^2
_HELD_OUT = 0.1
_MOST = 50


def tune(
    ratings: RatingsOrStore,
    candidates: Iterable[Algorithm],
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: str | None = None,
    budget: PrivacyBudget | NotGiven | None = NOT_GIVEN,
    share: float = 0.3,
    holdout_seed: int = 0,
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    numerics: str = "exact",
    noise_seed_unsafe: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    top_items: int | None = None,
    strict: bool = False,
    book: Book | Reservation | str | PathLike[str] | None = None,
) -> Model:
    """Choose among candidates and fit the best one, under one budget and one certificate.

    With K candidates and a budget of mu^2, each candidate's trial gets 0.8 share/K of it, their
    comparison 0.2 share, and the winner's fit the rest. The certificate names all candidates, the
    winner (`certificate.public["chosen candidate"]`) and every release.

    *Guarantee:* that of `fit`: sequential composition of all releases, trials included. The choice
    is post-processing of the release "held-out losses" (HeldOutLosses).

    Args:
        ratings: as in `fit`.
        candidates: configs such as `FrankWolfe(rounds=5)`: at least two. They are public: write
            them down before you look at the ratings.
        epsilon: as in `fit`; it covers the search and the fit together.
        delta: as in `fit`.
        neighbours: as in `fit`.
        budget: as in `fit`.
        share: of the budget, for the search.
        holdout_seed: of the choice of the tenth of everyone's ratings that is held out.
        engine: as in `fit`.
        checkpoint: as in `fit`.
        numerics: as in `fit`.
        noise_seed_unsafe: as in `fit`.
        progress: as in `fit`; the winner's releases are planned once it is known.
        top_items: as in `fit`; the items are chosen first, for all candidates.
        strict: as in `fit`; all candidates are looked at.
        book: as in `fit`; search and fit are one reservation in it.
    """
    book = book_of(book)
    budget = budget_of(budget, epsilon, *terms_of(book, delta, neighbours))
    options = Options.checked(
        numerics,
        noise_seed_unsafe,
        top_items,
        checkpoint=checkpoint,
        progress=progress,
        strict=strict,
    )
    check("share", share, Annotated[float, Range(0, 1, "()")])
    check("holdout_seed", holdout_seed, Seed)
    search = _Search(_candidates(candidates), float(share), Holdout(_HELD_OUT, holdout_seed))
    if isinstance(ratings, RatingsOrStore) and ratings.implicit:
        raise ConfigError(
            "ratings: these are interactions (implicit=True), and tune compares errors of ratings; "
            "use fit"
        )
    for candidate in search.candidates:
        check_kind(candidate, implicit=False)
    reasons = reasons_not_private(options)
    with reserved(book, budget, checkpoint, reasons, kind="tune") as reservation:
        return run_plan(ratings, search, budget, engine, replace(options, book=reservation))


def describe(algorithm: Algorithm) -> str:
    """Name an algorithm and the settings that are not its defaults."""
    given: dict[str, list[str]] = {}
    for name, part in given_settings(algorithm):
        given.setdefault(name, []).append(str(part))
    return " ".join([algorithm.name, *(f"{name}={','.join(v)}" for name, v in given.items())])


@dataclass(frozen=True)
class _Search:
    """The plan of `tune`: trials, their comparison, and the fit of the best."""

    candidates: tuple[Algorithm, ...]
    share: float
    holdout: Holdout

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that the search depends on."""
        candidates = [settings_of(candidate) for candidate in self.candidates]
        return {"candidates": candidates, "share": self.share, "holdout": asdict(self.holdout)}

    @property
    def given(self) -> list[tuple[str, Any]]:
        """The settings of all candidates."""
        return [
            (f"candidate {number}: {name}", value)
            for number, candidate in enumerate(self.candidates, start=1)
            for name, value in given_settings(candidate)
        ]

    def reserve(self, ledger: Ledger, facts: Facts) -> Callable[[FitContext], Outcome]:
        """Reserve the trials and their comparison, and set the rest aside for the winner."""
        part = self.share * (1 - _LOSS_PART) / len(self.candidates)
        trials = []
        for number, candidate in enumerate(self.candidates, start=1):
            trials.append(ledger.part(part, candidate=number))
            candidate.reserve(trials[-1], facts)
            candidate.reserve(Ledger(facts.budget), facts)  # so that none is refused as the winner
        bound = self._losses((), facts).sensitivity
        ledger.reserve(LOSSES, bound, self.share * _LOSS_PART)
        final = ledger.part(1 - self.share)

        def run(context: FitContext) -> Outcome:
            best = self._best(context, trials, ledger)
            winner = self.candidates[best]
            winner.reserve(final, facts)
            rule = winner.run(context.mechanism.within(final), facts)
            found = Outcome.of(rule, winner, facts)
            public, sources = self._public(best) | found.public, {CHOSEN: LOSSES} | found.sources
            return replace(found, public=public, sources=sources)

        return run

    def _best(self, context: FitContext, trials: list[Ledger], ledger: Ledger) -> int:
        """Fit every candidate to what is not held out; return the best on what is."""
        context.engine.take(seen(context.ratings, NotHeldOut(self.holdout)))
        rules = tuple(
            candidate.run(context.mechanism.within(trial), context.facts)
            for candidate, trial in zip(self.candidates, trials, strict=True)
        )
        context.engine.take(context.ratings)
        statistic = self._losses(rules, context.facts)
        return int(np.argmin(context.mechanism.within(ledger).release(LOSSES, statistic)))

    def _losses(self, rules: tuple[LocalRule, ...], facts: Facts) -> HeldOutLosses:
        return HeldOutLosses(rules, facts.n_items, facts.rating_range, self.holdout, _LOSS_CLIP)

    def _public(self, best: int) -> dict[str, str]:
        lines = {
            f"candidate {number}": f"{describe(candidate)}, given by the caller"
            for number, candidate in enumerate(self.candidates, start=1)
        }
        lines["held out"] = f"{_HELD_OUT:.0%} of everyone's ratings, by seed {self.holdout.seed}"
        lines["share of the search"] = f"{self.share:g} of the budget"
        text = describe(self.candidates[best])
        return lines | {CHOSEN: f"candidate {best + 1}, {text}, by the release '{LOSSES.name}'"}


def _candidates(candidates: object) -> tuple[Algorithm, ...]:
    if isinstance(candidates, str) or not isinstance(candidates, Iterable):
        raise ConfigError(
            f"candidates={candidates!r}: expected a list of 2 to {_MOST}, such as "
            "['moments', ALS(rounds=5)]"
        )
    given = [algorithm_from(one) for one in candidates]
    found = tuple(one for one in given if one is not None)
    if len(found) < len(given):
        raise ConfigError("candidates: None is not an algorithm such as FrankWolfe(...)")
    if not 2 <= len(found) <= _MOST:
        raise ConfigError(
            f"candidates: {len(found)} of them; expected 2 to {_MOST}, of which one is chosen; "
            "with one, call fit"
        )
    if any(one in found[:at] for at, one in enumerate(found)):
        raise ConfigError(
            "candidates: one is given twice, and each is paid for; leave out what is the same"
        )
    return found
