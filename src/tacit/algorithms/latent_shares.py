"""How LatentFactors divides its budget: by public numbers, and by what was released before."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.algorithms.base import Facts
from tacit.estimation.cooccurrence import CoRatings
from tacit.estimation.spiked_covariance import readable_items

_USERS = 50_000  # what shares are for where the number of users is protected
_FEW = 40.0  # of users x mu / sqrt(items): half of what matrices hold can be read
_MUCH = 1000.0  # where rounds are worth half of what they can be
_SOONER = 300.0  # likewise, if choices tell of taste
_PARTED = 0.6  # of the covariance: what it gives to choices at the most, if they tell of taste
_START = 0.69, 0.08  # of the budget, for covariance and choice where matrices can just be read
_GLANCE = 0.25  # of the covariance's share: its first look, where factors may be out of reach
_CERTAIN = 500.0  # of users x mu / sqrt(items): from here on factors are found with one look
_READABLE = 150.0, 400.0  # with less, covariance and choices are of fewer items
_POPULAR = 0.75  # of the items: what co-occurrences are of where these are not clear
_ALONE = 0.15, 0.45  # of covariance and rounds: both looks at a covariance of popular items
_LEAST = 1e-6  # of what matrices get is left to them however few users there are
NOTHING = 1e-9
"""Of the budget, set aside for what is released only if earlier releases ask for it."""
_FULL = 0.40, 0.20  # where all can be read


class Shares(NamedTuple):
    """How the budget is divided; all are positive, and they add up to 1."""

    spreads: float
    weights: float
    effects: float
    covariance: float
    more_covariance: float
    choice: float
    more_choice: float
    moments: float
    steps: float


class _Legible(NamedTuple):
    """How well releases can be read at this noise, from 0 (not at all) to 1."""

    matrices: float
    rounds: float


class _Items(NamedTuple):
    """Of how many items the covariance and the co-occurrences are."""

    covariance: int
    choices: int


def popular_items(
    facts: Facts, rated: CoRatings
) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """Return the items that the covariance and the co-occurrences are of; None: as many as can be.

    There are as many as can be read. The others are learned from gradients, which have items x
    factors numbers. Refits remember matrices of all items.
    """
    n_items, signal = rated.weights.size, _signal(facts)
    if signal == math.inf or facts.paper_accounting or facts.earlier is not None:
        return None, None
    ratings, choices = ((signal / readable) ** 2 for readable in _READABLE)
    choices = min(choices, _POPULAR) if signal < _MUCH else 1.0
    length = _length(rated)
    return (
        readable_items(rated.weights, length, int(n_items * min(ratings, 1.0))),
        readable_items(rated.weights, length, int(n_items * choices)),
    )


def _items(facts: Facts, rated: CoRatings) -> _Items:
    """Return how many items matrices are of."""
    found = popular_items(facts, rated)
    return _Items(*(rated.weights.size if each is None else each.size for each in found))


def _legible(facts: Facts, much: float, items: int | None = None) -> _Legible:
    """Return how well matrices of so many items, and all that comes after them, can be read.

    Both follow from users x mu / sqrt(items), the signal of a matrix beside its noise; the second
    from that of all items. Factors appear within a small range of it, so that the first is steep. A
    factor that is lost in the noise of the covariance is not found again by rounds: these get a
    part of the budget where factors are far from being lost.
    """
    signal = _signal(facts)
    if signal == math.inf:
        return _Legible(1.0, 1.0)
    among = signal * math.sqrt(facts.n_items / (items or facts.n_items))
    few, much = max((among / _FEW) ** 4, _LEAST), (signal / much) ** 2
    return _Legible(few / (1.0 + few), much / (1.0 + much))


def _signal(facts: Facts) -> float:
    """Return users x mu / sqrt(items), the signal of an items-by-items matrix beside its noise."""
    users = _USERS if facts.n_users is None else facts.n_users
    return math.inf if facts.budget is None else users * facts.budget.mu / math.sqrt(facts.n_items)


def _divided(
    facts: Facts, full: tuple[float, float], items: _Items | None = None
) -> tuple[float, float]:
    """Return the shares of covariance and choice; they are `full` where all can be read."""
    first, second = (
        (start + legible.rounds * (most - start)) * legible.matrices
        for start, most, legible in zip(
            _START, full, (_legible(facts, _MUCH, each) for each in items or (None, None)),
            strict=True,
        )
    )  # fmt: skip
    return first, second


def shares_of(facts: Facts) -> Shares:
    """Return how the budget is divided, by public numbers only.

    Where matrices cannot be read, item means are what there is to learn, and more of the budget
    goes to them; where matrices can hardly be read, most is as in `Moments`. What is not for
    spreads, weights and effects is divided anew once it is known how many ratings people have, and
    again once it is known whether choices tell of taste.
    """
    return _in_two_looks(facts, _shares_of(facts), facts.n_items)


def without_covariance(shares: Shares) -> Shares:
    """Give the rounds what was set aside for a second look at the covariance."""
    steps = shares.steps + shares.more_covariance - NOTHING
    return shares._replace(more_covariance=NOTHING, steps=steps)


def _in_two_looks(facts: Facts, shares: Shares, items: int) -> Shares:
    """Part the share of the covariance, unless its factors are certain to be found.

    How strong factors are is not public: at the same number of users, items and ratings they may
    be clear, or below the noise even of the whole share. A quarter of it tells; if that shows no
    factor, the rest is worth more for item means and for how ratings go with choice. A covariance
    of popular items tells nothing of the others: more is left for rounds.
    """
    if facts.paper_accounting or _signal(facts) >= _CERTAIN:
        return shares
    if items < facts.n_items:
        legible = _legible(facts, _MUCH, items).matrices
        first, both = (part * legible * (shares.covariance + shares.steps) for part in _ALONE)
        steps = shares.covariance + shares.more_covariance + shares.steps - both
        return shares._replace(covariance=first, more_covariance=both - first, steps=steps)
    more = (1.0 - _GLANCE) * shares.covariance
    return shares._replace(
        covariance=shares.covariance - more, more_covariance=shares.more_covariance + more
    )


def _shares_of(facts: Facts) -> Shares:
    """Return the shares with one look at the covariance."""
    covariance, choice = _divided(facts, _FULL)
    rounds = _legible(facts, _MUCH).rounds
    spreads, moments, steps = 0.02, 0.01 + 0.02 * rounds, 0.03 + 0.21 * rounds
    rest = 1.0 - spreads - covariance - choice - 2 * NOTHING - moments - steps
    weights, effects = 0.3 * rest, min(0.7 * rest, 0.3)
    steps += rest - weights - effects  # gradients tell item means too
    return Shares(spreads, weights, effects, covariance, NOTHING, choice, NOTHING, moments, steps)


def by_density(facts: Facts, rated: CoRatings) -> Shares:
    """Divide what is left for matrices and rounds by the density of the ratings.

    With density d/n an entry of F is off by about sqrt(d/n) times as much after a round of
    gradients as it is from a covariance of the same share: where people rate most of the items the
    covariance tells more, and where they rate few of them the rounds do. Choices tell little of
    people who rate nearly everything: their part goes to the covariance.
    """
    items = _items(facts, rated)
    return _in_two_looks(facts, _by_density(facts, rated, items), items.covariance)


def _by_density(facts: Facts, rated: CoRatings, items: _Items) -> Shares:
    """Return the shares by density, with one look at the covariance."""
    shares, chosen = _shares_of(facts), _chosen(rated)
    covariance, choice = _divided(facts, _full(rated), items)
    covariance, choice = covariance + (1.0 - chosen) * choice, chosen * choice
    steps = shares.covariance + shares.choice + shares.steps - covariance - choice
    return shares._replace(covariance=covariance, choice=choice, steps=steps)


def with_choices(facts: Facts, rated: CoRatings) -> Shares:
    """Divide what is left where the first look at choices has shown that they tell of taste.

    Choices are worth a second look then, at any noise. The prior mean that follows from them makes
    rounds worth more: these get their part of the budget sooner. Lists are mostly made of choices,
    and these lose more to noise than ratings do: where choices can be read and are not yet clear,
    they get more, from the covariance. Rounds find again what it loses, but for lost factors.
    """
    items = _items(facts, rated)
    shares, legible = _by_density(facts, rated, items), _legible(facts, _SOONER, items.choices)
    (full, choice), chosen = _full(rated), _chosen(rated)
    choice *= chosen
    start = sum(_START) - choice
    covariance = (start + legible.rounds * (full - start)) * legible.matrices
    more = max(choice * legible.matrices - shares.choice, NOTHING)
    left = shares.covariance + shares.more_choice + shares.steps - more
    steps = max(left - covariance, shares.steps)
    covariance = left - steps
    unclear = 1.0 - _legible(facts, _MUCH).rounds
    parted = _PARTED * chosen**3 * legible.rounds * unclear * covariance
    covariance -= parted
    shares = shares._replace(covariance=covariance, more_choice=more + parted, steps=steps)
    return _in_two_looks(facts, shares, items.covariance)


def _full(rated: CoRatings) -> tuple[float, float]:
    """Return the shares of covariance and choice where all can be read, by density."""
    dense = math.sqrt(_density(rated))
    return min(0.18 + 0.7 * dense, 0.76), max(0.28 - 0.26 * dense, 0.03)


def _chosen(rated: CoRatings) -> float:
    """Return how much choices can tell: nearly nothing where people rate half of the items."""
    return max(1.0 - (2.0 * _density(rated)) ** 3, 0.1)


def _density(rated: CoRatings) -> float:
    """Return which part of the items people rate, on average."""
    return min(1.0, _length(rated) / rated.weights.size)


def _length(rated: CoRatings) -> float:
    """Return how many ratings users have on average."""
    return float(rated.stratum_sizes @ rated.lengths / rated.stratum_sizes.sum())
