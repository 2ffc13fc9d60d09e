"""The lifetime book: what it allows, what it refuses, and what it makes of crashes and copies."""

import json
import math
import multiprocessing
import os
import shutil
import sqlite3
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import PrivacyBudget, mu_of
from tacit.accounting.promise import percent, two_lists
from tacit.book import book as book_module
from tacit.book import events as events_module
from tacit.book.merging import merge
from tacit.book.statement import from_json
from tests.conftest import ratings_for

CONFIG = tacit.FrankWolfe(rounds=4)


@pytest.fixture
def book(tmp_path: Path) -> tacit.Book:
    return tacit.Book.new(tmp_path / "people.book", epsilon=1.0)


def fitted(book: tacit.Book | Path, epsilon: float = 0.1, **options: object) -> tacit.Model:
    return tacit.fit(ratings_for(0), CONFIG, epsilon=epsilon, book=book, **options)  # type: ignore[arg-type]


def test_a_fit_is_in_the_book_with_every_release_and_its_certificate(book: tacit.Book) -> None:
    model = fitted(book)
    [record] = book.fits
    assert record.state == "closed"
    assert tuple(record.releases) == model.certificate.releases
    assert math.isclose(record.cost, model.certificate.mu**2)
    assert book.spent_epsilon == pytest.approx(0.1, rel=1e-8)
    assert not book.verify({"model": model.certificate})
    assert book.terms.population in model.certificate.public["lifetime book"]
    assert model.verify().holds


def test_costs_add_up_as_squares_to_the_limit_and_no_further(book: tacit.Book) -> None:
    half = PrivacyBudget(0.5)
    for _ in range(math.floor(mu_of(1.0, 1e-6) ** 2 / half.mu**2)):
        book.reserve(half)
    with pytest.raises(tacit.LifetimeExceeded, match=r"epsilon [\d.]+ is left") as found:
        book.reserve(half)
    assert len(book.fits) == 3
    assert found.value.left < found.value.asked == pytest.approx(half.mu**2)
    left = book.left_epsilon
    with pytest.raises(tacit.LifetimeExceeded):
        book.reserve(PrivacyBudget(left * 1.001))
    book.reserve(PrivacyBudget(left))
    assert book.left_epsilon == pytest.approx(0.0, abs=1e-3)


def test_a_refused_fit_reads_nothing_and_spends_nothing(book: tacit.Book) -> None:
    before = book.account()

    class Untouchable:
        """An engine that no row may be given to."""

        def take(self, _: tacit.Ratings) -> None:
            raise AssertionError("rows were taken")

    with pytest.raises(tacit.BudgetExceeded, match="Nothing was read and nothing was spent"):
        fitted(book, epsilon=1.1, engine=Untouchable())
    assert book.account() == before


def test_all_of_the_budget_can_be_spent_at_once(book: tacit.Book) -> None:
    fitted(book, epsilon=1.0)
    assert book.spent_epsilon <= 1.0 * (1 + 1e-9)
    with pytest.raises(tacit.LifetimeExceeded, match="buys no fit"):
        fitted(book, epsilon=0.01)


def test_delta_and_relation_are_those_of_the_book_unless_given(tmp_path: Path) -> None:
    book = tacit.Book.new(
        tmp_path / "b", epsilon=1.0, delta=1e-7, neighbours="add_remove", yearly_epsilon=0.5
    )
    model = fitted(book)
    assert model.certificate.budget == PrivacyBudget(0.1, 1e-7, "add_remove")  # type: ignore[arg-type]
    fitted(book, delta=1e-8)
    assert book.fits[1].cost == pytest.approx(mu_of(0.1, 1e-8) ** 2)
    with pytest.raises(tacit.ConfigError, match="two relations"):
        fitted(book, neighbours="replace")


