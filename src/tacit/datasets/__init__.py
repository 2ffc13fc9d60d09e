"""Named datasets, read from their original files, and synthetic ratings.

>>> from tacit.datasets import DATASETS, RATING_RANGES, rating_range_of
>>> DATASETS["jester"].counts
Counts(users=73421, items=100, ratings=4136360)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.datasets.loading import load
    from tacit.datasets.registry import DATASETS, RATING_RANGES, rating_range_of
    from tacit.datasets.spec import Dataset
    from tacit.datasets.synthetic import Synthetic, synthesise

__all__ = [
    "DATASETS",
    "RATING_RANGES",
    "Dataset",
    "Synthetic",
    "load",
    "rating_range_of",
    "synthesise",
]

_HOMES = {
    "DATASETS": "registry",
    "RATING_RANGES": "registry",
    "Dataset": "spec",
    "Synthetic": "synthetic",
    "load": "loading",
    "rating_range_of": "registry",
    "synthesise": "synthetic",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: loops that draw ratings are compiled."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit.datasets' has no attribute {name!r}")
    return getattr(import_module(f"tacit.datasets.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
