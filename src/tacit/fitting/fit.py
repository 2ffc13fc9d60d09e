"""fit: ratings, an algorithm and a budget in; a published model out."""

import contextlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from os import PathLike
from typing import Annotated, Any, Protocol

from tacit._blas import blas_for
from tacit._resources import usable_cores
from tacit._validate import Count, Range, check, path_of
from tacit.accounting.budget import Neighbours, PrivacyBudget
from tacit.accounting.certificate import IDEALISED, SEEDED, Certificate, Method
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release
from tacit.algorithms import Algorithm, Facts, Interactions, LatentFactors, algorithm_from
from tacit.book import Book, Reservation
from tacit.data.store import RatingsOrStore, Store
from tacit.engines import StoreEngine, ThreadEngine
from tacit.engines.base import Engine
from tacit.errors import ConfigError
from tacit.fitting.booked import (
    book_of,
    digest_of_budget,
    digest_of_settings,
    public_line,
    reserved,
    terms_of,
    watched,
)
from tacit.fitting.budgets import NOT_GIVEN, NotGiven, budget_of
from tacit.fitting.cautions import warn_beforehand
from tacit.fitting.item_features import use_features
from tacit.fitting.logs import log_end, log_resumed, log_start
from tacit.fitting.provenance import given_settings, warn_of_leaks
from tacit.fitting.top_items import COUNTS, narrowed, reserve_counts
from tacit.models import Model
from tacit.models.rules import LocalRule
from tacit.trusted.journal import Journal
from tacit.trusted.mechanism import Mechanism, Numerics, Observer
from tacit.trusted.sampler import SeededNoiseUnsafe, SystemNoise


@dataclass(frozen=True)
class Options:
    """How a fit is carried out, whatever it fits."""

    numerics: Numerics
    checkpoint: str | PathLike[str] | None
    noise_seed_unsafe: int | None
    progress: Callable[[int, int], None] | None
    top_items: int | None
    strict: bool
    observer: Observer | None = None
    book: Reservation | None = None

    @classmethod
    def checked(
        cls, numerics: str, noise_seed_unsafe: int | None, top_items: int | None, **others: Any
    ) -> "Options":
        """Take the arguments of a call, or name the one that is wrong."""
        top_items = check("top_items", top_items, Count | None)
        seed = check("noise_seed_unsafe", noise_seed_unsafe, Annotated[int, Range(0)] | None)
        check("strict", others["strict"], bool)
        if others["checkpoint"] is not None:
            path_of("checkpoint", others["checkpoint"], "folder")
        progress = others.get("progress")
        if progress is not None and not callable(progress):  # known before anything is released
            raise ConfigError(
                f"progress={progress!r}: expected a function of (releases made, releases planned)"
            )
        return cls(
            numerics=_numerics(numerics),
            noise_seed_unsafe=seed,
            top_items=top_items,
            **others,
        )


@dataclass(frozen=True)
class FitContext:
    """What a plan works with: rows and where they live, the mechanism, and the public numbers."""

    ratings: RatingsOrStore
    engine: Engine
    mechanism: Mechanism
    facts: Facts


@dataclass(frozen=True)
class Outcome:
    """The rule that is published, what made it, and what it rests on that was taken as public.

    Attributes:
        rule: what users do.
        algorithm: the one whose rule it is.
        public: what was taken as public, by name.
        sources: which of these lines come from a release, and from which.
        earlier: the squared mu of releases of earlier fits that the rule also rests on.
    """

    rule: LocalRule
    algorithm: Algorithm
    public: dict[str, str]
    sources: dict[str, Release]
    earlier: float = 0.0

    @classmethod
    def of(cls, rule: LocalRule, algorithm: Algorithm, facts: Facts) -> "Outcome":
        """Bring a rule together with what its algorithm says of itself."""
        sources: dict[str, Release] = getattr(algorithm, "sources", dict)()
        return cls(rule, algorithm, algorithm.public(facts), sources)


