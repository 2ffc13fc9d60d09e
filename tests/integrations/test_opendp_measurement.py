"""A fit as a measurement of OpenDP: units are users, and the map says what a fit costs."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

import tacit
from tacit.accounting.budget import PrivacyBudget, epsilon_of
from tacit.errors import ConfigError

pytest.importorskip("opendp")

import opendp.prelude as dp

from tacit.integrations.opendp import make_private_fit, ratings_domain
from tests.conftest import ratings_for

pytestmark = pytest.mark.extras
RATINGS = ratings_for(0)
QUICK = tacit.Moments()


@pytest.fixture(scope="module", autouse=True)
def _features() -> None:
    dp.enable_features("contrib", "honest-but-curious")


def domain() -> Any:
    return ratings_domain(RATINGS.catalogue, RATINGS.rating_range)


def measurement(**settings: Any) -> Any:
    metric = settings.pop("metric", None) or dp.change_one_distance()
    settings = {"algorithm": QUICK} | (settings or {"rho": 0.05})
    return make_private_fit(domain(), metric, **settings)


def test_a_fit_in_a_context_until_the_budget_is_spent() -> None:
    context = dp.Context.compositor(
        data=RATINGS,
        privacy_unit=dp.unit_of(changes=1),
        privacy_loss=dp.loss_of(rho=0.1),
        domain=domain(),
    )
    for _ in range(2):
        model = context(measurement())
        assert model.verify().holds
        assert model.certificate.budget.mu**2 / 2 <= 0.05
    with pytest.raises(dp.OpenDPException, match="would exceed privacy budget"):
        context(measurement())


def test_the_map_is_what_the_certificate_says() -> None:
    """No more is spent than it states, nor much less; and so in a split budget."""
    stated = measurement().map(1)
    spent = sum(entry.mu**2 for entry in measurement()(RATINGS).certificate.releases) / 2
    assert spent <= stated <= 0.05
    assert stated == pytest.approx(spent, rel=1e-6)
    assert measurement().map(3) == pytest.approx(9 * stated)
    assert measurement().map(0) == 0.0


@pytest.mark.parametrize("order", [1.5, 2.0, 8.0, 30.0])
def test_rho_is_half_of_mu_squared(order: float) -> None:
    """zCDP asks for Renyi divergences of at most order times rho; one percent less would not do."""
    mu = PrivacyBudget(1.0).mu
    rho = measurement(epsilon=1.0).map(1)
    centre = order * mu  # where the integrand is largest
    found, _ = quad(
        lambda x: math.exp(
            order * norm.logpdf(x, mu)
            + (1 - order) * norm.logpdf(x)
            - order * (order - 1) * mu**2 / 2
        ),
        centre - 12,
        centre + 12,
        points=[centre],
    )
    divergence = (math.log(found) + order * (order - 1) * mu**2 / 2) / (order - 1)
    assert divergence <= order * rho * (1 + 1e-9)
    assert divergence > order * 0.99 * rho


def test_people_added_or_removed_cost_what_that_relation_says() -> None:
    alike = measurement(metric=dp.symmetric_distance(), epsilon=1.0, measure="approxDP")
    epsilon, delta = alike.map(1)
    assert (epsilon, delta) == (pytest.approx(1.0), 1e-6)
    assert alike.map(2)[0] == pytest.approx(epsilon_of(2 * PrivacyBudget(1.0).mu, 1e-6))
    assert alike.map(0) == (0.0, 0.0)
    assert alike(RATINGS).certificate.budget.neighbours == "add_remove"
    assert measurement(epsilon=1.0)(RATINGS).certificate.budget.neighbours == "replace"


def test_their_conversion_holds_and_is_looser_than_ours() -> None:
    theirs = dp.c.make_fix_delta(dp.c.make_zCDP_to_approxDP(measurement(epsilon=1.0)), 1e-6)
    assert 1.0 < theirs.map(1)[0] < 1.2


def test_what_is_no_member_is_refused() -> None:
    kept = domain()
    assert kept.member(RATINGS)
    assert not kept.member([1, 2])
    other = tacit.Ratings.from_arrays(
        [1, 2], ["a", "b"], [1, 5], rating_range=(0.5, 5), catalogue=tacit.Catalogue(["a", "b"])
    )
    assert not kept.member(other)
    assert ratings_domain(other.catalogue, (0.5, 5)) != kept
    assert ratings_domain(other.catalogue, (1, 5)) != ratings_domain(other.catalogue, (0.5, 5))
    with pytest.raises(ConfigError, match="must not depend on the data"):
        ratings_domain(tacit.Catalogue(["a", "b"], public=False), (1, 5))
    with pytest.raises(ConfigError, match="rating_range"):
        ratings_domain(other.catalogue)


def test_interactions() -> None:
    touched = tacit.Ratings.from_arrays(
        np.repeat(np.arange(40), 2),
        np.arange(80) % 7,
        implicit=True,
        catalogue=tacit.Catalogue(range(7)),
    )
    space = ratings_domain(touched.catalogue, implicit=True)
    assert make_private_fit(space, dp.change_one_distance(), rho=0.01)(touched).implicit


def test_what_it_refuses() -> None:
    with pytest.raises(ConfigError, match="which count users"):
        measurement(metric=dp.absolute_distance(float))
    with pytest.raises(ConfigError, match="either rho"):
        measurement(rho=0.1, epsilon=1.0)
    with pytest.raises(ConfigError, match="rho=-1"):
        measurement(rho=-1)
    with pytest.raises(ConfigError, match="expected 'zCDP' or 'approxDP'"):
        measurement(rho=0.1, measure="pure")
