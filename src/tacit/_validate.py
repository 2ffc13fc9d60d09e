"""Settings that check themselves: the type of a field states the allowed values.

`rounds: Annotated[int, Range(2, 10_000)] = 10` is checked when a config is made, and the same words
are in the error, in the command line's help and in the reference. Allowed are numbers with a Range,
bool, Literal, None, tuples, and unions of these. What concerns several fields is checked by hand.
"""

import math
from collections.abc import Iterable
from dataclasses import MISSING, dataclass, fields
from difflib import get_close_matches
from functools import cache
from os import PathLike
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    Self,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from tacit.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """Numbers from low to high; a round bracket in `ends` leaves that end out."""

    low: float
    high: float = math.inf
    ends: Literal["[]", "(]", "[)", "()"] = "[]"
    words: str = ""
    """What to call it, where the numbers alone would not tell."""

    def __contains__(self, value: float) -> bool:
        above = value > self.low if self.ends[0] == "(" else value >= self.low
        return above and (value < self.high if self.ends[1] == ")" else value <= self.high)

    def text(self, kind: type) -> str:
        """Say which numbers of a kind these are."""
        name = "a whole number" if kind is int else "a number"
        if self.words:
            return self.words
        if self.high == math.inf:
            name = name.replace("a ", "a finite ") if self.ends[1] == ")" else name
            return f"{name} {'above' if self.ends[0] == '(' else 'of at least'} {self.low:g}"
        if kind is int:
            return f"{name} from {self.low} to {self.high}"
        return f"{name} in {self.ends[0]}{self.low:g}, {self.high:g}{self.ends[1]}"


Count = Annotated[int, Range(1)]
Seed = Annotated[int, Range(0, 2**63 - 1, words="a whole number from 0 to 2^63 - 1")]
Positive = Annotated[float, Range(1e-30, 1e30, "()", words="a positive number")]


def _holds(hint: Any, value: Any) -> bool:
    """Whether a value is one that a type allows."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _holds(args[0], value) and all(value in mark for mark in args[1:])
    if origin in (Union, UnionType):
        return any(_holds(arg, value) for arg in args)
    if origin is Literal:
        return isinstance(value, str) and value in args
    if origin is tuple:
        parts = args[:1] * len(value) if args[-1] is ... and isinstance(value, tuple) else args
        return (
            isinstance(value, tuple) and len(value) == len(parts) and all(map(_holds, parts, value))
        )
    if hint in (bool, NoneType):
        return isinstance(value, hint)
    return isinstance(value, int | hint) and not isinstance(value, bool)


def _choices(hint: Any) -> list[str]:
    """What a union or a Literal has to choose from, in words."""
    if get_origin(hint) is Literal:
        return [repr(word) for word in get_args(hint)]
    if get_origin(hint) in (Union, UnionType):
        return [choice for arg in get_args(hint) for choice in _choices(arg)]
    return [_text(hint)]


def _text(hint: Any) -> str:
    """Say what a type allows."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return str(args[1].text(args[0]))
    if origin in (Union, UnionType, Literal):
        *others, last = _choices(hint)
        return f"{', '.join(others)} or {last}" if others else last
    if origin is tuple:
        several = "a tuple, each" if args[-1] is ... else f"a tuple of {len(args)}, each"
        return f"{several} {_text(args[0])}"
    return {bool: "true or false", NoneType: "None"}.get(hint, "a number")


@dataclass(frozen=True)
class Setting:
    """A field of a config: its name, its type with what that allows, and its default."""

    name: str
    hint: Any
    default: Any

    @property
    def expected(self) -> str:
        """What is allowed, in words."""
        return _text(self.hint)


@cache
def settings_of(config: Any) -> tuple[Setting, ...]:
    """The settings of a class of configs, in order."""
    hints = get_type_hints(config, include_extras=True)
    return tuple(Setting(field.name, hints[field.name], field.default) for field in fields(config))


def refuse(name: str, value: Any, expected: str) -> NoReturn:
    """Refuse a setting, in the words that all settings share."""
    raise ConfigError(f"{name}={value!r}: expected {expected}")


def one_of(value: object, known: Iterable[str]) -> str:
    """Say which names there are, and which of them is like one that is not among them.

    >>> one_of("frankwolfe", ["moments", "frank-wolfe"])
    "one of moments, frank-wolfe; did you mean 'frank-wolfe'?"
    """
    return f"one of {', '.join(known)}{did_you_mean(value, known)}"


def did_you_mean(value: object, known: Iterable[str]) -> str:
    """Name what comes closest to a name that is not known; nothing if nothing does."""
    close = get_close_matches(str(value).lower(), list(known), 3)
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def check(name: str, value: Any, hint: Any, default: Any = MISSING) -> Any:
    """Refuse a value that its type does not allow; return it, a number of numpy as Python's."""
    value = _plain(value)
    if not _holds(hint, value):
        usual = "" if default is MISSING else f"; leave it out for {default!r}"
        refuse(name, value, _text(hint) + usual)
    return value


def _plain(value: Any) -> Any:
    """Return a number of numpy as Python's: settings are compared, hashed, and written as JSON."""
    numpy_scalar = type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0
    return value.item() if numpy_scalar else value


def path_of(name: str, given: Any, what: str = "file") -> Path:
    """Return a path; refuse what names no file."""
    if not isinstance(given, str | PathLike):
        raise ConfigError(f"{name}={type(given).__name__}: expected the name of a {what}")
    return Path(given)


class Validated:
    """A frozen dataclass whose fields are checked against their types when it is made."""

    def __new__(cls, *_: Any, **given: Any) -> Self:
        """Refuse a setting that there is not, and name those that there are."""
        config: Any = cls
        known = [setting.name for setting in settings_of(config)]
        for name, value in given.items():
            if name not in known:
                raise ConfigError(
                    f"{name}={value!r}: {getattr(cls, 'name', cls.__name__)} has no such setting; "
                    f"it has {', '.join(known)}{did_you_mean(name, known)}"
                )
        return super().__new__(cls)

    def __post_init__(self) -> None:
        """Check every setting."""
        own: Any = type(self)
        for setting in settings_of(own):
            given = getattr(self, setting.name)
            value = check(setting.name, given, setting.hint, setting.default)
            if value is not given:
                object.__setattr__(self, setting.name, value)
