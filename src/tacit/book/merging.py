"""Two books of one population become one: nothing that either of them paid for is forgotten."""

from collections.abc import Sequence
from os import PathLike
from typing import Any

from tacit.book.account import Account
from tacit.book.book import Book
from tacit.errors import ConfigError

__all__ = ["merge"]


def merge(books: Sequence[Book], path: str | PathLike[str]) -> Book:
    """Write a book with the fits of all; what is in several (copies that went apart) counts once.

    It has the terms of the strictest of them. If the fits pass its limit together, that is what
    happened: the book says so, and allows no other fit. What refits remember is not taken over: the
    releases of two series of refits are not of one series.
    """
    if len(books) < 2:
        raise ConfigError("give two books or more to merge")
    accounts = [book.account() for book in books]
    if len({account.terms.neighbours for account in accounts}) > 1:
        raise ConfigError("the books count for different relations; their costs cannot be added")
    strictest = min(accounts, key=lambda account: account.terms.limit).terms
    yearly = [a.terms.yearly_epsilon for a in accounts if a.terms.yearly_epsilon is not None]
    opened = {"event": "opened", **strictest.to_json(), "yearly_epsilon": min(yearly, default=None)}
    origins = [[a.terms.population, len(a.events), a.events[-1].digest] for a in accounts]
    return Book.write(path, [opened, {"event": "merged", "of": origins}, *_all_fits(accounts)])


def _all_fits(accounts: Sequence[Account]) -> list[dict[str, Any]]:
    """Return the events of every fit, each from the book that knows most of it."""
    best: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for account in accounts:
        found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
        for event in account.events:
            content = event.content
            if "fit" in content:
                dated = content.get("at", event.at)
                found.setdefault(content["fit"], []).append((dated, content | {"at": dated}))
        for name, events in found.items():
            if len(events) > len(best.get(name, [])):
                best[name] = events
    series = sorted(best.values(), key=lambda events: events[0][0])
    contents = [content for events in series for _, content in events]
    for content in contents:
        content.pop("memory", None)
        content.pop("clock", None)
    return contents
