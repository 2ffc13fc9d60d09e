"""Explanations: a sentence for every kind of release, and no claim that a method cannot know."""

import re
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
from tacit.models.explaining import WHY
from tests.conftest import ratings_for

EVERY = ALGORITHMS | IMPLICIT_ALGORITHMS
NOTICE = {"latent-factors", "moments", "interactions"}
VARIANTS: dict[str, Any] = {
    **{name: make() for name, make in EVERY.items() if name != "approximate-frank-wolfe"},
    "moments, block": tacit.Moments(eigen="block", columns=4),
    "frank-wolfe, ridge": tacit.FrankWolfe(rounds=4, local="ridge", item_means=0.1),
    "cleansing, neighbours": tacit.Cleansing(local="neighbours"),
    "svd, power": tacit.SVD(eigen="power", row_norm="private"),
}
CANNOT = "this method cannot tell whether"
THRESHOLD = "above the noise threshold"


def ratings_of(config: Any) -> tacit.Ratings:
    ratings = ratings_for(2)
    if not getattr(config, "implicit", False):
        return ratings
    users = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    return tacit.Ratings.from_arrays(users, ratings.items, implicit=True)


def told(config: Any, budget: tacit.PrivacyBudget | None) -> str:
    return tacit.fit(ratings_of(config), config, budget=budget, noise_seed_unsafe=4).explain()


def test_every_kind_has_a_sentence_of_its_own() -> None:
    assert set(WHY) == set(ReleaseKind)
    assert len(set(WHY.values())) == len(ReleaseKind)


def test_every_release_is_told_with_the_sentence_of_its_kind() -> None:
    model = tacit.fit(ratings_for(2), tacit.Moments(), epsilon=1.0, noise_seed_unsafe=4)
    kinds = {entry.release.kind for entry in model.certificate.releases}
    assert len(kinds) > 2
    text = model.explain()
    assert [kind for kind in ReleaseKind if WHY[kind] in text] == [
        kind for kind in ReleaseKind if kind in kinds
    ]


@pytest.mark.parametrize("name", VARIANTS)
def test_under_much_noise_nothing_is_claimed_that_is_not_known(name: str) -> None:
    config = VARIANTS[name]
    text = told(config, tacit.PrivacyBudget(0.05))
    notices = config.name in NOTICE
    assert (THRESHOLD in text) == notices
    assert (CANNOT in text) == (not notices)
    for wrong in ("stand out", "directions", "taste", "level", "step of the method", "people"):
        assert wrong not in text.replace("level_shrink", ""), wrong


@pytest.mark.parametrize("name", [*VARIANTS, "approximate-frank-wolfe"])
def test_without_noise_it_does_not_speak_of_noise_that_drowns(name: str) -> None:
    rounds = tacit.algorithms.ApproximateFrankWolfe(rounds=4)
    text = told(VARIANTS.get(name, rounds), None)
    assert "no noise" in text
    assert CANNOT not in text
    for wrong in ("drown in noise", "drowned in noise", "noise threshold", "noise explains"):
        assert wrong not in text, wrong


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("epsilon", [0.01, 0.05, 1.0])
def test_no_impossible_sd_is_stated(name: str, epsilon: float) -> None:
    """Nothing in the rating range, of width 4.5, has an sd above 2.25."""
    text = told(VARIANTS[name], tacit.PrivacyBudget(epsilon))
    assert all(float(sd) <= 2.25 for sd in re.findall(r"an sd of ([0-9.e+-]+)", text))


def test_user_biases_that_drown_are_said_to() -> None:
    """A twin: with a large budget their sd is stated."""
    assert "the sd of user biases drowned in noise" in told(None, tacit.PrivacyBudget(0.01))
    assert "user biases are taken to differ with an sd of" in told(None, tacit.PrivacyBudget(20.0))


def test_what_is_left_when_everything_drowns_is_said() -> None:
    text = told(None, tacit.PrivacyBudget(0.01))
    assert "no latent factor is above the noise threshold" in text
    assert "predictions are the user mean" in text


def test_releases_of_a_kind_share_a_line_and_shares_add_up() -> None:
    text = told(tacit.FrankWolfe(rounds=4, eigen="oja"), tacit.PrivacyBudget(1.0))
    assert "  product 1.1 to 3.5 (90% of it): the covariance of items times" in text
    assert "  energy 1 to 3 (10% of it): the eigenvalue" in text


def test_a_search_names_its_releases() -> None:
    candidates = [tacit.SVD(rank=1), tacit.SVD(rank=2)]
    model = tacit.tune(ratings_for(2), candidates, epsilon=5.0)
    text = model.explain()
    assert f"held-out losses (6% of it): {WHY[ReleaseKind.HELD_OUT_LOSSES]}" in text
    assert f"candidate 2: covariance 1 (11% of it): {WHY[ReleaseKind.COVARIANCE]}" in text
