"""The sections of a report about the model: budget, factors, a map of items, sample lists.

Everything is computed from published numbers and invented people, so these sections may be shown
to anyone; what is measured on held-out ratings (`tacit.reporting.html`) may not.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.release import ReleaseKind
from tacit.errors import ConfigError
from tacit.models import Model, Recommendation
from tacit.models.latent import LatentFactorRule
from tacit.models.rules import Comparing, Linear, less_mean
from tacit.reporting.markup import Section, table
from tacit.reporting.pictures import Bar, Dot, budget_bar, item_map, principal_axes, spectrum

_PEOPLE, _OWN, _LIST, _REASONS = 3, 3, 5, 2
_MOST_DOTS = 400
_MOST_BARS = 20


def model_sections(model: Model) -> list[Section]:
    """Return the sections that this model has something to show for."""
    made = (_budget(model), _factors(model), _map(model), _lists(model))
    return [section for section in made if section is not None]


def _budget(model: Model) -> Section | None:
    drawn = budget_bar(model.certificate.to_json()["releases"])
    if not drawn or not model.private:
        return None
    text = (
        "<p>Each release took a part of the budget. Costs add as squares; the bar shows each "
        "kind’s part of the squared total. What costs more is known with less noise.</p>"
    )
    return Section("budget", "Where the budget went", text + drawn)


def _factors(model: Model) -> Section | None:
    """Show latent factors against the noise, where the model file has both."""
    rule = model.rule
    if not isinstance(rule, LatentFactorRule):
        return None
    parts = []
    if rule.measured is not None and rule.measured_noise is not None:
        bars = _rating_bars(rule, rule.measured, rule.measured_noise)
        parts.append(
            "<h3>How people rate</h3><p>How far each latent factor moves the rating of an item, in "
            "units of the rating scale: as it was measured, how much of that was kept (filled), "
            "and what noise alone would have given (the mark). Items count by how well they were "
            "measured. A factor that does not reach beyond its mark cannot be told from noise. The "
            "strongest is mostly how generously someone rates everything.</p>"
            + spectrum("ratings", bars)
        )
    choice = _choice_bars(model, rule)
    if choice:
        parts.append(
            "<h3>What people choose</h3><p>Who chooses what with what, beyond popularity: the "
            "strength of each factor that was kept, and the standard deviation of the noise in it "
            "(the mark). Kept was what passes the strongest factor that noise alone gives.</p>"
            + spectrum("choice", choice)
        )
    return Section("factors", "What was found beyond the noise", "".join(parts)) if parts else None


def _rating_bars(
    rule: LatentFactorRule, measured: NDArray[np.float64], noise: NDArray[np.float64]
) -> list[Bar]:
    r"""Return how strong factors are as measured, and as kept; the last column is the means.

    Each is a root mean square over items, $\sqrt{\sum_j w_j M_{jk}^2}$ with $w_j$ in proportion to
    one over the variance of the noise in $M_{jk}$. An item that hardly anybody rated may have any
    noise: with equal weights one of them would hide all others.
    """
    columns = min(measured.shape[1] - 1, rule.factors.shape[1], _MOST_BARS)
    bars = []
    for k in range(columns):
        certainty = noise[:, k].min() / noise[:, k]
        parts = measured[:, k], np.sqrt(noise[:, k]), rule.factors[: len(measured), k]
        strengths = [math.sqrt(np.average(each**2, weights=certainty)) for each in parts]
        bars.append(Bar("", *strengths))
    bars.sort(key=lambda bar: -bar.measured)
    return [bar._replace(label=f"{k}") for k, bar in enumerate(bars, 1)]


def _choice_bars(model: Model, rule: LatentFactorRule) -> list[Bar]:
    r"""Return eigenvalues of co-occurrence beyond popularity, and the noise in each of them.

    A release has symmetric noise N, of sd s on the diagonal and $s/\sqrt2$ elsewhere, so that
    $u^T N u$ has sd s for every unit vector u. Two releases of the same sums count by one over
    their variances. It needs the number of users, which is public under replace only.
    """
    users = model.certificate.users
    certainty = sum(
        entry.noise_sd**-2
        for entry in model.certificate.releases
        if entry.release.kind is ReleaseKind.CO_OCCURRENCES and entry.noise_sd > 0
    )
    if not users or not certainty or rule.choice_factors.shape[1] < 2:
        return []
    values = np.linalg.svd(rule.choice_factors[:, 1:], compute_uv=False)[:_MOST_BARS] ** 2
    noise = 1.0 / (math.sqrt(certainty) * users)
    return [Bar(f"{k}", float(value), noise, float(value)) for k, value in enumerate(values, 1)]


def _map(model: Model) -> Section | None:
    places = _places(model)
    if places is None:
        return None
    weights = _popularity(model)
    shown = np.argsort(-weights, kind="stable")[:_MOST_DOTS]
    dots = [
        Dot(float(x), float(y), model.catalogue.title(int(at)), float(weights[at]))
        for at, (x, y) in zip(shown, places[shown], strict=True)
    ]
    sized = " Larger dots are chosen more often." if np.ptp(weights) > 0 else ""
    text = (
        "<p>Items near each other are liked by the same people, as far as two axes can show it: "
        f"the two along which item vectors differ most.{sized}</p>"
    )
    return Section("map", "A map of the items", text + item_map(dots))


def _places(model: Model) -> NDArray[np.float64] | None:
    try:
        vectors = model.item_vectors
    except ConfigError:
        return None
    if isinstance(model.rule, LatentFactorRule):
        vectors = less_mean(model.rule.factors)
    return principal_axes(vectors)


def _popularity(model: Model) -> NDArray[np.float64]:
    """Return published popularity, from 0 to 1; all alike where none is published."""
    rule: Any = model.rule
    if isinstance(rule, LatentFactorRule):
        weights = np.maximum(rule.choice_factors[:, 0], 0.0)
    elif model.implicit:
        weights = rule.offsets
    else:
        return np.full(len(model.catalogue), 0.25)
    return np.asarray(weights / max(float(weights.max()), 1e-300))


def invented_people(model: Model) -> Iterator[dict[Any, float]]:
    """Yield own ratings of people who do not exist: each likes an item and what is like it."""
    if not isinstance(model.rule, Comparing):
        return
    hi = 1.0 if model.implicit else model.rating_range[1]
    used: set[Any] = set()
    made = 0
    for at in np.argsort(-_popularity(model), kind="stable"):
        item = model.catalogue.ids[int(at)]
        if item in used:
            continue
        try:
            like = [row.item for row in model.similar_items(item, _OWN - 1)]
        except ConfigError:
            continue
        yield dict.fromkeys([item, *like], hi)
        used |= {item, *(row.item for row in model.similar_items(item, 20))}
        made += 1
        if made == _PEOPLE:
            return


def _lists(model: Model) -> Section | None:
    parts = [_person(model, own) for own in invented_people(model)]
    if not parts:
        return None
    text = (
        "<p>These people are invented: each likes an item and two that are like it. Lists are "
        "computed from the published model and their own ratings only.</p>"
    )
    return Section("lists", "Sample recommendations, with reasons", text + "".join(parts))


def _person(model: Model, own: dict[Any, float]) -> str:
    """Show one person's list beside what it rests on."""
    given = list(own) if model.implicit else own
    linear = isinstance(model.rule, Linear)
    found = model.recommend(given, n=_LIST, because=linear)
    positions = model.catalogue.positions(list(own))
    liked = ", ".join(model.catalogue.title(int(at)) for at in positions)
    scored = "Share" if model.implicit else "Predicted"
    caption = f"Someone who likes {liked}"
    if not linear:
        plain = [(row.title, _score(model, row.score)) for row in found]
        return table(caption, ("Recommended", scored), plain)
    rows = [(row.title, _because(model, row), _score(model, row.score)) for row in found]
    return table(caption, ("Recommended", "Because", scored), rows, numbers=2)


def _score(model: Model, score: float) -> str:
    return f"{100 * score:.2g} %" if model.implicit else f"{score:.2f}"


def _because(model: Model, row: Recommendation) -> str:
    """Say which of her ratings add most to the prediction; what adds nothing is no reason."""
    told = []
    for reason in row.because or ():
        share = f"{100 * reason.contribution:+.2g} %"
        added = share if model.implicit else f"{reason.contribution:+.2f}"
        if reason.contribution > 0 and added != "+0.00":
            told.append(f"{added} for {reason.title}")
    return ", ".join(told[:_REASONS]) or "what is usual"
