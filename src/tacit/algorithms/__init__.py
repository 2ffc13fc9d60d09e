"""Algorithms: each decides what is released and what users make of it."""

from collections.abc import Callable
from functools import partial

from tacit.algorithms.approximate import ApproximateFrankWolfe
from tacit.algorithms.base import Algorithm, Facts
from tacit.algorithms.cleansing import Cleansing
from tacit.algorithms.frank_wolfe import FrankWolfe
from tacit.algorithms.noisy_gradient import NoisyGradient
from tacit.algorithms.projected_gradient import ProjectedGradient
from tacit.algorithms.svd import SVD

__all__ = [
    "ALGORITHMS",
    "SVD",
    "Algorithm",
    "ApproximateFrankWolfe",
    "Cleansing",
    "Facts",
    "FrankWolfe",
    "NoisyGradient",
    "ProjectedGradient",
]

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "frank-wolfe": FrankWolfe,
    "oja": partial(FrankWolfe, eigen="oja"),
    "svd": SVD,
    "pgd": ProjectedGradient,
    "cleansing": Cleansing,
    "sgld": NoisyGradient,
    "approximate-frank-wolfe": ApproximateFrankWolfe,
}
"""Every algorithm by the name it has on the command line."""
