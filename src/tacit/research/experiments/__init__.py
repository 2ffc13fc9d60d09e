"""Experiments as small TOML files: run, kept, resumed, tabled and drawn. NOT PRIVATE."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit.research.experiments.reading import parse_experiment, read_experiment
    from tacit.research.experiments.reproducing import Options, Outcome, reproduce
    from tacit.research.experiments.spec import DatasetChoice, Experiment, Guide, MethodChoice

__all__ = [
    "DatasetChoice",
    "Experiment",
    "Guide",
    "MethodChoice",
    "Options",
    "Outcome",
    "parse_experiment",
    "read_experiment",
    "reproduce",
]

_HOMES = {
    "reading": ("parse_experiment", "read_experiment"),
    "reproducing": ("Options", "Outcome", "reproduce"),
    "spec": ("DatasetChoice", "Experiment", "Guide", "MethodChoice"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used: figures need the descriptions only."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'tacit.research.experiments' has no attribute {name!r}")
    return getattr(import_module(f"tacit.research.experiments.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return __all__
