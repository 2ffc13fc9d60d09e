"""Every kind of local rule, by the name it has in model files."""

from collections.abc import Mapping
from typing import Any

from tacit.errors import ModelFileError
from tacit.models.filling import FillingRule
from tacit.models.implicit import InteractionRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.neighbours import NeighbourRule
from tacit.models.replay import ReplayRule
from tacit.models.rules import Floats, LocalRule

_RULES = (
    ReplayRule, RidgeRule, ProjectionRule, FillingRule, NeighbourRule, InteractionRule,
    LatentFactorRule,
)  # fmt: skip
_KINDS: dict[str, Any] = {rule.kind: rule for rule in _RULES}


def rule_of_kind(kind: str, arrays: Mapping[str, Floats], settings: Mapping[str, Any]) -> LocalRule:
    """Return the rule that a model file holds."""
    if kind not in _KINDS:
        raise ModelFileError("unknown kind of local rule; a newer tacit may read it")
    rule: LocalRule = _KINDS[kind].from_parts(arrays, settings)
    return rule
