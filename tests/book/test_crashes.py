"""Ended at any write, on a full disk, and at any byte: a book loses nothing and pays nothing twice.

A process may write files up to a limit that is raised in small steps, so that one of them cuts
every write of a transaction in half: the log's header, its pages, the counter. After each the book
is opened: what it holds is what was there before, or the whole event.
"""

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import tacit
from tacit.accounting.budget import PrivacyBudget
from tests.book import child
from tests.faults.running import ROOT

posix = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork and RLIMIT_FSIZE")


def forked(folder: Path, limit: int, full: bool = False) -> int:
    """Run the child's first form in a fork; return its exit code, negative for a signal."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    code = 9
    try:
        warnings.simplefilter("ignore")
        child.reserve(folder, limit, full)
        code = 0
    except tacit.BookError:
        code = 2
    finally:
        os._exit(code)


def sound(folder: Path, before: int) -> tuple[int, float]:
    """Return how many events the book has and what they cost; anything unsound is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.TacitWarning)
        book = tacit.Book(folder / "people.book")
        assert not book.verify()
        account = book.account()
    assert len(account.events) >= before
    return len(account.events), account.spent


@posix
@pytest.mark.parametrize("full", [False, True])
def test_ended_in_the_middle_of_every_write(tmp_path: Path, full: bool) -> None:
    tacit.Book.new(tmp_path / "people.book", epsilon=1.0)
    events, outcomes = 1, set()
    for limit in [*range(0, 16_384, 1_365), *range(16_384, 34_000, 2_731)]:
        code = forked(tmp_path, limit, full)
        now, spent = sound(tmp_path, events)
        outcomes.add(code)
        assert now - events <= 2
        # Killed after the reservation is whole, nobody can take it back: then it is paid.
        assert spent <= PrivacyBudget(child.EPSILON).mu ** 2 * (now - 1)
        events = now
    assert outcomes == ({0, 2} if full else {0, -signal.SIGXFSZ})


@posix
def test_with_room_enough_it_is_reserved_and_cancelled(tmp_path: Path) -> None:
    """The twin: the same process without a limit writes both events."""
    tacit.Book.new(tmp_path / "people.book", epsilon=1.0)
    assert forked(tmp_path, 1 << 30) == 0
    assert sound(tmp_path, 3) == (3, 0.0)


@pytest.mark.slow
def test_a_fit_that_is_killed_at_every_release_is_paid_once(tmp_path: Path) -> None:
    book = tacit.Book.new(tmp_path / "people.book", epsilon=1.0)
    line = [sys.executable, "-m", "tests.book.child", "--fit", str(tmp_path)]
    for number in (1, 2, 3):
        code = subprocess.run([*line, str(number)], cwd=ROOT, check=False).returncode
        assert code == -signal.SIGKILL
        [record] = book.fits
        assert (record.state, len(record.releases)) == ("reserved", number - 1)
        assert book.spent_epsilon == pytest.approx(child.EPSILON, rel=1e-8)
    assert subprocess.run([*line, "0"], cwd=ROOT, check=False).returncode == 0
    [record] = book.fits
    assert record.state == "closed"
    assert len(list((tmp_path / "checkpoint").glob("release-*"))) == len(record.releases)


def test_a_copy_without_its_log_is_an_old_copy(tmp_path: Path) -> None:
    """What a process that was killed left in the write-ahead log is part of the book."""
    path = tmp_path / "people.book"
    book = tacit.Book.new(path, epsilon=1.0)
    holding = sqlite3.connect(path)  # keeps the log from being folded in
    holding.execute("SELECT * FROM events").fetchall()
    book.reserve(PrivacyBudget(0.1))
    copy = tmp_path / "copy" / path.name
    copy.parent.mkdir()
    shutil.copy(path, copy)
    shutil.copy(f"{path}.count", f"{copy}.count")
    with pytest.raises(tacit.BookError, match="old copy"):
        tacit.Book(copy)
    shutil.copy(f"{path}-wal", f"{copy}-wal")
    assert len(tacit.Book(copy).fits) == 1
    holding.close()


@pytest.fixture(scope="module")
def sound_bytes(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("sound") / "people.book"
    book = tacit.Book.new(path, epsilon=1.0)
    with book.reserve(PrivacyBudget(0.1)):
        pass
    return path.read_bytes()


@pytest.mark.parametrize("seed", range(8))
def test_damaged_and_hostile_files_are_an_error_and_nothing_worse(
    sound_bytes: bytes, tmp_path: Path, seed: int
) -> None:
    """Bytes changed, cut off or doubled: the book is as it was, or there is a BookError."""
    import numpy as np

    rng = np.random.default_rng(seed)
    path, sound_events = tmp_path / "b", 3
    for trial in range(12):
        content = bytearray(sound_bytes)
        for _ in range(int(rng.integers(1, 6))):
            at = int(rng.integers(0, len(content)))
            if trial % 3 == 0:
                del content[at:]
            elif trial % 3 == 1:
                content[at : at + 8] = rng.bytes(8)
            else:
                content[at] ^= 1 << int(rng.integers(0, 8))
        path.write_bytes(content)
        Path(f"{path}-wal").unlink(missing_ok=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", tacit.TacitWarning)
                book = tacit.Book(path)
                assert len(book.account().events) == sound_events
                assert book.fits[0].epsilon == 0.1
        except (tacit.BookError, tacit.ConfigError):
            pass


@pytest.mark.parametrize("content", [b"", b"SQLite format 3\0", b"x" * 5000, b"{}"])
def test_other_files_are_no_books(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "b"
    path.write_bytes(content)
    with pytest.raises(tacit.BookError, match="no book of tacit"):
        tacit.Book(path)
    with pytest.raises(tacit.ConfigError, match="no such file"):
        tacit.Book(tmp_path)


def test_a_large_book_of_nothing_is_refused_before_it_is_read(
    sound_bytes: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "b"
    path.write_bytes(sound_bytes)
    with path.open("ab") as file:
        file.truncate(5 << 30)  # a hole: it takes no room
    with pytest.raises(tacit.BookError, match="larger than"):
        tacit.Book(path)


def test_a_counter_that_cannot_be_read_stops_the_book(tmp_path: Path) -> None:
    tacit.Book.new(tmp_path / "b", epsilon=1.0)
    for content in (b"[", b"{}", b'{"count": 0, "digest": ""}', b'{"count": true, "digest": ""}'):
        (tmp_path / "b.count").write_bytes(content)
        with pytest.raises(tacit.BookError, match="counter"):
            tacit.Book(tmp_path / "b")
