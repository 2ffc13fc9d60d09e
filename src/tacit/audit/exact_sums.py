"""Exact sums before noise, of synthetic ratings; only the audit may open them.

Whoever audits knows everyone's ratings, because the auditor made them up. What an attacker who
knows everyone else would have to guess can then be computed: the exact sum that every release
hides, in a world with a certain person and in one without her. Nothing here may ever be given
people's ratings, and nothing else in the package may import from here
(`tests/architecture/test_structure.py::test_only_the_audit_opens_sums_outside_of_the_mechanism`).
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget, Sensitivity
from tacit.accounting.ledger import Entry
from tacit.algorithms import Algorithm
from tacit.audit.target import Target
from tacit.data.ratings import Ratings
from tacit.data.store import RatingsOrStore
from tacit.engines.base import Engine
from tacit.errors import EngineError, TacitWarning
from tacit.fitting.fit import Options, plan_of, run_plan
from tacit.fitting.top_items import top_items
from tacit.trusted.mechanism import Observer
from tacit.trusted.rows import Rows, Run
from tacit.trusted.selection import restricted
from tacit.trusted.statistic import BoundedSum, Statistic

Result = TypeVar("Result")
Units = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Opened:
    """One release of a run, and how to compute what it hides for other rows.

    Attributes:
        entry: what the ledger says: name, sensitivity under the relation, noise sd.
        statistic: the public description that was released.
        unit: of the integer sum.
        kept: the items that were left, where some were chosen first; None: all.
    """

    entry: Entry
    statistic: Statistic
    unit: float
    kept: NDArray[np.int64] | None = None

    @property
    def stated(self) -> Sensitivity:
        """The sensitivity that the statistic states, under either relation."""
        return self.statistic.sensitivity

    def exact(self, ratings: Ratings) -> Units:
        """Return the exact sum for these ratings, flat, in units."""
        rows = ratings if self.kept is None else restricted(ratings, self.kept)
        return _sum(self.statistic, Rows(rows), self.unit).ravel()


@dataclass(eq=False)
class Watched:
    """What an auditor writes down in a run: every release, and what it says about the two worlds.

    `log_ratio` is the log-likelihood ratio of all releases so far: how much more likely they are
    with her row than with what is there instead. Later statistics depend on earlier releases, so
    it is added up along the run: given the releases so far, both worlds' next sums are known, and
    the next release is Gaussian around one of them.
    """

    releases: list[Opened] = field(default_factory=list)
    log_ratio: float = 0.0


class _Worlds:
    """An engine that holds two worlds, and an observer of the fit that plays one of them."""

    def __init__(self, other: Ratings, sign: int) -> None:
        self.watched = Watched()
        self._everything, self._sign = other, sign
        self._kept: NDArray[np.int64] | None = None

    def take(self, ratings: RatingsOrStore) -> None:
        """Take the played world, and of the other one the same items."""
        if not isinstance(ratings, Ratings):
            raise EngineError("the audit plays with ratings in memory, not with a store")
        other = self._everything
        if ratings.n_items < other.n_items:  # the fit has chosen items, by the newest release
            self._kept = top_items(self._newest, ratings.n_items)
            other = restricted(other, self._kept)
        self.take_both(ratings, other)

    def take_both(self, played: Ratings, other: Ratings) -> None:
        """Take the rows of both worlds."""
        self._played, self._other = Rows(played), Rows(other)

    @property
    def n_users(self) -> int:
        return self._played.n_users

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum in both worlds; what the mechanism gets is that of the world that is played."""
        played = _sum(statistic, self._played, unit)
        self._last = unit, played, _sum(statistic, self._other, unit)
        return BoundedSum(played, unit, statistic)

    def released(self, entry: Entry, statistic: Statistic, values: NDArray[np.float64]) -> None:
        """Write a release down, and what it says about the two worlds."""
        unit, played, other = self._last
        self._newest = values
        self.watched.releases.append(Opened(entry, statistic, unit, self._kept))
        if entry.noise_sd > 0:
            apart = (played - other) * unit
            off = values - (played + other) * (unit / 2)
            said = float(np.sum(off * apart)) / entry.noise_sd**2
            self.watched.log_ratio += self._sign * said


def _sum(statistic: Statistic, rows: Rows, unit: float) -> Units:
    """Sum all users in one go: threads cost more than so few people."""

    def each(task: Callable[[int, int], Result]) -> list[Result]:
        return [task(0, rows.n_users)]

    return statistic.integer_sum(rows, unit, Run(each))


def opened_run(
    subject: Target, with_her: Ratings, without: Ratings, *, present: bool, seed: int | None
) -> Watched:
    """Fit in one of two worlds and watch every release. A seed makes the noise repeatable."""
    played, other = (with_her, without) if present else (without, with_her)
    worlds = _Worlds(other, 1 if present else -1)
    watched_fit(
        played,
        subject.algorithm,
        subject.budget,
        worlds.released,
        engine=worlds,
        seed=seed,
        top_items=kept_items(subject, played.n_items) if subject.narrowed else None,
    )
    return worlds.watched


def watched_fit(
    ratings: Ratings,
    algorithm: Algorithm,
    budget: PrivacyBudget | None,
    observer: Observer,
    *,
    engine: Engine | None = None,
    seed: int | None = None,
    numerics: str = "exact",
    top_items: int | None = None,
) -> None:
    """Fit synthetic people, as `fit` does, with an observer of the releases.

    What is audited may be weak on purpose, so warnings of that are not repeated here.
    """
    others: dict[str, Any] = {"checkpoint": None, "progress": None, "strict": False}
    options = Options.checked(numerics, seed, top_items, observer=observer, **others)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TacitWarning)
        run_plan(ratings, plan_of(algorithm), budget, engine, options)


def kept_items(subject: Target, n_items: int) -> int:
    """Return how many items are left where some are chosen first: a quarter goes."""
    return max(2, n_items - n_items // 4) if subject.narrowed else n_items
