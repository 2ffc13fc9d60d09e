"""How fast statistics drift, from releases alone: found, and never much worse than no memory.

Releases are simulated with a drift that is known. Errors are means of squares of 2000 entries, with
a standard error of about 3 %; seeds are fixed.
"""

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tacit.estimation.drift import combined, drift_variance
from tacit.estimation.popularity import follow_popularity
from tacit.fitting import track as tracks
from tacit.fitting.track import Track

Floats = NDArray[np.float64]
ENTRIES, MARGIN = 2000, 1.1
SCALES = np.exp(np.random.default_rng(5).normal(0, 1, ENTRIES))
SCALES /= math.sqrt(float(np.mean(SCALES**2)))
IDS = list(range(ENTRIES))
SIZES = dict(zip(IDS, SCALES, strict=True))


def walked(drift: float, releases: int, scales: Floats = SCALES, seed: int = 0) -> Floats:
    steps = np.random.default_rng(seed).normal(0, math.sqrt(drift), (releases, ENTRIES))
    return np.cumsum(steps * scales, axis=0)


def noisy(truth: Floats, noises: Floats, seed: int = 1) -> Floats:
    noise = np.random.default_rng(seed).standard_normal(truth.shape)
    return np.asarray(truth + np.sqrt(noises)[:, None] * noise)


def errors(truth: Floats, seen: Floats, noises: Floats, sizes: Any = SIZES) -> Floats:
    """Return the mean squared errors of what a track knows after each release."""
    track, found = Track.start(1, {}, IDS, (ENTRIES,)), []
    for row, exact, noise in zip(seen, truth, noises, strict=True):
        track.resize(IDS, sizes)
        values, _ = track.add(IDS, row, float(noise))
        found.append(float(np.mean((values - exact) ** 2)))
    return np.array(found)


@pytest.mark.parametrize("drift", [0.0, 0.003, 0.1, 1.0])
def test_the_drift_of_entries_of_different_scales_is_found(drift: float) -> None:
    noises = np.ones(25)
    seen = noisy(walked(drift, 25), noises)
    assert drift / 1.8 <= drift_variance(seen, noises, SCALES) <= 1.8 * drift + 1e-9


def test_a_common_drift_is_too_small_for_large_entries() -> None:
    """The twin, and why entries have scales: a tenth of them drifts most, and lags behind."""
    noises, truth = np.ones(12), walked(0.1, 12)
    seen = noisy(truth, noises)
    by_scale = errors(truth, seen, noises)[-1]
    common = errors(truth, seen, noises, dict.fromkeys(IDS, 1.0))[-1]
    assert by_scale < 0.85 * common


