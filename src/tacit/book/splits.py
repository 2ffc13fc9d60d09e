r"""How a lifetime budget is divided among refits, and what refits with memory then know.

Costs add up as squared mu, so a split is of $\mu^2$. With refits that remember, what is known after
the k-th is as if one fit had cost $e_k = \lambda e_{k-1} + c_k$: all that was spent, less what has
become outdated since; half of it after `half_life` refits, $\lambda = 2^{-1/\text{half\_life}}$.
"""

import math
from dataclasses import dataclass

from tacit.accounting.budget import epsilon_of, mu_of
from tacit.errors import ConfigError

SPLITS = ("first", "equal", "geometric")
FIRST_SHARE = 0.15
"""Of the squared mu, for the first refit of the split "first"; the others have equal shares."""
_FALL = 0.05  # of the split "geometric": each refit has so much less than the one before
_MOST = 100_000
_SAFE = 1e-7  # of an epsilon: what rounding to six digits may add


@dataclass(frozen=True)
class PlannedRefit:
    """One refit of a plan.

    Attributes:
        number: from 1.
        epsilon: what to ask for, at the delta of the plan.
        spent_epsilon: of all refits up to this one, together.
        remembered_epsilon: of one fit that would know as much.
    """

    number: int
    epsilon: float
    spent_epsilon: float
    remembered_epsilon: float


def shares_of_split(split: str, refits: int) -> list[float]:
    """Return the shares of the squared mu; they add up to 1.

    >>> [round(share, 3) for share in shares_of_split("first", 11)][:3]
    [0.15, 0.085, 0.085]
    """
    if split not in SPLITS:
        raise ConfigError(f"split={split!r}: expected one of {', '.join(SPLITS)}")
    if not 1 <= refits <= _MOST:
        raise ConfigError(f"refits={refits!r}: expected a whole number from 1 to {_MOST}")
    if split == "geometric":
        weights = [(1 - _FALL) ** number for number in range(refits)]
        return [weight / math.fsum(weights) for weight in weights]
    if split == "equal" or refits * FIRST_SHARE <= 1:
        return [1 / refits] * refits
    return [FIRST_SHARE, *([(1 - FIRST_SHARE) / (refits - 1)] * (refits - 1))]


def planned_refits(
    epsilon: float, delta: float, refits: int, split: str = "first", half_life: float | None = None
) -> list[PlannedRefit]:
    """Divide an epsilon at a delta; epsilons are rounded down, so that all of them can be spent."""
    if half_life is not None and not half_life > 0:
        raise ConfigError(f"half_life={half_life!r}: expected a number of refits above 0")
    limit = mu_of(epsilon, delta) ** 2
    kept = 1.0 if half_life is None else 2 ** (-1 / half_life)
    spent = known = 0.0
    plan = []
    for number, share in enumerate(shares_of_split(split, refits), 1):
        asked = _down(epsilon_of(math.sqrt(share * limit), delta))
        cost = mu_of(asked, delta) ** 2
        spent, known = spent + cost, kept * known + cost
        plan.append(
            PlannedRefit(
                number,
                asked,
                epsilon_of(math.sqrt(spent), delta),
                epsilon_of(math.sqrt(known), delta),
            )
        )
    return plan


def _down(epsilon: float) -> float:
    """Round to six digits, downwards."""
    if epsilon <= 0:
        raise ConfigError("so many refits leave nothing for each; plan fewer, or a larger epsilon")
    shift = 10.0 ** (5 - math.floor(math.log10(epsilon)))
    return math.floor(epsilon * (1 - _SAFE) * shift) / shift
