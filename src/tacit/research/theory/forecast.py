r"""What RMSE to expect of `Moments`, the first step of the default, before anything is spent.

All of it follows from public numbers: how many users, items and ratings there are, the budget, and
guesses of how ratings vary (`Tastes`). docs/theory.md derives each step.
"""

import math
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.release import ReleaseKind
from tacit.algorithms.moments import HEADROOM, WIDE_HEADROOM
from tacit.book.splits import PlannedRefit
from tacit.errors import ConfigError
from tacit.research.theory.case import Case
from tacit.research.theory.learned import (
    Found,
    LearnedItems,
    Told,
    expected_effects,
    expected_factors,
    expected_spreads,
    expected_sums,
)
from tacit.research.theory.tastes import Audience, Tastes, make_audience

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Forecast:
    """What to expect of a fit, and the noise that it follows from.

    Attributes:
        own_mean: the RMSE of predicting the user mean.
        biases: that of user and item bias, learned without noise and without latent factors.
        rmse: that of `Moments` with this budget.
        item_effects: how much of the item effects is learned, as a part of their variance.
        factors_found: how many latent factors stand out of the noise.
        noise: the noise sd of each release, by name.
        smallest_factor: the variance of the weakest latent factor that would be found.
    """

    own_mean: float
    biases: float
    rmse: float
    item_effects: float
    factors_found: int
    noise: dict[ReleaseKind, float]
    smallest_factor: float

    @property
    def gain(self) -> float:
        """How much smaller the RMSE is than that of the user mean, as a part of it."""
        return 1 - self.rmse / self.own_mean


def forecast(case: Case) -> Forecast:
    """Return what to expect of `Moments` in this case."""
    audience = make_audience(case.items, case.per_user, case.tastes)
    sums = expected_sums(case, audience)
    told = expected_spreads(case, audience, sums)
    items = expected_effects(case, audience, sums, told)
    rest = told._replace(rating=max(told.rating - items.told, 0.05 * told.rating))
    found = expected_factors(case, audience, sums, rest, items)
    mean, biases = _without(case, audience)
    rmse = _predict(audience, case.tastes, rest, items, found)
    noise = dict(sums.noise)
    noise[ReleaseKind.ITEM_EFFECTS] *= math.sqrt(WIDE_HEADROOM * told.rating)
    noise[ReleaseKind.COVARIANCE] *= HEADROOM * rest.rating
    part = _part_learned(case, audience, items)
    return Forecast(mean, biases, rmse, part, found.along.shape[1], noise, found.smallest)


def expected_of(case: Case, refit: PlannedRefit, *, remembers: bool = True) -> Forecast:
    """Return the forecast of a refit: that of one fit which would know as much."""
    if case.budget is None:
        raise ConfigError("budget=None: a plan of refits needs an epsilon")
    epsilon = refit.remembered_epsilon if remembers else refit.epsilon
    budget = PrivacyBudget(epsilon, case.budget.delta, case.budget.neighbours)
    return forecast(replace(case, budget=budget))


def item_effects_learned(case: Case) -> float:
    """Return `item_effects` of a forecast, without the rest of it."""
    audience = make_audience(case.items, case.per_user, case.tastes)
    sums = expected_sums(case, audience)
    told = expected_spreads(case, audience, sums)
    return _part_learned(case, audience, expected_effects(case, audience, sums, told))


def _part_learned(case: Case, audience: Audience, items: LearnedItems) -> float:
    """Return what part of the variance of item effects is learned, over all ratings."""
    chosen = audience.sizes * audience.over_users(0.0)
    missed = float(chosen @ items.error / chosen.sum())
    return max(1 - missed / case.tastes.item_sd**2, 0.0) if case.tastes.item_sd else 0.0


