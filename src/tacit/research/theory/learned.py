r"""What the releases of `Moments` are expected to reveal: variances, item effects, latent factors.

Nothing is released here. The noise is that of a real ledger; shrinkage, weights and thresholds are
the method's own functions, given what they will see on average.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from tacit.accounting.ledger import Ledger
from tacit.accounting.release import ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.moments import HEADROOM, MOST_LOST, WIDE_HEADROOM, Moments, spreads_from
from tacit.estimation.empirical_bayes import shrunk
from tacit.estimation.spiked_covariance import (
    NoiseModel,
    best_known,
    margin_over_noise,
    shrunk_loadings,
)
from tacit.research.theory.case import Case
from tacit.research.theory.spiked import Noise, Spike
from tacit.research.theory.tastes import Audience, Tastes

Floats = NDArray[np.float64]

_NODES = ndtri((np.arange(11) + 0.5) / 11)  # of a standard normal variable
_FINE = 0.005  # of the range: differences of item means that do not matter, as in Moments


class Sums(NamedTuple):
    """Sums over users for each group of items, and the noise of the releases at unit norm."""

    users: float
    weights: Floats
    singles: Floats
    noise: dict[ReleaseKind, float]


class Told(NamedTuple):
    """The variances of levels and of ratings about them that the release of spreads tells."""

    level: float
    rating: float

    @property
    def shrink(self) -> float:
        """As if a user had so many more ratings, for her bias."""
        return min(Moments().level_shrink, self.rating / self.level)


class LearnedItems(NamedTuple):
    """How far off item means are, for each group, and what the method believes of that."""

    error: Floats
    doubt: Floats
    told: float


class Found(NamedTuple):
    """Latent factors as found, groups by factors: E f F-hat, E F-hat^2, and the doubt."""

    along: Floats
    energy: Floats
    doubt: Floats
    smallest: float


def expected_sums(case: Case, audience: Audience) -> Sums:
    """Reserve the releases in a ledger, for their noise, and add up the users."""
    facts = Facts(case.items, case.rating_range, case.users, case.budget)
    ledger = Ledger(case.budget)
    Moments().reserve(ledger, facts)
    noise = {entry.release.kind: entry.noise_sd for entry in ledger.reserved}
    users = float(case.users)
    weights = users * audience.over_users(-0.5)
    return Sums(
        users,
        np.hypot(weights, noise[ReleaseKind.ITEM_WEIGHTS]),  # no smaller than its noise
        users * audience.over_users(-1.0),
        noise,
    )


def expected_spreads(case: Case, audience: Audience, sums: Sums) -> Told:
    """Return what the release of spreads will tell."""
    half, tastes = case.width / 2, case.tastes
    level = tastes.user_sd**2 + tastes.within * float(audience.parts @ (1 / audience.lengths))
    means = np.array([0.5, level / half**2, tastes.within / (half**2 / 2)])
    error = sums.noise[ReleaseKind.SPREADS] / sums.users
    told = spreads_from(np.minimum(means, 1.0), error, sums.users, case.rating_range)
    return Told(told.level, told.rating)


def expected_effects(case: Case, audience: Audience, sums: Sums, told: Told) -> LearnedItems:
    """Return how well item effects will be known.

    A measured effect is kappa q_j plus noise, kappa < 1 because long rows are scaled down and
    because the effect is in the user's bias too.
    """
    tastes, rating, repeat = case.tastes, told.rating, audience.sizes.astype(np.int64)
    noise_sd = sums.noise[ReleaseKind.ITEM_EFFECTS] * math.sqrt(WIDE_HEADROOM * rating)
    shares = sums.weights / float(audience.sizes @ sums.weights)
    variances = (noise_sd**2 + rating * sums.users * shares) / sums.weights**2
    true = sums.users * audience.over_users(-0.5) / sums.weights
    kappa = true * _kept_effect(audience, tastes, told)
    spread = np.sqrt(kappa**2 * tastes.item_sd**2 + variances)
    measured, each = np.repeat(spread, repeat), np.repeat(variances, repeat)
    sd = _sd_of_spread(measured, each, _FINE * case.width)
    error, doubt, explained = np.zeros(repeat.size), np.zeros(repeat.size), 0.0
    for node in _NODES:
        swollen = np.sqrt(np.maximum(measured**2 + node * sd, 0.0))
        found = shrunk(swollen, each, _FINE * case.width)
        keep = (found.estimates / np.maximum(swollen, 1e-300))[_firsts(repeat)]
        error += (1 - keep * kappa) ** 2 * tastes.item_sd**2 + keep**2 * variances
        doubt += found.doubt[_firsts(repeat)]
        explained += float((audience.sizes * shares) @ (keep * spread) ** 2)
    return LearnedItems(error / _NODES.size, doubt / _NODES.size, explained / _NODES.size)


def _firsts(sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return where each group begins when items are written out one by one."""
    return np.cumsum(sizes) - sizes


