"""Noise: every test of it passes on the real thing and fails on something a little wrong.

Seeds are fixed; the false-alarm rate of each test is 1e-4 (`ALARM`) over seeds.
"""

import math

import numpy as np
import pytest
from scipy.stats import chi2, norm
from tests.conftest import ratings_for

import tacit
from tacit.audit import noise as module
from tacit.audit.advantage import exact_limit
from tacit.audit.low_bits import grain, guess_sums, guesses_by, reachable
from tacit.audit.noise import ALARM, chi_squared, coarse_law, correlation, noise, noise_of, spread
from tacit.audit.observe import Heard, StatedSum, overheard, released
from tacit.audit.population import synthetic_world
from tacit.audit.target import Target
from tacit.trusted.sampler import SeededNoiseUnsafe, floor_normals, idealised_normals

BUDGET = tacit.PrivacyBudget(1.0)
SUBJECT = Target(tacit.FrankWolfe(rounds=4, item_means=0.2), BUDGET)
LIMIT = chi2.isf(ALARM, 49)


@pytest.fixture(scope="module")
def found() -> module.Noise:
    ratings = synthetic_world(SUBJECT, 0, 30, 16).ratings(None)
    return noise_of(SUBJECT, ratings, range(15))


def pooled(found: module.Noise) -> np.ndarray:
    return np.concatenate([values for each in found.values() for values in each])


def test_all_noise_of_a_fit_is_as_the_ledger_says(found: module.Noise) -> None:
    assert set(found) == {
        "item sums",
        *(f"covariance {t}, {part}" for t in (1, 2, 3) for part in ("diagonal", "the rest")),
    }
    values = pooled(found)
    assert chi_squared(values) < LIMIT
    for wrong in (0.9, 1.1):
        assert chi_squared(values, wrong) > LIMIT


@pytest.mark.parametrize(
    ("algorithm", "relation"),
    [(tacit.Interactions(), "replace"), (tacit.ALS(), "add_remove"), (tacit.Moments(), "replace")],
)
def test_noise_of_other_methods_has_the_stated_sd(
    algorithm: tacit.Interactions | tacit.ALS | tacit.Moments, relation: str
) -> None:
    """Releases of one name may differ in size, and methods may go on with them in place."""
    subject = Target(algorithm, tacit.PrivacyBudget(1.0, neighbours=relation))  # type: ignore[arg-type]
    ratings = synthetic_world(subject, 0, 30, 12).ratings(None)
    found = noise_of(subject, ratings, range(6))
    assert all(spread(np.concatenate(each)) < norm.isf(ALARM / 2) for each in found.values())
    assert correlation(found)[0] < norm.isf(ALARM / 1000)


def test_the_shape_of_symmetric_noise(found: module.Noise) -> None:
    limit = norm.isf(ALARM / 2)
    for each in found.values():
        assert spread(np.concatenate(each)) < limit
    mirrored = np.concatenate(found["covariance 1, the rest"]) * math.sqrt(2)
    assert spread(mirrored) > limit  # one triangle mirrored, with the full sd


def test_noise_does_not_come_again(found: module.Noise) -> None:
    most, tried = correlation(found)
    limit = norm.isf(ALARM / 2 / tried)
    assert tried > 20
    assert most < limit
    again = dict(found) | {"covariance 2, the rest": found["covariance 1, the rest"]}
    assert correlation(again)[0] > limit  # a seed used for two releases
    same = {name: [each[0]] * len(each) for name, each in found.items()}
    assert correlation(same)[0] > limit  # a seed used for two fits
    blurred = {name: [e + 0.3 * np.roll(e, 1) for e in each] for name, each in found.items()}
    assert correlation(blurred)[0] > limit


@pytest.mark.statistical
def test_the_whole_part_holds() -> None:
    findings = noise(SUBJECT, seed=1)
    assert [finding.holds for finding in findings] == [True] * 7
    assert findings[-1].measured > 0.9  # the control: idealised noise is broken


