"""The baseline of McSherry and Mironov: a cleaned noisy covariance ("SVD after cleansing")."""

import math
from dataclasses import dataclass, fields
from typing import Annotated, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from tacit._validate import Count, Positive, Range, Seed, Validated, refuse
from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.algorithms.base import Facts
from tacit.algorithms.preparation import default_ridge, public_settings
from tacit.models.linear import RidgeRule
from tacit.models.neighbours import NeighbourRule
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ItemSums, ResidualCovariance

Floats = NDArray[np.float64]

_SUMS = Release(ReleaseKind.ITEM_SUMS)
_COVARIANCE, _CO_RATINGS = (
    Release(kind, (1,)) for kind in (ReleaseKind.COVARIANCE, ReleaseKind.CO_RATINGS)
)


_Share = Annotated[float, Range(0, 1, "(]")]


@dataclass(frozen=True, kw_only=True)
class Cleansing(Validated):
    """Private means, a private weighted covariance, cleaning, and a local rule on top.

    1. The global mean G and item means, shrunk: (sum_j + beta_m G) / (weight_j + beta_m).
    2. Each user centres her ratings by these and by her own mean, shrunk as if she had beta_p
       more ratings, and clips what is left to [-B, B].
    3. Releases Cov = sum_i z_i z_i^T / d_i and Wgt = sum_i e_i e_i^T / d_i, e_i the 0/1 row of
       what she rated and d_i how many that is.
    4. Cleaning, then the leading eigenvectors:
       "constant": C = (Cov + beta c) / (Wgt + beta), c = sum Cov / sum Wgt. It is ours.
       "mm09": C = (Cov + beta avg(Cov)) / (Wgt + beta avg(Wgt)), with averages and a beta of their
       own for the diagonal; eigenvectors are those of s_j C_jk s_k, s_j^2 = weight_j + beta_m,
       whose entries have about the same variance, and are scaled back by 1/s_j.
    5. Locally: ridge regression on those ("factors"), or the nearest neighbours by correlation.

    *Paper:* [MM09], the baseline of Section 4. beta_m, beta and the weights count in weighted
    ratings, each worth 1/sqrt(d) or 1/d.
    *Guarantee:* ItemSums; a ResidualCovariance with rows z/sqrt(d) of norm at most B; another
    with rows e/sqrt(d) of norm at most 1.
    """

    name: ClassVar[str] = "cleansing"

    rank: Count = 10
    """Eigenvectors that are kept."""
    local: Literal["factors", "neighbours"] = "factors"
    """What users do with the cleaned covariance."""
    nearest: Count = 20
    """How many neighbours, for "neighbours"."""
    clip: Positive | None = None
    """B; None: (hi - lo)/4."""
    beta_m: Positive = 10.0
    """Shrinking of item means; the paper tunes it in [5, 15]."""
    beta_p: Positive = 10.0
    """Shrinking of users' own means; the paper tunes it in [5, 15]."""
    beta: Positive = 15.0
    """Shrinking of the covariance; the paper tunes it in [5, 25]."""
    cleaning: Literal["constant", "mm09"] = "constant"
    """How the covariance is shrunk: towards its mean as if each pair had been seen `beta` more
    times, or `beta` times as often as the average pair."""
    beta_diagonal: Positive | None = None
    """Shrinking of the diagonal, for "mm09"; None: as `beta`."""
    max_ratings: Count | None = 80
    """At most this many ratings of a user count; None: all."""
    shares: tuple[_Share, _Share, _Share] = (0.1, 0.6, 0.3)
    """Shares of the budget: for the means, the covariance and its weights."""
    sampling_seed: Seed = 0
    """The random seed for choosing at most max_ratings ratings of a user."""

    def __post_init__(self) -> None:
        """Check every setting."""
        super().__post_init__()
        if sum(self.shares) > 1 + 1e-9:
            refuse("shares", self.shares, "three positive shares of at most 1 in all")

    def reserve(self, ledger: Ledger, facts: Facts) -> None:
        """Reserve the three releases."""
        centred, present = self._centred(facts, _zeros(facts)), self._present(facts)
        parts = (
            (_SUMS, ItemSums(present, facts.rating_range).sensitivity),
            (_COVARIANCE, ResidualCovariance(centred, (), centred.clip).sensitivity),
            (_CO_RATINGS, ResidualCovariance(present, (), 1.0).sensitivity),
        )
        for (release, bound), share in zip(parts, self.shares, strict=True):
            ledger.reserve(release, bound, share)

    def run(self, mechanism: Mechanism, facts: Facts) -> RidgeRule | NeighbourRule:
        """Make the three releases and clean up."""
        plain = RowBounds(self.max_ratings, _zeros(facts), False, math.inf, self.sampling_seed)
        sums = mechanism.release(_SUMS, ItemSums(plain, facts.rating_range))
        offsets = self._means(sums, facts.rating_range)
        centred, present = self._centred(facts, offsets), self._present(facts)
        noisy = mechanism.release(_COVARIANCE, ResidualCovariance(centred, (), centred.clip))
        weight = mechanism.release(_CO_RATINGS, ResidualCovariance(present, (), 1.0))
        factors = self._factors(noisy, np.maximum(weight, 0.0), np.maximum(sums[1], 0.0))
        if self.local == "neighbours":
            covariance = factors @ factors.T
            return NeighbourRule(covariance, offsets, self.nearest, 1.0, self.beta_p)
        return RidgeRule(
            factors=np.ascontiguousarray(factors),
            offsets=offsets,
            noise=np.full(facts.n_items, default_ridge(facts.rating_range)),
            centre=True,
            shrink=self.beta_p,
            source=ReleaseKind.COVARIANCE,
        )

    def public(self, facts: Facts) -> dict[str, str]:
        """Name the settings, with the values that were used."""
        used = {field.name: getattr(self, field.name) for field in fields(self)}
        return public_settings(self.name, used | {"clip": self._clip(facts)})

    def _clip(self, facts: Facts) -> float:
        lo, hi = facts.rating_range
        return (hi - lo) / 4 if self.clip is None else self.clip

    def _centred(self, facts: Facts, offsets: Floats) -> RowBounds:
        clip = self._clip(facts)
        return RowBounds(
            self.max_ratings, offsets, True, clip, self.sampling_seed,
            bias_shrinkage=self.beta_p, clip=clip, by_sqrt_count=True,
        )  # fmt: skip

    def _present(self, facts: Facts) -> RowBounds:
        return RowBounds(
            self.max_ratings, _zeros(facts), False, 1.0, self.sampling_seed,
            by_sqrt_count=True, binarise=True,
        )  # fmt: skip

    def _means(self, sums: Floats, rating_range: tuple[float, float]) -> Floats:
        """Return the shrunk item means on the scale of the ratings."""
        middle, half = sum(rating_range) / 2, (rating_range[1] - rating_range[0]) / 2
        weights = np.maximum(sums[1], 0.0)
        overall = float(np.clip(sums[0].sum() / max(sums[1].sum(), 1.0), -1.0, 1.0))
        means = (sums[0] + self.beta_m * overall) / (weights + self.beta_m)
        return np.asarray(middle + half * np.clip(means, -1.0, 1.0))

    def _factors(self, noisy: Floats, weight: Floats, counts: Floats) -> Floats:
        """Return F with F F^T the cleaned covariance; weights below zero count as none."""
        if self.cleaning == "constant":
            mean = noisy.sum() / max(weight.sum(), 1.0)
            return _leading((noisy + self.beta * mean) / (weight + self.beta), self.rank)
        diagonal = self.beta if self.beta_diagonal is None else self.beta_diagonal
        scale = np.sqrt(counts + self.beta_m)
        cleaned = _shrunk_to_averages(noisy, weight, self.beta, diagonal)
        return _leading(cleaned * np.outer(scale, scale), self.rank) / scale[:, None]


def _shrunk_to_averages(noisy: Floats, weight: Floats, beta: float, diagonal: float) -> Floats:
    """Return (Cov + beta avg(Cov)) / (Wgt + beta avg(Wgt)), the diagonal apart; 0 for 0/0."""
    on = np.eye(len(noisy), dtype=bool)
    cleaned = np.zeros_like(noisy)
    for part, strength in ((on, diagonal), (~on, beta)):
        if part.any():
            above = noisy[part] + strength * noisy[part].mean()
            below = weight[part] + strength * weight[part].mean()
            cleaned[part] = np.divide(above, below, out=np.zeros_like(above), where=below > 0)
    return cleaned


def _leading(matrix: Floats, rank: int) -> Floats:
    """Return the leading eigenvectors, each times the root of its eigenvalue (0 if negative)."""
    values, vectors = eigh(matrix)
    return np.asarray(vectors[:, -rank:] * np.sqrt(np.maximum(values[-rank:], 0.0)))


def _zeros(facts: Facts) -> Floats:
    return np.zeros(facts.n_items)