def _sd_of_spread(measured: Floats, variances: Floats, fine: float) -> float:
    """Return the sd of the spread of effects that `shrunk` measures, from chance and noise."""
    precision = 1.0 / (variances + fine**2)
    return math.sqrt(2 * float(np.sum((precision * measured**2) ** 2))) / float(precision.sum())


def _kept_effect(audience: Audience, tastes: Tastes, told: Told) -> float:
    """Return what part of an item effect is left in rows that are scaled down, on average."""
    weights = audience.parts * np.sqrt(audience.lengths)
    rows = _row_squares(audience, tastes, tastes.within, told.shrink)
    longer = rows.squares / (WIDE_HEADROOM * told.rating)
    kept = np.minimum(1.0, 1 / np.sqrt(longer)).mean(axis=1)
    kept *= 1 - 1 / (audience.lengths + told.shrink)
    return float(weights @ kept / weights.sum())


class _RowSquares(NamedTuple):
    """Mean squares of users' residual rows, strata by quantiles, and their relative variances."""

    squares: Floats
    variances: Floats


def _row_squares(audience: Audience, tastes: Tastes, within: float, shrink: float) -> _RowSquares:
    """Return how the mean squares of rows vary: log-normally, users' own noise and tastes too."""
    lengths, every = audience.lengths, audience.lengths + shrink
    left = (1 - 1 / every) ** 2 + (lengths - 1) / every**2
    mean = within * left + tastes.user_sd**2 * (shrink / every) ** 2
    noise = 2 * tastes.noise_spread * tastes.noise_sd**2 / within
    factors = tastes.factor_variances()
    variances = 2 / (lengths + 1) + noise**2 + 2 * float(factors @ factors) / within**2
    drawn = np.exp(np.sqrt(np.log1p(variances))[:, None] * _NODES)
    squares = mean[:, None] * drawn / drawn.mean(axis=1, keepdims=True)
    return _RowSquares(np.asarray(squares), variances)


def expected_factors(
    case: Case, audience: Audience, sums: Sums, told: Told, items: LearnedItems
) -> Found:
    """Return which latent factors stand out of the noisy second moment, and how well.

    Rows with a mean square above a limit are scaled down, and the trace tells by how much that is
    on average. Users with strong tastes have longer rows, so latent factors lose more: with s the
    relative mean square, E[u_k^2 | s] = 1 + beta (s - 1), beta = 2 l_k / (within var s).
    """
    tastes, chosen = case.tastes, audience.sizes * sums.singles
    within = tastes.within - tastes.item_sd**2 + float(chosen @ items.error / chosen.sum())
    rows = _row_squares(audience, tastes, within, told.shrink)
    limit, means = HEADROOM * told.rating, rows.squares.mean(axis=1)
    kept = np.minimum(1.0, limit / rows.squares).mean(axis=1)
    traces = np.minimum(rows.squares, limit).mean(axis=1)
    lost = float(audience.parts @ means / (audience.parts @ traces))
    lost = min(max(lost, 1.0), MOST_LOST)
    every = audience.lengths + told.shrink
    level = (1 - 1 / every) ** 2 + 1 / every**2
    users = lost * sums.users * audience.parts / audience.lengths * level

    def pairs(variance: float) -> Floats:
        beta = np.minimum(2 * variance / (within * rows.variances), 1.0)
        left = kept - beta * (kept - traces / means)
        return np.asarray((users * left) @ audience.rated**2)

    noise_model, variances = _noise_model(case, audience, sums, told.rating, lost)
    matrix = _matrix(_known(audience), noise_model, variances)
    scale = math.sqrt(sums.users) * audience.over_users(-0.5) / np.sqrt(pairs(0.0))
    return _spikes(tastes.factor_variances(), matrix, pairs, scale)


def _known(audience: Audience) -> Floats:
    """Return how many items of each group the second moment is of."""
    room = float(best_known("auto", np.ones(int(audience.sizes.sum()))).size)
    before = np.cumsum(audience.sizes) - audience.sizes
    return np.asarray(np.clip(room - before, 0.0, audience.sizes))


