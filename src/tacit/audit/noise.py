"""Noise: is it what the ledger says, does nothing repeat in it, and do its low bits tell anything?

A method is run on synthetic people, over and over. What each release would be without noise is
taken off it. What is left, over the sd in the ledger, must be standard normal: all of it, each
release by itself, whatever came before. A symmetric matrix is averaged with its transpose, so that
above the diagonal it has the sd over sqrt2.

A sound sampler fails each test once in 10^4 runs (`ALARM`). The test of the law must also notice a
sd that is 10 % off: otherwise there was too little noise to look at, and nothing is shown.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Neighbours
from tacit.audit.advantage import exact_limit
from tacit.audit.finding import Finding
from tacit.audit.low_bits import Grid, guess_sums
from tacit.audit.observe import Heard, StatedSum, overheard, released
from tacit.audit.population import synthetic_world
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.audit.target import Target
from tacit.data.ratings import Ratings
from tacit.models.rules import Floats

ALARM = 1e-4

_USERS, _ITEMS = 30, 16
_ENOUGH = 6000  # values of noise to look at
_MOST_FITS = 60
_CELLS = 50
_LAGS = 5
_FEW = 100  # values that a correlation needs at least
_COARSE, _TERM = 4, 10  # bits of a grid whose points can be counted, and of one user's term
_COARSE_SIZE = 100_000
_BESIDE = (0.9, 1.1)
_LOW_BIT_TRIALS = 200
_STEPS_OF_LOW_BITS = 2 * _LOW_BIT_TRIALS  # for each of the two samplers
_SUCCESS = 0.8  # the least advantage by which the attack on low bits proves itself

Noise = dict[str, list[Floats]]


def noise_of(
    subject: Target, ratings: Ratings, seeds: Iterable[int], steps: Steps = NO_PROGRESS
) -> Noise:
    """Return the noise of every release over its sd, by name, one array for each fit."""
    found: Noise = defaultdict(list)
    for seed in seeds:
        heard = overheard(ratings, subject.algorithm, subject.budget, seed)
        exact = released(ratings, [each.statistic for each in heard], None, seed)
        for noisy, plain in zip(heard, exact, strict=True):
            for name, values in _standardised(noisy, plain.values).items():
                found[name].append(values)
        steps.step()
    return dict(found)


def _standardised(heard: Heard, exact: Floats) -> dict[str, Floats]:
    """Return what was added, over the sd that it should have; both parts of a symmetric matrix."""
    added = (heard.values - exact) / heard.noise_sd
    if not heard.statistic.symmetric:
        return {heard.release.name: added.ravel()}
    above = np.triu_indices(len(added), 1)
    shown = {f"{heard.release.name}, diagonal": np.diag(added)}
    return shown | {f"{heard.release.name}, the rest": added[above] * math.sqrt(2)}


def chi_squared(values: Floats, sd: float = 1.0) -> float:
    """Return the chi-squared distance from N(0, sd^2), in cells of equal probability."""
    from scipy.special import ndtr

    counts, _ = np.histogram(ndtr(values / sd), bins=_CELLS, range=(0.0, 1.0))
    mean = values.size / _CELLS
    return float(np.sum((counts - mean) ** 2) / mean)


def spread(values: Floats) -> float:
    """Return how far the sd is from 1, as so many sds of a normal number would be as rare."""
    from scipy.special import ndtri
    from scipy.stats import chi2

    total = float(np.sum(values**2))
    chance = min(chi2.cdf(total, values.size), chi2.sf(total, values.size))
    return -float(ndtri(max(chance, 1e-300)))


def correlation(noise: Noise) -> tuple[float, int]:
    """Return the largest correlation of noise with other noise, in standard errors, of how many.

    Of each release: with itself some entries on, and with the fit before; and of each pair of
    releases of a fit, entry by entry. Of fewer than 100 values nothing can be said.
    """
    names, pairs = sorted(noise), []
    for at, name in enumerate(names):
        fits = _stacked(noise[name])
        lags = range(1, min(_LAGS + 1, fits.shape[1]))
        pairs += [(fits[:, lag:], fits[:, :-lag]) for lag in lags]
        pairs.append((fits[1:], fits[:-1]))
        for other in names[at + 1 :]:
            others = _stacked(noise[other])
            both, width = min(len(fits), len(others)), min(fits.shape[1], others.shape[1])
            pairs.append((fits[:both, :width], others[:both, :width]))
    found = [abs(float(np.sum(a * b))) / math.sqrt(a.size) for a, b in pairs if a.size >= _FEW]
    return max(found), len(found)


def _stacked(fits: list[Floats]) -> Floats:
    """Return a row for each fit; where releases differ in size, what all of them have."""
    return np.array([values[: min(map(len, fits))] for values in fits])


def coarse_law(units: NDArray[np.int64], bits: int) -> tuple[float, int]:
    """Return the chi-squared distance from floor(2^bits Z), point by point, and its freedom."""
    from scipy.special import ndtr

    points = np.arange(-3 << bits, (3 << bits) + 1)
    chances = np.diff(ndtr(points / 2.0**bits))
    inside = np.bincount(np.clip(units - points[0] + 1, 0, points.size), minlength=points.size + 1)
    counts = np.append(inside[1:-1], inside[0] + inside[-1])
    wanted = units.size * np.append(chances, 1 - chances.sum())
    return float(np.sum((counts - wanted) ** 2 / wanted)), counts.size - 1


def noise(subject: Target, seed: int = 0, *, steps: Steps = NO_PROGRESS) -> list[Finding]:
    """Look at the noise of every release of a method, and attack its low bits.

    Seeds make it repeatable: the sampler is the one that is always used, fed with other words.
    """
    ratings = synthetic_world(subject, seed, _USERS, _ITEMS).ratings(None)
    first = seed * 1_000_000
    one = noise_of(subject, ratings, [first])
    size = sum(values.size for each in one.values() for values in each)
    fits = min(_MOST_FITS, max(4, math.ceil(_ENOUGH / size)))
    steps.plan(fits + 2 * _STEPS_OF_LOW_BITS)
    found = noise_of(subject, ratings, range(first, first + fits), steps)
    return [
        _law(subject, found),
        *_shapes(subject, found),
        _independence(subject, found),
        _coarse(ratings, subject, first),
        *_low_bits(ratings, subject, seed, steps),
    ]


def _pooled(noise: Noise) -> Floats:
    return np.concatenate([values for each in noise.values() for values in each])


def _law(subject: Target, noise: Noise) -> Finding:
    """Compare all noise with the normal law, at the stated sd and beside it."""
    from scipy.stats import chi2

    values = _pooled(noise)
    limit, measured = float(chi2.isf(ALARM, _CELLS - 1)), chi_squared(values)
    notices = all(chi_squared(values, sd) > limit for sd in _BESIDE)
    return Finding(
        "noise",
        f"{subject.name}, all releases",
        "Noise is normal with the sd in the ledger, and not with one that is 10 % off.",
        measured,
        limit,
        measured <= limit and notices,
        f"chi-squared over {_CELLS} cells of {values.size} values; 10 % less and 10 % more "
        f"{'are' if notices else 'are NOT'} noticed",
    )


def _shapes(subject: Target, noise: Noise) -> list[Finding]:
    """Compare the sd of each release, and of each part of a symmetric one, with the stated one."""
    from scipy.special import ndtri

    limit = -float(ndtri(ALARM / 2 / len(noise)))
    values = {name: np.concatenate(each) for name, each in noise.items()}
    worst = max(values, key=lambda name: spread(values[name]))
    measured = spread(values[worst])
    return [
        Finding(
            "noise",
            f"{subject.name}, each release",
            "Every release has the stated sd; above the diagonal of a symmetric one, over sqrt2.",
            measured,
            limit,
            measured <= limit,
            f"the sd of each of {len(values)} parts against the stated one, as sds of a normal "
            f"number; the furthest is that of '{worst}'",
        )
    ]


def _independence(subject: Target, noise: Noise) -> Finding:
    """Look for noise that comes again."""
    from scipy.special import ndtri

    measured, tried = correlation(noise)
    limit = -float(ndtri(ALARM / 2 / tried))
    return Finding(
        "noise",
        f"{subject.name}, between entries and releases",
        "Noise is drawn anew for every entry, release and fit.",
        measured,
        limit,
        measured <= limit,
        f"the largest of {tried} correlations between entries, releases and fits, in standard "
        "errors",
    )


def _coarse(ratings: Ratings, subject: Target, seed: int) -> Finding:
    """Count every point of a grid that is so coarse that rounding shows."""
    from scipy.stats import chi2

    stated = StatedSum(np.zeros(_COARSE_SIZE), term_bits=_TERM)
    heard = released(ratings, [stated], subject.budget, seed)[0]
    grid = Grid.of(heard.noise_sd, stated)
    bits = min(grid.bits, _COARSE)  # a finer grid is rounded down, which is the same law
    whole = np.rint(heard.values / grid.unit).astype(np.int64) >> (grid.bits - bits)
    measured, freedom = coarse_law(whole, bits)
    limit = float(chi2.isf(ALARM, freedom))
    return Finding(
        "noise",
        f"the sampler on a grid of {2**bits} points a sd",
        "Every point has the probability of the rounded normal law.",
        measured,
        limit,
        measured <= limit,
        f"chi-squared over {freedom + 1} points of {_COARSE_SIZE} values",
    )


def _low_bits(ratings: Ratings, subject: Target, seed: int, steps: Steps) -> list[Finding]:
    """Attack the low bits of the sampler that is used, and as a control of the idealised one.

    Always under `replace`: the number of users is known there, and so the grid is the finest.
    """
    budget, trials = replace(subject.budget, neighbours=Neighbours.REPLACE), _LOW_BIT_TRIALS
    limit, findings = exact_limit(budget), []
    for name, guesses in guess_sums(ratings, budget, "exact", trials, seed, steps).items():
        findings.append(
            Finding(
                "noise",
                f"low bits of exact noise, by {name}",
                f"Nobody guesses with an advantage above {limit:.3f}.",
                guesses.advantage,
                limit,
                guesses.interval.low <= limit,
                f"{_HOW[name]}; {trials} guesses",
                guesses.interval,
            )
        )
    control = guess_sums(ratings, budget, "idealised", trials, seed, steps)["reach"]
    claim = f"Control: certificates call it NOT PRIVATE; the attack must win by {_SUCCESS}."
    subject_name, wins = "low bits of idealised noise, by reach", control.interval.low > _SUCCESS
    how = f"{_HOW['reach']}; {trials} guesses"
    measured, interval = control.advantage, control.interval
    findings.append(Finding("noise", subject_name, claim, measured, 1.0, wins, how, interval, True))
    return findings


_HOW = {
    "reach": "either sum is taken off, and what is left must be a number that floating-point "
    "inversion can give",
    "grain": "the lowest bits that are set tell larger sums from smaller ones",
}