@pytest.mark.statistical
@pytest.mark.parametrize("factor", [0.9, 1.1])
def test_wrong_noise_is_found_out(factor: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin of the whole part: the ledger says one sd, the mechanism adds another."""

    def lying(*arguments: object) -> list[Heard]:
        heard = overheard(*arguments)  # type: ignore[arg-type]
        return [Heard(e.release, e.statistic, e.noise_sd * factor, e.values) for e in heard]

    monkeypatch.setattr(module, "overheard", lying)
    findings = noise(SUBJECT, seed=1)
    assert [finding.holds for finding in findings[:2]] == [False, False]


def test_a_coarse_grid_has_the_rounded_law() -> None:
    units = floor_normals(SeededNoiseUnsafe(1), 100_000, 3)
    distance, freedom = coarse_law(units, 3)
    limit = chi2.isf(ALARM, freedom)
    assert distance < limit
    assert coarse_law(units + 1, 3)[0] > limit  # rounded the other way
    rounded = np.rint(np.random.default_rng(0).normal(size=100_000) * 8).astype(np.int64)
    assert coarse_law(rounded, 3)[0] > limit  # rounded to the nearest
    assert coarse_law(floor_normals(SeededNoiseUnsafe(1), 100_000, 3) * 2, 4)[0] > 2 * limit


@pytest.mark.parametrize("bits", [52, 50, 45])
def test_reach_knows_what_the_idealised_sampler_can_give(bits: int) -> None:
    """Every number that it gives is reachable; of exact ones, and of shifted ones, not all are."""
    given = idealised_normals(SeededNoiseUnsafe(2), 20_000, bits)
    exact = floor_normals(SeededNoiseUnsafe(2), 20_000, bits)
    assert reachable(given, bits).all()
    assert not reachable(exact, bits).all()
    assert not reachable(given + 12_345, bits).all()


@pytest.mark.statistical
def test_reach_breaks_idealised_noise_and_not_exact_noise() -> None:
    ratings = ratings_for(0, users=10, items=3, per_user=2)
    for epsilon in (0.1, 1.0):
        budget = tacit.PrivacyBudget(epsilon)
        broken = guess_sums(ratings, budget, "idealised", 60, 1)
        sound = guess_sums(ratings, budget, "exact", 60, 1)
        assert broken["reach"].interval.low > 0.9
        assert sound["reach"].interval.low < exact_limit(budget)
        assert sound["grain"].interval.low < exact_limit(budget)


def test_grain_breaks_floats_that_are_added() -> None:
    """What textbooks do, and this package does not: value + sd * normal, in floating point."""
    rng = np.random.default_rng(6)
    coins = rng.integers(2, size=400) == 1
    sums = np.where(coins, 1.0, 0.0)[:, None]
    scores = np.min(grain(sums + 4.0 * rng.normal(size=(400, 40))), axis=1)
    guesses = guesses_by(scores, coins)
    assert guesses.interval.low > 0.5 > exact_limit(BUDGET)


def test_grain_is_the_lowest_bit() -> None:
    values = np.array([1.0, 3.0, -0.75, 2.0**60, 2.0**-30 * 5, 1 + 2.0**-52])
    assert grain(values).tolist() == [0, 0, -2, 60, -30, -52]


def test_stated_sums_are_released_as_stated() -> None:
    ratings = ratings_for(0, users=10, items=3, per_user=2)
    stated = StatedSum(np.array([0.5, -0.25, 3.0]))
    plain = released(ratings, [stated], None, 0)[0]
    np.testing.assert_allclose(plain.values, stated.total, atol=1e-9)
    noisy = released(ratings, [stated, stated], BUDGET, 0)
    assert noisy[0].noise_sd == pytest.approx(math.sqrt(2) / BUDGET.mu)
    assert not np.array_equal(noisy[0].values, noisy[1].values)
