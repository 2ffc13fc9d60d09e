"""Private alternating least squares, after DPALS (Chien et al., 2021)."""

import math
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit._resources import check_memory
from tacit._validate import Count, Positive, Range, Seed, Validated
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import public_settings, reserve_user_count, user_count
from tacit.estimation.eigen import start_block
from tacit.estimation.empirical_bayes import item_means
from tacit.models.linear import RidgeRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ItemSums, NormalEquations, equations_sensitivity

Floats = NDArray[np.float64]

_SUMS = Release(ReleaseKind.ITEM_SUMS)
_START_SPREAD = 0.12  # root mean square of u . v_j at the start, per hi - lo
_MOST_SPREAD = 0.25  # of u . v_j at any time, per hi - lo: more is noise
_LEAST_EIGENVALUE = 0.3  # of an item's G_j beside the one that it is expected to have


@dataclass(frozen=True, kw_only=True)
class ALS(Validated):
    """Alternating least squares: noisy normal equations of the item factors V, round by round.

    1. Item sums give offsets, and how often items are rated: their weights are count^-alpha.
    2. In each round everyone solves for her own factors u_i on her own ratings (local, free);
       G_j = sum_i w_ij u_i u_i^T and b_j = sum_i w_ij y_ij u_i are released with noise.
    3. The singular values of b (all items) are shrunk by what noise adds to them. G_j is averaged
       with what is expected of it, count_j times the mean of all G, as their noise suggests, and
       made positive definite. v_j = G_j^-1 b_j, in coordinates in which u has unit spread.

    *Paper:* none; Chien et al., ICML 2021, with the weights of Krichene et al., ICML 2023.
    docs/algorithms/als.md says what differs.
    *Guarantee:* ItemSums, then NormalEquations in every round.
    """

    name: ClassVar[str] = "als"

    rank: Annotated[int, Range(1, 1000)] | None = None
    """Columns of V; noise may leave fewer. None: 16, or 8 where noise is strong."""
    start_rank: Annotated[int, Range(1, 1000)] | None = None
    """Columns of the public V of the first round; None: twice the rank."""
    rounds: Annotated[int, Range(1, 100)] | None = None
    """T: releases of normal equations; None: 5, or 3 where noise is strong."""
    means_share: Annotated[float, Range(0, 0.9, "()")] = 0.1
    """Share of the budget for item sums."""
    clip: Positive | None = None
    """B: what is left of a rating is clipped to [-B, B]; None: 0.3 (hi - lo)."""
    reach: Annotated[float, Range(1e-6, 1e6)] = 0.5
    """C, per norm that factors are expected to have: those of length beyond it are clipped."""
    ratio: Annotated[float, Range(1e-6, 1e6)] = math.sqrt(2.0)
    """rho: the scale of b beside G in their joint release."""
    alpha: Annotated[float, Range(0, 1)] = 0.25
    """The power in the item weights, count^-alpha: above 0 rare items get more; 0: equal."""
    frequent: Annotated[float, Range(0, 1e6)] = 8.0
    """Items whose count is not above so many sds of its noise are left out: they have v_j = 0."""
    pooling: bool = True
    """Whether G_j is averaged with its expectation; False: as in DPALS."""
    ridge: Positive | None = None
    """The variance of rating noise that users' own regressions assume; None: (hi - lo)^2/20."""
    shrink: Annotated[float, Range(0, 1e6)] = 5.0
    """Users' own means are taken as if they had this many more ratings at zero; by rule, fewer."""
    max_ratings: Count | None = None
    """At most this many ratings of a user count; None: all."""
    sampling_seed: Seed = 0
    """The random seed for choosing at most max_ratings ratings of a user."""
    start_seed: Seed = 0
    """The random seed of the public V that it begins with."""

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve item sums, normal equations for each round, and users where they are needed."""
        columns = self._start_rank(facts)
        needed = 8 * facts.n_items * columns * (columns + 1) * 6
        check_memory(
            needed,
            f"{facts.n_items} items times {columns}^2 numbers would need more memory",
            "use a smaller start_rank and rank, or fewer items",
        )
        left = 1.0 - self.means_share - reserve_user_count(ledger, facts)
        ledger.reserve(_SUMS, self._item_sums(facts).sensitivity, self.means_share)
        rounds = self._rounds(facts)
        for turn in range(1, rounds + 1):
            ledger.reserve(_equations_of(turn), equations_sensitivity(self.ratio), left / rounds)

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule:
        """Alternate; users solve once more on the factors that come out."""
        users = round(user_count(mechanism, facts))
        sums = mechanism.release(_SUMS, self._item_sums(facts))
        noise_sd = mechanism.noise_sd(_SUMS)
        offsets = item_means(sums, noise_sd, facts.rating_range)
        items = _items(sums[1], noise_sd, self.alpha, self.frequent)
        length = min(max((items.total / users) ** 2, 1.0), float(self._most(facts)))
        bounds = self._bounds(facts, offsets, self._own_shrink(sums[1], noise_sd, facts))
        factors, rounds = self._start(facts), self._rounds(facts)
        for turn in range(1, rounds + 1):
            statistic = self._statistic(facts, bounds, items, factors, length)
            noisy = mechanism.release(_equations_of(turn), statistic)
            equations = _equations(noisy, mechanism.noise_sd(_equations_of(turn)), statistic)
            factors = self._solved(equations, items, last=turn == rounds)
            factors = _limited(factors, _MOST_SPREAD * facts.width)[:, : self._rank(facts)]
        return self._rule(facts, bounds, factors)

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        used |= {"rank": self._rank(facts), "start_rank": self._start_rank(facts)}
        used |= {"rounds": self._rounds(facts)}
        used |= {"clip": self._clip(facts), "ridge": self._ridge(facts)}
        return public_settings(self.name, used | {"max_ratings": self._most(facts)})

    def _statistic(
        self, facts: Facts, bounds: RowBounds, items: "_Items", factors: Floats, length: float
    ) -> NormalEquations:
        """Return the next release: everyone's factors are clipped to `reach` of what is expected.

        u has the prior N(0, I). For a user with `length` ratings in the usual proportions, who has
        the precision I + H, the squared norm of her u is expected to be the trace of H (I + H)^-1.
        """
        noise = np.full(facts.n_items, self._ridge(facts))
        rated = length * items.counts / items.total
        known = np.linalg.eigvalsh((factors.T * (rated / noise)) @ factors)
        squared = float(np.sum(known / (1.0 + known)))
        reach = self.reach * math.sqrt(max(squared, 1e-12))
        return NormalEquations(bounds, factors, noise, items.weights, reach, self.ratio)

    def _solved(self, equations: "_Equations", items: "_Items", *, last: bool) -> Floats:
        """Return V, principal columns first, from one round's release."""
        left, values, right = np.linalg.svd(equations.right, full_matrices=False)
        kept = _shrunk(values, equations.right.shape, equations.right_sd, strictly=last)
        right_sides = (left * kept) @ right
        pooled = _pooled(equations, items)
        root = _inverse_root(pooled)
        grams = root @ equations.grams @ root
        trust = _trust(equations, items, pooled) if self.pooling else np.ones(items.counts.size)
        expected = items.expected[:, None, None] * np.eye(root.shape[0])
        grams = trust[:, None, None] * grams + (1 - trust)[:, None, None] * expected
        factors = _divided(right_sides @ root, grams, items.expected)
        left, values, _ = np.linalg.svd(factors, full_matrices=False)
        return np.asarray((left * values)[:, : max(int(np.sum(kept > 0)), 1)])

    def _start(self, facts: Facts) -> Floats:
        """Return the public V of the first round."""
        columns = self._start_rank(facts)
        scale = _START_SPREAD * facts.width * math.sqrt(facts.n_items / columns)
        return scale * start_block(facts.n_items, columns, self.start_seed)

    def _rule(self, facts: Facts, bounds: RowBounds, factors: Floats) -> RidgeRule:
        return RidgeRule(
            factors=np.ascontiguousarray(factors),
            offsets=bounds.offsets,
            noise=np.full(facts.n_items, self._ridge(facts)),
            centre=True,
            shrink=bounds.bias_shrinkage,
            source=ReleaseKind.EQUATIONS,
        )

    def _bounds(self, facts: Facts, offsets: Floats, shrink: float) -> RowBounds:
        return RowBounds(
            self.max_ratings, offsets, True, math.inf, self.sampling_seed,
            bias_shrinkage=shrink, clip=self._clip(facts),
        )  # fmt: skip

    def _own_shrink(self, counts: Floats, noise_sd: float, facts: Facts) -> float:
        """Return how far own means are shrunk to the offsets: less where noise made those.

        shrink = s2/t for own means of variance t about the offsets; an error e of the overall mean
        makes it s2/(t + e^2).
        """
        noise = noise_sd * math.sqrt(counts.size)
        error = facts.width / 2 * noise / max(float(counts.sum()), noise, 1e-12)
        return self.shrink / (1 + self.shrink * error**2 / self._ridge(facts))

    def _item_sums(self, facts: Facts) -> ItemSums:
        zeros = np.zeros(facts.n_items)
        bounds = RowBounds(self.max_ratings, zeros, False, math.inf, self.sampling_seed)
        return ItemSums(bounds, facts.rating_range)

    def _clip(self, facts: Facts) -> float:
        return 0.3 * facts.width if self.clip is None else self.clip

    def _ridge(self, facts: Facts) -> float:
        return facts.width**2 / 20 if self.ridge is None else self.ridge

    def _most(self, facts: Facts) -> int:
        return min(self.max_ratings or facts.n_items, facts.n_items)

    def _rank(self, facts: Facts) -> int:
        rank = (8 if noise_is_strong(facts) else 16) if self.rank is None else self.rank
        return min(rank, facts.n_items)

    def _start_rank(self, facts: Facts) -> int:
        wanted = 2 * self._rank(facts) if self.start_rank is None else self.start_rank
        return min(wanted, facts.n_items)

    def _rounds(self, facts: Facts) -> int:
        return (3 if noise_is_strong(facts) else 5) if self.rounds is None else self.rounds


