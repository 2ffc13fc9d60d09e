"""Item factors by noisy gradient steps: [liu2015fast] in a form whose guarantee can be proved."""

import math
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np

from tacit._validate import Positive, Range, Seed
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import Preparation, default_ridge
from tacit.estimation.eigen import start_block
from tacit.models.linear import RidgeRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.statistics import FactorGradient


@dataclass(frozen=True, kw_only=True)
class NoisyGradient(Preparation):
    """Noisy gradient factorisation: V <- V - eta (sum_i clip(grad_i) + noise).

    Each user solves for her own factors u_i by ridge regression on her own ratings (local, free)
    and forms the gradient of her loss with respect to all item factors V, clipped as one vector
    to C. The sum over users, per expected rating of an item, moves V.

    *Paper:* [liu2015fast] samples V by stochastic gradient Langevin dynamics; its epsilon and delta
    would hold only if the chain had converged, which nobody has shown. Here the temperature is
    just a step size, and the guarantee is that of T Gaussian releases.
    *Guarantee:* a FactorGradient of norm at most C a step.
    """

    name: ClassVar[str] = "sgld"

    rank: Annotated[int, Range(1, 1000)] = 6
    """Columns of V."""
    rounds: Annotated[int, Range(1, 10_000)] = 10
    """T: gradient steps, one release each."""
    rate: Positive = 4.0
    """eta, per expected rating of an item."""
    clip: Positive | None = None
    """C; None: (hi - lo)/5 sqrt(max_ratings)."""
    ridge: Positive | None = None
    """The ridge of the users' own regressions; None: ((hi - lo)/5)^2."""
    start_scale: Positive | None = None
    """The spread of V's entries at the start; None: (hi - lo)/50."""
    start_seed: Seed = 0
    """The random seed of the public V that it begins with."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve a gradient a step."""
        left = self._reserve_preparation(ledger, facts, users=True)
        factors = np.zeros((facts.n_items, self.rank))
        bound = FactorGradient(self._bounds(facts), factors, 1.0, self._clip(facts)).sensitivity
        for turn in range(1, self.rounds + 1):
            ledger.reserve(Release(ReleaseKind.GRADIENT, (turn,)), bound, left / self.rounds)

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule:
        """Take the steps; users solve on the factors that come out."""
        users = self._users(mechanism, facts)
        bounds = self._prepared(mechanism, facts)
        lo, hi = facts.rating_range
        ridge = default_ridge(facts.rating_range) if self.ridge is None else self.ridge
        scale = (hi - lo) / 50 if self.start_scale is None else self.start_scale
        ratings = users * self._most(facts) / facts.n_items
        columns = min(self.rank, facts.n_items)
        factors = (
            scale * math.sqrt(facts.n_items) * start_block(facts.n_items, columns, self.start_seed)
        )
        factors = np.ascontiguousarray(np.pad(factors, ((0, 0), (0, self.rank - columns))))
        for turn in range(1, self.rounds + 1):
            statistic = FactorGradient(bounds, factors, ridge, self._clip(facts))
            gradient = mechanism.release(Release(ReleaseKind.GRADIENT, (turn,)), statistic)
            factors = factors - self.rate / ratings * gradient
        return RidgeRule(
            factors=factors,
            offsets=bounds.offsets,
            noise=np.full(facts.n_items, ridge),
            centre=self.centre,
            shrink=0.0,
            source=ReleaseKind.GRADIENT,
        )

    def _clip(self, facts: Facts) -> float:
        lo, hi = facts.rating_range
        return (hi - lo) / 5 * math.sqrt(self._most(facts)) if self.clip is None else self.clip
