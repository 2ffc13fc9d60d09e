"""Certificates of older versions: settings are parsed from their text.

Nothing but `audit.target` may use it, for certificates that have no `method`.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from tacit.accounting.certificate import Certificate, Method
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS, Facts

_BY_RULE, _PAID = "by rule", "paid for by the release"


def method_in_text(certificate: Certificate, facts: Facts) -> Method:
    """Return the one algorithm whose settings a certificate lists; if none is, one of no name."""
    kinds: set[Any] = {type(make()) for make in (ALGORITHMS | IMPLICIT_ALGORITHMS).values()}
    public = certificate.public
    found = [kind for kind in kinds if all(name in public for name in _lines(kind))]
    if len(found) != 1:
        return Method("", {})
    return Method(found[0].name, _settings(found[0], public, facts))


def _lines(kind: Any) -> dict[str, str]:
    """Return the line of the certificate that each setting had."""
    return {f"{kind.name} {field.name}": field.name for field in fields(kind)}


def _settings(kind: Any, public: Mapping[str, str], facts: Facts) -> dict[str, Any]:
    """Read settings back; one that says what the rule would say for that model stays a rule.

    So a norm that follows from the number of items follows from it in small worlds too.
    """
    usual, default = kind().public(facts), kind()
    return {
        name: getattr(default, name) if public[line] == usual[line] else _value(public[line])
        for line, name in _lines(kind).items()
    }


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