def _equations_of(turn: int) -> Release:
    return Release(ReleaseKind.EQUATIONS, (turn,))


def noise_is_strong(facts: Facts) -> bool:
    """Whether few columns and rounds are better, from public numbers only.

    It is so if mu m/n, the budget times users per item, is below 50, and where the number of users
    is protected.
    """
    if facts.budget is None:
        return False
    return facts.n_users is None or facts.budget.mu * facts.n_users / facts.n_items < 50


class _Items(NamedTuple):
    """What item sums say of items: counts (1/sqrt(d) each) and their total, and the weights.

    `expected` is about sum_i w_ij.
    """

    counts: Floats
    total: float
    weights: Floats
    expected: Floats


class _Equations(NamedTuple):
    """A release on the scale of u and y, and the noise sd of its two parts."""

    grams: Floats
    right: Floats
    gram_sd: float
    right_sd: float


def _items(noisy: Floats, noise_sd: float, alpha: float, frequent: float) -> _Items:
    """Return counts and weights of items; those that are too rare have none."""
    counts = np.maximum(noisy, max(noise_sd, 1e-9))
    chosen = noisy > frequent * noise_sd
    if not chosen.any():
        chosen[:] = True
    weights = np.where(chosen, (counts / counts.max()) ** -alpha, 0.0)
    total = float(counts.sum())
    usual = math.sqrt(float(np.sum(counts * weights**2)) / total)
    return _Items(counts, total, weights, counts * weights / usual)


