"""What is audited: an algorithm with its settings and a budget, given or read off a certificate."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS, Algorithm, Facts
from tacit.budget import Neighbours, PrivacyBudget
from tacit.certificate import Certificate
from tacit.errors import ConfigError
from tacit.models import Model
from tacit.narrowing import COUNTS

__all__ = ["Subject", "subject_of_model"]

_BY_RULE, _PAID = "by rule", "paid for by the release"


@dataclass(frozen=True)
class Subject:
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


def subject_of_model(model: Model) -> Subject:
    """Return the configuration that a model's certificate names."""
    certificate = model.certificate
    if certificate.budget is None:
        raise ConfigError("the model promises nothing (no budget): there is nothing to attack")
    kind = _kind(certificate)
    lo, hi = model.rating_range
    protected = certificate.budget.neighbours is Neighbours.ADD_REMOVE
    users = None if protected else 2  # no setting follows from how many
    facts = Facts(len(model.catalogue), (lo, hi), users, certificate.budget)
    settings = _settings(kind, certificate.public, facts)
    narrowed = any(entry.name == COUNTS for entry in certificate.releases)
    return Subject(kind(**settings), certificate.budget, (lo, hi), narrowed)


def _kind(certificate: Certificate) -> Any:
    """Return the class of the one algorithm whose settings a certificate lists."""
    kinds = {type(make()) for make in (ALGORITHMS | IMPLICIT_ALGORITHMS).values()}
    found = [
        kind
        for kind in kinds
        if all(f"{kind.name} {field.name}" in certificate.public for field in fields(kind))  # type: ignore[arg-type]
    ]
    if len(found) != 1 or "chosen candidate" in certificate.public:
        raise ConfigError(
            "the certificate does not name one algorithm with all of its settings (a model that "
            "was tuned names several); give the name of an algorithm and its settings instead"
        )
    return found[0]


def _settings(kind: Any, public: Mapping[str, str], facts: Facts) -> dict[str, Any]:
    """Read settings back; one that says what the rule would say for that model stays a rule.

    So a norm that follows from the number of items follows from it in small worlds too.
    """
    usual = kind().public(facts)
    names = [f"{kind.name} {field.name}" for field in fields(kind)]
    given = {name: public[name] for name in names if public[name] != usual[name]}
    return {name.removeprefix(f"{kind.name} "): _value(text) for name, text in given.items()}


def _value(text: str) -> Any:
    """Read one setting back from its text."""
    words = {_BY_RULE: None, "True": True, "False": False}
    if text in words:
        return words[text]
    if text.startswith(_PAID):
        return "private"
    listed = text.startswith("(")
    try:
        value = json.loads(f"[{text.strip('(),')}]" if listed else text)
    except ValueError:
        return text
    return tuple(value) if listed else value
