"""More items than an items-by-items matrix is for: the best-known ones are in it."""

import tracemalloc
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.data.catalogue import Catalogue
from tacit.datasets.synthetic import synthesise
from tacit.errors import PrivacyError
from tacit.estimation import spiked_covariance
from tacit.evaluation import evaluate
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ResidualCovariance
from tests.conftest import spy_on_sums
from tests.support.cases import slow

ITEMS = 120
KNOWN = 40


def popular(users: int, items: int) -> tuple[tacit.Ratings, Any]:
    """People who mostly rate the same few items, and ratings of theirs that are held out."""
    made = synthesise("popular", users=users, items=items, seed=3, test_fraction=0.05)
    return tacit.Ratings.from_frame(made.train, rating_range=made.rating_range), made.test


def summed(ratings: tacit.Ratings, items: Any) -> np.ndarray:
    """Return the second moment of these items."""
    bounds = RowBounds(None, np.full(ratings.n_items, 3.0), True, 2.0, by_sqrt_count=True)
    statistic = ResidualCovariance(bounds, (), 1.5, items)
    engine = tacit.ThreadEngine(2)
    engine.take(ratings)
    return engine.sum(statistic, 2.0**-30)._exact_sum


class TestTheMatrixOfSomeItems:
    """It is a part of the matrix of all, to the last bit."""

    def test_it_is_the_part_of_the_whole(self) -> None:
        ratings, _ = popular(300, ITEMS)
        some = np.array([0, 3, 4, 50, ratings.n_items - 1])
        whole = summed(ratings, None)
        assert np.array_equal(summed(ratings, some), whole[np.ix_(some, some)])
        assert np.array_equal(summed(ratings, np.arange(ratings.n_items)), whole)
        assert np.any(whole[np.ix_(some, some)])

    @pytest.mark.parametrize("items", [[3, 1], [1, 1], [-1, 2], [0, ITEMS + 9]])
    def test_items_that_do_not_rise_are_refused(self, items: list[int]) -> None:
        """Else entries of one pair would stand in both triangles, of which one is thrown away."""
        ratings, _ = popular(300, ITEMS)
        with pytest.raises(PrivacyError, match="nothing was summed"):
            summed(ratings, np.array(items))


class TestBeyondTheMatrix:
    """Moments and Interactions where there are three times as many items as it takes."""

    @pytest.fixture(autouse=True)
    def few(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(spiked_covariance, "_MATRIX_ITEMS", KNOWN)

    def test_it_is_of_the_items_whose_released_weights_are_largest(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        ratings, _ = popular(3000, ITEMS)
        asked = spy_on_sums(monkeypatch)
        model = tacit.fit(ratings, tacit.Moments(), epsilon=3.0, noise_seed_unsafe=1)
        assert asked[-1].shape == (KNOWN, KNOWN)
        counts = np.bincount(ratings.items, minlength=ratings.n_items)
        assert counts[asked[-1].items].mean() > 1.2 * counts.mean()
        assert dict(model.certificate.public)["moments eigen"] == "auto"

    def test_the_others_have_no_loadings_and_more_doubt(self) -> None:
        ratings, _ = popular(3000, ITEMS)
        model = tacit.fit(ratings, tacit.Moments(), budget=None)
        energy = np.sum(model.rule.factors[:, 1:] ** 2, axis=1)
        others = energy == 0
        assert others.sum() == ratings.n_items - KNOWN
        assert model.rule.noise[others].mean() > model.rule.noise[~others].mean()

    @pytest.mark.slow
    def test_with_noise_it_is_better_than_products(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """It has a good part of what the matrix of all items has, over three draws."""
        monkeypatch.setattr(spiked_covariance, "_MATRIX_ITEMS", 200)
        ratings, test = popular(6000, 300)
        found = {}
        for eigen in ("auto", "block", "exact"):
            config = tacit.Moments(eigen=eigen)  # type: ignore[arg-type]
            models = [
                tacit.fit(ratings, config, epsilon=5.0, noise_seed_unsafe=seed) for seed in range(3)
            ]
            found[eigen] = np.mean([evaluate(model, ratings, test).rmse for model in models])
        assert found["auto"] < found["block"] - 0.4 * (found["block"] - found["exact"])
        assert found["exact"] < found["auto"]

    def test_interactions_have_tastes_for_the_best_known_items_only(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = synthesise("tastes", users=3000, items=ITEMS, seed=3, test_fraction=0.0)
        ratings = tacit.Ratings.from_frame(made.train.select("user", "item"), implicit=True)
        asked = spy_on_sums(monkeypatch)
        rule = tacit.fit(ratings, budget=None).rule
        assert asked[-1].shape == (KNOWN, KNOWN)
        tasted = np.any(rule.factors != 0, axis=1)
        assert np.array_equal(np.flatnonzero(tasted), asked[-1].items)
        assert float(rule.offsets.sum()) == pytest.approx(1.0)
        assert rule.offsets @ rule.factors == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(
    ("kind", "eigen"),
    [
        (tacit.Moments, "auto"),
        (tacit.Interactions, "block"),
        slow(tacit.Moments, "block"),
        slow(tacit.Interactions, "auto"),
    ],
)
def test_nothing_is_items_by_items_where_there_are_very_many(
    kind: Any, eigen: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A matrix of all 20,000 items would be 3.2 GB; a thirtieth of that is allowed."""
    monkeypatch.setattr(spiked_covariance, "_MATRIX_ITEMS", KNOWN)
    items, users = 20_000, 500
    rng = np.random.default_rng(0)
    who, what = np.repeat(np.arange(users), 20), rng.integers(0, items, 20 * users)
    pairs = np.unique(np.stack([who, what]), axis=1)
    catalogue = Catalogue(list(range(items)), public=True)
    values = {"values": rng.uniform(1, 5, pairs.shape[1]), "rating_range": (1.0, 5.0)}
    more: Any = {"implicit": True} if kind is tacit.Interactions else values
    ratings = tacit.Ratings.from_arrays(*pairs, catalogue=catalogue, **more)
    tracemalloc.start()
    try:
        tacit.fit(ratings, kind(eigen=eigen), epsilon=1.0)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 100e6
