"""Settings that look as if they had been computed from the ratings.

What a caller passes in is taken as public. A norm of 7.31842 is probably the norm of somebody's
row, and then it is not public. Nobody can tell for sure, and looking at the ratings to find out
would make the warning itself a leak; so these rules look at nothing but what was passed:

1. a number with more than three significant digits that is no simple expression (a fraction of
   small numbers, or the root of one) looks computed;
2. a whole number that counts something looks computed if it is above 100 and is neither a power of
   two, nor a multiple of 25 below 1000, nor has at most two significant digits;
3. delta looks computed by rule 1 where the number of users is protected: 1/users gives it away;
4. a catalogue that was taken from the ratings is one, whatever it looks like.

Rules 1 and 2 are applied to the settings of an algorithm that differ from its defaults, to the
rating range and to `top_items`. Seeds are let pass: any number will do for a seed. Rule 4 counts
in strict mode only, since the certificate says it anyway.
"""

import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, fields
from fractions import Fraction
from typing import Any

from tacit.errors import PrivacyError, PrivacyLeakWarning

Named = tuple[str, Any]

_PRECISION = 12  # significant digits; what is beyond them is rounding
_SMALL, _SMALL_SQUARE = (1000, 16), (1_000_000, 64)  # largest numerators and denominators


def warn_of_leaks(given: Iterable[Named], *, strict: bool, catalogue_public: bool) -> None:
    """Warn of every given value that looks computed; in strict mode it is an error."""
    problems = [_problem(*named) for named in given if looks_computed(named[1])]
    if strict and not catalogue_public:
        problems.append(
            "the catalogue was taken from the ratings: an item that one person alone has rated "
            "gives her away; read the ratings with a public list (catalogue=..., --items FILE)"
        )
    if strict and problems:
        raise PrivacyError(f"strict: {'; '.join(problems)}")
    for problem in problems:
        warnings.warn(problem, PrivacyLeakWarning, stacklevel=5)


def given_settings(config: Any) -> Iterator[Named]:
    """Yield the settings of a frozen config that are not its defaults, each number by itself."""
    for field in fields(config):
        value = getattr(config, field.name)
        default = field.default if field.default_factory is MISSING else field.default_factory()
        if field.name.endswith("seed") or value == default:
            continue
        for part in value if isinstance(value, tuple) else (value,):
            yield field.name, part


def looks_computed(value: Any) -> bool:
    """Whether a number looks like one that came out of a computation on data.

    >>> [looks_computed(x) for x in (7.5, 0.125, 2**0.5, 1e-6, 25_000, 80, 1024)]
    [False, False, False, False, False, False, False]
    >>> [looks_computed(x) for x in (7.31842, 15234.7, 4.992, 737, 73421)]
    [True, True, True, True, True]
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, int):
        return not _is_plain_count(abs(value))
    return math.isfinite(value) and len(_digits(value)) > 3 and not _is_simple(value)


def _is_plain_count(value: int) -> bool:
    round_number = len(_digits(value)) <= 2 or (value < 1000 and value % 25 == 0)
    return value <= 100 or round_number or value & (value - 1) == 0


def _digits(value: float) -> str:
    """Return the significant digits of a number: those that scientific notation would need."""
    mantissa = f"{value:.{_PRECISION - 1}e}".partition("e")[0]
    return mantissa.lstrip("-").replace(".", "").strip("0")


def _is_simple(value: float) -> bool:
    """Whether a number is a power of two, or it or its square a fraction of small numbers."""
    if value.is_integer():
        return abs(int(value)) & (abs(int(value)) - 1) == 0
    small = 1e-6 < abs(value) < 1e3
    return small and (_is_fraction(value, *_SMALL) or _is_fraction(value * value, *_SMALL_SQUARE))


def _is_fraction(value: float, largest: int, denominator: int) -> bool:
    near = Fraction(value).limit_denominator(denominator)
    if abs(near.numerator) > largest:
        return False
    return abs(float(near) - value) <= 10.0**-_PRECISION * abs(value)


def _problem(name: str, value: Any) -> str:
    return (
        f"{name}={value!r} looks as if it had been computed from the ratings, and is taken as "
        "public: if it was, the promise does not hold; give a round number that you knew "
        "beforehand, or pay for it (see docs/preparation.md)"
    )
