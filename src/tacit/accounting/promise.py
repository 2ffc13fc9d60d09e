"""What a promise means in plain sentences, and how much it is worth.

A total cost of mu limits how often an attacker decides rightly between two equally likely cases:
Phi(mu/2) if they are neighbours, Phi(mu) if they are two steps apart. Everything that is said about
a promise follows from that, from epsilon and from delta. The thresholds of the grades, with their
reasons, are in docs/decisions/0019-words-that-fit-the-number.md.
"""

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from enum import StrEnum
from typing import NamedTuple

from tacit.accounting.budget import Neighbours, PrivacyBudget, guessing_chance

EXCEPTION = "Not covered: "
"""What a sentence of a promise begins with that says what is not promised."""

_TOO_WEAK = "its promise is too weak to be called private"
_NEARLY = 49.9  # percent above a coin toss: beyond, a bound is none to speak of
_UP = 1 + 1e-12  # rounding of erf never makes a bound smaller


class Grade(StrEnum):
    """How much a promise is worth, by its weakest number."""

    STRONG = "strong"
    MODERATE = "moderate"
    WEAK = "weak"
    NONE = "none"
    """None to speak of: not called private."""


class _Limits(NamedTuple):
    """The largest numbers that a grade allows; `chance` is for two possible rating lists."""

    epsilon: float
    delta: float
    chance: float


_LIMITS = {
    Grade.STRONG: _Limits(1.0, 1e-5, 0.60),
    Grade.MODERATE: _Limits(5.0, 1e-3, 0.75),
    Grade.WEAK: _Limits(20.0, 1e-2, 0.95),
}


def two_lists(neighbours: Neighbours, mu: float) -> float:
    """Return the cost between any two rating lists of one person.

    Under replace any two lists are neighbours. Under add_remove they are two steps apart, through
    the empty list: also where they differ in a single rating.
    """
    return mu if neighbours is Neighbours.REPLACE else 2 * mu


def grade_of(budget: PrivacyBudget, mu: float) -> Grade:
    """Grade a promise of (epsilon, delta) whose releases cost mu in total."""
    for grade in _LIMITS:
        if not _beyond(budget, mu, grade):
            return grade
    return Grade.NONE


def weakness(budget: PrivacyBudget, mu: float) -> str:
    """Say what makes a promise weak, or worth nothing; nothing is said of a better one."""
    grade = grade_of(budget, mu)
    if grade is Grade.NONE:
        return " and ".join(_beyond(budget, mu, Grade.WEAK))
    return " and ".join(_beyond(budget, mu, Grade.MODERATE)) if grade is Grade.WEAK else ""


def too_weak(budget: PrivacyBudget, mu: float) -> str:
    """Return why this cannot be called private, if its numbers are the reason; or nothing."""
    if grade_of(budget, mu) is not Grade.NONE:
        return ""
    return f"{_TOO_WEAK}: {weakness(budget, mu)}"


def _beyond(budget: PrivacyBudget, mu: float, grade: Grade) -> list[str]:
    """Say which numbers are above what a grade allows."""
    limits, cost = _LIMITS[grade], two_lists(budget.neighbours, mu)
    said = []
    if budget.epsilon > limits.epsilon:
        said.append(f"epsilon {shown(budget.epsilon)} is above {limits.epsilon:g}")
    if budget.delta > limits.delta:
        said.append(f"delta {shown(budget.delta)} is above {limits.delta:g}")
    if not guessing_chance(cost) <= limits.chance:
        said.append(
            "the bound on how often an attacker decides rightly between two possible rating lists "
            f"of one person, {percent(cost)} %, is above {100 * limits.chance:g} %"
        )
    return said


def percent(mu: float) -> str:
    """Return 100 Phi(mu/2), rounded up, with two digits of what is above 50.

    >>> percent(0.2367), percent(0.0022), percent(40.0), percent(0.0)
    ('54.8', '50.044', 'more than 99.9', '50')
    """
    above = 50 * math.erf(mu / math.sqrt(8)) * _UP
    if above <= 0:
        return "50"
    if above > _NEARLY:
        return "more than 99.9"
    digits = max(1, 1 - math.floor(math.log10(above)))
    return f"{50 + Decimal(above).quantize(Decimal(1).scaleb(-digits), ROUND_CEILING):f}"


