"""The lowest and the highest rating that the scale of each named dataset allows."""

from collections.abc import Mapping
from types import MappingProxyType

from tacit.errors import ConfigError

__all__ = ["RATING_RANGES", "rating_range_of"]

RATING_RANGES: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "jester": (-10.0, 10.0),
        "movielens": (0.5, 5.0),
        "movielens-1m": (1.0, 5.0),
        "netflix": (1.0, 5.0),
        "synthetic-rank-one": (-1.0, 1.0),
        "synthetic-tastes": (0.5, 5.0),
        "yahoo-music": (0.0, 100.0),
    }
)
"""The lowest and the highest rating that each named dataset's own scale allows (public)."""


def rating_range_of(name: str) -> tuple[float, float]:
    """The rating range of a named dataset; upper and lower case are the same.

    >>> rating_range_of("Jester")
    (-10.0, 10.0)
    """
    found = RATING_RANGES.get(name.strip().lower())
    if found is None:
        raise ConfigError(
            f"rating_range={name!r} is not the name of a known dataset "
            f"({', '.join(sorted(RATING_RANGES))}); give a name or a pair (lowest, highest)"
        )
    return found
