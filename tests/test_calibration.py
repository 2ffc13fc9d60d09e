"""Calibration: by hand, on ratings drawn from the rule's own law, and on ranges that cut it."""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.accounting.release import ReleaseKind
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError
from tacit.evaluation import NOTICE, Calibration, calibrate
from tacit.models.linear import RidgeRule

FALSE_ALARM = 5.0  # sds of a sum of independent terms: a chance of about 6e-7 a comparison


@dataclass
class Stated:
    """Predicts the given scores and stds, rows of a table, for the people in their order."""

    catalogue: Catalogue
    scores: np.ndarray
    stds: np.ndarray

    def predict_rows_with_std(
        self, ratings: Ratings
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
        for start in range(0, len(ratings), 500):
            block = slice(start, start + 500)
            yield start, self.scores[block], self.stds[block]


def problem(
    scores: list[float], stds: list[float], found: list[float], rating_range: tuple[float, float]
) -> Calibration:
    """One person for each number: she has rated item 0, and item 1 is held out."""
    people = np.arange(len(found))
    own = pl.DataFrame({"user": people, "item": 0, "rating": rating_range[0]})
    test = pl.DataFrame({"user": people, "item": 1, "rating": found})
    train = Ratings.from_frame(own, rating_range=rating_range, catalogue=Catalogue([0, 1]))
    columns = [np.column_stack([np.full(len(found), 99.0), column]) for column in (scores, stds)]
    return calibrate(Stated(train.catalogue, *columns), train, test)


def test_every_figure_by_hand_far_from_the_ends() -> None:
    found = problem([0.0, 0.0, 1.0, 2.0], [1.0, 2.0, 1.0, 4.0], [0.5, -3.0, 4.0, 6.0], (-1e4, 1e4))
    assert found.within_one == 2 / 4  # z = 0.5, -1.5, 3, 1
    assert found.within_two == 3 / 4
    assert found.mean_square == pytest.approx((0.25 + 2.25 + 9 + 1) / 4)
    assert found.expected_one == pytest.approx(0.6826894921)
    assert found.expected_two == pytest.approx(0.9544997361)
    assert found.expected_square == pytest.approx(1.0)
    assert (found.ratings, found.users, found.skipped) == (4, 4, 0)
    assert [tenth.std for tenth in found.deciles] == pytest.approx([1.0, 1.0, 2.0, 4.0])
    assert [tenth.rmse for tenth in found.deciles] == pytest.approx([0.5, 3.0, 3.0, 4.0])
    assert [tenth.expected for tenth in found.deciles] == pytest.approx([1.0, 1.0, 2.0, 4.0])


def test_deciles_are_groups_of_equal_size_by_std() -> None:
    stds = np.arange(1.0, 24.0)
    rng = np.random.default_rng(0)
    order = rng.permutation(23)
    found = problem([0.0] * 23, stds[order].tolist(), (2 * stds[order]).tolist(), (-1e5, 1e5))
    assert [tenth.ratings for tenth in found.deciles] == [3] * 3 + [2] * 7
    first = math.sqrt((1 + 4 + 9) / 3)
    assert found.deciles[0].std == pytest.approx(first)
    assert found.deciles[0].rmse == pytest.approx(2 * first)
    assert found.deciles[-1].std == pytest.approx(math.sqrt((22**2 + 23**2) / 2))


def test_what_to_expect_in_a_range_against_an_integral() -> None:
    """The law N(p, s^2) with its tails put on the ends, on a fine grid of quantiles."""
    from scipy.special import ndtri

    latent = ndtri((np.arange(400_000) + 0.5) / 400_000)
    for score, std in ((4.6, 0.8), (1.0, 3.0), (3.0, 0.1), (5.0, 1.0)):
        found = problem([score] * 2, [std] * 2, [3.0] * 2, (1.0, 5.0))
        z = (np.clip(score + std * latent, 1.0, 5.0) - score) / std
        assert found.expected_one == pytest.approx(np.mean(np.abs(z) <= 1), abs=1e-4)
        assert found.expected_two == pytest.approx(np.mean(np.abs(z) <= 2), abs=1e-4)
        assert found.expected_square == pytest.approx(np.mean(z**2), abs=1e-4)
        assert found.deciles[0].expected == pytest.approx(std * np.sqrt(np.mean(z**2)), abs=1e-4)


def alarms(found: Calibration, *, in_range: bool = True) -> list[str]:
    """Name the figures that are further from what is expected than chance allows."""
    one, two, square = 0.6826894921, 0.9544997361, 1.0
    if in_range:
        one, two, square = found.expected_one, found.expected_two, found.expected_square
    count = found.ratings
    pairs = {
        "within_one": (found.within_one - one, math.sqrt(0.25 / count)),
        "within_two": (found.within_two - two, math.sqrt(0.25 / count)),
        "mean_square": (found.mean_square - square, math.sqrt(2 / count)),
    }
    return [name for name, (gap, sd) in pairs.items() if abs(gap) > FALSE_ALARM * sd]


def test_ratings_cut_off_by_the_range_are_expected_to_be() -> None:
    """Predictions near the ends: right stds pass, and fail against the plain 68.3 %."""
    rng = np.random.default_rng(1)
    scores, stds = rng.uniform(1, 5, 6000), rng.uniform(0.3, 1.5, 6000)
    found = np.clip(scores + stds * rng.standard_normal(6000), 1, 5)
    cut = problem(scores.tolist(), stds.tolist(), found.tolist(), (1.0, 5.0))
    assert alarms(cut) == []
    assert set(alarms(cut, in_range=False)) == {"within_one", "mean_square"}
    for tenth in cut.deciles:
        assert tenth.rmse == pytest.approx(tenth.expected, rel=0.15)


ITEMS, RANK, PEOPLE = 40, 5, 3000


def drawn(rule: RidgeRule, seed: int) -> tuple[tacit.Model, Ratings, pl.DataFrame]:
    """A model with this rule, and ratings from its own law; one held out a person."""
    rng = np.random.default_rng(seed)
    level = rng.normal(0, 1.5, (PEOPLE, 1)) if rule.centre else np.zeros((PEOPLE, 1))
    latent = rule.offsets + level + rng.standard_normal((PEOPLE, RANK)) @ rule.factors.T
    values = latent + np.sqrt(rule.noise) * rng.standard_normal((PEOPLE, ITEMS))
    chosen = np.argsort(rng.random((PEOPLE, ITEMS)), axis=1)[:, :9]
    users = np.repeat(np.arange(PEOPLE), 9)
    table = pl.DataFrame(
        {"user": users, "item": chosen.ravel(), "rating": values[users, chosen.ravel()]}
    )
    held = np.arange(len(table)) % 9 == 0  # one a person, so that errors are independent
    catalogue = Catalogue(list(range(ITEMS)), public=True)
    train = Ratings.from_frame(table.filter(~held), rating_range=(-50, 50), catalogue=catalogue)
    bare = tacit.fit(train, tacit.FrankWolfe(rounds=2), budget=None)
    return replace(bare, rule=rule), train, table.filter(held)


@pytest.fixture(scope="module", params=[False, True], ids=["posterior", "own mean"])
def world(request: pytest.FixtureRequest) -> tuple[tacit.Model, Ratings, pl.DataFrame]:
    rng = np.random.default_rng(7)
    rule = RidgeRule(
        factors=rng.standard_normal((ITEMS, RANK)) * [1.5, 1.0, 0.7, 0.5, 0.3],
        offsets=rng.normal(0, 1, ITEMS),
        noise=rng.uniform(0.2, 3.0, ITEMS),
        centre=request.param,
        shrink=0.0,
        source=ReleaseKind.COVARIANCE,
    )
    return drawn(rule, 8)


def test_ratings_from_the_rules_own_law_are_calibrated(
    world: tuple[tacit.Model, Ratings, pl.DataFrame],
) -> None:
    found = calibrate(*world)
    assert found.ratings == found.users == PEOPLE
    assert alarms(found) == []
    assert alarms(found, in_range=False) == []
    for tenth in found.deciles:  # the square of a tenth's RMSE has a relative sd of sqrt(2/300)
        gap = tenth.rmse**2 / tenth.std**2 - 1
        assert abs(gap) < FALSE_ALARM * math.sqrt(2 / tenth.ratings)
    assert found.deciles[-1].rmse > 1.3 * found.deciles[0].rmse  # and stds tell people apart


def test_stds_that_are_too_small_are_noticed(
    world: tuple[tacit.Model, Ratings, pl.DataFrame],
) -> None:
    """The twin: the same predictions, with stds of seven tenths."""
    model, train, test = world

    class Bold:
        catalogue = model.catalogue

        def predict_rows_with_std(self, rows: Ratings) -> Iterator[tuple[int, object, object]]:
            for start, scores, stds in model.predict_rows_with_std(rows):
                yield start, scores, 0.7 * stds

    found = calibrate(Bold(), train, test)  # type: ignore[arg-type]
    assert alarms(found) == ["within_one", "within_two", "mean_square"]
    assert found.mean_square > 1.7


def test_a_model_without_a_posterior_is_refused(ratings: tacit.Ratings) -> None:
    model = tacit.fit(ratings, tacit.FrankWolfe(rounds=2), budget=None)
    test = pl.DataFrame({"user": ["user-00001"], "item": ["film-01"], "rating": [3.0]})
    with pytest.raises(ConfigError, match=r"replay.*FrankWolfe\(local='ridge'\)"):
        calibrate(model, ratings, test)


def test_ratings_that_she_predicts_from_are_refused() -> None:
    own = pl.DataFrame({"user": [1, 2], "item": [0, 1], "rating": [3.0, 4.0]})
    train = Ratings.from_frame(own, rating_range=(1, 5))
    stated = Stated(train.catalogue, np.ones((2, 2)), np.ones((2, 2)))
    with pytest.raises(DataError, match=r"^test: 1 row with a pair of user and item"):
        calibrate(stated, train, own.head(1))


def test_outputs_say_that_they_are_not_private() -> None:
    found = problem([3.0] * 2, [1.0] * 2, [3.0] * 2, (1.0, 5.0))
    assert repr(found).startswith("Calibration(NOT PRIVATE: within_one=1.0")
    told = json.loads(json.dumps(found.to_json()))
    assert told["notice"] == NOTICE
    assert set(told["deciles"][0]) == {"std", "expected", "rmse", "ratings"}
