"""Random streams for synthetic ratings: SplitMix64 started from (key, user, purpose).

So a row does not depend on how many threads there are or on which of them draws it.
"""

import numba as nb
import numpy as np

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1 = np.uint64(0xBF58476D1CE4E5B9)
_MIX_2 = np.uint64(0x94D049BB133111EB)
_UNIT = 1.0 / 9007199254740992.0  # 2**-53


@nb.njit(cache=True)
def _mix(word: np.uint64) -> np.uint64:
    """Finish a SplitMix64 step: spread every bit of the state over the whole word."""
    word = (word ^ (word >> np.uint64(30))) * _MIX_1
    word = (word ^ (word >> np.uint64(27))) * _MIX_2
    return word ^ (word >> np.uint64(31))


@nb.njit(cache=True)
def start(key: np.uint64, user: int, purpose: np.uint64) -> np.uint64:
    """Return the first state of the stream of one user for one purpose."""
    return _mix(_mix(key + purpose * _GOLDEN) ^ _mix((np.uint64(user) + np.uint64(1)) * _GOLDEN))


@nb.njit(cache=True)
def uniform(state: np.uint64) -> tuple[np.uint64, float]:
    """Return the next state and a number in [0, 1) with 53 random bits."""
    state = state + _GOLDEN
    return state, np.float64(_mix(state) >> np.uint64(11)) * _UNIT


@nb.njit(cache=True)
def below(state: np.uint64, bound: int) -> tuple[np.uint64, int]:
    """Return the next state and an integer in [0, bound)."""
    state, number = uniform(state)
    return state, min(int(number * bound), bound - 1)


@nb.njit(cache=True)
def normal(state: np.uint64) -> tuple[np.uint64, float]:
    """Return the next state and a standard normal number (Box and Muller)."""
    state, radius = uniform(state)
    state, angle = uniform(state)
    return state, np.sqrt(-2.0 * np.log(1.0 - radius)) * np.cos(2.0 * np.pi * angle)
