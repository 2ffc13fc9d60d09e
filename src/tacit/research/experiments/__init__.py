"""Experiments as small TOML files: run, kept, resumed, tabled and drawn. NOT PRIVATE."""

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
