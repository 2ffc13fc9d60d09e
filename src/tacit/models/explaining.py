"""What a model rests on and why, in words. It reads the published model only."""

from typing import TYPE_CHECKING

import numpy as np

from tacit.models.linear import RidgeRule

if TYPE_CHECKING:
    from tacit.models.model import Model

__all__ = ["explain"]

_WHY = {
    "spreads": "the overall mean, how far people's levels differ, and how far ratings spread",
    "item weights": "how popular each item is, and so how much is known of it",
    "item effects": "how far each item lies above or below the overall mean",
    "item sums": "the mean rating of each item",
    "item counts": "which items are rated most",
    "user count": "how many users there are",
    "row norms": "how long people's rows are",
    "covariance": "which items are liked together: the directions of taste",
    "product": "which items are liked together: the directions of taste",
    "co-ratings": "which items are rated together",
}
_CHOICES = {
    "moments": "the default; one second moment costs one release, where methods with rounds pay "
    "for every round",
    "interactions": "there are no ratings, only interactions",
}


def explain(model: "Model") -> str:
    """Say what was chosen before any rating was read, and what follows from paid releases.

    Nothing in it is new: it is in the model and its certificate.
    """
    return "\n".join([*_before(model), "", *_releases(model), "", *_after(model)])


def _before(model: "Model") -> list[str]:
    """Return the settings, by algorithm."""
    public = model.certificate.public
    names = [name for name in public if name not in ("rating range", "number of users")]
    lines = ["Chosen before any rating was read:"]
    algorithm = next((name.split(" ")[0] for name in names if name != "catalogue"), "")
    if algorithm in _CHOICES:
        lines.append(f"  {algorithm}: {_CHOICES[algorithm]}")
    lines += [f"  {name}: {public[name]}" for name in names if name != "catalogue"]
    return lines


def _releases(model: "Model") -> list[str]:
    """Return what the budget went to."""
    certificate = model.certificate
    lines = ["What the budget paid for:"]
    for entry in certificate.releases:
        share = "no noise" if not certificate.budget else f"{(entry.mu / certificate.mu) ** 2:.0%}"
        what = entry.name.rsplit(": ", 1)[-1]
        why = _WHY.get(what, _WHY.get(what.split(" ")[0], "a step of the method"))
        lines.append(f"  {entry.name} ({share} of it): {why}")
    return lines


def _after(model: "Model") -> list[str]:
    """Return what the releases decided."""
    rule = model.rule
    lines = ["What follows from these releases, at no further cost:"]
    if not isinstance(rule, RidgeRule):
        return [*lines, f"  a local rule of the kind {rule.kind!r}"]
    level = rule.factors[:, :1]
    constant = rule.factors.shape[1] > 0 and not rule.centre and float(np.ptp(level)) == 0.0
    directions = rule.factors.shape[1] - int(constant)
    lines.append(f"  {directions} directions of taste stand out from the noise and are used")
    if constant:
        lines.append(f"  people's levels differ with an sd of {float(level[0, 0]):.3g}")
    noise = float(np.sqrt(np.median(rule.noise)))
    lines.append(f"  a rating differs from its prediction with an sd of {noise:.3g} or so")
    if float(np.ptp(rule.offsets)) == 0.0:
        lines.append("  item means drown in noise: every item has the same")
    return lines