class FitPlan(Protocol):
    """What is fitted: one algorithm, or a search among several."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """All that it depends on, to know a checkpoint of it again."""
        ...

    @property
    def given(self) -> list[tuple[str, Any]]:
        """Every setting that the caller chose, for the search for leaks."""
        ...

    def reserve(self, ledger: Ledger, facts: Facts) -> Callable[[FitContext], Outcome]:
        """Reserve all releases before any data is read; return what makes them."""
        ...


@dataclass(frozen=True)
class _OneFit:
    """The plan of `fit`: one algorithm."""

    algorithm: Algorithm
    given: list[tuple[str, Any]]

    @property
    def settings(self) -> Mapping[str, Any]:
        return settings_of(self.algorithm)

    def reserve(self, ledger: Ledger, facts: Facts) -> Callable[[FitContext], Outcome]:
        self.algorithm.reserve(ledger, facts)

        def run(context: FitContext) -> Outcome:
            rule = self.algorithm.run(context.mechanism.within(ledger), facts)
            return Outcome.of(rule, self.algorithm, facts)

        return run


def plan_of(algorithm: Algorithm) -> FitPlan:
    """Return the plan of one algorithm that no caller chose the settings of."""
    return _OneFit(algorithm, [])


def fit(
    ratings: RatingsOrStore,
    algorithm: Algorithm | type[Algorithm] | str | None = None,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    neighbours: str | None = None,
    budget: PrivacyBudget | NotGiven | None = NOT_GIVEN,
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    numerics: str = "exact",
    noise_seed_unsafe: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    top_items: int | None = None,
    strict: bool = False,
    book: Book | Reservation | str | PathLike[str] | None = None,
) -> Model:
    """Learn from ratings under joint differential privacy per user; return what may be published.

    Args:
        ratings: everyone's ratings: a `Ratings` in memory, or a `Store` on disk.
        algorithm: a config such as `FrankWolfe(rounds=10)`, its class, or its name on the command
            line, such as "als"; None chooses one by public rules.
        epsilon: the privacy loss that may not be exceeded; with `delta` and `neighbours` a short
            form of `budget=PrivacyBudget(...)`.
        delta: the probability with which it may be exceeded; 1e-6, or that of the book.
        neighbours: "replace" (the number of users is public; the default without a book) or
            "add_remove".
        budget: what may be spent; None, given by name, means NO PRIVACY.
        engine: where rows live; by default threads in this process, which stream a store.
        checkpoint: a folder in which every release is made durable before it is used. The same
            call after a crash goes on with the same releases and spends nothing twice.
        numerics: "exact", or "idealised" for experiments.
        noise_seed_unsafe: makes the noise repeatable, and the model NOT PRIVATE.
        progress: called with (releases made, releases planned).
        top_items: keep only this many items, the most rated ones, chosen by a noisy count that
            takes a twentieth of the budget; None, or as many as there are: all items, no count.
        strict: whether a setting that looks computed from the ratings, or a catalogue taken from
            them, is an error; otherwise the former is a PrivacyLeakWarning.
        book: the lifetime book of these people, or its path: what this fit costs is reserved in it
            before anything is computed, and a fit that would pass its limit is refused.
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
    # What the rules of this package choose was not passed in, and cannot leak.
    config = algorithm_from(algorithm)
    given = [] if config is None else list(given_settings(config))
    implicit = isinstance(ratings, RatingsOrStore) and ratings.implicit
    plan = _OneFit(config or automatic(implicit), given)
    check_kind(plan.algorithm, implicit)
    log_start(plan.algorithm.name, budget)
    with reserved(book, budget, checkpoint, reasons_not_private(options)) as reservation:
        options = replace(options, book=reservation)
        return log_end(run_plan(ratings, plan, budget, engine, options))


def automatic(implicit: bool = False) -> Algorithm:
    """Return the algorithm and settings that `fit` uses when none are given.

    Fixed in advance: they look at no data. Whatever depends on it (item means, spreads, how many
    factors) follows from releases that are paid for; see algorithms.latent_factors.
    """
    return Interactions() if implicit else LatentFactors()


def check_kind(algorithm: Algorithm, implicit: bool) -> None:
    """Refuse an algorithm for ratings where there are none, and the other way round."""
    wanted = getattr(algorithm, "implicit", False)
    if wanted and not implicit:
        raise ConfigError(
            f"algorithm={algorithm.name}: it learns from interactions, and these are ratings; read "
            "them with implicit=True (--implicit), or choose another"
        )
    if implicit and not wanted:
        raise ConfigError(
            f"algorithm={algorithm.name}: it learns from ratings, and these are interactions "
            "(implicit=True); leave the algorithm out, or give Interactions(...)"
        )


def run_plan(
    ratings: RatingsOrStore,
    plan: FitPlan,
    budget: PrivacyBudget | None,
    engine: Engine | None,
    options: Options,
) -> Model:
    """Reserve, choose the items, make the releases, and close the book."""
    if not isinstance(ratings, RatingsOrStore):
        raise ConfigError(
            f"ratings={type(ratings).__name__}: expected tacit.Ratings, made with "
            "Ratings.from_file, from_frame, from_sparse or from_arrays, or a tacit.Store"
        )
    if engine is not None and not hasattr(engine, "take"):
        raise ConfigError(
            f"engine={engine!r}: expected an engine such as tacit.engines.ThreadEngine(threads=2); "
            "leave it out for what fits"
        )
    _look_for_leaks(ratings, plan, budget, options)
    engine = engine or (StoreEngine() if isinstance(ratings, Store) else ThreadEngine())
    top = options.top_items
    narrow = top is not None and top < ratings.n_items
    facts = _facts(ratings, budget, top if narrow else None)
    warn_beforehand(facts, plan.given, reasons_not_private(options))
    ledger = Ledger(budget)
    rest = reserve_counts(ledger, ratings.n_items) if narrow else ledger
    run = plan.reserve(rest, facts)
    public = _public(ratings, facts)
    public |= public_line(options.book)
    engine.take(ratings)
    blas = blas_for(facts.n_items, getattr(engine, "threads", usable_cores()))
    with blas, _journal(ratings, plan, budget, options) as journal:
        mechanism = _mechanism(engine, ledger, journal, options)
        log_resumed(journal, len(ledger.reserved), options.checkpoint)
        if narrow:
            ratings = narrowed(mechanism, ratings, facts.n_items)
            engine.take(ratings)
        outcome = run(FitContext(ratings, engine, mechanism, facts))
    certificate = Certificate.of(
        ledger,
        public | outcome.public,
        options.numerics.value,
        reasons_not_private(options),
        sources=({"catalogue": COUNTS} if narrow else {}) | outcome.sources,
        method=Method.of(outcome.algorithm),
        users=facts.n_users,
    ).resting_on(outcome.earlier)
    if options.book is not None:
        options.book.close(certificate)
    releases = len(ledger.entries) + (outcome.earlier > 0)
    bare = replace(ratings.catalogue, features=None)
    model = Model(outcome.rule, bare, ratings.rating_range, certificate, releases)
    return use_features(model, ratings.catalogue)


