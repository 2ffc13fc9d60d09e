"""The events of a book: a log in which each entry is chained to the one before by a hash.

    digest_n = SHA-256(number, time, what, digest_(n-1))

An event that is changed, left out or moved breaks every digest after it. The chain is not a
signature: who can write the file can compute a new one (docs/lifetime.md says what that means).
"""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NoReturn

from tacit.errors import BookError

FIRST = "0" * 64
"""What stands in the place of the digest before the first event."""
Mark = tuple[int, str]
"""How far a book has come: the number of its last event, and the digest of that."""
_LONGEST = 1 << 16  # characters of an event
_MOST = 1_000_000  # events of a book


@dataclass(frozen=True)
class Event:
    """One line of a book."""

    number: int
    at: str
    what: str
    previous: str
    digest: str

    @property
    def moment(self) -> datetime:
        """When it happened."""
        return _moment(self.at)

    @property
    def content(self) -> dict[str, Any]:
        """What happened, as the dictionary that it was written from."""
        return read_json(self.what)

    def row(self) -> tuple[int, str, str, str, str]:
        """Return the five columns."""
        return self.number, self.at, self.what, self.previous, self.digest


def now() -> datetime:
    """Return the time of the system's clock, to the second."""
    return datetime.now(UTC).replace(microsecond=0)


def next_event(
    chain: Iterable[Event], what: Mapping[str, Any], at: datetime | None = None
) -> Event:
    """Return an event that follows a chain.

    Times never fall: where the clock stands before the last event, that event's time is taken, and
    the event says so. Otherwise setting a clock back would open a year that is closed.
    """
    before = list(chain)
    last = before[-1] if before else None
    moment = at or now()
    content = dict(what)
    if last is not None and moment < _moment(last.at):
        content["clock"] = f"behind: it showed {moment.isoformat()}"
        moment = _moment(last.at)
    number, previous = len(before) + 1, last.digest if last else FIRST
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    if len(text) > _LONGEST:
        raise BookError(f"an event of {len(text)} characters is longer than a book may hold")
    return Event(
        number, moment.isoformat(), text, previous,
        _digest(number, moment.isoformat(), text, previous),
    )  # fmt: skip


def read_chain(rows: Iterable[tuple[Any, ...]]) -> list[Event]:
    """Return the events of a file that nobody vouches for, or say at which one it is broken."""
    events: list[Event] = []
    for row in rows:
        event = _event_of(row, len(events) + 1)
        last = events[-1] if events else None
        if event.previous != (last.digest if last else FIRST):
            raise BookError(f"event {event.number} does not follow the one before it; {_CHANGED}")
        if event.digest != _digest(event.number, event.at, event.what, event.previous):
            raise BookError(f"event {event.number} is not what it was when written; {_CHANGED}")
        if last is not None and event.at < last.at:
            raise BookError(f"event {event.number} is dated before the one before it; {_CHANGED}")
        events.append(event)
        if len(events) > _MOST:
            raise BookError(f"it has more than {_MOST} events")
    if not events:
        raise BookError("it has no events")
    return events


_CHANGED = "the book was changed by something other than tacit"


def _event_of(row: tuple[Any, ...], number: int) -> Event:
    kinds = int, str, str, str, str
    sound = len(row) == len(kinds) and all(type(v) is k for v, k in zip(row, kinds, strict=True))
    if not sound or row[0] != number or len(row[2]) > _LONGEST:
        raise BookError(f"event {number} is missing or cannot be read; {_CHANGED}")
    event = Event(*row)
    if event.at != _moment(event.at).isoformat():
        raise BookError(f"event {number} has no time that can be read; {_CHANGED}")
    return event


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise BookError(f"an event has no time that can be read; {_CHANGED}") from None
    if moment.tzinfo != UTC:
        raise BookError(f"an event has a time of no known zone; {_CHANGED}")
    return moment


def _digest(number: int, at: str, what: str, previous: str) -> str:
    text = json.dumps([number, at, what, previous], separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def read_json(text: str) -> dict[str, Any]:
    """Read an object of plain JSON: no NaN, no infinity, not nested deeply."""
    try:
        content = json.loads(text, parse_constant=_refuse, parse_float=_finite)
    except (ValueError, RecursionError):
        raise BookError(f"an event cannot be read; {_CHANGED}") from None
    if not isinstance(content, dict):
        raise BookError(f"an event is no object; {_CHANGED}")
    return content


def _refuse(_: str) -> NoReturn:
    raise ValueError


def _finite(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError
    return value