def _predict(
    audience: Audience, tastes: Tastes, told: Told, items: LearnedItems, found: Found
) -> float:
    """Return the RMSE of users' own ridge regressions on what was found."""
    chosen = audience.rated / audience.lengths[:, None] * audience.sizes
    chosen = chosen / chosen.sum(axis=1, keepdims=True)
    energy, along = chosen @ found.energy, chosen @ found.along
    explained = along**2 / np.maximum(energy, 1e-300)
    error = chosen @ items.error
    noise = tastes.noise_sd**2 + error + tastes.factor_variance - explained.sum(axis=1)
    shares = audience.over_users(-0.5) * audience.sizes
    believed = float(shares @ found.energy.sum(axis=1) / shares.sum())
    left = max(told.rating - believed, 0.05 * told.rating)
    assumed = left + chosen @ (items.doubt + found.doubt)
    regression = Regression(energy, explained, noise, assumed)
    return _rmse(
        audience, ridge_errors(audience.lengths, regression, (told.level, tastes.user_sd**2))
    )


class Regression(NamedTuple):
    """A user's regression on latent factors: a row for each number of ratings d.

    Attributes:
        prior: p_k, the variance that a feature has; its coefficient has variance 1 a priori.
        true: t_k, the variance that it explains.
        noise: sigma^2, the variance of the rest.
        assumed: D, what the regression takes that to be.
    """

    prior: Floats
    true: Floats
    noise: Floats
    assumed: Floats


def ridge_errors(lengths: Floats, known: Regression, bias: tuple[float, float]) -> Floats:
    r"""Return the mean squared errors of ridge regression from d ratings, one for each d.

    The user bias takes up a part $w = p/(p + \kappa)$ of a rating, for a prior variance $p$ and a
    true one $\tau^2$, the two of `bias`. With $d' = d - w$ and
    $d' \kappa = D + \kappa \sum_k p_k/(p_k + \kappa)$, the error but for that of the bias is

    $$ V = \frac{\sigma^2 + \sum_k t_k \kappa^2/(p_k + \kappa)^2}
                {1 - \frac1{d'} \sum_k p_k^2/(p_k + \kappa)^2}. $$

    The bias is her mean residual times $w$, now with $\kappa d'/d$ for $\kappa$. That leaves
    $V (1 + w^2/d) + (1 - w)^2 \tau^2$.
    """
    prior, assumed = known.prior, known.assumed
    low, high = assumed / lengths, (assumed + prior.sum(axis=1) + bias[0]) / lengths
    for _ in range(50):
        kappa = np.sqrt(low * high)
        left = lengths - bias[0] / (bias[0] + kappa)
        used = np.sum(prior / (prior + kappa[:, None]), axis=1)
        short = left * kappa < assumed + kappa * used
        low, high = np.where(short, kappa, low), np.where(short, high, kappa)
    missed = kappa[:, None] / (prior + kappa[:, None])
    spread = np.sum((1 - missed) ** 2, axis=1) / left
    error = (known.noise + np.sum(known.true * missed**2, axis=1)) / (1 - spread)
    share = bias[0] / (bias[0] + kappa * left / lengths)
    return np.asarray(error * (1 + share**2 / lengths) + (1 - share) ** 2 * bias[1])


def _without(case: Case, audience: Audience) -> tuple[float, float]:
    """Return the RMSE of the user mean, and of user and item bias without noise."""
    tastes, lengths = case.tastes, audience.lengths
    own = _rmse(audience, tastes.within * (1 + 1 / lengths))
    free = replace(case, budget=None)
    told = expected_spreads(free, audience, expected_sums(free, audience))
    items = expected_effects(free, audience, expected_sums(free, audience), told)
    nothing = np.zeros((audience.sizes.size, 0))
    found = Found(nothing, nothing, np.zeros(audience.sizes.size), 0.0)
    rest = told._replace(rating=told.rating - items.told)
    return own, _predict(audience, tastes, rest, items, found)


def _rmse(audience: Audience, errors: Floats) -> float:
    """Return the root of the mean over all ratings, of which active users have more."""
    weights = audience.parts * audience.lengths
    return math.sqrt(float(weights @ errors / weights.sum()))
