"""Simulate a planned fit on synthetic ratings, and compare with the forecast."""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tacit.algorithms import Moments
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.families import (
    FACTOR_DECAY,
    FACTORS,
    FACTORS_SD,
    FAMILIES,
    LEVEL_SD,
    NOISE_FACTOR,
    NOISE_SD,
    QUALITY_SD,
    STAR_RANGE,
)
from tacit.datasets.synthetic import Synthetic, synthesise
from tacit.errors import ConfigError
from tacit.evaluation import evaluate, user_mean_accuracy
from tacit.fitting.fit import fit
from tacit.research.theory import Case, Tastes, forecast

_MOST_RATINGS = 20_000_000
_HELD_OUT = 0.05
_STEPS = ("draw ratings", "fit", "fit without noise", "fit the default", "measure")

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Simulated:
    """RMSE on held-out synthetic ratings, and what the forecast for this family says.

    `rmse` and `without_noise` are of `Moments`, which the forecast is about; `default` is of what
    `tacit.fit` does with this budget if no algorithm is named.
    """

    family: str
    own_mean: float
    rmse: float
    without_noise: float
    default: float
    forecast_own_mean: float
    forecast_rmse: float
    forecast_without_noise: float

    @property
    def gain(self) -> float:
        """The measured gain over the user mean."""
        return 1 - self.rmse / self.own_mean

    @property
    def forecast_gain(self) -> float:
        """The gain by formula."""
        return 1 - self.forecast_rmse / self.forecast_own_mean

    @property
    def default_gain(self) -> float:
        """The measured gain of the default over the user mean."""
        return 1 - self.default / self.own_mean

    def to_json(self) -> dict[str, Any]:
        """Return everything with stable keys."""
        gains = {"gain": self.gain, "default_gain": self.default_gain}
        return asdict(self) | gains | {"forecast_gain": self.forecast_gain}


def simulate(
    case: Case,
    family: str,
    *,
    seed: int = 0,
    progress: Progress = lambda _step: None,
) -> Simulated:
    """Draw a synthetic family of this size, fit `Moments` and the default to it, and measure.

    The range of ratings is the case's; its tastes are the family's. A family that is too large to
    draw is refused: noise is smaller the more users there are, so a smaller one would not do.
    """
    check_simulation(case, family)
    case = replace(case, tastes=family_tastes(family, case.rating_range))
    progress(_STEPS[0])
    train, test = _draw(case, family, seed)
    progress(_STEPS[1])
    model = fit(train, Moments(), budget=case.budget)
    progress(_STEPS[2])
    free = fit(train, Moments(), budget=None)
    progress(_STEPS[3])
    default = fit(train, budget=case.budget)
    progress(_STEPS[4])
    expected, without = forecast(case), forecast(replace(case, budget=None))
    return Simulated(
        family,
        user_mean_accuracy(train, test).rmse,
        evaluate(model, train, test).rmse,
        evaluate(free, train, test).rmse,
        evaluate(default, train, test).rmse,
        expected.own_mean,
        expected.rmse,
        without.rmse,
    )


def check_simulation(case: Case, family: str) -> None:
    """Refuse a family that there is none of, or that would take too long to draw."""
    if family not in FAMILIES:
        raise ConfigError(f"simulate={family!r}: expected one of {', '.join(FAMILIES)}")
    if case.per_user < 2:
        raise ConfigError(f"per_user={case.per_user!r}: a simulation needs at least 2")
    ratings = case.users * case.per_user
    if ratings > _MOST_RATINGS:
        raise ConfigError(
            f"simulate={family!r}: {ratings:,.0f} ratings (users x per_user) are more than a "
            f"simulation draws ({_MOST_RATINGS:,}). Fewer users would not do, because noise "
            "depends on their number; use the forecast alone"
        )


def family_tastes(family: str, rating_range: tuple[float, float]) -> Tastes:
    """Return what a star family is like, on another range.

    Stars are cut off at the ends of their range and rounded to halves. That people rate rather what
    they like ("missing-not-at-random") is left out.
    """
    law, span = FAMILIES[family], math.log(NOISE_FACTOR)
    noise = NOISE_SD**2 * (math.sinh(2 * span) / (2 * span)) / (math.sinh(span) / span) ** 2
    stars = Tastes(
        item_sd=QUALITY_SD,
        user_sd=LEVEL_SD,
        noise_sd=math.sqrt(noise),
        factors=FACTORS,
        factor_share=FACTORS_SD**2 / (FACTORS_SD**2 + noise),
        factor_decay=FACTOR_DECAY,
        skew=law.skew,
        activity_spread=law.spread,
        noise_spread=span / math.sqrt(3),
    ).within_range(STAR_RANGE, law.level, 0.5)
    scale = (rating_range[1] - rating_range[0]) / (STAR_RANGE[1] - STAR_RANGE[0])
    return replace(
        stars,
        item_sd=scale * stars.item_sd,
        user_sd=scale * stars.user_sd,
        noise_sd=scale * stars.noise_sd,
    )


def _draw(case: Case, family: str, seed: int) -> tuple[Ratings, Ratings]:
    """Draw training and held-out ratings; the training ones are as many as the case says."""
    median = case.per_user / math.exp(FAMILIES[family].spread ** 2 / 2) / (1 - _HELD_OUT)
    made = synthesise(
        family,
        users=case.users,
        items=case.items,
        per_user=min(max(round(median), 2), case.items),
        test_fraction=_HELD_OUT,
        seed=seed,
    )
    catalogue = Catalogue(pl.Series(np.arange(case.items)))
    train, test = (_ratings(made, part, case, catalogue) for part in (made.train, made.test))
    return train, test


def _ratings(made: Synthetic, part: pl.DataFrame, case: Case, catalogue: Catalogue) -> Ratings:
    """Bring stars to the range of the case."""
    (lo, hi), (low, high) = case.rating_range, made.rating_range
    moved = lo + (pl.col("rating") - low) * ((hi - lo) / (high - low))
    frame = part.with_columns(moved.clip(lo, hi).alias("rating"))
    return Ratings.from_frame(frame, rating_range=case.rating_range, catalogue=catalogue)
