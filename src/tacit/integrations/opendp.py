"""A fit as a measurement of OpenDP, so that one accountant counts it with everything else.

A dataset is `tacit.Ratings`, and its records are users: a distance of 1 is one person's whole row.
"""

import hashlib
import math
from typing import Any, Literal

from tacit.accounting.budget import Neighbours, PrivacyBudget, epsilon_of
from tacit.algorithms import Algorithm
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, MissingPackage
from tacit.fitting.fit import fit
from tacit.models import Model

try:
    import opendp.prelude as dp
except ImportError:
    raise MissingPackage("tacit.integrations.opendp", "OpenDP", "opendp") from None

__all__ = ["make_private_fit", "ratings_domain"]

_BELOW = 1e-9  # what is spent stays this much below what is asked for, whatever rounding does
_RELATIONS = {
    "SymmetricDistance": Neighbours.ADD_REMOVE,
    "ChangeOneDistance": Neighbours.REPLACE,
}


def ratings_domain(
    catalogue: Catalogue,
    rating_range: tuple[float, float] | None = None,
    *,
    implicit: bool = False,
) -> Any:
    """Return the domain of all `tacit.Ratings` of a public list of items and a rating range.

    Args:
        catalogue: the public list of items; `Ratings` of another one are no members.
        rating_range: the (lowest, highest) rating that is possible.
        implicit: whether there are interactions instead of ratings; then there is no range.

    Raises:
        ConfigError: the catalogue was taken from ratings: a domain must not depend on the data.
    """
    if not catalogue.public:
        raise ConfigError(
            "catalogue: it was taken from ratings, and a domain must not depend on the data; give "
            "a public one: Catalogue(ids, public=True)"
        )
    if (rating_range is None) != implicit:
        raise ConfigError("rating_range: give it for ratings, and leave it out with implicit=True")
    lo, hi = (0.0, 1.0) if rating_range is None else map(float, rating_range)

    def member(value: Any) -> bool:
        return (
            isinstance(value, Ratings)
            and value.implicit == implicit
            and value.rating_range == (lo, hi)
            and value.catalogue.public
            and value.catalogue.ids.equals(catalogue.ids)
        )

    items = hashlib.sha256(repr(catalogue.ids.to_list()).encode()).hexdigest()
    name = f"tacit.Ratings(range=[{lo!r}, {hi!r}], implicit={implicit}, items={items})"
    return dp.user_domain(name, member)


def make_private_fit(
    input_domain: Any,
    input_metric: Any,
    *,
    rho: float | None = None,
    epsilon: float | None = None,
    delta: float = 1e-6,
    algorithm: Algorithm | None = None,
    measure: Literal["zCDP", "approxDP"] = "zCDP",
) -> Any:
    r"""Return a measurement that fits a model.

    All noise of a fit is Gaussian. With sensitivities $\Delta_t$ and noise sds $s_t$, a fit costs
    $\mu^2 = \sum_t \Delta_t^2 / s_t^2$, so it is $\mu^2/2$-zCDP, and $(\varepsilon, \delta)$-DP for
    every pair with $\delta = \Phi(-\varepsilon/\mu + \mu/2) - e^{\varepsilon} \Phi(-\varepsilon/\mu
    - \mu/2)$. Users that change together move a sum at most as far as one by one, so a distance of
    $d$ users costs $d\mu$. The map of the measurement is

    - "zCDP": $d \mapsto d^2 \mu^2 / 2$, which composes with other measurements without loss;
    - "approxDP": $d \mapsto (\varepsilon(d\mu, \delta), \delta)$, exact for one fit by itself.

    *Guarantee:* what the map says is the whole budget, reserved before data is read; a fit that
    spends less costs less than stated.

    Args:
        input_domain: of `ratings_domain`.
        input_metric: `dp.symmetric_distance()`, people are added or removed, or
            `dp.change_one_distance()`, their rows are replaced and their number is public. They
            count users: `dp.unit_of(contributions=1)`, `dp.unit_of(changes=1)`.
        rho: what one person's row may cost, as zCDP.
        epsilon: the same as epsilon, with `delta`, in place of rho.
        delta: for epsilon, for `measure="approxDP"` and for the certificate.
        algorithm: settings of a method; None: the default.
        measure: how the map states the cost.

    Raises:
        ConfigError: a metric of another kind, or not exactly one of rho and epsilon.
    """
    neighbours = _RELATIONS.get(str(input_metric.type))
    if neighbours is None:
        raise ConfigError(
            f"input_metric={input_metric}: expected dp.symmetric_distance() or "
            "dp.change_one_distance(), which count users"
        )
    budget = _budget(rho, epsilon, delta, neighbours)

    def function(ratings: Ratings) -> Model:
        return fit(ratings, algorithm, budget=budget)

    output, cost = _measure(measure, budget)
    return dp.m.make_user_measurement(input_domain, input_metric, output, function, cost)


def _budget(
    rho: float | None, epsilon: float | None, delta: float, neighbours: Neighbours
) -> PrivacyBudget:
    if (rho is None) == (epsilon is None):
        raise ConfigError("give either rho=... or epsilon=...")
    if rho is not None:
        if not (isinstance(rho, int | float) and math.isfinite(rho) and rho > 0):
            raise ConfigError(f"rho={rho!r}: expected a finite number above 0")
        epsilon = epsilon_of(math.sqrt(2 * rho) * (1 - _BELOW), delta)
    return PrivacyBudget(epsilon, delta, neighbours)  # type: ignore[arg-type]


def _measure(measure: str, budget: PrivacyBudget) -> tuple[Any, Any]:
    """Return a measure of OpenDP, and what so many users cost under it, rounded up."""
    mu, delta = math.nextafter(budget.mu, math.inf), budget.delta
    if measure == "zCDP":
        return dp.zero_concentrated_divergence(), lambda users: _up((users * mu) ** 2 / 2)
    if measure == "approxDP":
        whole = dp.approximate(dp.max_divergence())
        return whole, lambda users: (_up(epsilon_of(users * mu, delta)), delta if users else 0.0)
    raise ConfigError(f"measure={measure!r}: expected 'zCDP' or 'approxDP'")


def _up(cost: float) -> float:
    return math.nextafter(cost, math.inf) if cost else 0.0