def _mechanism(
    engine: Engine, ledger: Ledger, journal: Journal | None, options: Options
) -> Mechanism:
    seed = options.noise_seed_unsafe
    noise = SystemNoise() if seed is None else SeededNoiseUnsafe(seed)
    return Mechanism(
        engine,
        ledger,
        noise,
        numerics=options.numerics,
        journal=journal,
        progress=watched(options.book, ledger, options.progress),
        observer=options.observer,
    )


def reasons_not_private(options: Options) -> tuple[str, ...]:
    """Return why a model with these options is not private; none if it is."""
    reasons = []
    if options.noise_seed_unsafe is not None:
        reasons.append(SEEDED)
    if options.numerics is Numerics.IDEALISED:
        reasons.append(IDEALISED)
    return tuple(reasons)


def _look_for_leaks(
    ratings: RatingsOrStore, plan: FitPlan, budget: PrivacyBudget | None, options: Options
) -> None:
    """Look at what the caller passed in, never at the ratings themselves."""
    given: list[tuple[str, Any]] = [("rating_range", float(end)) for end in ratings.rating_range]
    given += [("top_items", options.top_items), *plan.given]
    if budget is not None and budget.neighbours is Neighbours.ADD_REMOVE:
        given.append(("delta", budget.delta))
    if budget is not None or options.strict:
        public = ratings.catalogue.public
        warn_of_leaks(given, strict=options.strict, catalogue_public=public)


def _facts(ratings: RatingsOrStore, budget: PrivacyBudget | None, top: int | None) -> Facts:
    protected = budget is not None and budget.neighbours is Neighbours.ADD_REMOVE
    users = None if protected else ratings.n_users
    return Facts(top or ratings.n_items, ratings.rating_range, users, budget)


def _public(ratings: RatingsOrStore, facts: Facts) -> dict[str, str]:
    lo, hi = facts.rating_range
    public = {"rating range": f"{lo:g} to {hi:g}, given by the caller"}
    if ratings.implicit:
        public = {"rating range": "none: interactions without ratings, as the caller says"}
    if facts.n_users is not None:
        public["number of users"] = f"{facts.n_users}, public under this relation"
    public["catalogue"] = _catalogue_line(ratings, facts.n_items)
    return public


def _catalogue_line(ratings: RatingsOrStore, n_items: int) -> str:
    """Say where the catalogue comes from."""
    if ratings.catalogue.public:
        line = f"{ratings.n_items} items, a public list given by the caller"
    else:
        line = (
            f"{ratings.n_items} items, ASSUMED public but taken from the ratings: an item that one "
            "person alone has rated gives her away; give a public list to close this"
        )
    if n_items == ratings.n_items:
        return line
    return f"the {n_items} most rated by the release '{COUNTS.name}', chosen from {line}"


@contextlib.contextmanager
def _journal(
    ratings: RatingsOrStore, plan: FitPlan, budget: PrivacyBudget | None, options: Options
) -> Iterator[Journal | None]:
    """Open the checkpoint of this very fit, if one was asked for."""
    if options.checkpoint is None:
        yield None
        return
    about = {
        "ratings": ratings.digest(),
        "algorithm": digest_of_settings(plan.settings),
        "preparation": digest_of_settings({"top_items": options.top_items}),
        "budget": digest_of_budget(budget),
        "noise": digest_of_settings(
            {"numerics": options.numerics, "seed": options.noise_seed_unsafe}
        ),
    }
    journal = Journal(options.checkpoint, about)
    try:
        yield journal
    finally:
        journal.close()


def settings_of(algorithm: Algorithm) -> dict[str, Any]:
    """Return the name and all settings of an algorithm."""
    return {"name": algorithm.name, **asdict(algorithm)}  # type: ignore[call-overload]


def _numerics(numerics: str) -> Numerics:
    try:
        return Numerics(numerics)
    except ValueError:
        raise ConfigError(f"numerics={numerics!r}: expected 'exact' or 'idealised'") from None
