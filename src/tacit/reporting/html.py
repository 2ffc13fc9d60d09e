"""One HTML page about a model: its promise, its releases, its accuracy, and one person's list.

The page stands alone: no scripts, no fonts, nothing from a network. Its accuracy figures are NOT
PRIVATE and say so; so the page is for people who own the ratings.
"""

import math
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tacit._atomic import write_durably
from tacit._outputs import Kind, Output, check_replaceable
from tacit.accounting.promise import EXCEPTION, recomputed, rounded_down, rounded_up, shown
from tacit.accounting.release import ReleaseKind
from tacit.data.catalogue import Catalogue
from tacit.evaluation.accuracy import Accuracy
from tacit.evaluation.calibration import Calibration
from tacit.evaluation.new_users import Estimate, NewUserRanking
from tacit.evaluation.ranking import Ranking
from tacit.models import Model, Recommendation
from tacit.reporting.markup import (
    NOT_PRIVATE,
    Section,
    bar_chart,
    definitions,
    escape,
    number,
    page,
    sentences,
    table,
)

Scored = tuple[str, Accuracy, bool]
Measure = Ranking | tuple[Ranking, Ranking] | NewUserRanking | Calibration
_EXCEPTION = "Not covered: "
_RELATIONS = {
    "replace": "replace: one person’s whole list of ratings is exchanged for any other",
    "add_remove": "add_remove: one person’s whole list of ratings is emptied or filled",
}


_UNMEASURED = (
    "<p>Nothing was measured, so this page may be published like the model. With held-out ratings "
    "(<code>tacit report --ratings</code>) it says how good predictions and lists are.</p>"
)


def write_report(
    path: str | PathLike[str],
    *,
    model: Model,
    accuracies: Sequence[Scored],
    person: Mapping[Any, float],
    recommendations: Sequence[Recommendation],
    measures: Sequence[Measure] = (),
    more: Sequence[Section] = (),
    overwrite: bool = False,
) -> None:
    """Write the page.

    Args:
        path: the HTML file to write.
        model: the published model, for its certificate and its titles.
        accuracies: (label, accuracy, whether that way of predicting keeps people's privacy).
        person: a synthetic person's own ratings by item id; items outside the catalogue show
            their id.
        recommendations: what the model recommends to her, best first.
        measures: how good lists of recommendations are, also for new users, and stds of
            predictions, if measured. A pair is of lists, and of lists of the most popular items.
        more: sections about the model itself, after what was measured.
        overwrite: whether a file that is no report may be replaced.

    Raises:
        ConfigError: the page cannot be written there, or there is a file that is no report.
    """
    check_replaceable(Output("path", Path(path), Kind.REPORT), overwrite=overwrite)
    certificate = model.certificate.to_json()
    opening = _opening(certificate)
    terms = f"<h3>For the engineer</h3>\n{_promise_facts(certificate)}"
    promise = f"{opening['figures']}\n{_promise(certificate)}\n{terms}"
    measured = _accuracy(accuracies) + "".join(map(_measure, measures))
    sections = [
        Section("promise", "What is promised", promise, opening["badge"]),
        Section("accuracy", "How well it predicts", measured, NOT_PRIVATE)
        if measured
        else Section("accuracy", "How well it predicts", _UNMEASURED),
        *more,
        *_person(model.catalogue, person, recommendations),
        Section("releases", "Everything that was released", _releases(certificate)),
        Section("public", "What was taken as public", _public(certificate)),
    ]
    text = page(
        "tacit: privacy and accuracy report",
        opening["headline"],
        opening["lead"],
        sections,
        _footer(certificate),
        brand="tacit · privacy and accuracy report",
    )
    write_durably(Path(path), text.encode())


