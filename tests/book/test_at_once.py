"""Two processes at one book: what the counter, the readers and the refits make of each other."""

import math
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.accounting.budget import PrivacyBudget, mu_of
from tacit.book import counter as counter_module
from tacit.book import store as store_module
from tacit.book.store import Store
from tacit.fitting import refit as refit_module
from tacit.fitting import remembering as remembering_module
from tacit.fitting.joining import joined
from tacit.fitting.memory import Memory
from tacit.fitting.track import Track
from tests.conftest import ratings_for

COST = PrivacyBudget(0.1)
MOMENTS = tacit.Moments()


@pytest.fixture
def book(tmp_path: Path) -> tacit.Book:
    return tacit.Book.new(tmp_path / "people.book", epsilon=20.0)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Promises are weak here on purpose: so few people need little noise to learn from."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "epsilon|so few|.*weak", tacit.TacitWarning)
        yield


def test_a_counter_that_is_slow_does_not_go_back(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer is ready when the first one has read the counter and not yet written it."""
    write, others = counter_module.write_durably, []

    def slowly(*arguments: Any, **options: Any) -> None:
        if not others:
            others.append(threading.Thread(target=tacit.Book(book.path).reserve, args=(COST,)))
            others[0].start()
            others[0].join(timeout=0.5)
        write(*arguments, **options)

    monkeypatch.setattr(counter_module, "write_durably", slowly)
    book.reserve(COST)
    others[0].join()
    last = book.account().events[-1]
    assert counter_module.read(book.path) == (3, last.digest) == (last.number, last.digest)


def test_a_book_that_is_written_while_it_is_read_is_no_old_copy(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one writes, and brings the counter forward, when events have been read."""
    events, other = Store.events, tacit.Book(book.path)

    def then_written(self: Store) -> Any:
        found = events(self)
        other.reserve(COST)
        return found

    monkeypatch.setattr(Store, "events", then_written)
    assert len(book.account().fits) == 0
    monkeypatch.undo()
    assert len(book.account().fits) == 1


def test_what_is_remembered_and_the_chain_are_of_one_moment(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A refit ends between the two: the memory of before is not held against the chain of after."""
    other, read = tacit.Book(book.path).reserve(COST, kind="refit"), store_module._events

    def ended_first(connection: Any) -> Any:
        monkeypatch.setattr(store_module, "_events", read)
        other.book.add({"event": "cancelled", "fit": other.id}, lambda _: {"track": b"new"})
        return read(connection)

    monkeypatch.setattr(store_module, "_events", ended_first)
    assert book.memory() == {}
    assert book.memory() == {"track": b"new"}


def refitted(book: tacit.Book, **options: Any) -> tacit.Model:
    given: dict[str, Any] = {"algorithm": MOMENTS, "epsilon": 2.0} | options
    return tacit.refit(ratings_for(0), book=book, **given)


def while_refitting(book: tacit.Book, other: Any, **options: Any) -> tacit.Model:
    """Refit, and let another refit begin and end after the first release."""

    def progress(done: int, planned: int) -> None:
        if done == 1:
            other()

    return refitted(book, progress=progress, **options)


def tracks_of(book: tacit.Book) -> dict[str, Track]:
    return dict(Memory(book.memory()).tracks)


def unchanging(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing drifts, nothing becomes popular, rows stay as long: precisions add up."""
    monkeypatch.setattr(remembering_module, "_CLOSE", math.inf)
    monkeypatch.setattr(Track, "drift", property(lambda self: np.zeros(self.values.shape)))
    monkeypatch.setattr(Track, "resize", lambda *_: None)


def precisions(tracks: dict[str, Track]) -> dict[str, float]:
    """Return what is known of each kind, as a precision: that of all releases, without a drift."""
    return {name: 1 / float(np.median(track.variances)) for name, track in tracks.items()}


@pytest.mark.parametrize(
    "algorithm", [MOMENTS, pytest.param(tacit.LatentFactors(), marks=pytest.mark.slow)]
)
def test_of_two_refits_at_once_both_are_remembered(
    book: tacit.Book, algorithm: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    unchanging(monkeypatch)
    refitted(book, algorithm=algorithm)
    one = precisions(tracks_of(book))
    model = while_refitting(book, lambda: refitted(book, algorithm=algorithm), algorithm=algorithm)
    tracks = tracks_of(book)
    assert [fit.state for fit in book.fits] == ["closed"] * 3
    assert set(one) <= set(tracks)
    for name, precision in precisions(tracks).items():
        if "moments" in name or "factors" in name or "prior" in name:
            continue  # the number of factors depends on the noise
        least = 2.0 if name == "item means" else 2.5  # its noise depends on the model, too
        assert precision > least * one[name], name
        assert len(tracks[name].noises) == 2, name  # two of one time are one look
    assert Memory(book.memory()).about["spent"] == pytest.approx(3 * mu_of(2.0, 1e-6) ** 2)
    assert model.verify().holds
    assert model.certificate.mu**2 == pytest.approx(2 * mu_of(2.0, 1e-6) ** 2)  # not the other's
    third = refitted(book, algorithm=algorithm)
    assert third.certificate.mu**2 == pytest.approx(4 * mu_of(2.0, 1e-6) ** 2)
    assert not book.verify({"model": model.certificate, "third": third.certificate})


def test_without_joining_the_earlier_of_two_refits_would_be_forgotten(
    book: tacit.Book, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: what the later refit knew, in the place of what was written."""
    unchanging(monkeypatch)
    monkeypatch.setattr(refit_module, "joined", lambda mine, *_: mine)
    refitted(book)
    one = precisions(tracks_of(book))
    while_refitting(book, lambda: refitted(book))
    assert all(found < 2.2 * one[name] for name, found in precisions(tracks_of(book)).items())


def test_moments_of_factors_are_turned_before_they_are_joined() -> None:
    """Two refits saw the same people from factors that are turned: v v^T and T v v^T T^T."""
    rng = np.random.default_rng(0)
    choice, factors = rng.standard_normal((2, 9, 2))
    turn = np.eye(5)
    turn[2:4, 2:4] = [[0.0, 1.0], [-1.0, 0.0]]
    ids, seen = [str(at) for at in range(9)], np.outer(np.arange(5.0), np.arange(5.0))
    theirs, mine = Memory({}), Memory({})
    theirs.about = mine.about = {"algorithm": "same", "spent": 1.0, "began": 2}
    frame = {"ids": ids, "choice": choice.tolist(), "factors": factors.tolist()}
    here = frame | {"factors": (factors @ turn[2:4, 2:4].T).tolist()}
    theirs.tracks["factor moments 1"] = track = Track.start(0, frame, [], (25,))
    track.add([], seen.ravel(), 1.0)
    again = (turn @ seen @ turn.T).ravel()
    mine.drew("factor moments 1", 0, here, [], again, 1.0)
    found = joined(mine, 1.0, 0.5, theirs.to_bytes())
    after = found.tracks["factor moments 1"]
    assert np.allclose(after.values, again)
    assert np.allclose(after.variances, 0.5)
    assert after.frame == here
    assert found.about["spent"] == 1.5
    mine.drawn.clear()
    mine.drew("factor moments 1", 0, here | {"factors": [[1.0]] * 9}, [], np.ones(16), 1.0)
    kept = joined(mine, 1.0, 0.5, theirs.to_bytes()).tracks["factor moments 1"]
    assert np.array_equal(kept.values, seen.ravel())  # another number of factors: what is there


def test_two_first_refits_at_once_leave_one_memory(book: tacit.Book) -> None:
    """Bounds of each follow from its own releases: what they do not share is not combined."""
    while_refitting(book, lambda: refitted(book))
    tracks = tracks_of(book)
    assert {len(track.noises) for track in tracks.values()} == {1}
    alone = tacit.Book.new(book.path.with_name("alone.book"), epsilon=20.0)
    refitted(alone)
    before = precisions(tracks_of(alone))
    assert precisions(tracks)["item weights"] == pytest.approx(2 * before["item weights"])
    assert refitted(book).verify().holds


def test_a_refit_that_begins_anew_forgets_the_one_beside_it(book: tacit.Book) -> None:
    while_refitting(book, lambda: refitted(book), forget=True)
    assert Memory(book.memory()).about["spent"] == pytest.approx(mu_of(2.0, 1e-6) ** 2)


def test_a_refit_that_rests_on_what_is_forgotten_is_not_remembered(book: tacit.Book) -> None:
    """Else the next model would rest on the first refit, and its certificate would not say so."""
    refitted(book)
    with pytest.warns(tacit.TacitWarning, match="begun anew"):
        while_refitting(book, lambda: refitted(book, forget=True))
    assert len(tracks_of(book)["spreads"].noises) == 1
    assert Memory(book.memory()).about["spent"] == pytest.approx(mu_of(2.0, 1e-6) ** 2)


def test_refits_at_once_with_other_settings_are_not_combined(book: tacit.Book) -> None:
    other = tacit.Moments(max_ratings=4)
    with pytest.warns(tacit.TacitWarning, match="other settings"):
        while_refitting(book, lambda: refitted(book, algorithm=other))
    assert refitted(book, algorithm=other).verify().holds
    with pytest.raises(tacit.ConfigError, match="other settings"):
        refitted(book)
