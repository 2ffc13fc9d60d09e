"""The one place outside of the trust zone that opens sums: an attacker on made-up ratings.

Whoever audits knows everyone's ratings, because the auditor made them up. What an attacker who
knows everyone else would have to guess can then be computed: the exact sum that every release
hides, in a world with a certain person and in one without her. Nothing here may ever be given
people's ratings, and nothing else in the package may import from here
(`tests/architecture/test_structure.py::test_only_the_audit_opens_sums_outside_of_the_mechanism`).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit.algorithms import Facts
from tacit.audit.subjects import Subject
from tacit.budget import Neighbours, Sensitivity
from tacit.ledger import Entry, Ledger
from tacit.narrowing import COUNTS, reserve_counts, top_items
from tacit.private.mechanism import Mechanism
from tacit.private.rows import Rows, Run
from tacit.private.sampler import NoiseSource, SeededNoiseUnsafe, SystemNoise
from tacit.private.selection import restricted
from tacit.private.statistic import BoundedSum, Statistic
from tacit.private.statistics import ItemCounts
from tacit.ratings import Ratings
from tacit.release import Release

__all__ = ["Opened", "Watched", "kept_items", "opened_run"]

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
    """An engine that holds two worlds; sums are of the one that is played, both are kept."""

    def __init__(self) -> None:
        self.last: tuple[Statistic, float, Units, Units]

    def take_both(self, played: Ratings, other: Ratings) -> None:
        """Take the rows of both worlds."""
        self._played, self._other = Rows(played), Rows(other)

    def take(self, ratings: Ratings) -> None:
        """Take one world for both."""
        self.take_both(ratings, ratings)

    @property
    def n_users(self) -> int:
        return self._played.n_users

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum in both worlds; what the mechanism gets is that of the world that is played."""
        played = _sum(statistic, self._played, unit)
        self.last = statistic, unit, played, _sum(statistic, self._other, unit)
        return BoundedSum(played, unit, statistic)


def _sum(statistic: Statistic, rows: Rows, unit: float) -> Units:
    """Sum all users in one go: threads cost more than so few people."""

    def each(task: Callable[[int, int], Result]) -> list[Result]:
        return [task(0, rows.n_users)]

    return statistic.integer_sum(rows, unit, Run(each))


class _WatchedMechanism(Mechanism):
    """The mechanism as it is, with someone who looks over its shoulder."""

    def watch(self, worlds: _Worlds, watched: Watched, sign: int) -> None:
        """Say what to look at, where to write it down, and whether she is in the played world."""
        self._worlds, self._watched, self._sign = worlds, watched, sign
        self.kept: NDArray[np.int64] | None = None

    def release(self, release: Release, statistic: Statistic) -> NDArray[np.float64]:
        values = super().release(release, statistic)
        entry = self._ledger.entries[-1]
        asked, unit, played, other = self._worlds.last
        self._watched.releases.append(Opened(entry, asked, unit, self.kept))
        if entry.noise_sd > 0:
            apart = (played - other) * unit
            off = values - (played + other) * (unit / 2)
            self._watched.log_ratio += self._sign * float(np.sum(off * apart)) / entry.noise_sd**2
        return values


def opened_run(
    subject: Subject, with_her: Ratings, without: Ratings, *, present: bool, seed: int | None
) -> Watched:
    """Run an algorithm in one of two worlds and watch every release of it.

    It is what `fit` does, on a mechanism that is watched. A seed makes the noise repeatable.
    """
    played, other = (with_her, without) if present else (without, with_her)
    worlds, watched, ledger = _Worlds(), Watched(), Ledger(subject.budget)
    worlds.take_both(played, other)
    mechanism = _WatchedMechanism(worlds, ledger, _noise(seed))
    mechanism.watch(worlds, watched, 1 if present else -1)
    facts = _facts(subject, played)
    rest = reserve_counts(ledger, played.n_items) if subject.narrowed else ledger
    subject.algorithm.reserve(rest, facts)
    if subject.narrowed:
        counts = mechanism.release(COUNTS, ItemCounts(played.n_items))
        mechanism.kept = top_items(counts, facts.n_items)
        worlds.take_both(restricted(played, mechanism.kept), restricted(other, mechanism.kept))
    subject.algorithm.run(mechanism.within(rest), facts)
    return watched


def kept_items(subject: Subject, n_items: int) -> int:
    """Return how many items are left where some are chosen first: a quarter goes."""
    return max(2, n_items - n_items // 4) if subject.narrowed else n_items


def _facts(subject: Subject, ratings: Ratings) -> Facts:
    protected = subject.budget.neighbours is Neighbours.ADD_REMOVE
    users = None if protected else ratings.n_users
    n_items = kept_items(subject, ratings.n_items)
    return Facts(n_items, ratings.rating_range, users, subject.budget)


def _noise(seed: int | None) -> NoiseSource:
    return SystemNoise() if seed is None else SeededNoiseUnsafe(seed)