def _equations(noisy: Floats, noise_sd: float, statistic: NormalEquations) -> _Equations:
    """Undo the scales of a release; the average with the transpose leaves G sd/sqrt2 of noise."""
    rank = noisy.shape[1]
    grams = (noisy[:, :, :rank] + noisy[:, :, :rank].transpose(0, 2, 1)) / 2
    square = statistic.reach**2
    scale = statistic.reach * statistic.bounds.clip / statistic.ratio
    right = noisy[:, :, rank]
    return _Equations(grams * square, right * scale, noise_sd * square, noise_sd * scale)


def _shrunk(values: Floats, shape: tuple[int, ...], noise_sd: float, *, strictly: bool) -> Floats:
    """Shrink singular values of a matrix with i.i.d. noise by what the noise adds.

    Strictly: as is best for one matrix of low rank (Gavish and Donoho 2017), where a value below
    sd (sqrt n + sqrt r) may be nothing but noise. Else by the energy of the noise in a column,
    (1 - n sd^2/s^2): a direction that is half noise is worth keeping for a round that follows.
    """
    if noise_sd == 0.0:
        return values
    longer, shorter = max(shape), min(shape)
    if not strictly:
        kept = values - longer * noise_sd**2 / np.maximum(values, 1e-300)
        return np.asarray(np.maximum(kept, 0.0))
    aspect, scale = shorter / longer, noise_sd * math.sqrt(longer)
    size = np.maximum(values / scale, 1e-300)
    inner = np.maximum((size**2 - aspect - 1) ** 2 - 4 * aspect, 0.0)
    return np.asarray(np.where(size > 1 + math.sqrt(aspect), scale * np.sqrt(inner) / size, 0.0))


