"""What every algorithm is: a frozen config that first plans its releases, then makes them."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Accounting, PrivacyBudget
from tacit.accounting.ledger import Ledger
from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.item_estimates import ItemEstimates
from tacit.estimation.latent import LatentEstimate
from tacit.models.rules import LocalRule
from tacit.trusted.mechanism import Mechanism

Floats = NDArray[np.float64]


class Choice(NamedTuple):
    """Choice factors c = H^T x of a fit: H, V, E[c c^T], and how often items are rated."""

    weights: Floats
    factors: Floats
    moment: Floats
    rated: CoRatings


class Looked(NamedTuple):
    """A released gradient, for items and for the prior from choice, with the sd of the noise."""

    items: Floats
    items_noise: float
    prior: Floats
    prior_noise: float


class Earlier(Protocol):
    """What earlier fits told of the parameters of a model (fitting.parameters)."""

    def begin(
        self, start: LatentEstimate, spread: Floats, choice: Choice, doubt: Floats
    ) -> tuple[LatentEstimate, Floats]:
        """Return where a fit begins, and E[(W^T c)(W^T c)^T]; `doubt` is of its means."""
        ...

    def measured(
        self, estimate: LatentEstimate, spread: Floats, looked: Looked
    ) -> tuple[LatentEstimate, Floats, ItemEstimates]:
        """Return where a gradient at this estimate leads, and all that is measured by now."""
        ...


@dataclass(frozen=True)
class Facts:
    """The public numbers of a fit: all that an algorithm may know without paying.

    `n_users` is None where the relation protects it; `earlier` is for refits.
    """

    n_items: int
    rating_range: tuple[float, float]
    n_users: int | None
    budget: PrivacyBudget | None
    earlier: Earlier | None = None

    @property
    def width(self) -> float:
        """How far apart the lowest and the highest rating are."""
        return self.rating_range[1] - self.rating_range[0]

    @property
    def paper_accounting(self) -> bool:
        """Whether noise follows the paper's formula."""
        return self.budget is not None and self.budget.accounting is Accounting.PAPER


class Algorithm(Protocol):
    """The global side of a method. Its local side is the rule that it publishes.

    One that lets a release decide a setting also has `sources()`: that release, by the line of
    `public` that it stands behind.
    """

    name: ClassVar[str]

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve every release of a fit, before any data is read."""
        ...

    def run(self, mechanism: Mechanism, facts: Facts) -> LocalRule:
        """Make the releases and return what users do with them."""
        ...

    def public(self, facts: Facts) -> dict[str, str]:
        """Name every setting that the releases rest on, as taken as public."""
        ...
