"""What to expect of `Moments`, the first step of the default method; how many users it takes."""

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any, Final

from tacit.research.theory.case import Case
from tacit.research.theory.forecast import Forecast, forecast, item_effects_learned

STARTS_FROM_MOMENTS: Final = (
    "This is a forecast of Moments. The default method, LatentFactors, starts from its releases; "
    "where we measured both on noisy ratings, its RMSE was below, or up to 1.2 % above."
)
"""What the figures are of; measured in docs/results/leaderboard.md and docs/benchmarks.md."""

_LEARNED = 0.1  # of the variance of item effects: from here on they are worth something
_MOST_OF_GAIN = 0.9
_FEWEST, _MOST = 10, 10**9
_CLOSE = 1.05
_SLIGHT = 0.01  # a gain that is next to nothing


@dataclass(frozen=True)
class UsersNeeded:
    """The smallest numbers of users at this budget; None: not with a thousand million.

    Attributes:
        item_effects: a tenth of the variance of item effects is learned.
        first_factor: the strongest latent factor stands out of the noise.
        most_of_gain: 90 % of the gain that as many users give without noise.
    """

    item_effects: int | None
    first_factor: int | None
    most_of_gain: int | None


@dataclass(frozen=True)
class Expectation:
    """A forecast with noise, one without, and how many users it takes."""

    case: Case
    private: Forecast
    without_noise: Forecast
    needed: UsersNeeded

    def verdict(self) -> str:
        """Say what to expect, and what would help where that is little."""
        private, free = self.private, self.without_noise
        return (
            f"Expect RMSE about {private.rmse:.3g} (Moments) against {private.own_mean:.3g} of "
            f"the user mean ({_change(private.gain)}); without privacy about {free.rmse:.3g}. "
            f"{self._reason()}"
        )

    def _reason(self) -> str:
        """Say what is learned with so many users, and what is not."""
        needed, users = self.needed, self.case.users
        if self.without_noise.gain < _SLIGHT:
            return (
                "Even without privacy there is next to nothing to gain: the user mean will do. "
                "More ratings a user would help."
            )
        if not _reached(users, needed.item_effects):
            return (
                "It would learn next to nothing at this epsilon: to learn item effects "
                f"takes {about(needed.item_effects)} users. {_HELP}"
            )
        if not _reached(users, needed.first_factor):
            return (
                "It would learn item means only at this epsilon: to find latent factors "
                f"takes {about(needed.first_factor)} users. {_HELP}"
            )
        return (
            f"With fewer than {about(needed.first_factor)} users it would learn item means only at "
            "this epsilon; 90 % of the gain without privacy takes "
            f"{about(needed.most_of_gain)} users."
        )

    def to_json(self) -> dict[str, Any]:
        """Return everything with stable keys."""
        private, free = self.private, self.without_noise
        return {
            "rmse": private.rmse,
            "rmse_own_mean": private.own_mean,
            "rmse_biases_without_noise": private.biases,
            "rmse_without_noise": free.rmse,
            "gain": private.gain,
            "gain_without_noise": free.gain,
            "item_effects_learned": private.item_effects,
            "factors_found": private.factors_found,
            "factors_found_without_noise": free.factors_found,
            "smallest_factor_variance": private.smallest_factor,
            "noise_sd": {kind.value: sd for kind, sd in private.noise.items()},
            "users_needed": asdict(self.needed),
            "assumed": asdict(self.case.tastes),
            "verdict": self.verdict(),
            "method": "moments",
        }


_HELP = "What helps: more users, a larger epsilon, or fewer items (--top-items of tacit fit)."


def expect(case: Case) -> Expectation:
    """Forecast a case, and find how many users it takes."""
    return Expectation(case, forecast(case), forecast(replace(case, budget=None)), _needed(case))


def _needed(case: Case) -> UsersNeeded:
    @cache  # one search asks for what another has asked for
    def with_users(users: int) -> Forecast:
        return forecast(replace(case, users=users))

    @cache
    def most_of_gain(users: int) -> bool:
        free = forecast(replace(case, users=users, budget=None)).gain
        return free > 0 and with_users(users).gain >= _MOST_OF_GAIN * free

    def effects_learned(users: int) -> bool:
        return item_effects_learned(replace(case, users=users)) >= _LEARNED

    effects = _smallest(effects_learned, _FEWEST)
    factor = _smallest(lambda users: with_users(users).factors_found > 0, effects or _MOST)
    return UsersNeeded(effects, factor, _smallest(most_of_gain, effects or _MOST))


def _smallest(reached: Callable[[int], bool], low: int) -> int | None:
    """Return the smallest number of users that reaches something, to 5 %; None if none does."""
    if reached(low):
        return low
    high = low
    while not reached(high):
        if high >= _MOST:
            return None
        low, high = high, min(10 * high, _MOST)
    while high > _CLOSE * low:
        middle = round((low * high) ** 0.5)
        if middle in (low, high):
            break
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def _reached(users: int, needed: int | None) -> bool:
    return needed is not None and users >= needed


def about(users: int | None) -> str:
    """Return a number of users to two digits."""
    if users is None:
        return f"more than {_MOST:,}"
    return f"about {round(users, -max(len(str(users)) - 2, 0)):,}"


def _change(gain: float) -> str:
    return f"-{gain:.1%}".replace("%", " %") if gain >= 0.0005 else "no gain"
