"""What a forecast assumes of ratings: how far they vary and why, and who rates what."""

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from tacit._validate import Range, Validated

Floats = NDArray[np.float64]

_STRATA = 7  # of users, by how many ratings they have
_GROUPS = 32  # of items, by how often they are rated
_ZIPF_OFFSET = 5.0
_USUAL = {"item_sd": 0.11, "user_sd": 0.1, "noise_sd": 0.19}  # of the width of the range


@dataclass(frozen=True, kw_only=True)
class Tastes(Validated):
    r"""Guesses of how ratings vary, from public knowledge and never from the ratings themselves.

    A rating is $y_{ij} = g + q_j + b_i + \sum_k u_{ik} f_{jk} + e_{ij}$: the item effect $q_j$ has
    sd `item_sd`, the user bias $b_i$ sd `user_sd`, the rest $e_{ij}$ sd `noise_sd`. The latent
    factors have $u_{ik} \sim N(0, 1)$ and $f_{jk} \sim N(0, l_k)$.

    >>> usual = Tastes.usual((0.5, 5.0))
    >>> round(usual.item_sd, 3), round(usual.noise_sd, 3), round(usual.factor_variance, 3)
    (0.495, 0.855, 0.244)
    """

    item_sd: Annotated[float, Range(0, 1e9)]
    user_sd: Annotated[float, Range(0, 1e9)]
    noise_sd: Annotated[float, Range(1e-9, 1e9)]
    factors: Annotated[int, Range(1, 1000)] = 12
    """How many latent factors there are."""
    factor_share: Annotated[float, Range(0, 0.99)] = 0.25
    """The part of the variance beyond user bias and item effects that latent factors explain."""
    factor_decay: Annotated[float, Range(0.01, 1)] = 0.75
    """How much of a factor's variance the next one has."""
    skew: Annotated[float, Range(0, 3)] = 0.8
    """The item of rank r is chosen in proportion to (r + 5)^-skew; 0: all alike."""
    activity_spread: Annotated[float, Range(0, 2)] = 0.6
    """The sd of the logarithm of users' numbers of ratings; 0: everyone has as many."""
    noise_spread: Annotated[float, Range(0, 1)] = 0.25
    """The sd of the logarithm of users' own noise sds."""

    @classmethod
    def usual(cls, rating_range: tuple[float, float], **given: float | None) -> "Tastes":
        """Return what film ratings and Jester are like, on this range; `given` guesses win."""
        width = rating_range[1] - rating_range[0]
        known = {name: part * width for name, part in _USUAL.items()}
        return cls(**known | {name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]

    @property
    def factor_variance(self) -> float:
        """The variance of all latent factors together."""
        return self.noise_sd**2 * self.factor_share / (1 - self.factor_share)

    @property
    def within(self) -> float:
        """The variance of a user's ratings about her bias."""
        return self.item_sd**2 + self.factor_variance + self.noise_sd**2

    def factor_variances(self) -> Floats:
        """Return l_k, the variance of each latent factor."""
        parts = self.factor_decay ** np.arange(self.factors)
        return np.asarray(self.factor_variance * parts / parts.sum())

    def within_range(
        self, rating_range: tuple[float, float], centre: float, step: float = 0.0
    ) -> "Tastes":
        r"""Return the same when ratings are cut off at the range, and rounded to multiples of step.

        A normal variable $x$ that is cut off is $\gamma x$ plus what is uncorrelated with $x$, with
        $\gamma = P(x \text{ within the range})$ (Bussgang). So each sd is multiplied by $\gamma$,
        and the rest of the variance is noise.
        """
        sd = math.sqrt(self.within + self.user_sd**2)
        kept, variance = _cut_off(sd, (rating_range[0] - centre, rating_range[1] - centre))
        factors = kept**2 * self.factor_variance
        noise = variance - kept**2 * (sd**2 - self.noise_sd**2) + step**2 / 12
        return replace(
            self,
            item_sd=kept * self.item_sd,
            user_sd=kept * self.user_sd,
            noise_sd=math.sqrt(noise),
            factor_share=factors / (factors + noise),
        )


class Audience(NamedTuple):
    """Who rates what: strata of users by their number of ratings, groups of items by popularity.

    Attributes:
        lengths: how many ratings a user of each stratum has.
        parts: what part of the users each stratum has; they add up to 1.
        sizes: how many items each group has.
        rated: the chance that a user of a stratum rated an item of a group.
    """

    lengths: Floats
    parts: Floats
    sizes: Floats
    rated: Floats

    def over_users(self, powers: float) -> Floats:
        """Return the mean over users of e_ij d_i^power, for each group of items."""
        return np.asarray((self.parts * self.lengths**powers) @ self.rated)


@lru_cache
def make_audience(items: int, per_user: float, tastes: Tastes) -> Audience:
    """Return strata of users who have `per_user` ratings on average, log-normally.

    An item of popularity p is among d different ones with chance 1 - exp(-c p), c such that they
    add up to d.
    """
    sizes, popularity = _popularity(items, tastes.skew)
    scores = ndtri((np.arange(_STRATA) + 0.5) / _STRATA)
    lengths = np.exp(tastes.activity_spread * scores)
    lengths = np.clip(per_user * lengths / lengths.mean(), 1.0, items)
    rated = np.stack([_chances(length, sizes, popularity) for length in lengths])
    return Audience(lengths, np.full(_STRATA, 1 / _STRATA), sizes, rated)


def _popularity(items: int, skew: float) -> tuple[Floats, Floats]:
    """Return the sizes of groups of items, from the most popular down, and how popular each is."""
    edges = np.unique(np.rint(np.geomspace(1, items + 1, _GROUPS + 1)).astype(np.int64)) - 1
    middle = (edges[:-1] + edges[1:] - 1) / 2
    popularity = (middle + _ZIPF_OFFSET) ** -skew
    return np.diff(edges).astype(float), np.asarray(popularity)


def _chances(length: float, sizes: Floats, popularity: Floats) -> Floats:
    """Return the chance of each item to be among `length` different ones."""
    if length >= sizes.sum() * (1 - 1e-9):
        return np.ones(sizes.size)
    low, high = 0.0, length / float(sizes @ popularity)
    while sizes @ -np.expm1(-high * popularity) < length:
        low, high = high, 2 * high
    for _ in range(50):
        middle = (low + high) / 2
        short = sizes @ -np.expm1(-middle * popularity) < length
        low, high = (middle, high) if short else (low, middle)
    return np.asarray(-np.expm1(-high * popularity))


def _cut_off(sd: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Return the chance of N(0, sd^2) to be within limits, and its variance when cut off there."""
    a, b = limits[0] / sd, limits[1] / sd
    below, above = float(ndtr(a)), float(ndtr(-b))
    inside = 1 - below - above
    density = [math.exp(-(x**2) / 2) / math.sqrt(2 * math.pi) for x in (a, b)]
    mean = density[0] - density[1] + a * below + b * above
    square = inside + a * density[0] - b * density[1] + a**2 * below + b**2 * above
    return inside, sd**2 * (square - mean**2)