def _opening(certificate: Mapping[str, Any]) -> dict[str, str]:
    """Say in the largest letters whether the model is private."""
    if certificate["private"]:
        return {
            "headline": "Recommendations that keep each person’s ratings private",
            "lead": "This page says what the model promises to everyone whose ratings it learned "
            "from, what that promise is made of, and how good the recommendations are.",
            "badge": '<span class="badge">private</span>',
            "figures": _figures(certificate),
        }
    return {
        "headline": "This model is not private",
        "lead": "It may reveal the ratings it learned from. Keep it, and this page, to those who "
        "may see those ratings.",
        "badge": '<span class="badge not">NOT PRIVATE</span>',
        "figures": "",
    }


def _figures(certificate: Mapping[str, Any]) -> str:
    """Show epsilon and delta, each with one plain sentence."""
    epsilon, delta = (number(certificate[name], shown) for name in ("epsilon", "delta"))
    return (
        '<div class="figures">'
        f'<div class="figure"><span>Epsilon</span> <b>{epsilon}</b>'
        "<p>How much the model may depend on any one person’s ratings. Smaller is more "
        "private.</p></div>"
        f'<div class="figure"><span>Delta</span> <b>{delta}</b>'
        "<p>The slack in that promise: it should be far below one divided by the number of "
        "people.</p></div></div>"
    )


def _promise(certificate: Mapping[str, Any]) -> str:
    """Give the certificate's sentences, what is covered apart from what is not."""
    told = [str(sentence) for sentence in certificate["promise"]]
    covered = [s for s in told if not s.startswith(EXCEPTION)]
    rest = [s.removeprefix(EXCEPTION) for s in told if s.startswith(EXCEPTION)]
    parts = [sentences(covered)]
    if rest:
        begun = (sentence[:1].upper() + sentence[1:] for sentence in rest)
        parts.append("<h3>What the promise does not cover</h3>" + sentences(begun))
    if certificate.get("warnings"):
        parts.append("<h3>Warnings</h3>" + sentences(map(str, certificate["warnings"])))
    return "\n".join(parts)


def _promise_facts(certificate: Mapping[str, Any]) -> str:
    """List the terms of the promise that an engineer asks for."""
    named = {
        "Privacy unit": "unit",
        "Neighbours": "neighbours",
        "Accounting": "accounting",
        "Numerics": "numerics",
        "Total cost (mu)": "mu",
        "Epsilon recomputed": "exact_epsilon",
    }
    rows = {label: certificate.get(key) for label, key in named.items()}
    claimed = certificate.get("epsilon") or 0.0
    for cost, written in (
        ("Total cost (mu)", rounded_up),
        ("Epsilon recomputed", lambda found: recomputed(found, claimed)),
    ):
        rows[cost] = number(rows[cost], written) if rows[cost] is not None else None
    rows["Neighbours"] = _RELATIONS.get(str(rows["Neighbours"]), rows["Neighbours"])
    rows["Algorithm"] = certificate.get("algorithm")
    settings = certificate.get("settings") or {}
    texts = {name: "by rule" if v is None else _plain(v) for name, v in settings.items()}
    rows["Settings"] = ", ".join(f"{name} {text}" for name, text in texts.items())
    return definitions(
        {label: _plain(value) for label, value in rows.items() if value not in (None, "")}
    )


def _plain(value: object) -> str:
    """Write a value of the certificate as people would."""
    return number(value) if isinstance(value, float) else str(value)


def _accuracy(accuracies: Sequence[Scored]) -> str:
    """Show the errors as bars and as a table."""
    if not accuracies:
        return ""
    rows = [
        (label if private else f"{label} (NOT PRIVATE)", f"{a.rmse:.4f}", f"{a.mae:.4f}")
        for label, a, private in accuracies
    ]
    heads = ("Prediction", "RMSE", "MAE")
    caption = (
        "Errors on held-out ratings, in units of the rating scale. RMSE punishes large misses."
    )
    bars = [(label, a.rmse, private) for label, a, private in accuracies]
    striped = "Striped bars belong to ways of predicting that keep nobody’s privacy."
    striped = "" if all(private for _, _, private in accuracies) else f" {striped}"
    return (
        '<p class="notice"><strong>NOT PRIVATE.</strong> These figures were measured on ratings '
        "that were held back, without any noise. They are for those who may see the ratings; they "
        "are not part of the model.</p>"
        "<p>How far predictions are from what people really said: shorter bars are better."
        f"{striped}</p>"
        f'<div class="pair"><div>{bar_chart("Typical error (RMSE)", bars)}</div>'
        f"<div>{table(caption, heads, rows)}</div></div>" + _counted(accuracies)
    )


