"""Algorithms: each decides what is released and what users make of it."""

from tacit.algorithms.base import Algorithm, Facts
from tacit.algorithms.frank_wolfe import FrankWolfe

__all__ = ["ALGORITHMS", "Algorithm", "Facts", "FrankWolfe"]

ALGORITHMS = {FrankWolfe.name: FrankWolfe}
"""Every algorithm by the name it has on the command line."""
