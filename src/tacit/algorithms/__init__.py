"""Algorithms: each decides what is released, and builds the local rule from it."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, overload

from tacit._validate import one_of, refuse
from tacit.algorithms.als import ALS
from tacit.algorithms.approximate import ApproximateFrankWolfe
from tacit.algorithms.base import Algorithm, Facts
from tacit.algorithms.cleansing import Cleansing
from tacit.algorithms.frank_wolfe import FrankWolfe
from tacit.algorithms.interactions import Interactions
from tacit.algorithms.latent_factors import LatentFactors
from tacit.algorithms.moments import Moments
from tacit.algorithms.noisy_gradient import NoisyGradient
from tacit.algorithms.projected_gradient import ProjectedGradient
from tacit.algorithms.svd import SVD
from tacit.errors import ConfigError

__all__ = [
    "ALGORITHMS",
    "ALS",
    "IMPLICIT_ALGORITHMS",
    "SVD",
    "Algorithm",
    "ApproximateFrankWolfe",
    "Cleansing",
    "Facts",
    "FrankWolfe",
    "Interactions",
    "LatentFactors",
    "Moments",
    "NoisyGradient",
    "ProjectedGradient",
    "algorithm_from",
]

ALGORITHMS: dict[str, Callable[[], Algorithm]] = {
    "latent-factors": LatentFactors,
    "moments": Moments,
    "frank-wolfe": FrankWolfe,
    "oja": partial(FrankWolfe, eigen="oja"),
    "svd": SVD,
    "pgd": ProjectedGradient,
    "cleansing": Cleansing,
    "sgld": NoisyGradient,
    "als": ALS,
    "approximate-frank-wolfe": ApproximateFrankWolfe,
}
"""Every algorithm for ratings by the name it has on the command line."""

IMPLICIT_ALGORITHMS: dict[str, Callable[[], Algorithm]] = {"interactions": Interactions}
"""The same for interactions without ratings."""


@overload
def algorithm_from(given: str, **settings: Any) -> Algorithm: ...
@overload
def algorithm_from(given: object, **settings: Any) -> Algorithm | None: ...
def algorithm_from(given: object, **settings: Any) -> Algorithm | None:
    """Return an algorithm given as a config, its class or its name; None stays None.

    >>> algorithm_from("als") == algorithm_from(ALS) == ALS()
    True
    >>> algorithm_from("als", rank=3).rank
    3
    """
    known: dict[str, Any] = ALGORITHMS | IMPLICIT_ALGORITHMS
    made: Any = given
    if isinstance(given, str) and given.lower() in known:
        made = known[given.lower()]()
    if isinstance(given, type) and hasattr(given, "reserve"):
        made = given()
    if made is None or (hasattr(made, "reserve") and hasattr(made, "run")):
        return replace(made, **settings) if settings else made  # type: ignore[no-any-return]
    if isinstance(given, str):
        refuse("algorithm", given, one_of(given, known))
    raise ConfigError(
        f"algorithm={type(given).__name__}: expected a config such as Moments() or ALS(rounds=5), "
        f"or its name: {', '.join(known)}"
    )
