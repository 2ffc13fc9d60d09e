"""Explain a model in words: what it rests on and why. It reads the published model only.

It claims no more than the method can know. Some methods compare what they find with the noise, and
then it says what stood out; others use a fixed rank or number of rounds, whatever the noise is, and
then it says so.
"""

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np

from tacit.accounting.release import Release, ReleaseKind
from tacit.models.filling import FillingRule
from tacit.models.implicit import InteractionRule
from tacit.models.latent import LatentFactorRule
from tacit.models.linear import ProjectionRule, RidgeRule
from tacit.models.neighbours import NeighbourRule
from tacit.models.replay import ReplayRule
from tacit.models.rules import kinds_paid

if TYPE_CHECKING:
    from tacit.accounting.ledger import Entry
    from tacit.models.model import Model
    from tacit.models.rules import LocalRule

WHY: Final = {
    ReleaseKind.USER_COUNT: "how many users there are",
    ReleaseKind.RATING_COUNT: "how many ratings there are, for the scale of predictions",
    ReleaseKind.ITEM_COUNTS: "which items are rated most; the others are left out",
    ReleaseKind.ITEM_WEIGHTS: "the popularity of each item, and so how much is known of it",
    ReleaseKind.ITEM_SUMS: "the mean rating of each item",
    ReleaseKind.ITEM_EFFECTS: "how far each item lies above or below the overall mean",
    ReleaseKind.SPREADS: "the overall mean, and the variances of user biases and of ratings",
    ReleaseKind.ROW_NORMS: "the norm that users' rows are scaled down to",
    ReleaseKind.COVARIANCE: "the covariance of items, for latent factors",
    ReleaseKind.PRODUCT: "the covariance of items times a few vectors, for latent factors",
    ReleaseKind.ENERGY: "the eigenvalue of the latent factor of a round",
    ReleaseKind.MOMENTS: "the risk and the duality gap of a round",
    ReleaseKind.CO_RATINGS: "how often each pair of items was rated by the same user",
    ReleaseKind.CO_OCCURRENCES: "which items are used by the same users, for latent factors",
    ReleaseKind.CO_OCCURRENCE_PRODUCT: "the same pairs of items times a few vectors, for latent "
    "factors",
    ReleaseKind.EQUATIONS: "the least-squares equations of all item factors, for a round",
    ReleaseKind.GRADIENT: "the gradient of the loss, for a step of the model's parameters",
    ReleaseKind.FACTOR_MOMENTS: "how users' latent factors follow from which items they chose",
    ReleaseKind.HELD_OUT_LOSSES: "which candidate predicts ratings best that were held out",
    ReleaseKind.EARLIER_REFITS: "what earlier refits of the book released, with which this one is "
    "combined",
    ReleaseKind.STATED: "a sum that the audit states itself, to look at its noise",
    ReleaseKind.OTHER: "a release of a kind that this version of tacit does not know",
}
"""What each kind of release is for."""

_CHOICES = {
    "latent-factors": "the default; it learns from which items users chose and how they rated them",
    "moments": "one second moment costs one release, where methods with rounds pay for every round",
    "interactions": "there are no ratings, only interactions",
}
_BY_FEATURES = ("item features", "items added")
_CANNOT_TELL = "this method cannot tell whether {these} are signal or noise"


def explain(model: "Model") -> str:
    """Say what was chosen before any rating was read, and what follows from paid releases.

    Nothing in it is new: it is in the model and its certificate.
    """
    return "\n".join([*_before(model), "", *_releases(model), "", *_after(model)])


def shortfall(model: "Model") -> str | None:
    """Say in one line that no latent factor was found, where the method would tell; else None.

    It reads the published model only, as all of this.
    """
    rule = model.rule
    if isinstance(rule, InteractionRule):
        found, means = rule.factors.shape[1], "their popularity"
    elif isinstance(rule, LatentFactorRule):
        found = rule.factors.shape[1] + rule.choice_factors.shape[1] - 2
        means = "their means"
    elif isinstance(rule, RidgeRule) and _is_moments(model):
        found, means = rule.factors.shape[1] - 1, "their means"
    else:
        return None
    if found:
        return None
    none = f"no latent factor is above the {_disturbance(model)}"
    if not isinstance(rule, InteractionRule) and not np.ptp(rule.offsets):
        return f"{none}, nor are differences between items: every user is predicted the user mean"
    return f"{none}: tastes are not told apart, and all that it knows of items is {means}"


