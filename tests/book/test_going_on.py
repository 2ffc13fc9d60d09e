"""A fit of a book that ends at any write goes on by the same call: the same model, paid once.

An end is played in this process: from a chosen moment on, whatever would write raises, so nothing
can be mended or tidied any more. (`test_crashes.py` ends real processes.)
"""

import os
import shutil
import sqlite3
import uuid
import warnings
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import tacit
from tacit.accounting.budget import mu_of
from tacit.book import book as book_module
from tacit.book import events as events_module
from tacit.book.memory import digest_of
from tacit.fitting import fit as fit_module
from tacit.fitting.memory import Memory
from tacit.trusted.sampler import SeededNoiseUnsafe
from tests.conftest import ratings_for

MOMENTS = tacit.Moments()
MAKE: dict[str, Callable[..., tacit.Model]] = {"fit": tacit.fit, "refit": tacit.refit}


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Promises are weak here on purpose: so few people need little noise to learn from."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tacit.TacitWarning)
        yield


@pytest.fixture
def book(tmp_path: Path) -> tacit.Book:
    """A book that remembers a refit."""
    made = tacit.Book.new(tmp_path / "start" / "people.book", epsilon=20.0)
    tacit.refit(ratings_for(1), MOMENTS, book=made, epsilon=2.0)
    return made


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "start").mkdir()


class Ended(BaseException):
    """What a process would not live to see."""


class Moments:
    """Counts the moments of writing: before every sync and rename, before and after a commit."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, last: int) -> None:
        """End at the moment of this number; never, if it is 0."""
        self.count, self.last = 0, last
        monkeypatch.setattr(os, "fsync", self._before(os.fsync))
        for name in ("replace", "unlink"):
            monkeypatch.setattr(Path, name, self._before(getattr(Path, name)))
        connect = partial(sqlite3.connect, factory=self._connection())
        monkeypatch.setattr(sqlite3, "connect", connect)

    def reach(self) -> None:
        self.count += 1
        if 0 < self.last <= self.count:
            raise Ended

    def _before(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        def outer(*arguments: Any, **options: Any) -> Any:
            self.reach()
            return inner(*arguments, **options)

        return outer

    def _connection(self) -> type[sqlite3.Connection]:
        reach = self.reach

        class Watched(sqlite3.Connection):
            def execute(self, line: str, *values: Any) -> sqlite3.Cursor:
                if line not in ("COMMIT", "ROLLBACK"):
                    return super().execute(line, *values)
                reach()
                found = super().execute(line, *values)
                reach()
                return found

        return Watched


def made(folder: Path, kind: str, **options: Any) -> tacit.Model:
    given: dict[str, Any] = {"epsilon": 2.0, "book": folder / "people.book"} | options
    given = {"checkpoint": folder / "checkpoint"} | given
    return MAKE[kind](ratings_for(0), given.pop("algorithm", MOMENTS), **given)


def written(folder: Path, kind: str) -> None:
    made(folder, kind).save(folder / "model.tacit")


def left(folder: Path) -> tuple[bytes, list[Any], dict[str, bytes], list[str]]:
    """Return all that is there at the end: the model, the book, its memory, and which files."""
    book = tacit.Book(folder / "people.book")
    model = tacit.load(folder / "model.tacit")
    assert not book.verify({"model": model.certificate})
    files = sorted(path.name for path in folder.rglob("*") if path.suffix != ".part")
    events = [event.row() for event in book.account().events]
    return (folder / "model.tacit").read_bytes(), events, book.memory(), files


@pytest.mark.parametrize("kind", MAKE)
def test_ended_at_any_write_it_goes_on_to_the_same_model(
    book: tacit.Book, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the reservation to the model file; with the same noise, names and clock each time."""
    moment, name = datetime.now(UTC).replace(microsecond=0), uuid.UUID(int=5)
    monkeypatch.setattr(fit_module, "SystemNoise", partial(SeededNoiseUnsafe, 3))
    monkeypatch.setattr(uuid, "uuid4", lambda: name)
    monkeypatch.setattr(book_module, "now", lambda: moment)
    monkeypatch.setattr(events_module, "now", lambda: moment)
    found = []
    number, most = 0, 0
    while number <= most:
        folder = tmp_path / str(number)
        shutil.copytree(tmp_path / "start", folder)
        with monkeypatch.context() as patched:
            moments = Moments(patched, number)
            if number:
                with pytest.raises(Ended):
                    written(folder, kind)
            else:
                written(folder, kind)
                most = moments.count
        if number:
            written(folder, kind)
        found.append(left(folder))
        assert found[-1] == found[0], f"ended at moment {number} of {most}"
        number += 1
    assert most > 50
    fits = tacit.Book(tmp_path / "0" / "people.book").fits
    assert [fit.state for fit in fits] == ["closed", "closed"]
    assert len(found[0][1]) == 1 + 2 * 2 + sum(len(fit.releases) for fit in fits)
    tracks = Memory(found[0][2]).tracks
    assert len(tracks["spreads"].noises) == (2 if kind == "refit" else 1)


