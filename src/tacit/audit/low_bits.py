"""The attack on low bits: which of two sums can have given this noisy number?

Mironov (2012) showed that a textbook sampler in floating point cannot reach every number: what it
adds to one sum and to its neighbour are different sets of numbers, however large the noise. Haney
and others (2022) need less: how fine the last bit of a result is tells sums of different size
apart. Both are tried here, in the form that fits the samplers of this package.

*Reach.* `numerics="idealised"` is floor(2^bits z), with z the normal quantile of one of 2^53
equally spaced numbers. From there on it is whole numbers: adding it to the sum loses nothing. But
with 52 bits the values of z are further apart than one unit, and more so in the tails. So the
attacker takes either sum off the released number, and asks the sampler's own formula whether any of
the 2^53 numbers gives what is left. For the wrong sum, many entries cannot have come from anywhere.
The exact sampler has full support, every whole number with its proper probability: the test has no
power.

*Grain.* The lowest bit that is set in a released number. Where floats are added, as textbooks do,
it shows the size of the sum. Here both sums lie on one grid.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget
from tacit.audit.advantage import Guesses, area_under_curve
from tacit.audit.observe import StatedSum, released
from tacit.audit.population import stream
from tacit.audit.progress import NO_PROGRESS, Steps
from tacit.data.ratings import Ratings
from tacit.models.rules import Floats

Units = NDArray[np.int64]

_ENTRIES = 40  # of a sum, as of a row with so many ratings
_AROUND = 24  # numbers tried on either side of the one that should give a value
_EXACT = 2.0**53  # whole numbers up to here are floats


def reachable(units: Units, bits: int) -> NDArray[np.bool_]:
    """Say which whole numbers the idealised sampler can give at all.

    It evaluates the sampler's formula at all numbers near the one that would give the value.
    """
    from scipy.special import ndtr, ndtri

    near = np.floor(ndtr(np.ldexp(units.astype(np.float64), -bits)) * 2.0**53)
    tried = near[..., None] + np.arange(-_AROUND, _AROUND + 1)
    tried = np.clip(tried, 0, 2.0**53 - 1)
    given = np.floor(np.ldexp(ndtri((tried + 0.5) * 2.0**-53), bits))
    return np.asarray(np.any(given == units[..., None], axis=-1))


@dataclass(frozen=True, eq=False)
class Grid:
    """What is public of a release beside its values: the unit, and the noise sd as 2^bits units."""

    unit: float
    bits: int

    @classmethod
    def of(cls, noise_sd: float, stated: StatedSum) -> "Grid":
        """Return the grid on which a stated sum was released."""
        unit = stated.grids[-1]
        return cls(unit, round(math.log2(noise_sd / unit)))


def reach(values: Floats, grid: Grid, sums: tuple[Floats, Floats]) -> float:
    """Score a release: above 0 if the second sum explains more of its entries than the first.

    Where both explain as many, the likelihood decides.
    """
    whole = np.rint(values / grid.unit)
    missing, distance = [], []
    for total in sums:
        left = whole.astype(np.int64) - StatedSum(total).in_units(grid.unit)
        can = reachable(left, grid.bits)
        # Beyond 2^53 a released number is rounded to an even one: its neighbours count too.
        near = reachable(left - 1, grid.bits) | reachable(left + 1, grid.bits)
        missing.append(int(np.sum(~(can | (near & (np.abs(whole) > _EXACT))))))
        distance.append(float(np.sum((left / 2.0**grid.bits) ** 2)))
    return missing[0] - missing[1] + 1e-6 * math.tanh(distance[0] - distance[1])


def grain(values: Floats) -> Floats:
    """Return the exponent of the lowest bit that is set in each number.

    >>> grain(np.array([3.0, 0.5, 12.0]))
    array([ 0., -1.,  2.])
    """
    share, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(share, 53)).astype(np.int64)
    lowest = np.log2(np.maximum(whole & -whole, 1).astype(np.float64))
    return np.asarray(exponent - 53 + lowest)


def guess_sums(
    ratings: Ratings,
    budget: PrivacyBudget,
    numerics: str,
    trials: int,
    seed: int,
    steps: Steps = NO_PROGRESS,
) -> dict[str, Guesses]:
    """Release zero or a sum that is one user's whole bound away, by a fair coin, and guess.

    Returns the guesses by "reach" and by "grain": how coarse entries are on average.
    """
    sums = (np.zeros(_ENTRIES), np.full(_ENTRIES, _ENTRIES**-0.5))
    coins = stream(seed, 6).integers(2, size=2 * trials) == 1
    scores: dict[str, list[float]] = {"reach": [], "grain": []}
    for at, coin in enumerate(coins):
        stated = StatedSum(sums[int(coin)])
        heard = released(ratings, [stated], budget, seed * 1_000_000 + at, numerics)[0]
        grid = Grid.of(heard.noise_sd, stated)
        scores["reach"].append(reach(heard.values, grid, sums))
        scores["grain"].append(float(np.mean(grain(heard.values))))
        steps.step()
    return {name: guesses_by(np.array(found), coins) for name, found in scores.items()}


def guesses_by(scores: Floats, coins: NDArray[np.bool_]) -> Guesses:
    """Put the threshold where it errs least on half of the releases, and guess the others."""
    half = coins.size // 2
    first, truth = scores[:half], coins[:half]
    tried = np.unique(first)
    places = np.concatenate([[tried[0] - 1], (tried[1:] + tried[:-1]) / 2, [tried[-1] + 1]])
    errors = np.array([np.sum((first > place) != truth) for place in places])
    least = np.flatnonzero(errors == errors.min())
    rest, actual = scores[half:], coins[half:]
    right = int(np.sum((rest > places[least[least.size // 2]]) == actual))
    return Guesses(right, actual.size, area_under_curve(rest[actual], rest[~actual]))
