"""Item means, factors and the prior from choice, as the gradients of several refits measure them.

Gradients are simulated: what the parameters of a model miss, times Fisher's information, and noise.
Twins: factors that are not turned to each other, and weeks that are not remembered.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.algorithms.base import Choice, Looked
from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.latent import LatentEstimate, known
from tacit.fitting.memory import Memory
from tacit.fitting.parameters import Parameters
from tacit.fitting.track import Track

Floats = NDArray[np.float64]
ITEMS, USERS, SD = 120, 5000.0, 60.0
IDS = [f"item {at}" for at in range(ITEMS)]
RATED = CoRatings(
    weights=np.full(ITEMS, 400.0),
    error=np.full(ITEMS, 0.01),
    inverse_counts=np.full(ITEMS, 1e-9),  # no chance: noise alone
    stratum_sizes=np.array([USERS]),
    lengths=np.array([12.0]),
    stratum_weights=np.full((1, ITEMS), 400.0),
)
ONE = np.ones((ITEMS, 1)) / ITEMS


class World(NamedTuple):
    """The truth, and what a fit begins with: popularity is its only choice factor."""

    factors: Floats
    means: Floats

    def start(self, rng: np.random.Generator, rank: int, turn: bool = True) -> LatentEstimate:
        factors = 0.9 * self.factors[:, :rank] + 0.05 * rng.standard_normal((ITEMS, rank))
        if turn and rank > 1:
            factors[:, 1:] @= np.linalg.qr(rng.standard_normal((rank - 1, rank - 1)))[0]
        return LatentEstimate(factors, np.full(ITEMS, 3.0), np.ones(ITEMS), np.zeros((1, rank)))


def world(rank: int) -> World:
    rng = np.random.default_rng(3)
    factors = 0.5 * rng.standard_normal((ITEMS, rank))
    factors[:, 0] = 0.6
    return World(factors, 3.0 + 0.5 * rng.standard_normal(ITEMS))


def choice() -> Choice:
    return Choice(np.ones((ITEMS, 1)), ONE, np.ones((1, 1)), RATED)


def looked(truth: World, here: LatentEstimate, rng: np.random.Generator) -> Looked:
    """Return a gradient for which a Newton step leads to the truth, and noise."""
    rank = here.factors.shape[1]
    turn = nearest(here.factors, truth.factors)
    gap = np.hstack([truth.factors @ turn - here.factors, (truth.means - here.offsets)[:, None]])
    back = np.eye(rank + 1)
    back[:rank, :rank] = known(here, RATED)
    items = 400.0 * gap @ back / 1.2 + SD * rng.standard_normal((ITEMS, rank + 1))
    return Looked(items, SD, np.zeros((1, rank)), SD)


def nearest(here: Floats, truth: Floats) -> Floats:
    """Return the turn of the truth, but for its first column, to what a model has."""
    size, rank = truth.shape[1], here.shape[1]
    turn = np.zeros((size, rank))
    turn[0, 0] = 1.0
    left, _, right = np.linalg.svd(truth[:, 1:].T @ here[:, 1:], full_matrices=False)
    turn[1:, 1:] = left @ right
    return turn


def refit(memory: Memory, truth: World, rng: np.random.Generator, rank: int) -> LatentEstimate:
    parameters, start = Parameters(memory, IDS), truth.start(rng, rank)
    spread = np.zeros((rank, rank))
    here, spread = parameters.begin(start, spread, choice(), np.zeros(ITEMS))
    for _ in range(2):
        here, spread, _ = parameters.measured(here, spread, looked(truth, here, rng))
    return here


def error(truth: World, here: LatentEstimate) -> tuple[float, float]:
    """Return the mean squared error of means, and of products of factors."""
    products = here.factors @ here.factors.T - truth.factors @ truth.factors.T
    return float(np.mean((here.offsets - truth.means) ** 2)), float(np.mean(products**2))


def after(weeks: int, rank: int = 3, *, remember: bool = True) -> tuple[float, float]:
    truth, rng, memory = world(rank), np.random.default_rng(7), Memory({})
    for _ in range(weeks):
        memory = Memory(memory.to_bytes() if remember else {})  # as a book keeps it
        here = refit(memory, truth, rng, rank)
    return error(truth, here)


def test_every_refit_knows_means_and_factors_better() -> None:
    once, often = after(1), after(8)
    assert often[0] < 0.3 * once[0]
    assert often[1] < 0.4 * once[1]


def test_without_a_memory_eight_refits_know_no_more_than_one() -> None:
    """The twin."""
    once, often = after(1), after(8, remember=False)
    assert often[0] > 0.6 * once[0]
    assert often[1] > 0.6 * once[1]


def test_factors_that_are_not_turned_to_each_other_cannot_be_averaged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin of turning: each fit has its factors in another order and with other signs."""
    turned = after(6)
    monkeypatch.setattr(Parameters, "_turn", _as_they_are)
    assert after(6)[1] > 1.3 * turned[1]


def _as_they_are(self: Parameters) -> None:
    prior = self._start.prior
    self._prior = np.zeros_like(prior), np.full(prior.shape[1], math.inf)


def test_a_refit_whose_start_has_fewer_factors_keeps_those_that_are_remembered() -> None:
    truth, rng, memory = world(3), np.random.default_rng(7), Memory({})
    for _ in range(5):
        refit(memory, truth, rng, 3)
    here = refit(memory, truth, rng, 2)
    assert here.factors.shape[1] == 3
    assert error(truth, here)[1] < 1.5 * after(5)[1]