def _noise_model(
    case: Case, audience: Audience, sums: Sums, rating: float, lost: float
) -> tuple[NoiseModel, Floats]:
    """Return what the method will know of the second moment, and the variances of its entries."""
    noise_sd = lost * sums.noise[ReleaseKind.COVARIANCE] * HEADROOM * rating / math.sqrt(2.0)
    chance = max(1.0, HEADROOM * lost) * rating**2
    shares = audience.parts * sums.users / audience.lengths**2
    variances = noise_sd**2 + chance * (audience.rated.T * shares) @ audience.rated
    known = _known(audience)
    repeat = known.astype(np.int64)
    noise_model = NoiseModel(
        item_scale=np.repeat(sums.weights / math.sqrt(sums.users), repeat),
        noise_sd=noise_sd,
        sampling_sd=np.zeros(int(repeat.sum())),
        users=sums.users,
        single=lost * HEADROOM * rating,
        width=case.width,
        most=int(repeat.sum()),
        seed=0,
        uneven=np.repeat(variances @ known / known.sum(), repeat)[:, None],
    )
    return noise_model, variances


class _Matrix(NamedTuple):
    """The second moment as the method will see it, by groups of items that it is of.

    Attributes:
        noise_model: what the method knows, item by item.
        known: which groups it is of.
        sizes: how many items of each.
        weights: d, how much an item counts.
        variances: of the entries, before they are weighted.
        noise: the weighted noise.
        top: the eigenvalue that a latent factor must pass.
    """

    noise_model: NoiseModel
    known: NDArray[np.bool_]
    sizes: Floats
    weights: Floats
    variances: Floats
    noise: Noise
    top: float

    def written_out(self, groups: Floats) -> Floats:
        """Return a number for each item from one for each group."""
        return np.repeat(groups, self.sizes.astype(np.int64))

    def firsts(self) -> NDArray[np.int64]:
        """Return the first item of each group."""
        return _firsts(self.sizes.astype(np.int64))


def _matrix(known: Floats, noise_model: NoiseModel, variances: Floats) -> _Matrix:
    """Return the second moment of the items that are rated most."""
    there = known > 0
    sizes, variances = known[there], variances[np.ix_(there, there)]
    weights = noise_model.weights()[_firsts(sizes.astype(np.int64))]
    weighted = variances * np.outer(weights, weights) ** 2
    noise = Noise(weighted, sizes)
    top = _top(noise.edge, noise_model, weighted, sizes, weights)
    return _Matrix(noise_model, there, sizes, weights, variances, noise, top)


def _spikes(
    factors: Floats, matrix: _Matrix, pairs_of: Callable[[float], Floats], scale: Floats
) -> Found:
    """Return the latent factors that stand out of the noise, and how well they are found.

    `scale` is q_j / sqrt(N_jj), by which the method brings loadings to those of pairs of items.
    """
    squares = matrix.weights**2
    seen = []
    for size in factors[factors > 0]:
        spike = matrix.noise.spike(squares * pairs_of(size)[matrix.known], float(size))
        if spike and spike.value > matrix.top:
            seen.append((float(size), spike))
    shape = (matrix.known.size, len(seen))
    along, energy, doubt = np.zeros(shape), np.zeros(shape), np.zeros(shape[0])
    for at, (size, spike) in enumerate(seen):
        loadings, unsure = _loadings(matrix, spike)
        loadings = loadings * scale[matrix.known]
        pairs = pairs_of(size)[matrix.known]
        cosine = spike.signal * matrix.weights * np.sqrt(pairs * size / spike.energy)
        energy[matrix.known, at] = loadings**2
        along[matrix.known, at] = loadings * math.sqrt(size) * cosine
        doubt[matrix.known] += unsure
    smallest = matrix.noise.size_at(squares * pairs_of(0.0)[matrix.known], matrix.top)
    return Found(along, energy, doubt, smallest)


def _loadings(matrix: _Matrix, spike: Spike) -> tuple[Floats, Floats]:
    """Return the root mean square of the loadings that the method makes of a spike, and doubt."""
    top = matrix.top
    value = (spike.value + math.sqrt(spike.value**2 - top**2)) / 2
    rough = np.sqrt(spike.energy * value) / matrix.weights
    seen = matrix.sizes * matrix.weights**2 * spike.energy
    found = shrunk_loadings(
        matrix.written_out(rough)[:, None],
        matrix.written_out(matrix.variances @ seen / value)[:, None],
        np.array([max(1 - (top / 2) ** 2 / value**2, 1e-3)]),
        matrix.noise_model,
        matrix.written_out(matrix.weights**4),
    )
    firsts = matrix.firsts()
    return found.loadings[firsts, 0], found.doubt[firsts]


def _top(
    edge: float, noise_model: NoiseModel, variances: Floats, sizes: Floats, weights: Floats
) -> float:
    """Return the eigenvalue that a latent factor must pass (estimation.spiked_covariance)."""
    energy = variances @ sizes
    count = float((sizes @ energy) ** 2 / max(float(sizes @ energy**2), 1e-300))
    few = noise_model.single * (1 + 10 / noise_model.users) * float(weights.max()) ** 2
    return edge * margin_over_noise(int(sizes.sum()), count) + few