def shown(value: float) -> str:
    """Write a number as short as possible, and never as another number."""
    return f"{value:g}" if float(f"{value:g}") == value else repr(value)


def rounded_up(cost: float, digits: int = 6) -> str:
    """Write what releases cost with so many digits, and never as less than it is.

    >>> rounded_up(0.23671234), rounded_up(0.99999999), rounded_up(4.0), rounded_up(0.12341, 4)
    ('0.236713', '1', '4', '0.1235')
    """
    return _rounded(cost, digits, ROUND_CEILING)


def rounded_down(noise_sd: float, digits: int = 6) -> str:
    """Write how much noise there is with so many digits, and never as more than it is.

    >>> rounded_down(12.26199999), rounded_down(4.0), rounded_down(0.0)
    ('12.2619', '4', '0')
    """
    return _rounded(noise_sd, digits, ROUND_FLOOR)


def _rounded(value: float, digits: int, direction: str) -> str:
    if not math.isfinite(value):
        return shown(value)
    exact = Decimal(repr(float(value)))
    unit = Decimal(f"1e{exact.adjusted() + 1 - digits}")
    return shown(float(exact.quantize(unit, direction)))


def recomputed(epsilon: float, claimed: float) -> str:
    """Write an epsilon that was found, rounded up; beyond the claim only if it is beyond it.

    >>> recomputed(1.00000037, 1.0000004), recomputed(0.99999999, 1.0), recomputed(3.14159265, 1.0)
    ('1.0000004', '1', '3.1416')
    """
    if not epsilon <= claimed:
        return rounded_up(epsilon)
    texts = (rounded_up(epsilon, digits) for digits in range(6, 18))
    return next((text for text in texts if float(text) <= claimed), shown(epsilon))


def promise(budget: PrivacyBudget, mu: float, *, refit: bool = False) -> list[str]:
    """Return, in plain sentences, what is promised and what is not; earlier refits are in it."""
    return [
        f"({shown(budget.epsilon)}, {shown(budget.delta)})-joint differential privacy for every "
        "user whose ratings were used, under the relation below.",
        _DEPENDS[grade_of(budget, mu)],
        *_attackers(budget.neighbours, mu),
        f"{EXCEPTION}what she is shown depends on her own ratings, so showing her "
        "recommendations to others can reveal them.",
        f"{EXCEPTION}{_OTHERS_OF_A_REFIT if refit else _OTHERS}",
        f"{EXCEPTION}what others can know about her without her ratings, such as a taste that "
        "everyone shares.",
    ]


_OTHERS = "other models fitted to the same ratings; their costs add up."
_OTHERS_OF_A_REFIT = (
    "models fitted to the same ratings other than this refit and the earlier refits that it uses, "
    "which are counted in epsilon; the costs of others add up."
)
_SEEN = "what anyone else sees, all other users' recommendations and this model together,"
_DEPENDS = {
    Grade.STRONG: f"This is a strong promise: {_SEEN} barely depends on one person's ratings.",
    Grade.MODERATE: f"This is a moderate promise: {_SEEN} depends on one person's ratings to a "
    "limited extent.",
    Grade.WEAK: f"This is a weak promise: {_SEEN} may depend on one person's ratings so much that "
    "an attacker can learn something about them.",
    Grade.NONE: "This is no promise to speak of.",
}


def _attackers(neighbours: Neighbours, mu: float) -> list[str]:
    """Say how often an attacker is right, for either relation; a coin toss is 50 %."""
    knows = "An attacker who knows everyone else's ratings and must decide"
    lists = "between two possible rating lists of this person"
    right = f"is right at most {percent(mu)} % of the time (50 % is a coin toss)."
    if neighbours is Neighbours.REPLACE:
        return [
            f"{knows} {lists}, both equally likely beforehand, {right}",
            "The same limit holds for two lists that differ in a single rating; no smaller one is "
            "claimed for it.",
        ]
    return [
        f"{knows} whether this person gave one certain rating list or none at all, both equally "
        f"likely beforehand, {right}",
        f"If the attacker must decide {lists}, whether they differ in a single rating or in all of "
        f"them, the limit is {percent(two_lists(neighbours, mu))} %: under this relation "
        "that is two changes, from one list to none and from none to the other.",
    ]
