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
from tacit.fitting.memory import Track

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
        track.resize(IDS, sizes, along=False)
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
            track.resize(IDS, SIZES, along=False)
            values, variances = track.add(IDS, row, float(noise))
        error = float(np.mean((values - truth[-1]) ** 2))
        assert 0.9 * error < track.stated(IDS, variances) < 2 * error


@pytest.mark.parametrize("axes", [1, 2])
def test_what_is_remembered_goes_with_how_often_items_are_rated(axes: int) -> None:
    """Twice as many ratings of an item: its sums are twice as large, and are known to be."""
    ids, before = ["a", "b"], {"a": 1.0, "b": 1.0}
    shape = (2,) * axes
    track = Track.start(axes, {}, ids, shape)
    track.resize(ids, before, along=True)
    track.add(ids, np.ones(shape), 1.0)
    track.resize(ids, {"a": 2.0, "b": 1.0}, along=True)
    each = np.array([2.0, 1.0])
    ratio = np.outer(each, each) if axes == 2 else each
    assert np.array_equal(track.values, ratio)
    assert np.array_equal(track.variances, ratio**2)
    whole = ratio[0, 1] * math.sqrt(2) if axes == 2 else ratio
    assert np.allclose(track.seen[0], whole)
    track.resize(ids, {"a": 4.0, "b": 1.0}, along=False)
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
            track.resize(IDS, dict(zip(IDS, sizes, strict=True)), along=along)
            values, _ = track.add(IDS, row, 1.0)
        found[along] = float(np.mean((values - truth[-1]) ** 2))
    assert found[True] < 0.6 * found[False]
