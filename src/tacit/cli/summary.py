"""What a fit says when it is done: six lines, and where the rest is."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tacit.models import Model

__all__ = ["summary"]


def summary(model: "Model", output: Path) -> str:
    """Say what was promised and made, and where all of it stands."""
    rows = {
        **_promise(model),
        "model": _made(model),
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
        return {"NOT PRIVATE": f"{why}: do not publish it", "means": "nothing is promised"}
    grade = grade_of(budget, certificate.mu)
    limit = percent(two_lists(budget.neighbours, certificate.mu))
    return {
        "private": f"epsilon {shown(budget.epsilon)}, delta {shown(budget.delta)}, for all ratings "
        f"of a person together ({budget.neighbours.value}): a {grade.value} promise",
        "means": "who knows all other ratings and guesses between two lists of hers is right at "
        f"most {limit} % of the time (coin toss: 50 %)",
    }


def _made(model: "Model") -> str:
    lo, hi = model.rating_range
    kind = "interactions" if model.implicit else f"ratings from {lo:g} to {hi:g}"
    from tacit.accounting.release import ReleaseKind

    entries = model.certificate.releases
    own = [entry for entry in entries if entry.release.kind is not ReleaseKind.EARLIER_REFITS]
    sums = "exact sums" if model.certificate.budget is None else "noisy sums"
    if len(own) < len(entries):
        sums += " and those of earlier refits"
    items = len(model.catalogue)
    return f"{model.rule.kind}, {items} items, {kind}, learned from {len(own)} {sums}"


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
