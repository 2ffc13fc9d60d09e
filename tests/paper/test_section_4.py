"""What Section 4 and the remarks say of methods as such, where a small problem can show it."""

import math

import numpy as np
import pytest
from tests.conftest import ratings_for

import tacit
from tacit.algorithms.schedule import shares_of_rounds
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import evaluate
from tacit.kernels.residuals import StepArrays, _step


def noise_by_round(config: tacit.FrankWolfe | tacit.ProjectedGradient) -> np.ndarray:
    """The noise of each round in units of its sensitivity, of a fit with the whole budget."""
    model = tacit.fit(ratings_for(0), config, epsilon=0.7)
    assert model.certificate.exact_epsilon == pytest.approx(0.7, rel=1e-6)
    entries = model.certificate.releases
    assert [entry.name for entry in entries] == [
        f"covariance {turn}" for turn in range(1, len(entries) + 1)
    ]
    return np.array([entry.noise_sd / entry.sensitivity for entry in entries])


@pytest.mark.parametrize(
    "config",
    [
        tacit.FrankWolfe(rounds=7, schedule="completed"),
        tacit.FrankWolfe(rounds=7, schedule=-1.0),
        tacit.ProjectedGradient(rounds=6, schedule="completed"),
    ],
    ids=["frank-wolfe", "a power of -1", "projected gradient"],
)
def test_noise_by_rounds_completed_grows_with_the_root_of_the_round(
    config: tacit.FrankWolfe | tacit.ProjectedGradient,
) -> None:
    found = noise_by_round(config)
    assert found.size == 6
    assert found / found[0] == pytest.approx(np.sqrt(np.arange(1.0, 7.0)), rel=1e-6)


def test_the_same_noise_in_all_rounds_is_the_default() -> None:
    for config in (tacit.FrankWolfe(rounds=7), tacit.ProjectedGradient(rounds=6)):
        found = noise_by_round(config)
        assert found == pytest.approx(np.full(6, found[0]), rel=1e-9)


@pytest.mark.parametrize("schedule", [0.0, -1.0, 2.5, "completed", (1.0, 5.0, 2.0)])
def test_shares_add_up(schedule: float | str | tuple[float, ...]) -> None:
    shares = shares_of_rounds(schedule, 3, 0.8)  # type: ignore[arg-type]
    assert math.fsum(shares) == pytest.approx(0.8)
    assert min(shares) > 0


@pytest.mark.parametrize("seed", [0, 1])
def test_k_and_l_follow_from_public_numbers_or_are_given_and_listed(seed: int) -> None:
    ratings = ratings_for(seed)
    quarter = (ratings.rating_range[1] - ratings.rating_range[0]) / 4
    k = quarter * math.sqrt(ratings.n_users * ratings.n_items)
    L = quarter * math.sqrt(ratings.n_items)
    by_rule = tacit.fit(ratings, tacit.FrankWolfe(), budget=None).rule.parts()
    given = tacit.FrankWolfe(nuclear_norm=k, row_norm=L)
    assert by_rule[1]["row_norm"] == L
    same = tacit.fit(ratings, given, budget=None).rule.parts()
    assert np.array_equal(same[0]["gains"], by_rule[0]["gains"])
    public = tacit.fit(ratings, given, epsilon=1.0).certificate.public
    assert public["frank-wolfe nuclear_norm"] == str(k)
    assert public["frank-wolfe row_norm"] == str(L)