@pytest.mark.parametrize("drift", [0.0, 1e-3, 0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("first", [1.0, 0.05], ids=["equal", "first"])
def test_memory_is_never_much_worse_than_the_newest_release(drift: float, first: float) -> None:
    """At most 10 % worse from the second release on, whatever the drift, and it never ends."""
    noises = np.concatenate([[first], np.ones(11)])
    truth = walked(drift, 12)
    found = errors(truth, noisy(truth, noises), noises)
    assert (found <= MARGIN * noises).all(), found
    if drift <= 0.01:
        assert found[-1] < 0.25


def test_without_an_estimate_of_the_drift_memory_would_be_worse() -> None:
    """The twin: a filter that takes people never to change."""
    noises, truth = np.ones(20), walked(1.0, 20)
    seen = noisy(truth, noises)
    values, variances = np.zeros(ENTRIES), np.full(ENTRIES, math.inf)
    for row in seen:
        values, variances = combined(values, variances, row, 1.0)
    assert np.mean((values - truth[-1]) ** 2) > 3 * MARGIN


def test_a_sudden_change_is_forgotten_within_a_few_releases() -> None:
    noises, truth = np.ones(16), walked(0.0, 16)
    truth[10:] += 3 * np.random.default_rng(2).standard_normal(ENTRIES)
    found = errors(truth, noisy(truth, noises), noises, dict.fromkeys(IDS, 1.0))
    assert found[9] < 0.15
    assert (found[12:] < MARGIN).all()


def test_what_is_stated_covers_the_error() -> None:
    """Lag counts twice in the stated variance: it may be more than the error, hardly less."""
    noises = np.concatenate([[0.05], np.ones(11)])
    for drift in (0.0, 0.01, 0.3):
        truth = walked(drift, 12)
        seen = noisy(truth, noises)
        track = Track.start(1, {}, IDS, (ENTRIES,))
        for row, noise in zip(seen, noises, strict=True):
            track.resize(IDS, SIZES)
            values, variances = track.add(IDS, row, float(noise))
        error = float(np.mean((values - truth[-1]) ** 2))
        assert 0.9 * error < track.stated(IDS, variances) < 2 * error


@pytest.mark.parametrize("axes", [1, 2])
def test_what_is_remembered_goes_with_how_often_items_are_rated(axes: int) -> None:
    """Twice as many ratings of an item: its sums are twice as large, and are known to be."""
    ids, before = ["a", "b"], {"a": 1.0, "b": 1.0}
    shape = (2,) * axes
    track = Track.start(axes, {}, ids, shape)
    track.resize(ids, before, unclear=0.0)
    track.add(ids, np.ones(shape), 1.0)
    track.resize(ids, {"a": 2.0, "b": 1.0}, unclear=0.0)
    each = np.array([2.0, 1.0])
    ratio = np.outer(each, each) if axes == 2 else each
    assert np.array_equal(track.values, ratio)
    assert np.array_equal(track.variances, ratio**2)
    whole = ratio[0, 1] * math.sqrt(2) if axes == 2 else ratio
    assert np.allclose(track.seen[0], whole)
    track.resize(ids, {"a": 4.0, "b": 1.0})
    assert np.array_equal(track.values, ratio)


def test_new_items_are_not_part_of_the_stated_noise() -> None:
    track = Track.start(1, {}, ["a", "b", "c"], (3,))
    for _ in range(4):
        track.add(["a", "b", "c"], np.zeros(3), 1.0)
    _, variances = track.add(["a", "b", "c", "new"], np.zeros(4), 1.0)
    assert track.old(["a", "b", "c", "new"], (4,)).tolist() == [True, True, True, False]
    assert variances.tolist() == pytest.approx([0.2, 0.2, 0.2, 1.0])
    assert track.stated(["a", "b", "c", "new"], variances) == pytest.approx(0.2)


def test_when_popularity_drifts_what_is_known_of_taste_is_kept() -> None:
    """Sums w m over the users of items, w drifting and known, m the same: only w is forgotten."""
    rng = np.random.default_rng(4)
    taste = rng.standard_normal(ENTRIES)
    weights = np.exp(np.cumsum(0.3 * rng.standard_normal((12, ENTRIES)), axis=0))
    truth, noises = weights * taste, np.ones(12)
    seen, found = noisy(truth, noises), {}
    for along in (True, False):
        track = Track.start(1, {}, IDS, (ENTRIES,))
        for row, sizes in zip(seen, weights, strict=True):
            track.resize(IDS, dict(zip(IDS, sizes, strict=True)), 0.1 if along else None)
            values, _ = track.add(IDS, row, 1.0)
        found[along] = float(np.mean((values - truth[-1]) ** 2))
    assert found[True] < 0.6 * found[False]


def error_today(drift: float) -> tuple[float, float]:
    """Return how far memory is from people as they are today, and the newest release by itself.

    A tenth of everyone's ratings is new: the statistic follows people, and releases follow it.
    """
    rng, track = np.random.default_rng(0), Track.start(1, {}, IDS, (ENTRIES,))
    people, statistic = np.zeros(ENTRIES), np.zeros(ENTRIES)
    for noise in (0.05, *[1.0] * 11):
        people = people + math.sqrt(drift) * rng.standard_normal(ENTRIES)
        statistic = 0.9 * statistic + 0.1 * people
        seen = statistic + math.sqrt(noise) * rng.standard_normal(ENTRIES)
        known, _ = track.add(IDS, seen, noise)
    alone = float(np.mean((statistic - people) ** 2)) + 1.0
    return float(np.mean((known - people) ** 2)), alone


@pytest.mark.parametrize("drift", [0.003, 0.03, 0.3, 1.0, 3.0, 10.0])
def test_memory_is_not_further_from_people_of_today_than_the_newest_release(drift: float) -> None:
    """What lags behind is on the wrong side: it adds to what ratings themselves lag behind."""
    known, alone = error_today(drift)
    assert known < 1.03 * alone
    if drift < 0.1:
        assert known < 0.4 * alone


def test_if_lag_counted_little_more_than_noise_memory_would_be_worse(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The twin: a lag that counts twice is right for the statistic, and wrong for people."""
    monkeypatch.setattr(tracks, "_LAG", 2.0)
    known, alone = error_today(3.0)
    assert known > 1.08 * alone


@pytest.mark.parametrize(("drift", "least", "most"), [(0.0, 0.4, 1.0), (0.3, 0.0, 0.1)])
def test_what_is_kept_is_little_where_much_has_changed(
    drift: float, least: float, most: float
) -> None:
    """Shares follow it: a refit that has forgotten is divided as a fit by itself."""
    truth, noises = walked(drift, 12), np.concatenate([[0.05], np.ones(11)])
    track = Track.start(1, {}, IDS, (ENTRIES,))
    assert track.kept == 1.0
    for row, noise in zip(noisy(truth, noises), noises, strict=True):
        track.resize(IDS, SIZES)
        track.add(IDS, row, float(noise))
    assert least <= track.kept <= most


@pytest.mark.parametrize("axes", [1, 2])
def test_two_looks_at_one_time_are_one_look_with_less_noise(axes: int) -> None:
    """Nothing drifts between them: not what is known, and not the releases that tell the drift."""
    rng, ids = np.random.default_rng(6), list(range(6))
    shape = (6,) * axes
    twice, once = Track.start(axes, {}, ids, shape), Track.start(axes, {}, ids, shape)
    for scale in (1.0, 5.0, 25.0):
        first, second = scale * rng.standard_normal((2, *shape))
        if axes == 2:
            first, second = first + first.T, second + second.T
        twice.add(ids, first, 1.0)
        twice.refine(ids, second, 0.25)
        once.add(ids, 0.2 * first + 0.8 * second, 0.2)
        assert len(twice.noises) == len(once.noises)
        assert np.allclose(twice.seen, once.seen)
        assert np.allclose(twice.drift, once.drift)
        assert np.allclose(twice.precisions, once.precisions)
    assert twice.drift.max() > 0


def test_a_second_look_may_have_items_that_the_first_one_had_not() -> None:
    track = Track.start(1, {}, ["a", "b"], (2,))
    track.refine(["a", "b"], np.ones(2), 1.0)  # nothing to be put together with
    track.refine(["b", "c"], np.array([3.0, 5.0]), 1.0)
    assert track.ids == ["a", "b", "c"]
    assert np.allclose(track.values, [1.0, 2.0, 5.0])
    assert np.allclose(track.variances, [1.0, 0.5, 1.0])
    assert track.noises == [0.5]


def test_popularity_of_co_occurrences_follows_weights_and_taste_stays() -> None:
    rng = np.random.default_rng(7)
    old, new = rng.random(60) + 0.5, rng.random(60) + 0.5
    taste = rng.standard_normal(60)
    taste -= (taste * new) @ new / (new @ new)  # nothing of it is along popularity
    pairs = np.outer(old, old) + 0.1 * np.outer(new * taste, new * taste)
    weights = new / np.linalg.norm(new)

    def popularity_of(found: Floats) -> Floats:
        off = found - np.diag(np.diag(found))
        sums = off @ weights / (1 - weights**2)
        return np.asarray(sums / np.linalg.norm(sums))

    after = follow_popularity(pairs, new, 1.0)
    assert abs(popularity_of(pairs) @ weights) < 0.97
    assert popularity_of(after) @ weights > 0.999
    beyond = np.eye(60) - np.outer(weights, weights)
    change = beyond @ (after - pairs) @ beyond
    assert np.abs(change - np.diag(np.diag(change))).max() < 0.1 * np.abs(after - pairs).max()
    assert follow_popularity(pairs, new, 0.0) is pairs
    half = follow_popularity(pairs, new, 0.5)
    assert np.allclose(half, (pairs + after) / 2)
