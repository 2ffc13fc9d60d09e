"""fit: ratings, an algorithm and a budget in; a published model out."""

import contextlib
import hashlib
import json
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from os import PathLike
from typing import Any, Final

from tacit.algorithms import Algorithm, Facts, FrankWolfe
from tacit.budget import Accounting, Neighbours, PrivacyBudget
from tacit.certificate import Certificate
from tacit.engines import ThreadEngine
from tacit.errors import ConfigError, TacitWarning
from tacit.ledger import Ledger
from tacit.models import Model
from tacit.private.journal import Journal
from tacit.private.mechanism import Engine, Mechanism, Numerics
from tacit.private.sampler import SeededNoiseUnsafe, SystemNoise
from tacit.ratings import Ratings

__all__ = ["fit"]


class _NotGiven:
    """Tells a budget that was left out from `budget=None`, which asks for no privacy."""


_NOT_GIVEN: Final = _NotGiven()


@dataclass(frozen=True)
class _Options:
    numerics: Numerics
    checkpoint: str | PathLike[str] | None
    noise_seed_unsafe: int | None
    progress: Callable[[int, int], None] | None


def fit(
    ratings: Ratings,
    algorithm: Algorithm | None = None,
    *,
    epsilon: float | None = None,
    delta: float = 1e-6,
    neighbours: str = "replace",
    budget: PrivacyBudget | _NotGiven | None = _NOT_GIVEN,
    engine: Engine | None = None,
    checkpoint: str | PathLike[str] | None = None,
    numerics: str = "exact",
    noise_seed_unsafe: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Model:
    """Learn from ratings under joint differential privacy per user; return what may be published.

    Args:
        ratings: everyone's ratings.
        algorithm: a config such as `FrankWolfe(rounds=10)`; None chooses one by public rules.
        epsilon: the privacy loss that may not be exceeded; with `delta` and `neighbours` a short
            form of `budget=PrivacyBudget(...)`.
        delta: the probability with which it may be exceeded.
        neighbours: "replace" (the number of users is public) or "add_remove".
        budget: what may be spent; None, given by name, means NO PRIVACY.
        engine: where rows live; threads in this process by default.
        checkpoint: a folder in which every release is made durable before it is used. The same
            call after a crash goes on with the same releases and spends nothing twice.
        numerics: "exact", or "idealised" for experiments.
        noise_seed_unsafe: makes the noise repeatable, and the model NOT PRIVATE.
        progress: called with (releases made, releases planned).
    """
    budget = _budget(budget, epsilon, delta, neighbours)
    if not isinstance(ratings, Ratings):
        raise ConfigError(
            f"ratings={type(ratings).__name__}: expected tacit.Ratings, made with "
            "Ratings.from_file, from_frame, from_sparse or from_arrays"
        )
    options = _Options(_numerics(numerics), checkpoint, _seed(noise_seed_unsafe), progress)
    return _fit(ratings, algorithm or automatic(), budget, engine or ThreadEngine(), options)


def automatic() -> Algorithm:
    """Return the algorithm and settings that `fit` uses when none are given.

    Fixed in advance: they look at no data. Item means come first, residuals are clipped to the
    norm that rows have, and lambda is not shifted: each helps at every epsilon.
    """
    return FrankWolfe(rounds=12, item_means=0.2, residual_clip=1.0, shift=False)


def _fit(
    ratings: Ratings,
    algorithm: Algorithm,
    budget: PrivacyBudget | None,
    engine: Engine,
    options: _Options,
) -> Model:
    facts = _facts(ratings, budget)
    _warn_of_delta(facts)
    ledger = Ledger(budget)
    algorithm.reserve(ledger, facts)
    seed = options.noise_seed_unsafe
    noise = SystemNoise() if seed is None else SeededNoiseUnsafe(seed)
    engine.take(ratings)
    with _journal(ratings, algorithm, budget, options) as journal:
        mechanism = Mechanism(
            engine,
            ledger,
            noise,
            numerics=options.numerics,
            journal=journal,
            progress=options.progress,
        )
        rule = algorithm.run(mechanism, facts)
    reasons = [] if seed is None else ["its noise was drawn from a seed, which undoes it"]
    if options.numerics is Numerics.IDEALISED:
        reasons.append("its noise was drawn in floating point, whose low bits can leak")
    public = _public(ratings, facts) | algorithm.public(facts)
    certificate = Certificate.of(ledger, public, options.numerics.value, tuple(reasons))
    releases = len(ledger.entries)
    return Model(rule, ratings.catalogue, ratings.rating_range, certificate, releases)


def _facts(ratings: Ratings, budget: PrivacyBudget | None) -> Facts:
    protected = budget is not None and budget.neighbours is Neighbours.ADD_REMOVE
    users = None if protected else ratings.n_users
    return Facts(ratings.n_items, ratings.rating_range, users, budget)


def _warn_of_delta(facts: Facts) -> None:
    """Delta is the chance that the promise fails; with many users it must be far below 1/users."""
    if facts.budget and facts.n_users and facts.budget.delta >= 1 / facts.n_users:
        warnings.warn(
            f"delta={facts.budget.delta:g} is not below one over the number of users "
            f"({facts.n_users}): publishing one whole row at random would pass; choose a smaller",
            TacitWarning,
            stacklevel=4,
        )


def _public(ratings: Ratings, facts: Facts) -> dict[str, str]:
    lo, hi = facts.rating_range
    public = {"rating range": f"{lo:g} to {hi:g}, given by the caller"}
    if facts.n_users is not None:
        public["number of users"] = f"{facts.n_users}, public under this relation"
    if ratings.catalogue.public:
        public["catalogue"] = f"{facts.n_items} items, a public list given by the caller"
    else:
        public["catalogue"] = (
            f"{facts.n_items} items, ASSUMED public but taken from the ratings: an item that one "
            "person alone has rated gives her away; give a public list to close this"
        )
    return public


@contextlib.contextmanager
def _journal(
    ratings: Ratings, algorithm: Algorithm, budget: PrivacyBudget | None, options: _Options
) -> Iterator[Journal | None]:
    """Open the checkpoint of this very fit, if one was asked for."""
    if options.checkpoint is None:
        yield None
        return
    about = {
        "ratings": ratings.digest(),
        "algorithm": _digest({"name": algorithm.name, **asdict(algorithm)}),  # type: ignore[call-overload]
        "budget": _digest(asdict(budget) if budget else {}),
        "noise": _digest({"numerics": options.numerics, "seed": options.noise_seed_unsafe}),
    }
    journal = Journal(options.checkpoint, about)
    try:
        yield journal
    finally:
        journal.close()


def _digest(settings: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _budget(
    budget: PrivacyBudget | _NotGiven | None, epsilon: float | None, delta: float, neighbours: str
) -> PrivacyBudget | None:
    if isinstance(budget, _NotGiven):
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


def _numerics(numerics: str) -> Numerics:
    try:
        return Numerics(numerics)
    except ValueError:
        raise ConfigError(f"numerics={numerics!r}: expected 'exact' or 'idealised'") from None


def _seed(seed: int | None) -> int | None:
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ConfigError(f"noise_seed_unsafe={seed!r}: expected a whole number of at least 0")
    return seed
