"""What is audited: an algorithm with its settings and a budget, given or read off a certificate."""

from dataclasses import dataclass, fields, replace
from typing import Any

from tacit.accounting.budget import PrivacyBudget
from tacit.accounting.release import ReleaseKind
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS, Algorithm
from tacit.errors import ConfigError
from tacit.models import Model


@dataclass(frozen=True)
class Target:
    """A configuration under attack.

    Attributes:
        algorithm: a frozen config, such as `Moments()`.
        budget: what is promised.
        rating_range: the public range of ratings.
        narrowed: whether items are chosen by a paid count first (`top_items`).
    """

    algorithm: Algorithm
    budget: PrivacyBudget
    rating_range: tuple[float, float] = (1.0, 5.0)
    narrowed: bool = False

    @property
    def name(self) -> str:
        """The name of the algorithm."""
        return self.algorithm.name

    @property
    def implicit(self) -> bool:
        """Whether it learns from interactions without ratings."""
        return bool(getattr(self.algorithm, "implicit", False))


def target_of_model(model: Model) -> Target:
    """Return the configuration that a model's certificate names."""
    certificate = model.certificate
    if certificate.budget is None:
        raise ConfigError("the model promises nothing (no budget): there is nothing to attack")
    kinds = {entry.release.kind for entry in certificate.releases}
    method, known = certificate.method, ALGORITHMS | IMPLICIT_ALGORITHMS
    config: Any = known[method.name]() if method and method.name in known else None
    settings = {each.name for each in fields(config)} if config else set()
    tuned = ReleaseKind.HELD_OUT_LOSSES in kinds
    if tuned or method is None or not settings or settings != set(method.settings):
        raise ConfigError(
            "the certificate does not name one algorithm with all of its settings (a model that "
            "was tuned names several, one of an older version none); give the name of an algorithm "
            "and its settings instead"
        )
    algorithm = replace(config, **method.settings)
    narrowed = ReleaseKind.ITEM_COUNTS in kinds
    return Target(algorithm, certificate.budget, model.rating_range, narrowed)
