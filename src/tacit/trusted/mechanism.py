"""The mechanism: the only place that opens a bounded sum, adds noise and makes a release."""

import math
import sys
from collections.abc import Callable, Mapping
from copy import copy
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import LARGEST_MU, Neighbours, Sensitivity
from tacit.accounting.ledger import Entry, Ledger
from tacit.accounting.release import Release
from tacit.engines.base import Engine
from tacit.errors import ConfigError, EngineError
from tacit.trusted.journal import Journal
from tacit.trusted.sampler import MOST_BITS, NoiseSource, floor_normals, idealised_normals
from tacit.trusted.statistic import Statistic

Observer = Callable[[Entry, Statistic, NDArray[np.float64]], None]
"""Watches releases as they are made: for the audit of synthetic people, and for nobody else."""

_CAPACITY = 2**26  # users that sums have room for when their number is not public
_SUM_BITS = 61  # a sum stays about 2^61 units at the most, and its noise within 2^62


class Numerics(StrEnum):
    """How noise is drawn."""

    EXACT = "exact"
    IDEALISED = "idealised"


class Mechanism:
    """Makes the releases of one fit: spends, sums, adds noise, writes down, returns.

    *Guarantee:* every number that leaves through `release` is an integer sum of the stated
    sensitivity plus exact Gaussian noise of the sd in the ledger, or post-processing of it, and was
    paid for before the noise was drawn. With no budget in the ledger it is the sum itself.
    """

    def __init__(
        self,
        engine: Engine,
        ledger: Ledger,
        noise: NoiseSource,
        *,
        numerics: Numerics = Numerics.EXACT,
        journal: Journal | None = None,
        progress: Callable[[int, int], None] | None = None,
        observer: Observer | None = None,
    ) -> None:
        """Bring together where rows are, what may be spent, and where noise comes from."""
        self._engine = engine
        self._ledger = ledger
        self._noise = noise
        self._draw = floor_normals if numerics is Numerics.EXACT else idealised_normals
        self._journal = journal
        self._progress = progress
        self._observer = observer

    @property
    def public_users(self) -> int | None:
        """The number of users where the relation makes it public (or nothing is private)."""
        budget = self._ledger.budget
        protected = budget is not None and budget.neighbours is Neighbours.ADD_REMOVE
        return None if protected else self._engine.n_users

    def within(self, ledger: Ledger) -> "Mechanism":
        """Return the mechanism of a part of the ledger: the same rows, noise, book and journal."""
        part = copy(self)
        part._ledger = ledger
        return part

    def redivide(self, shares: Mapping[Release, float]) -> None:
        """Divide what is set aside for releases that are still to come otherwise (the ledger's)."""
        self._ledger.redivide(shares)

    def noise_sd(self, release: Release, sensitivity: Sensitivity | None = None) -> float:
        """Return the noise sd that a release of this sensitivity, if it is open, will have."""
        return self._ledger.planned(release, sensitivity).noise_sd

    def release(self, release: Release, statistic: Statistic) -> NDArray[np.float64]:
        """Release a statistic under its reservation, or read it back if it was released before."""
        entry = self._ledger.spend(release, statistic.sensitivity)
        number = len(self._ledger.entries)
        values = self._journal.read(number, entry) if self._journal else None
        if values is None:
            values = self._release(number, statistic, entry)
            if self._journal:
                self._journal.write(number, entry, values)
        if self._progress:
            self._progress(number, len(self._ledger.reserved))
        if self._observer:  # gets a copy: the algorithm may go on in place
            self._observer(entry, statistic, values.copy())
        return values

    def _release(self, number: int, statistic: Statistic, entry: Entry) -> NDArray[np.float64]:
        unit, bits = self._grid(statistic, entry)
        total = self._engine.sum(statistic, unit)
        if not total.is_of(statistic, unit):
            raise EngineError("the engine summed another statistic than it was asked for")
        noisy = total._exact_sum
        if self._ledger.private:
            self._noise.start(number)
            noisy = noisy + self._draw(self._noise, noisy.size, bits).reshape(noisy.shape)
        return _values(noisy, unit, statistic.symmetric)

    def _grid(self, statistic: Statistic, entry: Entry) -> tuple[float, int]:
        """Choose the unit of the sum so that the noise sd is exactly 2^bits units.

        It depends on public numbers only. Sums are as fine as 64-bit integers allow.
        """
        users = self.public_users or _CAPACITY
        if self._engine.n_users > users:
            raise EngineError(f"sums have room for {_CAPACITY} users; split the ratings")
        finest = statistic.max_entry * max(users * 2.0**-_SUM_BITS, 2.0**-statistic.term_bits)
        if not finest >= sys.float_info.min:  # a unit below has not all digits of its multiples
            raise EngineError("a sum has a bound too small for doubles; nothing was summed")
        if not self._ledger.private:
            return finest, 0
        bits = min(MOST_BITS, math.floor(math.log2(entry.noise_sd / finest)))
        if bits < 1 or not entry.mu <= LARGEST_MU:
            raise ConfigError(
                f"epsilon is so large that release {entry.name!r} has no noise to speak of; "
                "lower it, or ask for the non-private form by name with budget=None"
            )
        return math.ldexp(entry.noise_sd, -bits), bits


def _values(noisy: NDArray[np.int64], unit: float, symmetric: bool) -> NDArray[np.float64]:
    """Turn a noisy sum into numbers; a symmetric one is averaged with its transpose.

    That is post-processing: the noise keeps sd s on the diagonal and has s/sqrt2 elsewhere.
    """
    values = noisy.astype(np.float64) * unit
    return (values + values.T) / 2 if symmetric else values
