"""Cases of a test of which one of each kind is tried in `make test`, and all in the slow tests."""

from collections.abc import Callable, Iterable
from typing import Any

import pytest

__all__ = ["first_of_each", "slow"]


def slow(*values: Any) -> Any:
    """A case for the slow tests."""
    return pytest.param(*values, marks=pytest.mark.slow)


def first_of_each(cases: Iterable[str], kind: Callable[[str], object]) -> list[Any]:
    """All cases by name; those that are not the first of their kind are for the slow tests."""
    seen: set[object] = set()
    found = []
    for case in cases:
        of = kind(case)
        found.append(slow(case) if of in seen else case)
        seen.add(of)
    return found