@pytest.mark.parametrize(
    "options", [{"noise_seed_unsafe": 1}, {"numerics": "idealised"}], ids=["seed", "idealised"]
)
def test_what_is_not_private_has_no_place_in_a_book(
    book: tacit.Book, options: dict[str, object]
) -> None:
    with pytest.raises(tacit.ConfigError, match="NOT PRIVATE"):
        fitted(book, **options)
    with pytest.raises(tacit.ConfigError, match="without privacy"):
        tacit.fit(ratings_for(0), CONFIG, budget=None, book=book)
    assert not book.fits


def test_an_error_gives_back_what_was_not_drawn(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any release nothing counts; after one, all that was spent in the ledger counts."""

    def stop_at(number: int) -> None:
        def progress(done: int, planned: int) -> None:
            if done == number:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            fitted(book, progress=progress)

    monkeypatch.setattr("tacit.fitting.fit._facts", _interrupt)
    with pytest.raises(KeyboardInterrupt):
        fitted(book)
    monkeypatch.undo()
    assert [fit.state for fit in book.fits] == ["cancelled"]
    assert book.spent_epsilon == 0.0
    stop_at(1)
    stopped = book.fits[1]
    assert stopped.state == "stopped"
    assert len(stopped.releases) == 1
    assert stopped.cost == pytest.approx(stopped.releases[0].mu ** 2)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_checkpoint_that_is_resumed_is_paid_once(book: tacit.Book, tmp_path: Path) -> None:
    def progress(done: int, planned: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    folder = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        fitted(book, checkpoint=folder, progress=progress)
    [record] = book.fits
    assert (record.state, len(record.releases)) == ("reserved", 2)
    assert book.spent_epsilon == pytest.approx(0.1, rel=1e-8)  # all of it, until it has ended
    first = fitted(book, checkpoint=folder)
    again = fitted(book, checkpoint=folder)
    assert len(book.fits) == 1
    assert book.fits[0].state == "closed"
    assert first.certificate == again.certificate


def test_releases_that_are_gone_from_a_checkpoint_are_not_drawn_again(
    book: tacit.Book, tmp_path: Path
) -> None:
    """The journal alone would draw the last one again; the book knows how many there were."""
    folder = tmp_path / "checkpoint"
    fitted(book, checkpoint=folder)
    sorted(folder.glob("release-*"))[-1].unlink()
    with pytest.raises(tacit.CheckpointError, match="a second release"):
        fitted(book, checkpoint=folder)
    with pytest.raises(tacit.CheckpointError, match="at epsilon"):
        fitted(book, epsilon=0.2, checkpoint=folder)
    other = tacit.Book.new(tmp_path / "other.book", epsilon=1.0)
    with pytest.raises(tacit.CheckpointError, match="another book"):
        fitted(other, checkpoint=folder)
    plain = tmp_path / "plain"
    tacit.fit(ratings_for(0), CONFIG, epsilon=0.1, checkpoint=plain)
    with pytest.raises(tacit.CheckpointError, match="without this book"):
        fitted(book, checkpoint=plain)


def reserve_until_refused(path: Path, made: "multiprocessing.Queue[int]") -> None:
    book, count = tacit.Book(path), 0
    try:
        while True:
            book.reserve(PrivacyBudget(0.3))
            count += 1
    except tacit.LifetimeExceeded:
        made.put(count)


def test_writers_at_once_spend_no_more_than_one(book: tacit.Book) -> None:
    context = multiprocessing.get_context("spawn")
    made: multiprocessing.Queue[int] = context.Queue()
    workers = [
        context.Process(target=reserve_until_refused, args=(book.path, made)) for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    counts = [made.get(timeout=60) for _ in workers]
    for worker in workers:
        worker.join()
    assert (
        sum(counts) == len(book.fits) == math.floor(mu_of(1.0, 1e-6) ** 2 / mu_of(0.3, 1e-6) ** 2)
    )
    assert book.account().spent <= book.terms.limit


def test_a_writer_that_comes_in_between_has_to_wait(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It starts when the first has seen what is left and has not yet written: one of them fits."""
    refuse, other, refused = tacit.Book._refuse, [], []

    def late() -> None:
        try:
            tacit.Book(book.path).reserve(PrivacyBudget(0.8))
        except tacit.LifetimeExceeded as error:
            refused.append(error)

    def slowly(*arguments: Any) -> None:
        refuse(*arguments)
        if not other:
            other.append(threading.Thread(target=late))
            other[0].start()
            other[0].join(timeout=0.5)

    monkeypatch.setattr(tacit.Book, "_refuse", slowly)
    book.reserve(PrivacyBudget(0.8))
    other[0].join()
    assert len(refused) == len(book.fits) == 1


def test_an_old_copy_is_noticed(book: tacit.Book, tmp_path: Path) -> None:
    old = tmp_path / "old"
    shutil.copy(book.path, old)
    fitted(book)
    shutil.copy(old, book.path)
    with pytest.raises(tacit.BookError, match="old copy"):
        fitted(book.path)


def test_an_old_copy_is_noticed_after_fits_by_another_name(book: tacit.Book) -> None:
    """A link has the counter of its file: with one of its own, the file's would stay behind."""
    old = book.path.read_bytes()
    link = book.path.with_name("link.book")
    link.symlink_to(book.path.name)
    fitted(link)
    assert not link.with_name("link.book.count").exists()
    assert tacit.Book(link).spent_epsilon == book.spent_epsilon > 0.09
    book.path.write_bytes(old)
    for path in (book.path, link):
        with pytest.raises(tacit.BookError, match="old copy"):
            tacit.Book(path)


def test_a_book_with_a_second_name_is_refused(book: tacit.Book) -> None:
    """A hard link has a counter and a log of its own: what is spent by one is unknown to the other.

    A copy is a file of its own, and is a book.
    """
    link = book.path.with_name("link.book")
    os.link(book.path, link)
    for path in (book.path, link):
        with pytest.raises(tacit.BookError, match=r"2 names \(hard links\)"):
            tacit.Book(path)
    with pytest.raises(tacit.BookError, match="hard links"):
        fitted(book)
    assert not link.with_name("link.book.count").exists()
    link.unlink()
    shutil.copy(book.path, link)
    assert tacit.Book(link).fits == tacit.Book(book.path).fits == ()


def test_a_copy_that_went_its_own_way_is_noticed_and_merged(
    book: tacit.Book, tmp_path: Path
) -> None:
    fitted(book)
    twin = tmp_path / "twin.book"
    shutil.copy(book.path, twin)
    shutil.copy(f"{book.path}.count", f"{twin}.count")
    fitted(book)
    fitted(twin, epsilon=0.2)
    whole = merge([book, tacit.Book(twin)], tmp_path / "whole.book")
    assert sorted(fit.epsilon for fit in whole.fits) == [0.1, 0.1, 0.2]  # the first one once
    assert whole.account().spent == pytest.approx(2 * mu_of(0.1, 1e-6) ** 2 + mu_of(0.2, 1e-6) ** 2)
    shutil.copy(f"{twin}.count", f"{book.path}.count")
    with pytest.raises(tacit.BookError, match="went its own way"):
        tacit.Book(book.path)


def test_a_fit_that_went_on_in_two_copies_is_paid_twice(tmp_path: Path) -> None:
    """Book and checkpoint are copied after a crash, and both go on: two models, two noises."""
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    tacit.Book.new(here / "people.book", epsilon=1.0)

    def stopped(done: int, planned: int) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fitted(here / "people.book", checkpoint=here / "checkpoint", progress=stopped)
    shutil.copytree(here, there)
    fitted(here / "people.book", checkpoint=here / "checkpoint")
    shutil.copytree(here, tmp_path / "copy")
    fitted(there / "people.book", checkpoint=there / "checkpoint")
    folders = here, tmp_path / "copy", there
    first, copy, second = (tacit.Book(folder / "people.book") for folder in folders)
    once = merge([first, copy], tmp_path / "once.book")
    assert once.account().spent == pytest.approx(first.account().spent)
    twice = merge([first, second], tmp_path / "twice.book")
    assert twice.account().spent == pytest.approx(2 * first.account().spent)
    again = merge([second, twice, first], tmp_path / "again.book")
    assert again.account().spent == pytest.approx(twice.account().spent)
    assert not again.verify()


def test_a_book_is_not_merged_with_itself(book: tacit.Book, tmp_path: Path) -> None:
    link = tmp_path / "link.book"
    link.symlink_to(book.path)
    with pytest.raises(tacit.ConfigError, match="different files"):
        merge([book, tacit.Book(link)], tmp_path / "whole.book")
    assert not (tmp_path / "whole.book").exists()


def test_merged_books_may_have_spent_too_much_and_say_so(tmp_path: Path) -> None:
    books = [tacit.Book.new(tmp_path / name, epsilon=1.0) for name in ("a", "b")]
    for each in books:
        fitted(each, epsilon=0.9)
    whole = merge(books, tmp_path / "c")
    assert any("above the promised" in problem for problem in whole.verify())
    assert whole.left_epsilon == 0.0
    with pytest.raises(tacit.LifetimeExceeded):
        fitted(whole, epsilon=0.01)


def test_a_book_does_not_tell_how_long_a_fit_took(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Time depends on everyone's ratings, and a book is published: it has when fits begin.

    The clock moves by a day whenever anybody looks at it; without the mend releases are days apart.
    """
    days = iter(range(1, 1000))
    start = events_module.now()
    for module in (events_module, book_module):
        monkeypatch.setattr(module, "now", lambda: start + timedelta(days=next(days)))
    for _ in range(2):
        fitted(book)
    times: dict[str, set[str]] = {}
    for event in book.account().events[1:]:
        times.setdefault(event.content["fit"], set()).add(event.at)
    assert [len(each) for each in times.values()] == [1, 1]
    assert len({at for each in times.values() for at in each}) == 2  # the twin: the clock did move


def test_a_clock_that_is_set_back_opens_no_closed_year(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tacit.Book.new(tmp_path / "b", epsilon=1.0, yearly_epsilon=0.3)
    moment = [datetime(2030, 1, 1, tzinfo=UTC)]
    monkeypatch.setattr(events_module, "now", lambda: moment[0])
    monkeypatch.setattr("tacit.book.book.now", lambda: moment[0])
    book.reserve(PrivacyBudget(0.3))
    with pytest.raises(tacit.LifetimeExceeded, match="365 days"):
        book.reserve(PrivacyBudget(0.1))
    moment[0] -= timedelta(days=800)
    with pytest.raises(tacit.LifetimeExceeded, match="365 days"):
        book.reserve(PrivacyBudget(0.1))
    moment[0] = datetime(2031, 1, 2, tzinfo=UTC)
    book.reserve(PrivacyBudget(0.1))
    moment[0] = datetime(2029, 1, 1, tzinfo=UTC)
    with pytest.warns(tacit.TacitWarning, match="clock is behind .* 2031-01-02"):
        book.reserve(PrivacyBudget(0.1))
    times = [fit.at for fit in book.fits]
    assert times == sorted(times)
    assert "behind" in book.account().events[-1].content["clock"]


@pytest.mark.parametrize(
    "change",
    [
        'UPDATE events SET what = replace(what, \'"cost":\', \'"cost":0.0,"was":\') '
        "WHERE what LIKE '%reserved%'",
        "DELETE FROM events WHERE number = (SELECT max(number) FROM events)",
        "DELETE FROM events WHERE number = 3",
        "UPDATE events SET at = '2001-01-01T00:00:00+00:00' WHERE number = 2",
        "INSERT INTO memory VALUES ('spreads', x'00')",
        "CREATE TRIGGER t AFTER INSERT ON events BEGIN DELETE FROM events; END",
        "CREATE VIEW v AS SELECT 1",
        "DROP TABLE events",
        "UPDATE events SET what = replace(what, '\"epsilon\":1.0', '\"epsilon\":9.0')",
    ],
    ids=["cost", "last", "middle", "time", "memory", "trigger", "view", "table", "terms"],
)
def test_a_changed_book_is_not_used(book: tacit.Book, change: str) -> None:
    fitted(book)
    connection = sqlite3.connect(book.path)
    connection.execute(change)
    connection.commit()
    connection.close()
    with pytest.raises(tacit.BookError):
        tacit.Book(book.path).verify()


def test_anyone_can_recompute_the_total_from_the_export(book: tacit.Book) -> None:
    """With nothing but the closed form of one Gaussian: no code of the book."""
    fitted(book, epsilon=0.3)
    fitted(book, epsilon=0.2)
    content = json.loads(json.dumps(book.certificate()))
    ratios = [
        entry["sensitivity"] / entry["noise_sd"]
        for fit in content["fits"]
        for entry in fit["releases"]
    ]
    mu = float(np.linalg.norm(ratios))
    assert mu == pytest.approx(content["spent_mu"], rel=1e-9)
    assert from_json(content).spent == pytest.approx(mu**2)
    for forged in ({"spent_epsilon": 0.1}, {"fits": content["fits"][:1]}, {"epsilon": 9.0}):
        with pytest.raises(tacit.BookError, match="is not what its events come to"):
            from_json(content | forged)
    with pytest.raises(tacit.BookError, match="is missing"):
        from_json(content | {"events": content["events"][:1] + content["events"][2:]})


def test_a_book_is_never_replaced(book: tacit.Book) -> None:
    with pytest.raises(tacit.ConfigError, match="never replaced"):
        tacit.Book.new(book.path, epsilon=2.0)
    book.path.unlink()
    with pytest.raises(tacit.BookError, match="was a book before"):
        tacit.Book.new(book.path, epsilon=2.0)
    with pytest.raises(tacit.ConfigError, match="yearly_epsilon"):
        tacit.Book.new(book.path.with_name("n"), epsilon=1.0, yearly_epsilon=2.0)


def test_a_lost_counter_is_told(book: tacit.Book) -> None:
    fitted(book)
    Path(f"{book.path}.count").unlink()
    with pytest.warns(tacit.TacitWarning, match="no counter"):
        fitted(book)
    assert Path(f"{book.path}.count").exists()


@pytest.mark.parametrize("neighbours", ["replace", "add_remove"])
def test_the_lifetime_certificate_states_the_limit_of_guessing_that_its_only_fit_states(
    tmp_path: Path, neighbours: str
) -> None:
    """It stated half of the cost under add_remove, and rounded to nearest."""
    book = tacit.Book.new(tmp_path / "people.book", epsilon=2.0, neighbours=neighbours)
    model = tacit.fit(ratings_for(0), "moments", book=book, epsilon=1.0)
    certificate = model.certificate
    assert certificate.budget is not None
    limit = percent(two_lists(certificate.budget.neighbours, certificate.mu))
    assert f"at most {limit} %" in book.text()
    assert f"{limit} %" in certificate.text()


def test_what_is_no_budget_certificate_or_limit_is_named(book: tacit.Book) -> None:
    with pytest.raises(tacit.ConfigError, match=r"budget=0\.1: expected tacit\.PrivacyBudget"):
        book.reserve(0.1)  # type: ignore[arg-type]
    with pytest.raises(tacit.ConfigError, match=r"model\.certificate"):
        book.verify({"m": fitted(book)})  # type: ignore[dict-item]
    for limit in ("x", 0.0, 1.5, math.nan):
        with pytest.raises(tacit.ConfigError, match="yearly_epsilon"):
            tacit.Book.new(book.path.with_name("n"), epsilon=1.0, yearly_epsilon=limit)  # type: ignore[arg-type]
    assert repr(book) == f"Book({str(book.path)!r}, epsilon=1, delta=1e-06, neighbours='replace')"
