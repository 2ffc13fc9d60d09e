import json
import math

import pytest

import tacit
from tacit.budget import LARGEST_MU, PrivacyBudget, epsilon_of, mu_of
from tacit.certificate import Certificate
from tacit.ledger import Entry


@pytest.fixture
def certificate(ratings: tacit.Ratings) -> Certificate:
    return tacit.fit(ratings, epsilon=0.8, delta=1e-7).certificate


def test_anyone_can_recompute_epsilon_from_the_json_alone(certificate: Certificate) -> None:
    content = json.loads(json.dumps(certificate.to_json()))
    costs = [(r["sensitivity"] / r["noise_sd"]) ** 2 for r in content["releases"]]
    assert epsilon_of(math.sqrt(sum(costs)), content["delta"]) <= content["epsilon"] * (1 + 1e-9)


def test_the_json_has_its_stable_keys(certificate: Certificate) -> None:
    content = certificate.to_json()
    assert {
        "format", "private", "unit", "epsilon", "delta", "neighbours", "accounting", "numerics",
        "releases", "public", "promise", "exact_epsilon", "mu", "not_private_because",
        "grade", "sources", "algorithm", "settings",
    } == set(content)  # fmt: skip
    for release in content["releases"]:
        assert set(release) == {"name", "kind", "index", "part", "sensitivity", "noise_sd", "mu"}


def test_it_survives_json(certificate: Certificate) -> None:
    again = Certificate.from_json(json.loads(json.dumps(certificate.to_json())))
    assert again.to_json() == certificate.to_json()


def test_the_text_names_everything_a_reviewer_asks_for(certificate: Certificate) -> None:
    text = certificate.text()
    for word in (
        "0.8", "1e-07", "replace", "joint differential privacy", "all ratings of one person",
        "exact composition", "item effects", "covariance 1", "noise sd", "Taken as public",
        "rating range", "number of users", "catalogue", "single rating", "Not covered", "exact:",
    ):  # fmt: skip
        assert word in text, word


def test_a_model_without_privacy_says_so_first(ratings: tacit.Ratings) -> None:
    certificate = tacit.fit(ratings, budget=None).certificate
    assert certificate.text().startswith("NOT PRIVATE")
    assert certificate.to_json()["private"] is False
    assert certificate.to_json()["epsilon"] is None
    assert not certificate.verify().holds
    json.dumps(certificate.to_json(), allow_nan=False)


@pytest.mark.parametrize(
    "change",
    [
        {"format": "other"},
        {"epsilon": "one"},
        {"epsilon": -1},
        {"delta": None},
        {"neighbours": "swap"},
        {"numerics": "guess"},
        {"releases": [{"name": "x"}]},
        {"releases": [{"name": "x", "sensitivity": 1, "noise_sd": -1, "mu": -1}]},
        {"releases": 5},
        {"public": []},
    ],
)
def test_unsound_json_is_a_model_file_error(
    certificate: Certificate, change: dict[str, object]
) -> None:
    with pytest.raises(tacit.ModelFileError):
        Certificate.from_json(certificate.to_json() | change)


def test_a_release_without_noise_does_not_verify(certificate: Certificate) -> None:
    content = certificate.to_json()
    content["releases"][0] |= {"noise_sd": 0.0, "mu": None}
    assert not Certificate.from_json(content).verify().holds


@pytest.mark.parametrize(
    ("mu", "proven"), [(LARGEST_MU * 0.999, True), (LARGEST_MU * 1.001, False)]
)
def test_verify_names_a_cost_for_which_the_noise_is_not_proven(mu: float, proven: bool) -> None:
    budget = PrivacyBudget(1e4, 1 - 2**-53)
    found = Certificate(budget, (Entry("covariance 1", mu, 1.0),), {}).verify()
    assert any("exactness of the noise" in problem for problem in found.problems) is not proven


@pytest.mark.parametrize(("beyond", "holds"), [(0.0, True), (5e-10, True), (3e-9, False)])
def test_verify_accepts_rounding_and_no_more(beyond: float, holds: bool) -> None:
    """A recomputed epsilon may be above the claim by a part in 10^9."""
    mu = mu_of(1.0 + beyond, 1e-6)
    found = Certificate(PrivacyBudget(1.0), (Entry("covariance 1", mu, 1.0),), {}).verify()
    assert found.holds is holds