def _counted(accuracies: Sequence[Scored]) -> str:
    """Say how many held-out ratings were predicted, and how many could not be."""
    first = accuracies[0][1]
    skipped = max(accuracy.skipped for _, accuracy, _ in accuracies)
    left_out = (
        f" {skipped:,} more were left out: of unknown items, or of people without training ratings."
    )
    return (
        f'<p class="soft">Measured on {first.ratings:,} held-out ratings of {first.users:,} '
        f"people.{left_out if skipped else ''}</p>"
    )


def _measure(measured: Measure) -> str:
    """Show one more way in which the model was measured, below its errors."""
    if isinstance(measured, NewUserRanking):
        return _new_users(measured)
    if isinstance(measured, Calibration):
        return _calibration(measured)
    return _ranking(*measured) if isinstance(measured, tuple) else _ranking(measured)


def _ranking(ranking: Ranking, popularity: Ranking | None = None) -> str:
    """Show how good lists are, beside lists of the most popular items where there are any."""
    meanings = {
        "ndcg": ("NDCG", "liked items near the top; 100 % is the best order there is"),
        "recall": ("Recall", "share of someone’s liked items that is in her list"),
        "coverage": ("Coverage", "share of all items that is in anyone’s list"),
    }
    shown = (ranking,) if popularity is None else (ranking, popularity)
    rows = [
        (*words, *(_percent(getattr(lists, name)) for lists in shown))
        for name, words in meanings.items()
    ]
    caption = (
        f"Lists of {ranking.k} for {ranking.lists:,} people. {ranking.people:,} of them have a "
        f"held-out rating of {ranking.relevant:g} or more: something that they liked."
    )
    if popularity is not None:
        caption += " Beside them lists of the most popular items, counted exactly (NOT PRIVATE)."
    heads = ("Found",) if popularity is None else ("Found", "Popular")
    return "<h3>Lists of recommendations</h3>" + _measures(caption, rows, heads)


def _new_users(found: NewUserRanking) -> str:
    """Show how good lists are for people who were not in the fit."""
    meanings = {
        "Recall@20": (found.recall_20, "liked items among the first 20; 100 % is the most"),
        "NDCG@10": (found.ndcg_10, "liked items near the top of 10; 100 % is the best order"),
        "NDCG@100": (found.ndcg_100, "the same of 100"),
    }
    rows = [(name, text, _interval(value)) for name, (value, text) in meanings.items()]
    rows.append(("Coverage@20", "share of all items in anyone’s 20", _percent(found.coverage_20)))
    caption = (
        f"Lists for {found.users:,} people who were not in the fit and liked something that was "
        f"held out (a rating of {found.relevant:g} or more), with 95 % intervals over people."
    )
    return "<h3>Lists for new people</h3>" + _measures(caption, rows)


def _measures(
    caption: str, rows: Sequence[tuple[str, ...]], heads: tuple[str, ...] = ("Found",)
) -> str:
    """Show measures, each with what it says in the same cell: there is room on a phone."""
    told = [(f"{name}: {text}", *values) for name, text, *values in rows]
    return table(caption, ("Measure", *heads), told)


def _interval(value: Estimate) -> str:
    return f"{_percent(value.mean)} ({_percent(value.low)} to {_percent(value.high)})"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _calibration(calibration: Calibration) -> str:
    """Show whether errors are as large as the model says, by its own estimate of them."""
    rows = [
        (f"{tenth.std:.3f}", f"{tenth.expected:.3f}", f"{tenth.rmse:.3f}")
        for tenth in calibration.deciles
    ]
    heads = ("Predicted std", "Error to expect", "Error found")
    caption = "Held-out ratings in groups of equal size by predicted std, smallest first."
    shares = (
        f"{100 * calibration.within_one:.1f} % of ratings are within one std of the prediction, "
        f"and {100 * calibration.within_two:.1f} % within two. "
        f"If all stds were right, it would be {100 * calibration.expected_one:.1f} % and "
        f"{100 * calibration.expected_two:.1f} % in this rating range."
    )
    intro = f"<h3>Uncertainty of predictions</h3><p>{escape(shares)}</p>"
    return intro + table(caption, heads, rows)


