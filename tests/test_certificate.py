import json
import math
from dataclasses import dataclass

import pytest

import tacit
from tacit.accounting.budget import LARGEST_MU, PrivacyBudget, epsilon_of, mu_of
from tacit.accounting.certificate import Certificate, Method
from tacit.accounting.ledger import Entry
from tests.conftest import named


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
        "releases", "public", "users", "promise", "exact_epsilon", "mu", "not_private_because",
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


def with_release(**change: object) -> dict[str, object]:
    """The JSON of a certificate of one release, sound but for a change of that release."""
    entry = Entry(named("a sum"), 2.0, 40.0)
    content = Certificate(PrivacyBudget(1.0), (entry,), {}).to_json()
    content["releases"][0] |= change
    return content


@pytest.mark.parametrize(
    "change",
    [
        {"sensitivity": 0.0, "mu": None},
        {"sensitivity": -2.0, "mu": None},
        {"sensitivity": math.inf, "mu": None},
        {"noise_sd": -40.0, "mu": None},
        {"noise_sd": math.inf, "mu": 0.0},
        {"noise_sd": math.nan, "mu": None},
        {"noise_sd": 1.9e-140, "mu": None},  # a cost above 10^140
        {"mu": 0.05 * (1 + 2e-9)},
        {"mu": 0.05 * (1 - 2e-9)},
    ],
    ids=str,
)
def test_a_release_with_impossible_numbers_is_a_model_file_error(change: dict[str, object]) -> None:
    with pytest.raises(tacit.ModelFileError, match=r"impossible|is not sensitivity"):
        Certificate.from_json(with_release(**change))


@pytest.mark.parametrize(
    ("change", "mu"),
    [
        ({}, 0.05),
        ({"mu": 0.05 * (1 + 5e-10)}, 0.05),
        ({"mu": None}, 0.05),
        ({"sensitivity": 0.5, "mu": None}, 0.0125),
        ({"noise_sd": 0.5, "mu": 4.0, "sensitivity": 2.0}, 4.0),
        ({"noise_sd": 0.0, "mu": None}, math.inf),
        ({"noise_sd": 2.1e-140, "mu": None}, 2 / 2.1e-140),
    ],
    ids=str,
)
def test_a_release_with_possible_numbers_is_read(change: dict[str, object], mu: float) -> None:
    assert Certificate.from_json(with_release(**change)).releases[0].mu == pytest.approx(mu)


def test_a_certificate_that_contradicts_itself_is_refused() -> None:
    for change in ({"private": False}, {"not_private_because": ["a seed"]}):
        with pytest.raises(tacit.ModelFileError, match="contradicts itself"):
            Certificate.from_json(with_release() | change)


@pytest.mark.parametrize("users", [-1, 2.5, "30", True])
def test_a_number_of_users_that_is_none_is_refused(users: object) -> None:
    with pytest.raises(tacit.ModelFileError, match="number of users"):
        Certificate.from_json(with_release() | {"users": users})


def test_what_has_no_budget_states_no_numbers_of_one() -> None:
    content = Certificate(None, (Entry(named("a sum"), 2.0, 0.0),), {}).to_json()
    for key in ("epsilon", "delta", "neighbours", "accounting", "exact_epsilon", "mu"):
        assert content[key] is None
    assert content["releases"][0]["mu"] is None
    assert Certificate(None, (), {}).exact_epsilon == math.inf
    text = Certificate(None, (Entry(named("a sum"), 2.0, 0.0),), {}).text()
    assert "a sum: sensitivity 2, noise sd 0, no noise" in text


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (None, True), (True, True), (3, True), ("a", True), (0.5, True), ((1, "a"), True),
        (math.inf, False), (math.nan, False), ((1, (2,)), False), ((1, math.inf), False),
        ([1], False), ({}, False),
    ],
)  # fmt: skip
def test_settings_are_plain_values_or_tuples_of_them(value: object, plain: bool) -> None:
    @dataclass(frozen=True)
    class Config:
        setting: object
        name: str = "mine"

    expected = {"setting": value, "name": "mine"} if plain else {"name": "mine"}
    assert Method.of(Config(value)).settings == expected


def test_a_foreign_algorithm_has_a_name_and_no_settings() -> None:
    class Foreign:
        name = "theirs"

    assert Method.of(Foreign()) == Method("theirs", {})