def _pooled(equations: _Equations, items: _Items) -> Floats:
    """Return the mean of u u^T over all ratings, with eigenvalues no less than its noise."""
    rank = equations.right.shape[1]
    total = float(items.expected.sum())
    values, vectors = np.linalg.eigh(equations.grams.sum(axis=0) / total)
    noise = equations.gram_sd * math.sqrt(items.counts.size * rank) / total
    values = np.maximum(values, max(1e-3 * float(values[-1]), noise, 1e-12))
    return np.asarray((vectors * values) @ vectors.T)


def _inverse_root(matrix: Floats) -> Floats:
    """Return M^(-1/2) of a positive definite matrix."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def _trust(equations: _Equations, items: _Items, pooled: Floats) -> Floats:
    """Return how much each G_j counts beside its expectation, by empirical Bayes.

    G_j - expected_j M has the variance phi expected_j^2 + s^2/2 in an entry; phi is what noise does
    not explain, over all items.
    """
    noise = equations.gram_sd**2 / 2
    off = equations.grams - items.expected[:, None, None] * pooled
    squared = items.expected**2
    surplus = np.sum(np.mean(off**2, axis=(1, 2)) - noise) / np.sum(squared)
    signal = max(float(surplus), 0.0) * squared
    return np.asarray(signal / np.maximum(signal + noise, 1e-300))


def _divided(right: Floats, grams: Floats, expected: Floats) -> Floats:
    """Return G_j^-1 b_j for every item; eigenvalues of G_j are kept away from zero.

    Items that are left out have zero factors.
    """
    values, vectors = np.linalg.eigh(grams)
    values = np.maximum(values, _LEAST_EIGENVALUE * np.maximum(expected, 1e-300)[:, None])
    along = np.einsum("jk,jkl->jl", right, vectors) / values
    factors = np.einsum("jl,jkl->jk", along, vectors)
    return np.where(expected[:, None] > 0, factors, 0.0)


def _limited(factors: Floats, most: float) -> Floats:
    """Scale V down where the root mean square of u . v_j would be beyond what ratings can have."""
    spread = math.sqrt(float(np.mean(np.sum(factors**2, axis=1))))
    return factors * min(1.0, most / max(spread, 1e-300))
