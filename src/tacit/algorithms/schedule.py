"""Noise schedules: how rounds share a budget, fixed in advance."""

import math
from typing import Annotated, Literal

import numpy as np

from tacit._validate import Range, refuse

_Weight = Annotated[float, Range(0, math.inf, "()")]
Schedule = Annotated[float, Range(-10, 10)] | tuple[_Weight, ...] | Literal["completed"]
"""A power of the round t, a weight for each round, or "completed"."""

COMPLETED = "completed"


def shares_of_rounds(schedule: Schedule, releases: int, whole: float = 1.0) -> list[float]:
    """Return the share of the budget that each of `releases` rounds gets, `whole` in all.

    A release with the share s of a budget has noise of sd proportional to s^(-1/2). A power p
    gives round t a share in proportion to t^p. "completed" is Algorithm 1's sigma with the rounds
    up to t in the place of T: sigma_t in proportion to t^(1/2), so shares in proportion to 1/t.

    *Paper:* Section 4, "according to the number of iterations that the algorithm has completed",
    which does not say how; "completed" is the literal reading, scaled to keep the promise.

    >>> shares_of_rounds(1.0, 3)
    [0.16666666666666666, 0.3333333333333333, 0.5]
    >>> shares_of_rounds("completed", 2)
    [0.6666666666666666, 0.3333333333333333]
    """
    if isinstance(schedule, tuple):
        weights = np.array(schedule)
    else:
        power = -1.0 if schedule == COMPLETED else float(schedule)
        weights = np.arange(1.0, releases + 1) ** power
    shares: list[float] = (whole * weights / weights.sum()).tolist()
    return shares


def check_schedule(schedule: Schedule, releases: int) -> None:
    """Refuse weights of another number than there are releases."""
    if isinstance(schedule, tuple) and len(schedule) != releases:
        refuse("schedule", schedule, f"{releases} positive numbers, one a release")
