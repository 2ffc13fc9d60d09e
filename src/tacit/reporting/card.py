"""A model card in the form of model hubs, written from the certificate: public numbers only."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from tacit.accounting.certificate import Certificate
from tacit.accounting.ledger import Entry
from tacit.accounting.promise import rounded_down, rounded_up, shown
from tacit.errors import ConfigError
from tacit.models import Model

MARK = "<!-- model card of tacit -->"
_TAGS = ["recommender-system", "collaborative-filtering", "tacit"]
_PRIVATE_TAGS = ["differential-privacy", "joint-differential-privacy"]
_HOLDS_NOT = "**The certificate does not hold:**"


def metadata(model: Model, licence: str | None = None) -> dict[str, Any]:
    """Return what stands at the head of a card: for machines, as model hubs read it."""
    found: dict[str, Any] = {"library_name": "tacit"}
    if licence is not None:
        found["license"] = _one_line("licence", licence, "cc-by-4.0")
    found["tags"] = _TAGS + (_PRIVATE_TAGS if model.private else ["not-private"])
    stated = model.certificate.to_json()
    wanted = ("private", "grade", "unit", "epsilon", "delta", "neighbours", "mu", "algorithm")
    found["tacit"] = {name: stated[name] for name in wanted}
    found["tacit"]["items"] = len(model.catalogue)
    return found


def model_card(model: Model, title: str, licence: str | None = None) -> str:
    """Return a card in Markdown: metadata, the promise in words, what it rests on, and how to use.

    Everything in it is in the model file already. Accuracy is not: it is computed from ratings.
    """
    parts = [
        f"---\n{_yaml(metadata(model, licence))}---\n\n{MARK}",
        f"# {_plain(_one_line('title', ' '.join(title.split()), 'Films'))}",
        _about(model),
        *_privacy(model),
        _use(model),
        *_method(model),
        *_limits(model),
    ]
    return "\n\n".join(parts) + "\n"


def _one_line(name: str, text: str, such_as: str) -> str:
    """Return a text of the caller's, which is one line of the card."""
    if not text.strip() or not text.isprintable():
        raise ConfigError(f"{name}={text!r}: expected one line of text, such as {such_as}")
    return text


def _about(model: Model) -> str:
    """Say in a few sentences what this is."""
    learned = "interactions" if model.implicit else "ratings"
    lo, hi = model.rating_range
    scale = "" if model.implicit else f", rated from {lo:g} to {hi:g}"
    promise = (
        "under user-level joint differential privacy"
        if model.private
        else "WITHOUT a privacy guarantee: it is NOT PRIVATE"
    )
    return (
        f"A recommender of {len(model.catalogue)} items{scale}, learned from people's {learned} "
        f"{promise}. The file holds nothing that belongs to any one person. Recommendations are "
        "computed from it and one's own ratings, on any machine, whether or not one was among the "
        "people it was learned from."
    )


def _privacy(model: Model) -> list[str]:
    """Say what is promised, in the certificate's own words, and whether that holds."""
    certificate, found = model.certificate, model.verify()
    lines = ["## Privacy", "\n".join(f"- {_plain(each)}" for each in certificate.promise())]
    if not found.holds and model.private:
        problems = "\n".join(f"- {_plain(problem)}" for problem in found.problems)
        lines.append(f"{_HOLDS_NOT}\n\n{problems}")
    budget = certificate.budget
    if budget is None:
        return lines
    facts = {
        "privacy unit": certificate.to_json()["unit"],
        "neighbouring relation": budget.neighbours.value,
        "epsilon": shown(budget.epsilon),
        "delta": shown(budget.delta),
        "total cost": f"mu = {rounded_up(certificate.mu)}",
        "grade": certificate.grade.value,
        "numerics": certificate.numerics,
    }
    releases = [
        (entry.name, *_drawn(entry, certificate), rounded_up(entry.mu, 4))
        for entry in certificate.releases
    ]
    return [
        *lines,
        _table(("", ""), list(facts.items())),
        f"Everything that was computed from ratings and published, {len(releases)} releases:",
        _table(("release", "sensitivity", "noise sd", "cost (mu)"), releases),
        "`tacit verify model.tacit` recomputes epsilon from this list.",
    ]


def _drawn(entry: Entry, certificate: Certificate) -> tuple[str, str]:
    """Return sensitivity and noise of a release; the sum of earlier refits has a cost alone."""
    if entry is certificate.earlier:
        return "", ""
    return rounded_up(entry.sensitivity), rounded_down(entry.noise_sd)


def _use(model: Model) -> str:
    """Show the few lines that it takes."""
    first = model.catalogue.ids[0]
    own = f"[{first!r}]" if model.implicit else f"{{{first!r}: {model.rating_range[1]:g}}}"
    return (
        '## Use\n\n```python\nimport tacit\n\nmodel = tacit.load("model.tacit")\n'
        f"model.recommend({_code(own)}, n=10)  # from your own ratings\n```"
    )


def _method(model: Model) -> list[str]:
    """Say how it was learned, and what was taken as public."""
    certificate = model.certificate
    taken = [(name, why) for name, why in certificate.public.items()]
    lines = ["## How it was learned"]
    if certificate.method is not None:
        settings = ", ".join(
            f"{name}={value}" for name, value in certificate.method.settings.items()
        )
        lines.append(f"Method `{_code(certificate.method.name)}` with `{_code(settings)}`.")
    return [*lines, "Taken as public:", _table(("what", "why"), taken)] if taken else lines


def _limits(model: Model) -> list[str]:
    """Say what it is not for."""
    lines = [
        "Measured accuracy is not part of this card: it is computed from ratings, and publishing "
        "it is a release of its own.",
        "A certificate is the statement of whoever ran the fit; it does not prove that the noise "
        "was drawn.",
    ]
    if not model.catalogue.public:
        lines.append("The list of items was taken from the ratings, and is only assumed public.")
    return [
        "## Limits",
        "\n".join(f"- {line}" for line in lines),
        f"Written by tacit {version('tacit')}.",
    ]


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(map(_plain, row)) + " |" for row in rows])


def _plain(text: str) -> str:
    """Return text that Markdown shows as it is: a model file may come from anyone."""
    line = " ".join(str(text).split())
    for sign in "\\`*_[]|#":
        line = line.replace(sign, f"\\{sign}")
    return line.replace("&", "&amp;").replace("<", "&lt;")


def _code(text: str) -> str:
    """Return text that cannot end the code it stands in."""
    return " ".join(str(text).split()).replace("`", "'")


def _yaml(facts: Mapping[str, Any], indent: str = "") -> str:
    """Write nested facts as YAML; every text is quoted as in JSON, which YAML includes."""
    lines = []
    for name, value in facts.items():
        if isinstance(value, Mapping):
            lines.append(f"{indent}{name}:\n{_yaml(value, indent + '  ')}")
        elif isinstance(value, list):
            items = "".join(f"{indent}- {json.dumps(each)}\n" for each in value)
            lines.append(f"{indent}{name}:\n{items}")
        else:
            lines.append(f"{indent}{name}: {_scalar(value)}\n")
    return "".join(lines)


def _scalar(value: Any) -> str:
    """Write a number so that YAML reads a number: 1e-06 would be a text to it."""
    if isinstance(value, float):
        text = repr(value)
        return text if "e" not in text or "." in text.split("e")[0] else text.replace("e", ".0e")
    return json.dumps(value)