def _before(model: "Model") -> list[str]:
    """Return the settings, by algorithm."""
    public, method = model.certificate.public, model.certificate.method
    lines = ["Chosen before any rating was read:"]
    if method and method.name in _CHOICES:
        lines.append(f"  {method.name}: {_CHOICES[method.name]}")
    elsewhere = ("rating range", "number of users", "catalogue", *_BY_FEATURES)
    return lines + [f"  {name}: {why}" for name, why in public.items() if name not in elsewhere]


def _releases(model: "Model") -> list[str]:
    """Return what the budget went to, releases of one kind together."""
    groups: dict[Release, list[Entry]] = {}
    for entry in model.certificate.releases:
        groups.setdefault(replace(entry.release, index=()), []).append(entry)
    return ["What the budget paid for:", *(_paid(model, group) for group in groups.values())]


def _paid(model: "Model", group: "list[Entry]") -> str:
    """Return the line of releases that differ in their number only."""
    certificate, first, last = model.certificate, group[0], group[-1]
    share = "no noise"
    if certificate.budget is not None:
        share = f"{sum(entry.mu**2 for entry in group) / certificate.mu**2:.0%} of it"
    name = first.name if first is last else f"{first.name} to {last.release.number}"
    return f"  {name} ({share}): {WHY[first.release.kind]}"


def _after(model: "Model") -> list[str]:
    """Return what the releases decided."""
    found = [_factors(model), *_spreads(model), *_item_means(model)]
    public = model.certificate.public
    found += [f"{name}: {public[name]}" for name in _BY_FEATURES if name in public]
    lines = ["What follows from these releases, at no further cost:"]
    return lines + [f"  {line}" for line in found]


def _factors(model: "Model") -> str:
    """Say how many latent factors there are, and whether noise or a setting decided that."""
    rule = model.rule
    if isinstance(rule, InteractionRule):
        return _counted(model, rule.factors.shape[1])
    if isinstance(rule, LatentFactorRule):
        return _both_heads(model, rule)
    if isinstance(rule, RidgeRule) and _is_moments(model):
        return _counted(model, rule.factors.shape[1] - 1)
    fixed = _fixed_number(rule)
    if fixed is None:
        return f"a local rule of the kind {rule.kind!r}, of which nothing more is known here"
    return _fixed(model, *fixed)


def _both_heads(model: "Model", rule: LatentFactorRule) -> str:
    """Say how many latent factors ratings and choices have, and what decided on them."""
    ratings, choices = rule.factors.shape[1] - 1, rule.choice_factors.shape[1] - 1
    if _paid_for(model)[ReleaseKind.EQUATIONS] and model.certificate.budget is None:
        start = f"ratings have {ratings} latent factors, each as large as the likelihood makes it"
    else:
        start = f"of ratings, {_counted(model, ratings)}"
    told = "choices" if choices else "how popular a user's choices are,"
    used = f"follow from {told} too" if np.any(rule.prior) else "do not follow from choices"
    return f"{start}; of choices, {_counted(model, choices)}; users' latent factors {used}"


def _fixed_number(rule: "LocalRule") -> tuple[str, str] | None:
    """Return what the settings fix, and what is made of it."""
    if isinstance(rule, ReplayRule | FillingRule):
        steps = rule.gains if isinstance(rule, ReplayRule) else rule.rates
        return f"the number of rounds, {steps.size},", "their factors"
    if isinstance(rule, ProjectionRule | RidgeRule):
        factors = rule.basis if isinstance(rule, ProjectionRule) else rule.factors
        return f"rank {factors.shape[1]}", "these factors"
    if isinstance(rule, NeighbourRule):
        return "the rank of the covariance", "the similarities of items"
    return None


