"""Attacks on our own privacy promise, run on synthetic people.

Every part attacks what is done to the ratings of synthetic people, of whom it knows everything.
None of them is ever given anyone's ratings; a model file is asked for its certificate only, and the
configuration that it names is attacked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any

from tacit._validate import Range, Validated
from tacit.audit.finding import Finding
from tacit.audit.progress import Progress, Steps
from tacit.audit.result import Audit
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.accounting.budget import PrivacyBudget
    from tacit.algorithms import Algorithm
    from tacit.audit.target import Target
    from tacit.models import Model

__all__ = ["PARTS", "Audit", "Finding", "Scale", "audit"]

PARTS = ("sensitivity", "rating", "game", "membership", "reconstruction", "noise")
"""The parts of an audit, in the order in which they run."""


@dataclass(frozen=True)
class Scale(Validated):
    """How much work an audit does.

    Attributes:
        trials: fits in either world, for every guesser of the game; None: 1000, or 200 if quick.
        seed: makes the noise of the game repeatable; None: the operating system's.
        quick: whether to look less hard, for a first impression.
    """

    trials: Annotated[int, Range(0)] | None = None
    seed: Annotated[int, Range(0)] | None = None
    quick: bool = False

    @property
    def fits(self) -> int:
        """How many fits the game makes in either world."""
        return self.trials if self.trials is not None else 200 if self.quick else 1000


def audit(
    target: "Algorithm | Model",
    *,
    budget: "PrivacyBudget | None" = None,
    rating_range: tuple[float, float] = (1.0, 5.0),
    parts: Sequence[str] = PARTS,
    scale: Scale | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Attack an algorithm with its settings, or the configuration that a model's certificate names.

    Args:
        target: a config such as `Moments()`, or a model; its certificate is checked too.
        budget: what is promised; for a model it is the certificate's.
        rating_range: of the synthetic ratings; for a model it is the model's.
        parts: which attacks to run, of PARTS.
        scale: how much work to do.
        progress: called with (part, steps done, steps in all) when a part has planned its steps,
            and after each step; a step is a fit, or a release that is attacked.
    """
    from tacit.models import Model

    scale = scale or Scale()
    wanted = _checked(parts)
    if isinstance(target, Model):
        return _audit_model(target, budget, wanted, scale, progress)
    if budget is None:
        raise ConfigError("budget=None: give a PrivacyBudget, the promise that is attacked")
    from tacit.audit.target import Target

    subject = Target(target, budget, rating_range)
    return Audit(subject.name, budget, _attacked(subject, wanted, scale, progress), scale.seed)


def _audit_model(
    model: "Model",
    budget: "PrivacyBudget | None",
    parts: tuple[str, ...],
    scale: Scale,
    progress: Progress | None,
) -> Audit:
    """Check a model's certificate, and attack the configuration that it names."""
    from tacit.audit.target import target_of_model

    if budget is not None:
        raise ConfigError("budget: leave it out for a model, whose certificate names it")
    checked = _certificate(model)
    if model.certificate.budget is None:
        return Audit(model.algorithm, None, (checked,), scale.seed)
    subject = target_of_model(model)
    findings = (checked, *_attacked(subject, parts, scale, progress))
    return Audit(subject.name, subject.budget, findings, scale.seed)


def _certificate(model: "Model") -> Finding:
    """Recompute epsilon from the releases that a certificate lists."""
    found = model.verify()
    claimed, recomputed = found.epsilon_claimed, found.epsilon_recomputed
    problems = "; ".join(found.problems) or "no problem"
    return Finding(
        part="certificate",
        subject=f"the certificate of this model ({model.algorithm})",
        claim="the releases that are listed cost no more than the epsilon that is claimed",
        measured=float("inf") if recomputed is None else recomputed,
        limit=0.0 if claimed is None else claimed,
        holds=found.holds,
        how=f"epsilon is recomputed from the listed releases: {problems}",
    )


def _checked(parts: Sequence[str]) -> tuple[str, ...]:
    """Return the wanted parts in their order, or name the one that is unknown."""
    unknown = [part for part in parts if part not in PARTS]
    if unknown or not parts:
        raise ConfigError(f"parts={','.join(map(str, parts))}: expected some of {', '.join(PARTS)}")
    return tuple(part for part in PARTS if part in parts)


def _attacked(
    subject: "Target",
    parts: tuple[str, ...],
    scale: Scale,
    progress: Progress | None,
) -> tuple[Finding, ...]:
    """Run the parts, each in the module of its own name."""
    findings: list[Finding] = []
    for part in parts:
        steps = Steps(partial(progress, part) if progress else None)
        home = import_module(f"tacit.audit.{part}")
        findings += getattr(home, part)(subject, steps=steps, **_options(part, scale))
    return tuple(findings)


def _options(part: str, scale: Scale) -> dict[str, Any]:
    """Return how hard a part should try."""
    from tacit.audit.sensitivity import QUICK, Effort

    seed = scale.seed or 0
    options: dict[str, dict[str, Any]] = {
        "sensitivity": {"seed": seed, "effort": QUICK if scale.quick else Effort()},
        "rating": {"seed": seed, "effort": QUICK if scale.quick else Effort()},
        "game": {"seed": scale.seed, "trials": scale.fits},
        "membership": {"seed": seed} | ({"trials": 100} if scale.quick else {}),
        "reconstruction": {"seed": seed},
        "noise": {"seed": seed},
    }
    return options[part]
