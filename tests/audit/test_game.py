"""The distinguishing game: the claim stands for the real code, and falls when noise is cut.

Bounds hold with 95 % confidence, so a sound configuration is called broken in at most one game of
twenty. Seeds are fixed: each of these games has one outcome.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.audit import exact_sums
from tacit.audit.exact_sums import opened_run
from tacit.audit.finding import Finding
from tacit.audit.game import Match, crafted, game, likelihood_ratios, noticed_noise
from tacit.audit.learned_attack import features, learned_scores
from tacit.audit.population import synthetic_world
from tacit.audit.sensitivity import QUICK
from tacit.audit.target import Target
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.sampler import NoiseSource, floor_normals

SVD = Target(tacit.SVD(rank=2, count_share=0.0), tacit.PrivacyBudget(4.0))
WALK = Target(tacit.FrankWolfe(rounds=3, residual_clip=1.0), tacit.PrivacyBudget(4.0))


@pytest.fixture
def cut_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Divide all noise of the mechanism by a power of two; the ledger does not know."""

    def cut(halvings: int) -> None:
        def draw(source: NoiseSource, size: int, bits: int) -> np.ndarray:
            return floor_normals(source, size, bits) >> halvings

        monkeypatch.setattr(mechanism_module, "floor_normals", draw)

    return cut


def by_form(findings: list[Finding]) -> dict[tuple[str, str], Finding]:
    """Findings by guesser and form of the bound."""
    found = {}
    for finding in findings:
        guesser = "releases" if "releases" in finding.subject else "model"
        found[guesser, "any" if "any noise" in finding.subject else "gaussian"] = finding
    return found


@pytest.mark.statistical
def test_the_claim_stands_and_the_attack_is_worth_something() -> None:
    found = by_form(game(SVD, trials=300, seed=1))
    assert len(found) == 4
    assert all(finding.holds for finding in found.values())
    assert found["releases", "gaussian"].measured > 0.25 * SVD.budget.epsilon


@pytest.mark.statistical
def test_with_half_the_noise_it_falls(cut_noise: Callable[[int], None]) -> None:
    """The twin."""
    cut_noise(1)
    found = by_form(game(SVD, trials=150, seed=1))
    assert not found["releases", "gaussian"].holds
    assert found["releases", "gaussian"].measured > SVD.budget.epsilon


@pytest.mark.statistical
def test_with_next_to_no_noise_every_form_falls(cut_noise: Callable[[int], None]) -> None:
    """The twin of the others: any noise, and the model alone; epsilon 1 is claimed."""
    cut_noise(6)
    subject = replace(SVD, budget=tacit.PrivacyBudget(1.0))
    found = by_form(game(subject, trials=120, seed=2))
    assert [key for key, finding in found.items() if finding.holds] == []


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_it_plays_with_several_rounds_and_either_relation(relation: str) -> None:
    budget = tacit.PrivacyBudget(4.0, neighbours=relation)
    findings = game(replace(WALK, budget=budget), trials=40, seed=3)
    assert all(finding.holds for finding in findings)


def test_it_plays_where_items_are_chosen_first() -> None:
    findings = game(replace(SVD, narrowed=True), trials=40, seed=3)
    assert all(finding.holds for finding in findings)


@pytest.mark.statistical
def test_the_ratio_is_that_of_the_likelihoods_although_rounds_depend_on_rounds() -> None:
    """Its mean is half of mu^2 with her, and its exponential has mean 1 without her.

    Six standard errors: a false alarm in less than one of 10^8, if the seed were not fixed.
    """
    world = synthetic_world(WALK, 0)
    pair = crafted(WALK, world, seed=0, effort=QUICK)
    choose, judge, middle = likelihood_ratios(Match(WALK, world, pair, 400, 5))
    without, with_her = (np.concatenate(both) for both in zip(choose, judge, strict=True))
    weights = np.exp(without)
    assert abs(weights.mean() - 1) < 6 * weights.std() / np.sqrt(400)
    backwards = np.exp(-with_her)
    assert abs(backwards.mean() - 1) < 6 * backwards.std() / np.sqrt(400)
    assert with_her.mean() - without.mean() == pytest.approx(pair.change**2, rel=0.35)
    assert middle == 0.0


@pytest.mark.statistical
def test_the_ratio_of_the_wrong_world_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: a ratio that does not look at the releases so far has another mean."""
    plain = exact_sums._Worlds.take_both

    def taken(self: exact_sums._Worlds, played: tacit.Ratings, other: tacit.Ratings) -> None:
        plain(self, played, other.take_rows(np.arange(other.n_users)[::-1][: other.n_users - 9]))

    monkeypatch.setattr(exact_sums._Worlds, "take_both", taken)
    world = synthetic_world(WALK, 0)
    pair = crafted(WALK, world, seed=0, effort=QUICK)
    choose, _, _ = likelihood_ratios(Match(WALK, world, pair, 200, 5))
    assert choose[1].mean() - choose[0].mean() > 2 * pair.change**2


def test_a_watched_run_makes_the_releases_of_a_fit() -> None:
    world = synthetic_world(WALK, 0)
    ratings = world.ratings(world.others[3])
    watched = opened_run(WALK, ratings, ratings, present=True, seed=7)
    model = tacit.fit(ratings, WALK.algorithm, budget=WALK.budget, noise_seed_unsafe=7)
    assert [each.entry for each in watched.releases] == list(model.certificate.releases)
    assert watched.log_ratio == 0.0  # the two worlds are one


def test_it_says_how_much_missing_noise_it_would_notice() -> None:
    """Less with more fits; half the noise, above, is within what 150 of them notice."""
    pair = crafted(SVD, synthetic_world(SVD, 1), seed=1, effort=QUICK)
    few, more, many = (noticed_noise(SVD, pair, trials) for trials in (20, 150, 5000))
    assert few < 0.5 < more < many < 1.0


def test_games_with_the_same_seed_are_the_same() -> None:
    assert game(SVD, trials=20, seed=4) == game(SVD, trials=20, seed=4)
    assert game(SVD, trials=20)[0].holds


def test_too_few_games_are_refused() -> None:
    with pytest.raises(tacit.ConfigError, match="trials=10"):
        game(SVD, trials=10)


def test_the_learned_attack_sees_what_a_model_file_holds() -> None:
    world = synthetic_world(SVD, 0)
    model = tacit.fit(world.ratings(None), SVD.algorithm, budget=SVD.budget)
    found = features(model, [world.others[0]])
    arrays, _ = model.rule.parts()
    assert set(arrays) <= set(found)
    assert found["scores"].shape == (world.n_items,)


def test_a_difference_in_the_models_is_learned_and_noise_is_not() -> None:
    rng = np.random.default_rng(0)

    def models(shift: float) -> list[dict[str, np.ndarray]]:
        return [
            {"x": rng.standard_normal(20) + shift * (np.arange(20) == 7), "y": rng.random(at % 2)}
            for at in range(200)
        ]

    none, hers = learned_scores((models(0), models(1.5)), (models(0), models(1.5)))
    assert (hers.mean() - none.mean()) / none.std() > 1.0
    none, hers = learned_scores((models(0), models(0)), (models(0), models(0)))
    assert abs(hers.mean() - none.mean()) / none.std() < 0.4
