"""tacit: recommendations learned from ratings under user-level joint differential privacy.

>>> import tacit
>>> ratings = tacit.Ratings.from_arrays(
...     users=[1, 1, 2, 2, 3, 3], items=[7, 8, 7, 9, 8, 9], values=[5, 1, 4, 2, 1, 3],
...     rating_range=(1, 5))
>>> model = tacit.fit(ratings, epsilon=1.0)
>>> len(model.recommend({7: 5.0}, n=2))
2
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tacit import audit, datasets, engines, errors, evaluation, integrations  # noqa: F401
    from tacit.accounting.budget import Accounting, Neighbours, PrivacyBudget
    from tacit.accounting.certificate import Certificate
    from tacit.algorithms import (
        ALS,
        SVD,
        ApproximateFrankWolfe,
        Cleansing,
        FrankWolfe,
        Interactions,
        LatentFactors,
        Moments,
        NoisyGradient,
        ProjectedGradient,
    )
    from tacit.book import Book
    from tacit.data.catalogue import Catalogue
    from tacit.data.partition import partition
    from tacit.data.ratings import Ratings
    from tacit.data.store import Store
    from tacit.data.tables import Columns
    from tacit.engines import StoreEngine, ThreadEngine
    from tacit.errors import (
        BookError,
        BudgetExceeded,
        CheckpointError,
        ConfigError,
        DataError,
        EngineError,
        LifetimeExceeded,
        ModelFileError,
        PrivacyError,
        PrivacyLeakWarning,
        SignatureError,
        TacitError,
        TacitWarning,
        UnknownItemsError,
        UnknownItemsWarning,
    )
    from tacit.fitting.fit import fit
    from tacit.fitting.refit import refit
    from tacit.fitting.tune import tune
    from tacit.models import Model, Reason, Recommendation, SimilarItem, load

__all__ = [
    "ALS",
    "SVD",
    "Accounting",
    "ApproximateFrankWolfe",
    "Book",
    "BookError",
    "BudgetExceeded",
    "Catalogue",
    "Certificate",
    "CheckpointError",
    "Cleansing",
    "Columns",
    "ConfigError",
    "DataError",
    "EngineError",
    "FrankWolfe",
    "Interactions",
    "LatentFactors",
    "LifetimeExceeded",
    "Model",
    "ModelFileError",
    "Moments",
    "Neighbours",
    "NoisyGradient",
    "PrivacyBudget",
    "PrivacyError",
    "PrivacyLeakWarning",
    "ProjectedGradient",
    "Ratings",
    "Reason",
    "Recommendation",
    "SignatureError",
    "SimilarItem",
    "Store",
    "StoreEngine",
    "TacitError",
    "TacitWarning",
    "ThreadEngine",
    "UnknownItemsError",
    "UnknownItemsWarning",
    "fit",
    "load",
    "partition",
    "refit",
    "tune",
]

_HOMES = {
    "tacit.algorithms": (
        "ALS",
        "ApproximateFrankWolfe",
        "Cleansing",
        "FrankWolfe",
        "Interactions",
        "LatentFactors",
        "Moments",
        "NoisyGradient",
        "ProjectedGradient",
        "SVD",
    ),
    "tacit.accounting.budget": ("Accounting", "Neighbours", "PrivacyBudget"),
    "tacit.book": ("Book",),
    "tacit.data.catalogue": ("Catalogue",),
    "tacit.accounting.certificate": ("Certificate",),
    "tacit.engines": ("StoreEngine", "ThreadEngine"),
    "tacit.fitting.fit": ("fit",),
    "tacit.fitting.refit": ("refit",),
    "tacit.models": ("Model", "Reason", "Recommendation", "SimilarItem", "load"),
    "tacit.data.ratings": ("Ratings",),
    "tacit.data.partition": ("partition",),
    "tacit.data.store": ("Store",),
    "tacit.data.tables": ("Columns",),
    "tacit.fitting.tune": ("tune",),
}
_PACKAGES = ("audit", "datasets", "engines", "errors", "evaluation", "integrations")
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    """Load a public name or package when it is first used: importing tacit is quick."""
    if name in _PACKAGES:
        return import_module(f"tacit.{name}")
    if name == "__version__":
        from importlib.metadata import version

        return version("tacit")
    if name not in __all__:
        raise AttributeError(f"module 'tacit' has no attribute {name!r}")
    return getattr(import_module(_HOME_OF.get(name, "tacit.errors")), name)


def __dir__() -> list[str]:
    return sorted((*__all__, *_PACKAGES))
