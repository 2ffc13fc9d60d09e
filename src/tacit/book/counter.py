"""The counter beside a book: it shows when an old copy of the book was put back.

`people.book.count` holds the number of events and the last digest. A book with fewer events than
its counter, or with another event at that number, is an old copy or one that went another way.

A counter is never ahead of its book: it is read before the events that it is compared with, and
written after them, while nobody else writes (`Store.held`).
"""

import json
import warnings
from collections.abc import Sequence
from pathlib import Path

from tacit._atomic import reason_of, write_durably
from tacit._damaged import MALFORMED
from tacit.book.events import Event, Mark
from tacit.errors import BookError, TacitWarning

_MOST = 4096  # bytes of a counter


def counter_path(book: Path) -> Path:
    """Return the name of a book's counter: one for a file, by whatever link it is opened."""
    file = book.resolve() if book.is_symlink() else book
    return file.parent / f"{file.name}.count"


def compare(book: Path, found: Mark | None, events: Sequence[Event]) -> None:
    """Refuse a book that was further once, or went another way; `found` was read before it."""
    if found is None:
        if len(events) > 1:
            warnings.warn(
                f"book {book} has no counter {counter_path(book).name} beside it: whether it is an "
                "old copy cannot be told; the counter is begun anew",
                TacitWarning,
                stacklevel=3,
            )
        return
    count, digest = found
    if count > len(events):
        raise BookError(
            f"book {book} has {len(events)} events and its counter knows of {count}: it is an old "
            "copy, and what was spent since is missing; put the newest copy back"
        )
    if events[count - 1].digest != digest:
        raise BookError(
            f"book {book} has another event {count} than its counter: it is a copy that went its "
            "own way; bring both together with `tacit book merge`"
        )


def advance(book: Path, last: Mark) -> None:
    """Write down how far the book has come; never back. Only one process may do so at a time."""
    found = read(book)
    if found is None or found[0] < last[0]:
        content = {"format": "tacit-book-counter/1", "count": last[0], "digest": last[1]}
        try:
            write_durably(counter_path(book), json.dumps(content).encode(), owner_only=True)
        except OSError as error:
            warnings.warn(
                f"the counter {counter_path(book)} cannot be written ({reason_of(error)}); the "
                "book itself is as it should be, but an old copy of it may not be told from it",
                TacitWarning,
                stacklevel=3,
            )


def read(book: Path) -> Mark | None:
    """Return how far the book had come, as its counter knows; None if it has none."""
    path = counter_path(book)
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(_MOST))
        count, digest = content["count"], content["digest"]
    except FileNotFoundError:
        return None
    except (OSError, *MALFORMED):
        raise _unreadable(path) from None
    if type(count) is not int or not isinstance(digest, str) or count < 1:
        raise _unreadable(path)
    return count, digest


def _unreadable(path: Path) -> BookError:
    return BookError(
        f"the counter {path} cannot be read; put it back from where it was kept or, if its book is "
        "surely not an old copy, remove the counter: it is then begun anew"
    )