@pytest.mark.slow
def test_without_noise_frank_wolfe_and_projected_gradient_come_to_the_same() -> None:
    """The paper's baseline: both solve the same problem, so both end at the same matrix."""
    world = synthesise("rank-one", users=1500, items=60, per_user=20, seed=1)
    items = tacit.Catalogue(world.items["item"], public=True)
    ratings = tacit.Ratings.from_frame(world.train, rating_range=(-1, 1), catalogue=items)
    assert world.truth is not None
    truth = np.outer(*world.truth)
    k = float(np.linalg.norm(world.truth[0]) * np.linalg.norm(world.truth[1]))

    def error(config: tacit.algorithms.Algorithm) -> float:
        model = tacit.fit(ratings, config, budget=None)
        scores = np.concatenate([block for _, block in model.predict_rows(ratings)])
        return float(np.sqrt(np.mean((scores - truth) ** 2)))

    zero = float(np.sqrt(np.mean(truth**2)))
    walked = error(tacit.ApproximateFrankWolfe(rounds=400, nuclear_norm=k, item_means=0.0))
    projected = error(tacit.ProjectedGradient(rounds=60, nuclear_norm=k, rate=1.0))
    assert max(walked, projected) < zero / 4
    assert abs(walked - projected) < 0.02 * zero
    started = error(tacit.ProjectedGradient(rounds=5, nuclear_norm=k, rate=0.5))
    assert abs(walked - started) > 0.2 * zero  # the twin: before it has converged


@pytest.mark.parametrize("seed", range(20))
def test_the_projection_brings_no_row_further_from_its_target(seed: int) -> None:
    """Lemma D.5: with ||P(Y*)|| <= L, a step that is projected is at least as close on Omega."""
    rng = np.random.default_rng(seed)
    norm = 1.5
    target, fitted, direction = rng.standard_normal((3, 12)).astype(np.float64)
    target *= norm * rng.uniform() / np.linalg.norm(target)
    gain, keep = 5.0 * rng.uniform(), rng.uniform()
    rows = []
    for most in (norm, math.inf):
        row = fitted.copy()
        _step(target, row, direction, StepArrays(direction, gain, keep, most), 1.0)
        rows.append(row)
    projected, plain = rows
    assert np.linalg.norm(projected) <= norm * (1 + 1e-12)
    assert np.linalg.norm(projected - target) <= np.linalg.norm(plain - target) + 1e-12


def test_held_out_ratings_measure_the_error_under_whatever_way_ratings_come_about() -> None:
    """Remark 4's first half: Omega need not be uniform for what is held out to measure F.

    Items are seen with very different probabilities p_j, and predicted differently well. The
    held-out error is that of entries drawn with p_j, and not that of entries drawn uniformly.
    """
    rng = np.random.default_rng(3)
    users, items = 3000, 12
    chances = np.linspace(0.05, 0.95, items)
    values = np.where(np.arange(items) < 6, rng.choice([-1.0, 1.0], (users, items)), 0.0)
    seen = rng.random((users, items)) < chances
    held = seen & (rng.random((users, items)) < 0.5)
    ids = [f"item-{item:02d}" for item in range(items)]
    catalogue = tacit.Catalogue(ids, public=True)

    def part(mask: np.ndarray) -> tacit.Ratings:
        rows, columns = np.nonzero(mask)
        names = [ids[column] for column in columns]
        people = [f"user-{row:05d}" for row in rows]
        scale = (-1.0, 1.0)
        return tacit.Ratings.from_arrays(
            people, names, values[rows, columns], rating_range=scale, catalogue=catalogue
        )

    train, test = part(seen & ~held), part(held)
    model = tacit.fit(train, tacit.FrankWolfe(rounds=2, centre=False), budget=None)
    found = evaluate(model, train, test).rmse
    scores = np.concatenate([block for _, block in model.predict_rows(train)])
    order = np.unique(np.nonzero(seen & ~held)[0])  # users without a training rating have no row
    unseen = ~(seen & ~held)[order]
    squares = (scores - values[order]) ** 2 * unseen
    by_item = squares.sum(axis=0) / unseen.sum(axis=0)
    drawn = float(np.sqrt(np.average(by_item, weights=chances)))
    uniform = float(np.sqrt(by_item.mean()))
    assert found == pytest.approx(drawn, rel=0.02)
    assert abs(found - uniform) > 0.1 * uniform
