"""The summary that a fit prints: six lines or a few more, and where to find the rest."""

import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.models import Model


def summary(model: "Model", output: Path) -> str:
    """Say what was promised and made, and where all of it stands."""
    rows = {
        **_promise(model),
        **_earlier(model),
        "model": _made(model),
        **_little(model),
        "assumed public": _assumed(model),
        "full text": f"tacit certificate {output} (every release, and what is not promised)",
        "wrote": f"{output} ({_size(output)})",
    }
    width = max(map(len, rows))
    lines = [f"{name:<{width}}  {text}" for name, text in rows.items()]
    return "\n".join(lines)


def _promise(model: "Model") -> dict[str, str]:
    from tacit.accounting.promise import grade_of, percent, shown, two_lists

    certificate = model.certificate
    budget = certificate.budget
    if budget is None or not certificate.private:
        why = "; ".join(certificate.reasons_not_private) or "no noise was added"
        return {"NOT PRIVATE": f"{why}: do not publish it", "guarantee": "nothing is promised"}
    grade = grade_of(budget, certificate.mu)
    limit = percent(two_lists(budget.neighbours, certificate.mu))
    return {
        "private": f"epsilon {shown(budget.epsilon)}, delta {shown(budget.delta)}, for all ratings "
        f"of a person together ({budget.neighbours.value}): a {grade.value} promise",
        "guarantee": "an attacker who knows all other ratings and guesses which of two lists is "
        f"this person's is right at most {limit} % of the time (coin toss: 50 %)",
    }


def _made(model: "Model") -> str:
    lo, hi = model.rating_range
    kind = "interactions" if model.implicit else f"ratings from {lo:g} to {hi:g}"
    certificate = model.certificate
    own = len(certificate.releases) - (certificate.earlier is not None)
    sums = "exact sums" if certificate.budget is None else "noisy sums"
    if certificate.earlier is not None:
        sums += " and those of earlier refits"
    items = len(model.catalogue)
    return f"{model.algorithm}, {items} items, {kind}, learned from {own} {sums}"


def _earlier(model: "Model") -> dict[str, str]:
    """Say why the epsilon of a refit is more than was asked for."""
    from tacit.accounting.budget import epsilon_of
    from tacit.accounting.promise import rounded_up

    certificate = model.certificate
    earlier = certificate.earlier
    if earlier is None or certificate.budget is None:
        return {}
    own = math.sqrt(max(certificate.mu**2 - earlier.mu**2, 0.0))
    spent = epsilon_of(own, certificate.budget.delta)
    return {
        "of which": f"epsilon {rounded_up(spent, 3)} for this refit alone; the rest was paid by "
        "earlier refits of the book, whose releases this model also uses"
    }


def _little(model: "Model") -> dict[str, str]:
    """Say that little or nothing was learned, and what would help; else nothing."""
    from tacit.models.explaining import shortfall

    missing = shortfall(model)
    if missing is None:
        return {}
    more = "more users" if model.certificate.budget is None else "more users or a larger epsilon"
    return {"learned little": f"{missing}; {more} would help (`tacit plan` forecasts it)"}


def _assumed(model: "Model") -> str:
    """Name what was taken as public, shortly, and warn of a catalogue taken from the ratings."""
    names = [name for name in ("rating range", "number of users") if name in _public(model)]
    listed = "a list of items that was given"
    taken = "the items (TAKEN FROM THE RATINGS: give a public list with --items)"
    return ", ".join([*names, "settings", listed if model.catalogue.public else taken])


def _public(model: "Model") -> dict[str, str]:
    return dict(model.certificate.public)


def _size(path: Path) -> str:
    """Write the size of a file.

    >>> _size(Path("/nowhere"))
    'not there'
    """
    try:
        size = path.stat().st_size
    except OSError:
        return "not there"
    return f"{size / 1e6:.1f} MB" if size >= 1e6 else f"{max(1, round(size / 1e3))} kB"