def interrupted(folder: Path, **options: Any) -> None:
    def progress(done: int, planned: int) -> None:
        if done == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        made(folder, "refit", progress=progress, **options)


def test_it_goes_on_with_what_it_began_with_whatever_the_book_remembers_by_then(
    book: tacit.Book, tmp_path: Path
) -> None:
    """Another refit came between: both are remembered, and this model does not rest on it."""
    folder = tmp_path / "start"
    interrupted(folder)
    other = tacit.refit(ratings_for(0), MOMENTS, book=book, epsilon=2.0)
    model = made(folder, "refit")
    cost = mu_of(2.0, 1e-6) ** 2
    assert [fit.state for fit in book.fits] == ["closed"] * 3
    assert model.certificate.mu**2 == pytest.approx(2 * cost)
    memory = Memory(book.memory())
    assert memory.about["spent"] == pytest.approx(3 * cost)
    assert not book.verify({"model": model.certificate, "other": other.certificate})
    before = book.memory()
    again = made(folder, "refit")
    assert again.certificate == model.certificate
    assert book.memory() == before


def test_what_it_began_with_is_known_by_the_chain(book: tacit.Book, tmp_path: Path) -> None:
    folder = tmp_path / "start"
    interrupted(folder)
    path = folder / "checkpoint" / "memory.safetensors"
    content = path.read_bytes()
    for damaged in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), b"", None):
        path.unlink()
        if damaged is not None:
            path.write_bytes(damaged)
        with pytest.raises(tacit.CheckpointError, match="began with is missing or damaged"):
            made(folder, "refit")
        path.touch()
    path.write_bytes(content)
    assert made(folder, "refit").verify().holds


def test_it_goes_on_as_what_it_was(book: tacit.Book, tmp_path: Path) -> None:
    folder = tmp_path / "start"
    interrupted(folder)
    with pytest.raises(tacit.CheckpointError, match="is of a refit of this book, and not of a fit"):
        made(folder, "fit")
    with pytest.raises(tacit.CheckpointError, match="another fit"):
        made(folder, "refit", forget=True)
    with (
        book.reserve(tacit.PrivacyBudget(2.0)) as reservation,
        pytest.raises(tacit.ConfigError, match=r"of a fit, and this is a refit.*kind='refit'"),
    ):
        made(folder, "refit", book=reservation, checkpoint=None)
    assert made(folder, "refit").verify().holds
    second = tmp_path / "second"
    interrupted(folder, checkpoint=second, forget=True)
    assert digest_of(book.memory()) != digest_of({})
    with pytest.raises(tacit.CheckpointError, match="another fit"):
        made(folder, "refit", checkpoint=second)
    model = made(folder, "refit", checkpoint=second, forget=True)
    assert model.certificate.mu**2 == pytest.approx(mu_of(2.0, 1e-6) ** 2)
