"""Observe the releases that the mechanism makes, in a fit or of sums the auditor states.

Noise is drawn in one place only. To look at it, the auditor lets that place work, in an ordinary
fit of synthetic people, and takes off what it was added to.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, cast

import numpy as np

from tacit.accounting.budget import PrivacyBudget, Sensitivity
from tacit.accounting.ledger import Entry, Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms import Algorithm, Facts
from tacit.audit.exact_sums import watched_fit
from tacit.data.ratings import Ratings
from tacit.models.linear import RidgeRule
from tacit.models.rules import Floats
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import Rows, Run
from tacit.trusted.statistic import Adder, Integers, Statistic, nonnegative_number


@dataclass(frozen=True, eq=False)
class Heard:
    """A release: what it is, what was summed, the sd in the ledger, and the values."""

    release: Release
    statistic: Statistic
    noise_sd: float
    values: Floats


@dataclass(frozen=True, eq=False)
class StatedSum(Statistic):
    """A sum that the auditor states, whoever the users are; one of them moves it by `bound`."""

    total: Floats
    bound: float = 1.0
    term_bits: int = 50
    symmetric: bool = False
    grids: list[float] = field(default_factory=list)
    """The units that the mechanism chose, which follow from public numbers."""

    @property
    def sensitivity(self) -> Sensitivity:
        """The bound, for either relation."""
        return nonnegative_number(self.bound)

    @property
    def shape(self) -> tuple[int, ...]:
        """That of the sum."""
        return self.total.shape

    def adder(self, local: tuple[Any, ...], unit: float, loops: Any) -> Adder:
        """Add nothing: it is no sum over users."""
        raise NotImplementedError

    def integer_sum(self, rows: Rows, unit: float, run: Run) -> Integers:  # noqa: ARG002
        """Return the sum in units, whatever the rows."""
        self.grids.append(unit)
        return self.in_units(unit)

    def in_units(self, unit: float) -> Integers:
        """Return the sum in whole units, as anyone can who knows it."""
        return np.floor(self.total / unit).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Stated:
    """Not a method: it releases the given statistics, one after the other, at equal shares."""

    name: ClassVar[str] = "stated"
    statistics: tuple[Statistic, ...]
    implicit: bool

    def reserve(self, ledger: Ledger, facts: Facts) -> None:  # noqa: ARG002
        for at, statistic in enumerate(self.statistics):
            ledger.reserve(_stated(at), statistic.sensitivity, 1 / len(self.statistics))

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule:
        for at, statistic in enumerate(self.statistics):
            mechanism.release(_stated(at), statistic)
        nothing, none = np.zeros(facts.n_items), np.zeros((facts.n_items, 0))
        return RidgeRule(none, nothing, nothing + 1, False, 0.0, ReleaseKind.STATED)

    def public(self, facts: Facts) -> dict[str, str]:  # noqa: ARG002
        return {}


def _stated(at: int) -> Release:
    return Release(ReleaseKind.STATED, (at,))


def overheard(
    ratings: Ratings,
    algorithm: Algorithm,
    budget: PrivacyBudget | None,
    seed: int,
    numerics: str = "exact",
) -> list[Heard]:
    """Fit, and return all releases that the fit made, in their order."""
    heard: list[Heard] = []

    def observer(entry: Entry, statistic: Statistic, values: Floats) -> None:
        heard.append(Heard(entry.release, statistic, entry.noise_sd, values))

    watched_fit(ratings, algorithm, budget, observer, seed=seed, numerics=numerics)
    return heard


def released(
    ratings: Ratings,
    statistics: Sequence[Statistic],
    budget: PrivacyBudget | None,
    seed: int,
    numerics: str = "exact",
) -> list[Heard]:
    """Release the given statistics under a budget, or exactly with none."""
    stated = _Stated(tuple(statistics), ratings.implicit)
    return overheard(ratings, cast(Algorithm, stated), budget, seed, numerics)
