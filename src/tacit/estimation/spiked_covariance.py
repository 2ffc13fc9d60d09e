"""Latent factors by eigenvalue shrinkage (spiked Wigner model), from a noisy second moment.

All of it is post-processing. The released matrix is S = Q F F^T Q + noise off its diagonal,
Q = diag(q) with q_j how much is known of item j. Noise is that of the release, of sd s, and
that of there being so many users and no more, of variance about h_j h_k.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import eigsh

from tacit.estimation.cooccurrence import CoRatings

Floats = NDArray[np.float64]
Product = Callable[[Floats, int], Floats]

MOST_DIRECTIONS = 200
_MATRIX_ITEMS = 4000  # that a released items-by-items matrix is of at the most, if not asked for
_FEWEST_ITEMS, _FEWEST_RATINGS = 20, 8.0  # that a matrix of popular items is of
_FIRST = 32  # directions that are sought at first
_ROUNDS = 8  # in which the diagonal is filled in
_MANY = 500  # items: with more, the leading eigenpairs are sought by themselves
_SOLVED = 1e-6  # how far eigenvalues may be off, relative to themselves
_FEWEST_PAIRS = 0.25  # of those expected if all users were alike
_SLIGHT = 1e-3  # of the largest eigenvalue: what is left out after a division
_TYPICAL = 0.05  # of a factor's entries, over the rating range: how items are weighed


class NoiseModel(NamedTuple):
    """The public numbers of the estimate.

    Attributes:
        item_scale: q, for each item.
        noise_sd: of an entry off the diagonal, or of an entry of a product.
        sampling_sd: h, for each item.
        users: how many there are.
        width: hi - lo.
        single: the most that one user adds to an eigenvalue of S.
        most: the most directions that are kept.
        seed: of the noise that is drawn to know how large an eigenvalue noise alone has.
        uneven: the variance of each entry of a matrix, where it is not s^2 + h_j h_k.
    """

    item_scale: Floats
    noise_sd: float
    sampling_sd: Floats
    users: float
    width: float
    single: float
    most: int
    seed: int
    uneven: Floats | None = None

    def weights(self) -> Floats:
        """Return how much each item counts when directions are sought: little where noise rules.

        d_j = q_j / sqrt(q_j^2 + t), t = s^2 / (l^2 sum q^2), with l the variance that a factor
        typically has; and entries of unequal noise are made equal.
        """
        squares = self.item_scale**2
        prior = (_TYPICAL * self.width) ** 2
        doubt = self.noise_sd**2 / (prior**2 * max(float(squares.sum()), 1e-300))
        noise = np.sqrt(self.noise_sd**2 + self.sampling_sd**2)
        if self.uneven is not None:
            noise = self.uneven.mean(axis=1)
        noise = np.maximum(noise, 1e-300)
        even = np.sqrt(float(np.mean(noise)) / noise)
        hot = np.sqrt(squares / np.maximum(squares + doubt, 1e-300))
        return np.asarray(hot * np.minimum(even, 10.0))

    def variances(self) -> Floats:
        """Return the variance of each entry of a matrix."""
        if self.uneven is not None:
            return self.uneven
        return np.asarray(self.noise_sd**2 + np.outer(self.sampling_sd, self.sampling_sd))


class Factors(NamedTuple):
    """F, items by directions, and for each item the variance that F leaves in doubt."""

    loadings: Floats
    doubt: Floats


def best_known(eigen: str, weights: Floats) -> NDArray[np.int64]:
    """Return the items that a released matrix is of: all, or for "auto" the 4000 rated most."""
    most = weights.size if eigen == "exact" else _MATRIX_ITEMS
    return np.sort(np.argsort(-weights, kind="stable")[:most])


def readable_items(weights: Floats, length: float, count: int) -> NDArray[np.int64] | None:
    """Return the `count` items that are rated most, in rising order; None where that is all.

    There are at least 20 and at most 4000, and so many that users have rated 8 of them on average:
    of all items they have rated `length`. A matrix of these items, of rows of their ratings alone,
    has the noise of so few items and the same signal as one of all, where rows are divided by the
    root of all that users rated.
    """
    order = np.argsort(-weights, kind="stable")
    ratings = length * np.cumsum(weights[order]) / max(float(weights.sum()), 1e-300)
    fewest = max(int(np.searchsorted(ratings, _FEWEST_RATINGS)) + 1, _FEWEST_ITEMS)
    size = max(count, fewest)
    return np.sort(order[: min(size, _MATRIX_ITEMS)]) if size < weights.size else None


def form_of(eigen: str, items: int) -> str:
    """Return the form that is used: "auto" is exact where there are no more items than it takes."""
    return "exact" if eigen == "auto" and items <= _MATRIX_ITEMS else eigen


def factors_of_matrix(matrix: Floats, noise_model: NoiseModel) -> Factors:
    """Return item factors from a released symmetric matrix.

    D S D is decomposed, D the weights. Its diagonal, which rating noise swells, is replaced by that
    of the fit, and again. Directions count if their eigenvalue passes what noise alone, drawn here,
    has; an eigenvalue w that noise has lifted is brought down to (w + sqrt(w^2 - 4 c))/2, c the
    square of half the noise's own (the rule for a spike in a Wigner matrix).
    """
    weights = noise_model.weights()
    top = _top_of_noise(noise_model, weights)
    values, vectors = _spikes(matrix * np.outer(weights, weights), top, noise_model.most)
    if values.size == 0:
        return _none(noise_model)
    rough = vectors * np.sqrt(values) / np.maximum(weights, 1e-12)[:, None]
    seen = (weights[:, None] * vectors) ** 2
    variance = noise_model.variances() @ seen
    kept = np.maximum(1 - (top / 2) ** 2 / values**2, 1e-3)
    return shrunk_loadings(rough, variance / values, kept, noise_model, weights**4)


def debias(factors: Factors, item_scale: Floats, pairs: Floats) -> Factors:
    """Return factors of q_j q_k (F F^T)_jk / N_jk: what was found as if pairs N had been q q^T.

    Noise is spread evenly over S and not over S/N; so directions are sought in S, and what is found
    is divided afterwards. N is taken to be at least a quarter of q q^T: for two items that few
    people rated it is an estimate from next to nothing, and can be zero. There are no more
    factors afterwards than were found.
    """
    scaled = factors.loadings * item_scale[:, None]
    found = scaled.shape[1]
    if found == 0:
        return factors
    expected = np.outer(item_scale, item_scale)
    matrix = scaled @ scaled.T * expected / np.maximum(pairs, _FEWEST_PAIRS * expected)
    values, vectors = _leading(matrix, found)
    kept = values > _SLIGHT * values[-1]
    loadings = vectors[:, kept] * np.sqrt(values[kept])
    loadings /= np.maximum(item_scale, 1e-300)[:, None]
    return factors._replace(loadings=np.ascontiguousarray(loadings))


def of_all_items(
    factors: Factors, own: Floats, known: NDArray[np.int64], rated: CoRatings
) -> tuple[Factors, Floats]:
    """Return factors and own variances of all items from those of the best-known ones.

    The others have no loadings; what theirs would explain, as much as on average, is in doubt.
    """
    items = rated.weights.size
    if known.size == items:
        return factors, own
    energy = np.sum(factors.loadings**2, axis=1)
    share = rated.shares[known]
    doubt = np.full(items, float(share @ energy / share.sum()))
    loadings, every = np.zeros((items, factors.loadings.shape[1])), np.zeros(items)
    loadings[known], doubt[known], every[known] = factors.loadings, factors.doubt, own
    return Factors(loadings, doubt), every


def start_of_products(noise_model: NoiseModel, columns: int) -> Floats:
    """Return a public random block of orthonormal columns, mostly of well-known items."""
    rng = np.random.default_rng(noise_model.seed)
    block = rng.standard_normal((noise_model.item_scale.size, columns))
    return np.linalg.qr(block * noise_model.weights()[:, None])[0]


def factors_by_products(
    multiply: Product, block: Floats, steps: int, noise_model: NoiseModel
) -> Factors:
    """Return item factors from noisy products S V only: nothing items-by-items exists.

    V <- the orthonormal columns of D^2 (S - diag) V, `steps` times, and the last product gives the
    loadings. The diagonal, which cannot be told, is taken to be that of the sampling noise.
    """
    diagonal = (noise_model.sampling_sd * math.sqrt(noise_model.users))[:, None]
    squares = noise_model.weights()[:, None] ** 2
    for step in range(1, steps):
        block = np.linalg.qr(squares * (multiply(block, step) - diagonal * block))[0]
    last = multiply(block, steps) - diagonal * block
    values, turn = np.linalg.eigh((block.T @ last + last.T @ block) / 2)
    spread = float(squares.sum() ** 2 / max(float((squares**2).sum()), 1e-300))
    kept_noise = noise_model.noise_sd**2 + float(np.mean(noise_model.sampling_sd)) ** 2
    top = 2 * math.sqrt(kept_noise * spread) + noise_model.single * (1 + 10 / noise_model.users)
    keep = values > max(top, 1e-9 * float(np.abs(values).max()))
    if not keep.any():
        return _none(noise_model)
    values, block = values[keep], block @ turn[:, keep]
    rough = last @ turn[:, keep] / np.sqrt(values)
    variance = noise_model.noise_sd**2 + np.outer(
        noise_model.sampling_sd, noise_model.sampling_sd @ block**2
    )
    kept = np.maximum(1 - (top / 2) ** 2 / values**2, 1e-3)
    return shrunk_loadings(rough, variance / values, kept, noise_model, squares[:, 0] ** 2)


def _spikes(matrix: Floats, top: float, most: int) -> tuple[Floats, Floats]:
    """Return the eigenpairs that noise cannot have made, with the lift of noise taken off."""
    items = len(matrix)
    diagonal = np.zeros(items)
    wanted = min(_FIRST, items)
    for _ in range(_ROUNDS):
        np.fill_diagonal(matrix, diagonal)
        values, vectors = _above(matrix, top, wanted)
        values, vectors = values[-most:], vectors[:, -most:]
        values = (values + np.sqrt(np.maximum(values**2 - top**2, 0.0))) / 2
        diagonal = np.sum(vectors**2 * values, axis=1)
        wanted = min(values.size + 8, items)
    return values, vectors


def _above(matrix: Floats, top: float, wanted: int) -> tuple[Floats, Floats]:
    """Return the eigenpairs above `top`; more are sought until the last one is not."""
    while True:
        values, vectors = _leading(matrix, wanted)
        floor = max(top, 1e-9 * float(values.max(initial=0.0)), 1e-300)
        if values[0] <= floor or wanted == len(matrix):
            return values[values > floor], vectors[:, values > floor]
        wanted = min(2 * wanted, len(matrix))


def _leading(matrix: Floats, wanted: int) -> tuple[Floats, Floats]:
    """Return the largest eigenvalues, in rising order, with their vectors."""
    items = len(matrix)
    if items > _MANY and wanted < items // 5:
        values, vectors = eigsh(matrix, k=wanted, which="LA", v0=np.ones(items), tol=_SOLVED)
        order = np.argsort(values)
        return values[order], vectors[:, order]
    values, vectors = np.linalg.eigh(matrix)
    return values[-wanted:], vectors[:, -wanted:]


def _largest(matrix: Floats) -> float:
    """Return the largest eigenvalue; without vectors a small matrix takes half the time."""
    values = _leading(matrix, 1)[0] if len(matrix) > _MANY else np.linalg.eigvalsh(matrix)
    return float(values[-1])


def _top_of_noise(noise_model: NoiseModel, weights: Floats) -> float:
    """Return an eigenvalue that noise alone does not pass, nor a few users by chance.

    The largest of several weighted matrices of noise alone, and some n^(-2/3) of it for how much
    it varies, n the number of items that count: the more, the fewer were drawn. And what one user
    adds, or a few where there are no more.
    """
    items = weights.size
    draws = _draws(items)
    rng = np.random.default_rng(noise_model.seed)
    sd = np.sqrt(noise_model.variances()) * np.outer(weights, weights)
    tops = []
    for _ in range(draws):
        upper = np.triu(rng.standard_normal((items, items)) * sd, 1)
        tops.append(_largest(upper + upper.T))
    few = noise_model.single * (1 + 10 / noise_model.users) * _longest_row(noise_model, weights)
    energy = np.sum(sd**2, axis=1)
    count = float(energy.sum() ** 2 / max(float(energy @ energy), 1e-300))
    return float(max(tops) * margin_over_noise(items, count) + few)


def _longest_row(noise_model: NoiseModel, weights: Floats) -> float:
    """Return the squared norm that the weights make of a row of norm 1, as far as is usual.

    It is the mean of weights^2 over her items: what it is on average, three times, and never more
    than for a row of the item with the largest weight. (Rare items weigh most, and nobody rates
    only those; taken for all, they would hide every factor where there is no noise.)
    """
    shares = noise_model.sampling_sd / max(float(noise_model.sampling_sd.sum()), 1e-300)
    return min(float(np.max(weights)) ** 2, 3 * float(shares @ weights**2))


def margin_over_noise(items: int, count: float) -> float:
    """Return by how much the largest eigenvalue of drawn noise is raised; `count` items matter."""
    return float(1 + (0.25 + 8 / _draws(items)) * max(count, 1.0) ** (-2 / 3))


def _draws(items: int) -> int:
    """Return how many matrices of noise alone are drawn."""
    return max(4, min(20, 8000 // items))


def shrunk_loadings(
    rough: Floats, variance: Floats, kept: Floats, noise_model: NoiseModel, trust: Floats
) -> Factors:
    """Shrink each item's loadings by how much of them is noise, and say what is left in doubt.

    A rough loading is cos b_jk + noise of the given variance, b_jk ~ N(0, q_j^2 l_k), cos^2 =
    `kept`. l_k is matched to the loadings of well-known items, and their energy is kept.
    """
    squares, trust = noise_model.item_scale[:, None] ** 2, trust[:, None]
    over = np.sum(trust * squares * (rough**2 - variance), axis=0) / kept
    prior = squares * np.maximum(over / np.maximum(np.sum(trust * squares**2, axis=0), 1e-300), 0)
    total = np.maximum(kept * prior + variance, 1e-300)
    slope = np.sqrt(kept) * prior / total
    before, after = np.sum(trust * rough**2, axis=0), np.sum(trust * (slope * rough) ** 2, axis=0)
    slope = np.minimum(1.0, slope * np.sqrt(before / np.maximum(after, 1e-300)))
    item_scale = np.maximum(noise_model.item_scale, 1e-300)
    doubt = np.sum(prior * variance / total, axis=1) / item_scale**2
    return Factors(np.ascontiguousarray(slope * rough / item_scale[:, None]), doubt)


def _none(noise_model: NoiseModel) -> Factors:
    items = noise_model.item_scale.size
    return Factors(np.zeros((items, 0)), np.zeros(items))
