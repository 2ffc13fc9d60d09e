"""The contract of every algorithm, kept by the one for interactions on interactions."""

import math
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

import tacit
from tests.contracts import test_algorithms as contract
from tests.test_implicit import people_of_tastes

CASES: dict[str, tacit.Interactions] = {
    "exact": tacit.Interactions(),
    "block": tacit.Interactions(eigen="block", columns=3, steps=2),
    "one direction": tacit.Interactions(rank=1, weight_share=0.5),
}
IDS = [f"film-{item:02d}" for item in range(15)]


def interactions_for(seed: int, **sizes: int) -> tacit.Ratings:
    """The problem of the contract, with what people rated taken as what they touched."""
    ratings = RATED(seed, **sizes)
    ones = np.ones_like(ratings.values)
    return replace(ratings, rating_range=(0.0, 1.0), values=ones, implicit=True)


RATED = contract.ratings_for


@pytest.fixture(autouse=True)
def no_ratings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contract, "ratings_for", interactions_for)


@pytest.fixture(params=CASES)
def config(request: pytest.FixtureRequest) -> tacit.Interactions:
    return CASES[request.param]


@pytest.fixture(scope="module")
def many() -> tacit.Ratings:
    return people_of_tastes(600, 12, seed=0)


class TestInteractions(contract.TestEveryAlgorithm):
    """As it stands, but where it speaks of the size of ratings."""

    def test_a_huge_budget_comes_to_the_form_without_noise(
        self, config: Any, many: tacit.Ratings
    ) -> None:
        exact = contract.scores_of(tacit.fit(many, config, budget=None), many)
        rich, poor = (
            contract.scores_of(tacit.fit(many, config, epsilon=e, noise_seed_unsafe=1), many)
            for e in (10_000.0, 0.01)
        )
        size = contract.distance(exact, np.zeros_like(exact))
        assert contract.distance(exact, rich) < 0.03 * size
        assert contract.distance(exact, poor) > 0.3 * size

    def test_predictions_stay_in_the_range_whatever_a_person_has_rated(self, config: Any) -> None:
        for epsilon in (0.01, 1.0, 1000.0):
            few = replace(config, max_ratings=4)
            model = tacit.fit(interactions_for(4), few, epsilon=epsilon, noise_seed_unsafe=1)
            for own in ([], IDS[:1], IDS[:4], IDS):
                scores = model.predict(own)
                assert scores.shape == (15,)
                assert np.isfinite(scores).all()
                assert 0 <= scores.min() <= scores.max() <= 1
                assert len(model.recommend(own, n=3)) == min(3, 15 - len(own))

    def test_users_with_no_rating_one_rating_and_all_ratings_are_no_trouble(
        self, config: Any
    ) -> None:
        catalogue = tacit.Catalogue(list("abcdefgh"), public=True)
        ratings = tacit.Ratings.from_arrays(
            [1, 2, *[3] * 8, 4, 4], ["other", "a", *"abcdefgh", "a", "h"],
            implicit=True, catalogue=catalogue, unknown_items="drop",
        )  # fmt: skip
        assert np.diff(ratings.indptr).tolist() == [0, 1, 8, 2]
        for budget in (None, tacit.PrivacyBudget(0.01), tacit.PrivacyBudget(100.0)):
            model = tacit.fit(
                ratings, replace(config, max_ratings=3), budget=budget, noise_seed_unsafe=1
            )
            assert np.isfinite(contract.scores_of(model, ratings)).all()
            assert np.isfinite(model.predict([])).all()


WRONG: list[tuple[str, Any]] = [
    *contract.COMMON, *contract.STARTED,
    ("weight_share", 0.0), ("weight_share", 0.95), ("weight_share", math.nan),
    ("weight_share", "some"), ("rank", 0), ("rank", 1.5), ("rank", True), ("eigen", "qr"),
    ("eigen", None), ("columns", 0), ("columns", 1001), ("columns", 2.0), ("steps", 0),
    ("steps", 101), ("steps", None),
]  # fmt: skip


@pytest.mark.parametrize(("setting", "value"), WRONG, ids=repr)
def test_a_wrong_setting_is_named(setting: str, value: Any) -> None:
    with pytest.raises(tacit.ConfigError, match=rf"^{setting}="):
        tacit.Interactions(**{setting: value})


def test_every_setting_is_tried() -> None:
    assert {name for name, _ in WRONG} == {field.name for field in fields(tacit.Interactions)}
