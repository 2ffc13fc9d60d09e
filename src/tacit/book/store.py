"""The file of a book: SQLite with a write-ahead log, synced at every commit.

A book may come from anyone: before anything is read the file's size, kind and schema are checked,
and nothing in it is run: no views, no triggers, no functions of the schema.
"""

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tacit._atomic import reason_of, sync_folder
from tacit.book.events import Event, Mark, read_chain
from tacit.errors import BookError, ConfigError

_APPLICATION = 0x74616369  # "taci": tells a book from other files of SQLite
_LARGEST = 4 << 30  # bytes of a file
_LARGEST_CHAIN = 256 << 20  # characters of all events
_WAIT = 60.0  # seconds for another process to end what it writes
_STEPS = 1_000_000  # of SQLite's machine, between looks at how many there were
_MOST_STEPS = 2_000  # of these, for one command
_SCHEMA = {
    "events": "CREATE TABLE events (number INTEGER PRIMARY KEY, at TEXT NOT NULL, "
    "what TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL) STRICT",
    "memory": "CREATE TABLE memory (name TEXT PRIMARY KEY, content BLOB NOT NULL) STRICT",
}


class Writer:
    """What may be done inside of a transaction."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        """Read what is there; nobody else writes until the transaction ends."""
        self._connection = connection
        self.events = _events(connection)

    def add(self, event: Event) -> None:
        """Add an event to the end."""
        self._connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", event.row())
        self.events.append(event)

    def memory(self) -> dict[str, bytes]:
        """Return what is remembered now, by name."""
        return _memory(self._connection)

    def remember(self, memory: dict[str, bytes]) -> None:
        """Put this in the place of all that was remembered."""
        self._connection.execute("DELETE FROM memory")
        self._connection.executemany("INSERT INTO memory VALUES (?, ?)", memory.items())


class Store:
    """A file of events; connections are short, so processes and forks may share it."""

    def __init__(self, path: Path) -> None:
        """Take a file that is there."""
        self.path = path

    @classmethod
    def create(cls, path: Path, events: Sequence[Event]) -> "Store":
        """Make a new file, for its owner only; never over another."""
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            raise ConfigError(
                f"{path}: the file is there already, and a book is never replaced; give another "
                "name, or go on with that book"
            ) from None
        except OSError as error:
            raise ConfigError(f"{path} cannot be written: {reason_of(error)}") from None
        store = cls(path)
        try:
            with store._connected(check=False) as connection:
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute("PRAGMA journal_mode = WAL")
                connection.execute("BEGIN IMMEDIATE")
                for table in _SCHEMA.values():
                    connection.execute(table)
                for event in events:
                    connection.execute("INSERT INTO events VALUES (?, ?, ?, ?, ?)", event.row())
                connection.execute("COMMIT")
            sync_folder(path.parent)
        except BaseException:
            for part in ("", "-wal", "-shm"):
                path.with_name(path.name + part).unlink(missing_ok=True)
            raise
        return store

    def events(self) -> list[Event]:
        """Return all events, their chain checked."""
        with self._connected() as connection:
            return _events(connection)

    def memory(self) -> tuple[dict[str, bytes], list[Event]]:
        """Return what is remembered, by name, and the events of the same moment."""
        with self._connected() as connection:
            connection.execute("BEGIN")
            return _memory(connection), _events(connection)

    @contextmanager
    def held(self) -> Iterator[Mark]:
        """Keep everyone else from writing; give how far the book has come by then."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            last = "SELECT number, digest FROM events ORDER BY number DESC LIMIT 1"
            yield connection.execute(last).fetchone()

    def check(self) -> None:
        """Let SQLite look at every page of the file."""
        with self._connected() as connection:
            found = [row[0] for row in connection.execute("PRAGMA integrity_check(1)")]
        if found != ["ok"]:
            raise BookError(f"book {self.path} is damaged")

    @contextmanager
    def writing(self) -> Iterator[Writer]:
        """Hold the file alone; what is written is there as a whole, and synced, or not at all."""
        with self._connected() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield Writer(connection)
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):
                    connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _connected(self, *, check: bool = True) -> Iterator[sqlite3.Connection]:
        if check:
            _check_file(self.path)
        try:
            connection = sqlite3.connect(self.path, timeout=_WAIT, isolation_level=None)
        except sqlite3.Error as error:
            raise _unusable(self.path, error) from None
        try:
            _defend(connection)
            if check:
                _check_schema(connection, self.path)
            yield connection
        except (sqlite3.Error, OverflowError, UnicodeError) as error:
            raise _unusable(self.path, error) from None
        finally:
            connection.close()


