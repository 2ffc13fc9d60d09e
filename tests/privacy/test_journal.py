"""The journal and the mechanism in what no fit shows: what is synced, swept, watched, refused."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import named
from tests.privacy.test_mechanism import BOUND, Silence, SilentEngine

from tacit import CheckpointError, PrivacyBudget
from tacit.accounting.budget import LARGEST_MU
from tacit.accounting.ledger import Entry, Ledger
from tacit.trusted import journal as journal_module
from tacit.trusted.journal import Journal, check_beforehand
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.sampler import SeededNoiseUnsafe

ENTRY = Entry(named("a"), 1.0, 2.0)


def test_a_journal_says_of_which_version_it_is(tmp_path: Path) -> None:
    """A folder of another version is of another fit: its releases are not mixed in."""
    Journal(tmp_path, {"ratings": "x"}).close()
    about = json.loads((tmp_path / "fit.json").read_text())
    assert about == {"version": "2", "ratings": "x"}
    (tmp_path / "fit.json").write_text(json.dumps(about | {"version": "1"}))
    with pytest.raises(CheckpointError, match="differs in version"):
        Journal(tmp_path, {"ratings": "x"})


def test_another_fit_is_refused_before_its_ratings_are_read(tmp_path: Path) -> None:
    """By the parts that are known then; where there is no checkpoint there is nothing to refuse."""
    check_beforehand(tmp_path / "none", {"budget": "b"})
    Journal(tmp_path, {"ratings": "x", "budget": "b"}).close()
    check_beforehand(tmp_path, {"budget": "b"})
    with pytest.raises(CheckpointError, match="differs in budget"):
        check_beforehand(tmp_path, {"budget": "c"})
    (tmp_path / "fit.json").write_text("{")
    with pytest.raises(CheckpointError, match=r"fit\.json is damaged"):
        check_beforehand(tmp_path, {"budget": "b"})


def test_a_journal_makes_its_folder_and_is_for_its_owner_only(tmp_path: Path) -> None:
    folder, usual = tmp_path / "new" / "folder", os.umask(0o022)
    try:
        journal = Journal(folder, {})
        journal.write(1, ENTRY, np.arange(3.0))
        journal.close()
    finally:
        os.umask(usual)
    private = [folder, folder / "fit.json", folder / "release-0001.safetensors"]
    assert [path.stat().st_mode & 0o077 for path in private] == [0, 0, 0]


def test_what_was_cut_short_is_swept_away_and_the_folder_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".release-0001.part").write_bytes(b"half")
    synced: list[Path] = []
    monkeypatch.setattr(journal_module, "sync_folder", synced.append)
    Journal(tmp_path, {}).close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["fit.json", "lock"]
    assert synced == [tmp_path]


def test_a_release_that_is_lost_is_missed_if_later_ones_are_there(tmp_path: Path) -> None:
    journal = Journal(tmp_path, {})
    for number in (1, 2, 3, 10):
        journal.write(number, ENTRY, np.arange(3.0) + number)
    journal.close()
    (tmp_path / "release-0002.safetensors").unlink()
    (tmp_path / "release-of-nobody").write_bytes(b"")
    journal = Journal(tmp_path, {})
    found = journal.read(3, ENTRY)
    assert found is not None
    assert found.tolist() == [3.0, 4.0, 5.0]
    for number in (2, 4, 9):
        with pytest.raises(CheckpointError, match=f"later releases than number {number}"):
            journal.read(number, ENTRY)
    assert journal.read(11, ENTRY) is None
    others = [("b", 1.0, 2.0), ("a", 1.5, 2.0), ("a", 1.0, 3.0)]
    for other in (Entry(named(label), *numbers) for label, *numbers in others):
        with pytest.raises(CheckpointError, match="damaged"):
            journal.read(1, other)
    journal.close()


def test_a_folder_that_cannot_be_used_is_an_error_of_checkpoints(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot be used"):
        Journal(tmp_path / "file", {})
    journal = Journal(tmp_path / "folder", {})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(journal_module, "write_durably", full)
    with pytest.raises(CheckpointError, match="No space left on device; nothing was released"):
        journal.write(1, ENTRY, np.arange(3.0))
    journal.close()


def test_whoever_watches_gets_a_copy_of_every_release() -> None:
    seen: list[tuple[Any, ...]] = []
    ledger = Ledger(PrivacyBudget(1.0))
    mechanism = Mechanism(
        SilentEngine(),  # type: ignore[arg-type]
        ledger,
        SeededNoiseUnsafe(1),
        observer=lambda *what: seen.append(what),
    )
    entry = ledger.reserve(named("a"), BOUND, 1.0)
    statistic: Any = Silence(shape=(3,), symmetric=False)
    values = mechanism.release(named("a"), statistic)
    ((whose, of, watched),) = seen
    assert (whose, of) == (entry, statistic)
    assert np.array_equal(watched, values)
    assert not np.shares_memory(watched, values)


def test_the_grid_at_its_limits() -> None:
    statistic: Any = Silence()
    engine: Any = SilentEngine()
    mechanism = Mechanism(engine, Ledger(PrivacyBudget(1e4)), SeededNoiseUnsafe(1))
    assert mechanism._grid(statistic, Entry(named("a"), LARGEST_MU, 1.0))[1] > 1
    open_book = Mechanism(engine, Ledger(None), SeededNoiseUnsafe(1))
    assert open_book._grid(statistic, ENTRY) == (1000 * 2.0**-61, 0)  # above 2^-52


def test_releases_are_read_back_whatever_their_names_are_long(tmp_path: Path) -> None:
    """The head of a file is filled up with blanks to a multiple of eight, or it is just full."""
    journal = Journal(tmp_path, {})
    for number in range(1, 10):
        entry = Entry(named("x" * number), 1.0, 2.0)
        journal.write(number, entry, np.arange(2.0))
        found = journal.read(number, entry)
        assert found is not None
        assert found.tolist() == [0.0, 1.0]
    journal.close()
