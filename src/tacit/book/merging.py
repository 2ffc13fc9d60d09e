"""Merge the books of one population; nothing that any of them paid for is lost."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from tacit.book.account import Account
from tacit.book.book import Book
from tacit.errors import ConfigError

Content = dict[str, Any]
_AGAIN = "+"  # and a number, after the name of a fit that went on in several places


def merge(books: Sequence[Book], path: str | PathLike[str]) -> Book:
    """Write a book with the fits of all; what is in several (copies that went apart) counts once.

    It has the terms of the strictest of them. If the fits pass its limit together, that is what
    happened: the book says so, and allows no other fit. What refits remember is not taken over: the
    releases of two series of refits are not of one series.
    """
    if len({book.path.resolve() for book in books}) < 2:
        raise ConfigError("give two books or more to merge, of different files")
    accounts = [book.account() for book in books]
    if len({account.terms.neighbours for account in accounts}) > 1:
        raise ConfigError("the books count for different relations; their costs cannot be added")
    strictest = min(accounts, key=lambda account: account.terms.limit).terms
    yearly = [a.terms.yearly_epsilon for a in accounts if a.terms.yearly_epsilon is not None]
    opened = {"event": "opened", **strictest.to_json(), "yearly_epsilon": min(yearly, default=None)}
    origins = [[a.terms.population, len(a.events), a.events[-1].digest] for a in accounts]
    return Book.write(path, [opened, {"event": "merged", "of": origins}, *_all_fits(accounts)])


def _all_fits(accounts: Sequence[Account]) -> list[Content]:
    """Return the events of every fit, each from the book that knows most of it.

    Copies of one fit are alike up to where one of them ends. A fit that went on in two places, with
    a copy of its checkpoint, has drawn noise in both: it counts as two.
    """
    versions: dict[str, list[list[Content]]] = {}
    for account in accounts:
        for name, series in _fits_of(account).items():
            known = versions.setdefault(name.partition(_AGAIN)[0], [])
            alike = [at for at, other in enumerate(known) if _alike(series, other)]
            if not alike:
                known.append(series)
            elif len(series) > len(known[alike[0]]):
                known[alike[0]] = series
    named = [
        [content | {"fit": name if not at else f"{name}{_AGAIN}{at + 1}"} for content in series]
        for name, known in versions.items()
        for at, series in enumerate(known)
    ]
    named.sort(key=lambda series: str(series[0]["at"]))
    return [content for series in named for content in series]


def _fits_of(account: Account) -> dict[str, list[Content]]:
    """Return the events of each fit, with the times at which they were first written."""
    found: dict[str, list[Content]] = {}
    for event in account.events:
        if "fit" in event.content:
            content = {"at": event.at, **event.content}
            for part in ("memory", "clock"):
                content.pop(part, None)
            found.setdefault(content["fit"], []).append(content)
    return found


def _alike(one: list[Content], other: list[Content]) -> bool:
    """Return whether one is the beginning of the other, whatever their fits are called."""
    pairs = zip(one, other, strict=False)
    return all(left | {"fit": ""} == right | {"fit": ""} for left, right in pairs)
