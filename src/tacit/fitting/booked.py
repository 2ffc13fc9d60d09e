"""How a fit uses a lifetime book: it reserves first, writes every release down, and closes."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from os import PathLike
from typing import Any

from tacit.accounting.budget import PrivacyBudget, mu_of
from tacit.accounting.ledger import Ledger
from tacit.book import Book, Reservation
from tacit.errors import ConfigError, PrivacyError
from tacit.trusted.journal import check_beforehand

Progress = Callable[[int, int], None]
_LINE = "lifetime book"


def book_of(book: Book | Reservation | str | PathLike[str] | None) -> Book | Reservation | None:
    """Return a book, open, or a place in one."""
    return book if book is None or isinstance(book, Book | Reservation) else Book(book)


def terms_of(
    book: Book | Reservation | None, delta: float | None, neighbours: str | None
) -> tuple[float, str]:
    """Return delta and the relation of a fit: as given, else those of the book, else the usual."""
    usual: tuple[float, str] = (1e-6, "replace")
    if book is not None:
        terms = book.terms if isinstance(book, Book) else book.book.terms
        usual = terms.delta, terms.neighbours.value
    return usual[0] if delta is None else delta, neighbours or usual[1]


@contextmanager
def reserved(
    book: Book | Reservation | None,
    budget: PrivacyBudget | None,
    checkpoint: str | PathLike[str] | None,
    reasons_not_private: tuple[str, ...],
    kind: str = "fit",
) -> Iterator[Reservation | None]:
    """Reserve the budget of a fit in its book; a reservation that was made before is used as it is.

    What is not private has no place in a book: its cost is infinite. The checkpoint of a fit with
    another budget is refused here, before anything is read; a book knows its own checkpoints.
    """
    if book is None:
        if checkpoint is not None:
            check_beforehand(checkpoint, {"budget": digest_of_budget(budget)})
        yield None
        return
    if budget is None:
        raise ConfigError(
            "book=...: a fit without privacy costs more than any book allows; leave the book out, "
            "or give epsilon"
        )
    if reasons_not_private:
        raise ConfigError(
            f"book=...: this model would be NOT PRIVATE ({reasons_not_private[0]}); leave the book "
            "out, or the setting"
        )
    if isinstance(book, Reservation):
        if (
            book.budget.mu < mu_of(budget.epsilon, budget.delta)
            or book.budget.neighbours is not budget.neighbours
        ):
            raise PrivacyError(
                "the reservation in the book is for a smaller fit, or for the other relation"
            )
        if book.record.kind != kind:
            raise ConfigError(
                f"book=...: this reservation is of a {book.record.kind}, and this is a {kind}; "
                f"make it with book.reserve(..., kind={kind!r})"
            )
        yield book
        return
    with book.reserve(budget, kind=kind, checkpoint=checkpoint) as reservation:
        yield reservation


def digest_of_budget(budget: PrivacyBudget | None) -> str:
    """Return what a checkpoint knows the budget of its fit by."""
    return digest_of_settings(asdict(budget) if budget else {})


def digest_of_settings(settings: Mapping[str, Any]) -> str:
    """Return what a checkpoint knows settings by."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def watched(book: Reservation | None, ledger: Ledger, progress: Progress | None) -> Progress | None:
    """Return a progress function that writes releases into the book, where there is one."""
    return progress if book is None else book.watch(ledger, progress)


def public_line(book: Reservation | None) -> dict[str, str]:
    """Return the line of the certificate that says which lifetime budget a fit is part of."""
    return {} if book is None else {_LINE: book.public_line()}
