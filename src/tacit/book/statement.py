"""The lifetime certificate: all fits of a book, from which the total can be recomputed."""

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from tacit.accounting.budget import epsilon_of, mu_of
from tacit.accounting.certificate import Certificate
from tacit.accounting.promise import percent, rounded_up, shown, two_lists
from tacit.book.account import ROUNDING, Account, FitRecord, account_of
from tacit.book.events import now, read_chain
from tacit.book.refusal import down
from tacit.book.reservation import certificate_digest
from tacit.errors import BookError

FORMAT = "tacit-lifetime/1"
_RELATIVE = 1e-9


def to_json(account: Account) -> dict[str, Any]:
    """Return the machine's form. The events are all there is; the rest is what they come to."""
    terms = account.terms
    return {
        "format": FORMAT,
        **terms.to_json(),
        "limit_mu": mu_of(terms.epsilon, terms.delta),
        "spent_mu": math.sqrt(account.spent),
        "spent_epsilon": account.spent_epsilon,
        "left_epsilon": account.left_epsilon,
        "fits": [_fit_json(fit, account) for fit in account.fits if fit.state != "cancelled"],
        "cancelled": sum(fit.state == "cancelled" for fit in account.fits),
        "events": [list(event.row()) for event in account.events],
    }


def show_form(account: Account) -> dict[str, Any]:
    """Return the machine's form without the events, with what is left now."""
    left = min(account.left, account.left_this_year(now()))
    form = {name: value for name, value in to_json(account).items() if name != "events"}
    return {**form, "left_epsilon": account.epsilon_for(left), "events": len(account.events)}


def from_json(value: object) -> Account:
    """Read the machine's form back from its events, and refuse one whose totals are not theirs."""
    if not isinstance(value, dict) or value.get("format") != FORMAT:
        raise BookError(f"expected the format {FORMAT!r}")
    rows = value.get("events")
    if not isinstance(rows, list):
        raise BookError("it has no events")
    account = account_of(read_chain(tuple(row) if isinstance(row, list) else () for row in rows))
    again = to_json(account)
    for name in again.keys() - {"events"}:
        if not _same(again[name], value.get(name)):
            raise BookError(f"its {name!r} is not what its events come to")
    return account


def to_text(account: Account, moment: datetime) -> str:
    """Return the person's form."""
    terms = account.terms
    left = account.epsilon_for(min(account.left, account.left_this_year(moment)))
    lines = [
        "LIFETIME PRIVACY CERTIFICATE", "",
        f"  Population:    {terms.population}",
        f"  Promise:       everything learned from these people, in all fits together, is "
        f"(epsilon = {shown(terms.epsilon)}, delta = {shown(terms.delta)}) differentially private "
        "in all that one person ever gave",
        f"  Neighbours:    {terms.neighbours.value}",
        f"  Spent:         epsilon {rounded_up(account.spent_epsilon)} "
        f"(mu = {rounded_up(math.sqrt(account.spent))} of {mu_of(terms.epsilon, terms.delta):.6g})",
        f"  Left:          epsilon {down(left)}, as one more fit now",
        "  Guessing:      an attacker who guesses between two possible rating lists of one person "
        f"is right at most {percent(two_lists(terms.neighbours, math.sqrt(account.spent)))} % of "
        "the time, now",
    ]  # fmt: skip
    if terms.yearly_epsilon is not None:
        lines.append(
            f"  A year:        at most epsilon {shown(terms.yearly_epsilon)} in any 365 days; of "
            f"the lifetime's epsilon {down(account.left_epsilon)} is left"
        )
    made = [fit for fit in account.fits if fit.state != "cancelled"]
    lines += ["", f"  Fits ({len(made)}), each with its squared cost (mu^2):"]
    lines += [_fit_line(number, fit) for number, fit in enumerate(made, 1)]
    last = account.events[-1]
    lines += ["", f"  Last event:    {last.number}, {last.digest}"]
    return "\n".join(lines)


def problems_of(account: Account, certificates: Mapping[str, Certificate]) -> list[str]:
    """Say what is wrong with the sums of a book, and which models it does not know."""
    problems = []
    if account.spent > account.terms.limit * (1 + ROUNDING):
        problems.append(
            f"the fits give epsilon {rounded_up(account.spent_epsilon)} together, above the "
            f"promised {shown(account.terms.epsilon)}"
        )
    known = {fit.certificate for fit in account.fits}
    for name, certificate in certificates.items():
        if certificate_digest(certificate) not in known:
            problems.append(
                f"{name} is not in this book: it was fitted without --book, or with another book, "
                "so its cost is not in this sum"
            )
    return problems


def _fit_json(fit: FitRecord, account: Account) -> dict[str, Any]:
    return {
        "fit": fit.id,
        "kind": fit.kind,
        "at": fit.at,
        "state": fit.state,
        "epsilon": fit.epsilon,
        "delta": fit.delta,
        "cost": fit.cost,
        "spent_epsilon": epsilon_of(math.sqrt(fit.cost), account.terms.delta),
        "certificate": fit.certificate,
        "releases": [
            {
                **entry.release.to_json(),
                "sensitivity": entry.sensitivity,
                "noise_sd": entry.noise_sd,
                "mu": entry.mu,
            }
            for entry in fit.releases
        ],
    }


def _fit_line(number: int, fit: FitRecord) -> str:
    made = f"{len(fit.releases)} releases"
    state = "" if fit.state == "closed" else f", {fit.state}"
    digest = f", certificate {fit.certificate[:16]}" if fit.certificate else ""
    return (
        f"    {number}. {fit.at[:16].replace('T', ' ')} {fit.kind} at epsilon "
        f"{shown(fit.epsilon)}, delta {shown(fit.delta)}: {rounded_up(fit.cost)}, "
        f"{made}{state}{digest}"
    )


def _same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=_RELATIVE, abs_tol=1e-300)
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other