def _check_file(path: Path) -> None:
    try:
        if not path.is_file():
            raise ConfigError(f"book {path}: there is no such file; `tacit book new` makes one")
        state = path.stat()
        if state.st_nlink > 1:
            raise BookError(
                f"book {path} has {state.st_nlink} names (hard links), and each name would have a "
                "counter and a log of its own; remove the others, and copy the file for a backup"
            )
        if state.st_size > _LARGEST:
            raise BookError(f"book {path} is larger than a book may be ({_LARGEST >> 30} GiB)")
        with path.open("rb") as file:
            head = file.read(100)
    except OSError as error:
        raise BookError(f"book {path} cannot be read: {reason_of(error)}") from None
    ours = int.from_bytes(head[68:72], "big") == _APPLICATION
    if not head.startswith(b"SQLite format 3\0") or not ours:
        raise BookError(f"{path}: it is no book of tacit; `tacit book new` makes one")


def _defend(connection: sqlite3.Connection) -> None:
    """Believe nothing that the file says of itself, and sync whatever is written."""
    steps = [0]

    def too_long() -> int:
        steps[0] += 1
        return int(steps[0] > _MOST_STEPS)

    connection.set_progress_handler(too_long, _STEPS)
    for setting in (
        "trusted_schema = OFF",
        "cell_size_check = ON",
        "mmap_size = 0",
        "synchronous = FULL",
        "foreign_keys = OFF",
    ):
        connection.execute(f"PRAGMA {setting}")


def _check_schema(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a file with anything in it but the two tables, exactly as they are made here."""
    query = "SELECT type, name, substr(sql, 1, 1000) FROM sqlite_master LIMIT 10"
    found = {(kind, name): sql for kind, name, sql in connection.execute(query)}
    tables = {("table", name): sql for name, sql in _SCHEMA.items()}
    wanted = tables | {("index", "sqlite_autoindex_memory_1"): None}
    if found != wanted:
        raise BookError(f"book {path} has other tables than a book of this version; it is not read")


def _events(connection: sqlite3.Connection) -> list[Event]:
    count, length = connection.execute(
        "SELECT count(*), coalesce(sum(length(what)), 0) FROM events"
    ).fetchone()
    if not (isinstance(length, int) and length <= _LARGEST_CHAIN and count <= _LARGEST_CHAIN):
        raise BookError("it has more or longer events than a book may have")
    rows: Iterator[tuple[Any, ...]] = connection.execute("SELECT * FROM events ORDER BY number")
    return read_chain(rows)


def _memory(connection: sqlite3.Connection) -> dict[str, bytes]:
    return dict(connection.execute("SELECT name, content FROM memory ORDER BY name"))


def _unusable(path: Path, error: Exception) -> BookError:
    locked = "locked" in str(error) or "busy" in str(error)
    full = "full" in str(error) or "disk I/O" in str(error)
    reason = "it is not sound"
    if locked:
        reason = f"another process has held it for {_WAIT:g} seconds"
    elif full or "readonly" in str(error) or "unable to open" in str(error):
        reason = str(error)
    return BookError(f"book {path} cannot be used: {reason}; nothing was written to it")