def test_a_factor_that_appears_later_is_added() -> None:
    truth, rng, memory = world(3), np.random.default_rng(7), Memory({})
    refit(memory, World(truth.factors[:, :2], truth.means), rng, 2)
    for _ in range(4):
        here = refit(memory, truth, rng, 3)
    assert here.factors.shape[1] == 3
    assert error(truth, here)[1] < 1.5 * after(4)[1]


def test_a_factor_that_noise_may_have_made_is_dropped() -> None:
    rng, memory = np.random.default_rng(7), Memory({})
    truth = world(2)
    refit(memory, truth, rng, 2)
    factors = memory.tracks["item factors"]
    factors.widen(3)
    factors.values[2], factors.variances[2] = 0.1 * rng.standard_normal(ITEMS), 0.01
    memory.tracks["prior from choice"].widen(3)
    here = refit(memory, truth, rng, 2)
    assert here.factors.shape[1] == 2
    assert len(memory.tracks["item factors"].values) == 2


def test_new_items_begin_where_the_fit_begins() -> None:
    rng, memory = np.random.default_rng(7), Memory({})
    truth = world(2)
    refit(memory, truth, rng, 2)
    for track in memory.tracks.values():
        track.ids = [f"gone {each}" if at < 3 else each for at, each in enumerate(track.ids)]
    start = truth.start(rng, 2, turn=False)
    parameters = Parameters(memory, IDS)
    here, _ = parameters.begin(start, np.zeros((2, 2)), choice(), np.zeros(ITEMS))
    assert here.offsets[:3].tolist() == pytest.approx([3.0] * 3)
    assert np.abs(here.offsets[3:] - 3.0).max() > 0.5


RELEASES = 12


def simulated(odd: int | None, jump: int | None) -> tuple[Floats, Floats]:
    """Return releases of 1000 entries, with noise 1, and the truth."""
    rng = np.random.default_rng(2)
    truth = np.zeros((RELEASES, 1000))
    away = 4 * rng.standard_normal(1000)
    if jump is not None:
        truth[jump:] += away
    seen = truth + rng.standard_normal(truth.shape)
    if odd is not None:
        seen[odd] += away
    return seen, truth


def errors(seen: Floats, truth: Floats, *, doubting: bool = True) -> Floats:
    memory, ids, found = Memory({}), list(range(seen.shape[1])), []
    memory.start("kind", Track.start(1, {}, ids, (len(ids),)))
    for row, exact in zip(seen, truth, strict=True):
        memory = Memory(memory.to_bytes())
        take: Callable[..., Any] = memory.add if doubting else _without_doubt(memory)
        found.append(float(np.mean((take("kind", ids, row, 1.0)[0] - exact) ** 2)))
    return np.array(found)


def _without_doubt(memory: Memory) -> Callable[..., Any]:
    return lambda name, *release: memory.tracks[name].add(*release)


def test_one_odd_week_does_not_wipe_the_memory() -> None:
    seen, truth = simulated(odd=8, jump=None)
    found = errors(seen, truth)
    assert found[7] < 0.2
    assert found[9] < 0.2
    assert found[-1] < 0.15


def test_without_doubt_one_odd_week_would() -> None:
    """The twin: the drift is taken to be large, and all that was known is lost."""
    seen, truth = simulated(odd=8, jump=None)
    assert errors(seen, truth, doubting=False)[9] > 0.5


def test_people_who_have_changed_are_followed_at_once() -> None:
    """As well as by the newest release alone, and the old ones are dropped for good."""
    seen, truth = simulated(odd=None, jump=8)
    found = errors(seen, truth)
    assert found[8] < 1.1
    assert found[9] < 0.6
    assert found[-1] < 0.35


def test_noise_in_sizes_does_not_stretch_what_is_known() -> None:
    ids = ["a", "b"]
    track = Track.start(2, {}, ids, (2, 2))
    track.resize(ids, {"a": 1.0, "b": 1.0}, unclear=0.0)
    track.add(ids, np.ones((2, 2)), 1.0)
    track.resize(ids, {"a": 1.9, "b": 0.4}, unclear=0.0, noise=0.4)
    assert np.array_equal(track.values, np.ones((2, 2)))
    track.resize(ids, {"a": 9.0, "b": 0.4}, unclear=0.0, noise=0.4)
    assert track.values[0, 1] == pytest.approx(9.0, rel=0.05)


def test_uneven_noise_is_stated_as_what_it_does_to_eigenvalues() -> None:
    """Twin: the mean of the variances would let noise pass for factors."""
    rng, items = np.random.default_rng(0), 300
    scale = np.where(np.arange(items) < 20, 5.0, 1.0)
    variances = np.outer(scale, scale)
    track = Track.start(2, {}, list(range(items)), (items, items))
    track.add(track.ids, np.zeros((items, items)), 1.0)
    noise = np.triu(rng.standard_normal((items, items)) * np.sqrt(variances), 1)
    top = float(np.linalg.eigvalsh(noise + noise.T)[-1])
    assert 2 * math.sqrt(items * track.stated(track.ids, variances)) > 0.9 * top
    assert 2 * math.sqrt(items * float(variances.mean())) < 0.9 * top
