"""Named datasets, read from their original files, and synthetic ratings.

>>> from tacit.datasets import DATASETS
>>> DATASETS["jester"].counts
Counts(users=73421, items=100, ratings=4136360)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tacit.datasets.scales import RATING_RANGES, rating_range_of

if TYPE_CHECKING:
    from tacit.datasets.loading import load
    from tacit.datasets.registry import DATASETS
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
    "Dataset": "spec",
    "Synthetic": "synthetic",
    "load": "loading",
    "synthesise": "synthetic",
}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: reading ratings needs rating ranges only."""
    if name not in _HOMES:
        raise AttributeError(f"module 'tacit.datasets' has no attribute {name!r}")
    return getattr(import_module(f"tacit.datasets.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
