"""Read the keys of a TOML table: each is checked, and unknown keys are an error."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

from tacit._validate import Range, check
from tacit.errors import ConfigError

REQUIRED: Final = object()
"""Stands for the default of a key that has none."""


class Fields:
    """One table of an experiment's file; messages name the file, the table and the key."""

    def __init__(self, where: str, content: Any) -> None:
        """Take a table."""
        if not isinstance(content, dict):
            raise ConfigError(f"{where}: expected a table, with a key and a value a line")
        self.where = where
        self._left: dict[str, Any] = dict(content)

    def raw(self, name: str, default: Any = REQUIRED) -> Any:
        """Take a value of any kind."""
        if name in self._left:
            return self._left.pop(name)
        if default is REQUIRED:
            raise ConfigError(f"{self.where}: {name} is missing")
        return default

    def text(self, name: str, default: Any = REQUIRED) -> Any:
        """Take a text that is not empty."""
        value = self.raw(name, default)
        fine = value is default or (isinstance(value, str) and value.strip())
        return value if fine else self.refuse(name, value, "a text")

    def word(self, name: str, known: Mapping[str, Any] | tuple[str, ...], default: Any) -> Any:
        """Take one of the known words."""
        value = self.raw(name, default)
        fine = isinstance(value, str) and value in known
        return value if fine else self.refuse(name, value, f"one of {', '.join(known)}")

    def whole(self, name: str, low: int, high: int, default: Any = REQUIRED) -> Any:
        """Take a whole number."""
        value = self.raw(name, default)
        hint = Annotated[int, Range(low, high)]
        return value if value is default else check(f"{self.where}: {name}", value, hint)

    def number(self, name: str, low: float, high: float, default: Any = REQUIRED) -> Any:
        """Take a number."""
        value = self.raw(name, default)
        hint = Annotated[float, Range(low, high)]
        return value if value is default else float(check(f"{self.where}: {name}", value, hint))

    def numbers(self, name: str, low: float, default: Any = REQUIRED) -> Any:
        """Take a list of different numbers, in rising order; inf is one."""
        value = self.raw(name, default)
        if value is default:
            return value
        fine = isinstance(value, list) and all(_is_number(one) and one >= low for one in value)
        if not fine or not value or sorted(set(value)) != value:
            self.refuse(name, value, f"different numbers of at least {low:g}, the smallest first")
        return tuple(float(one) for one in value)

    def tables(self, name: str, default: Any = REQUIRED) -> list["Fields"]:
        """Take a list of tables."""
        value = self.raw(name, default)
        if not isinstance(value, list) or (default is REQUIRED and not value):
            self.refuse(name, value, f"at least one [[{name}]]")
        return [Fields(f"{self.where}, {name} {at}", one) for at, one in enumerate(value, 1)]

    def refuse(self, name: str, value: Any, expected: str) -> Any:
        """Say what is wrong with a value."""
        raise ConfigError(f"{self.where}: {name}={value!r}: expected {expected}")

    def close(self) -> None:
        """Refuse keys that nobody asked for: a slip of the pen must not go unnoticed."""
        if self._left:
            raise ConfigError(f"{self.where}: there is no such key as {', '.join(self._left)}")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