def _counted(model: "Model", columns: int) -> str:
    """Say how many factors passed the threshold, for methods that have one."""
    threshold = f"above the {_disturbance(model)} threshold"
    if columns == 0:
        return f"no latent factor is {threshold}, and none is used"
    many = "1 latent factor is" if columns == 1 else f"{columns} latent factors are"
    return f"{many} {threshold}; whatever is below it is not used"


def _fixed(model: "Model", what: str, these: str) -> str:
    """Say what no release decided, and that the method does not notice when noise drowns it.

    Of ALS the rank that is set is the largest: a round may leave fewer factors, and one at least.
    """
    fixed = f"{what} is fixed by the settings"
    if _paid_for(model)[ReleaseKind.EQUATIONS]:
        fixed = f"{what} is what the rounds left of the rank in the settings, and is never 0"
    if model.certificate.budget is None:
        return f"{fixed}; no noise was added"
    return f"{fixed}; {_CANNOT_TELL.format(these=these)}"


def _spreads(model: "Model") -> list[str]:
    """Say how far user biases and ratings spread, where that is possible at all."""
    rule = model.rule
    if not isinstance(rule, RidgeRule | LatentFactorRule):
        return []
    noise = float(np.sqrt(np.median(rule.noise)))
    if isinstance(rule, RidgeRule) and not _is_moments(model):
        return [
            f"a rating is taken to differ from its prediction with an sd of {noise:.3g}, which "
            "follows from the settings and the rating range and was not measured"
        ]
    bias = float(np.mean(rule.factors[:, 0]))
    most = (model.rating_range[1] - model.rating_range[0]) / 2
    return [
        f"user biases are taken to differ with an sd of {bias:.3g}, in which the doubt about the "
        "overall mean is included"
        if bias <= most
        else "the sd of user biases drowned in noise: nobody's bias is drawn to the overall mean",
        f"a rating is taken to differ from its prediction with an sd of {noise:.3g}"
        if noise <= most
        else "the sd of ratings about their predictions drowned in noise",
    ]


def _item_means(model: "Model") -> list[str]:
    """Say whether items differ, and whether that was compared with the noise."""
    paid = _paid_for(model)
    if isinstance(model.rule, InteractionRule):
        return ["the popularity of items is used as measured; it is not compared with its noise"]
    if not paid[ReleaseKind.ITEM_SUMS] + paid[ReleaseKind.ITEM_EFFECTS]:
        return ["item means were not asked for: every item has the middle of the rating range"]
    offsets = model.rule.parts()[0]["offsets"]
    if float(np.ptp(offsets)) == 0.0:
        drown = f"item means drown in {_disturbance(model)}: every item has the same"
        return [drown, *_own_mean(model)]
    if paid[ReleaseKind.CO_RATINGS]:
        return [_fixed(model, "how far item means are shrunk", "their differences")]
    return [
        f"item means differ by more than {_disturbance(model)} explains, and are shrunk by how "
        "much it does"
    ]


def _disturbance(model: "Model") -> str:
    """Return what findings were compared with: noise, or chance alone where none was added."""
    return "noise" if model.certificate.budget is not None else "chance"


def _own_mean(model: "Model") -> list[str]:
    """Say what is left where items have all the same mean: nothing else, if no factor stood out."""
    rule = model.rule
    latent = isinstance(rule, LatentFactorRule) and not np.any(rule.prior)
    plain = latent or (isinstance(rule, RidgeRule) and _is_moments(model))
    alone = plain and rule.parts()[0]["factors"].shape[1] == 1
    return ["so predictions are the user mean, the same for all items"] * alone


def _is_moments(model: "Model") -> bool:
    """Whether the first column of the factors is the sd of user biases: as `Moments` has it."""
    rule = model.rule
    constant = isinstance(rule, RidgeRule) and rule.factors.size and not np.ptp(rule.factors[:, 0])
    return bool(constant and _paid_for(model)[ReleaseKind.SPREADS])


def _paid_for(model: "Model") -> Counter[ReleaseKind]:
    """Count the releases of each kind that the model is made of."""
    return kinds_paid(entry.release for entry in model.certificate.releases)