def _person(
    catalogue: Catalogue, own: Mapping[Any, float], recommended: Sequence[Recommendation]
) -> list[Section]:
    """Show what a synthetic person rated beside what she is recommended, if there is one."""
    if not own and not recommended:
        return []
    places = catalogue.positions(list(own)).tolist() if own else []
    titles = [
        catalogue.title(place) if place >= 0 else str(item)
        for item, place in zip(own, places, strict=True)
    ]
    rated = [(title, f"{rating:.1f}") for title, rating in zip(titles, own.values(), strict=True)]
    ranked = [
        (str(rank), found.title, f"{found.score:.2f}", _share(found.choice))
        for rank, found in enumerate(recommended, 1)
    ]
    left = table("Her own ratings", ("Title", "Her rating"), rated)
    heads = ("Rank", "Title", "Predicted", "Share of next choices")
    right = table("What it recommends to her", heads, ranked, name=1)
    told = (
        "<p>She is invented. Her recommendations can be computed on her own device from the "
        "published model and her own ratings, which need not leave it.</p>"
        f'<div class="pair"><div>{left}</div><div>{right}</div></div>'
    )
    return [Section("person", "One synthetic person", told)]


def _share(choice: float | None) -> str:
    """Show the share of a person's next choices that an item is expected to be."""
    return "" if choice is None else f"{100 * choice:.2g} %"


def _drawn(release: Mapping[str, Any]) -> tuple[str, str]:
    """Show sensitivity and noise of a release; the sum of earlier refits has a cost alone."""
    if release.get("kind") == ReleaseKind.EARLIER_REFITS:
        return "", ""
    noise = number(release["noise_sd"], lambda sd: rounded_down(sd, 4))
    return _cost(release["sensitivity"]), noise


def _cost(mu: float | None) -> str:
    """Show a cost with four digits, rounded up."""
    return number(mu, lambda cost: rounded_up(cost, 4))


def _releases(certificate: Mapping[str, Any]) -> str:
    """List every release with what it cost, and the sum."""
    rows = [(str(r["name"]), *_drawn(r), _cost(r["mu"])) for r in certificate["releases"]]
    heads = ("Release", "Sensitivity", "Noise sd", "Cost (mu)")
    caption = "Sensitivity: the most that one person can change it. Cost: sensitivity / noise sd."
    costs = [r["mu"] for r in certificate["releases"]]
    total = None
    if costs and all(cost is not None and math.isfinite(cost) for cost in costs):
        whole = math.sqrt(math.fsum(cost**2 for cost in costs))
        total = ("All together (costs add as squares)", "", "", _cost(whole))
    return (
        "<p>The model is computed from these noisy numbers and from nothing else about anyone. "
        "Epsilon can be recomputed from these costs and delta.</p>"
        if certificate["private"]
        else "<p>The model is computed from these numbers. They do not keep anyone’s privacy.</p>"
    ) + table(caption, heads, rows, total=total)


def _public(certificate: Mapping[str, Any]) -> str:
    """List what the promise leaves out because it was said to be public."""
    public = {str(name): str(why) for name, why in certificate["public"].items()}
    if not public:
        return "<p>Nothing.</p>"
    return (
        "<p>The promise holds if these were fixed without looking at the ratings, or may be known "
        "to everyone.</p>" + definitions(public)
    )


def _footer(certificate: Mapping[str, Any]) -> str:
    """Say how to check the page."""
    check = "<code>tacit verify</code> recomputes epsilon from the listed releases. "
    return (check if certificate["private"] else "") + "This page loads nothing from a network."
