"""Experiments as small TOML files: run, kept, resumed, tabled and drawn. NOT PRIVATE."""

from tacit.experiments.described import DatasetChoice, Experiment, Guide, MethodChoice
from tacit.experiments.reading import parse_experiment, read_experiment
from tacit.experiments.reproducing import Options, Outcome, reproduce

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
