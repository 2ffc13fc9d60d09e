"""A fit survives a crash: nothing lost, nothing spent twice, nothing of another fit mixed in."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.fitting.booked import digest_of_budget
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.journal import Journal
from tests.conftest import ratings_for

CONFIG = tacit.FrankWolfe(rounds=6, item_means=0.2)


def releases(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("release-*"))}


def published(model: tacit.Model) -> np.ndarray:
    return model.rule.parts()[0]["directions"]


class Crash(BaseException):
    """Nothing in the package catches it."""


@pytest.mark.parametrize("survived", range(7))
def test_going_on_after_a_crash_is_bit_identical(
    survived: int, ratings: tacit.Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Crash while the release after `survived` ones is being written, then go on."""
    options = {"epsilon": 3.0, "noise_seed_unsafe": 4}
    whole = tacit.fit(ratings, CONFIG, checkpoint=tmp_path / "whole", **options)
    write = Journal.write

    def crashing(self: Journal, number: int, *arguments: object) -> None:
        if number > survived:
            raise Crash
        write(self, number, *arguments)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "write", crashing)
        if survived < 6:
            with pytest.raises(Crash):
                tacit.fit(ratings, CONFIG, checkpoint=tmp_path / "cut", **options)
    resumed = tacit.fit(ratings, CONFIG, checkpoint=tmp_path / "cut", **options)
    assert releases(tmp_path / "cut") == releases(tmp_path / "whole")
    assert np.array_equal(published(resumed), published(whole))
    assert resumed.certificate.to_json() == whole.certificate.to_json()


def test_what_was_released_is_not_drawn_again(
    ratings: tacit.Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)

    def never(*_: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(mechanism_module, "floor_normals", never)
    again = tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    assert np.array_equal(published(first), published(again))


SCRIPT = """
import sys, tacit
from tacit.trusted.journal import Journal
from tests.conftest import ratings_for
kill_at, folder = int(sys.argv[1]), sys.argv[2]
write = Journal.write
def wrapped(self, number, *rest):
    if number == kill_at:
        import os, signal
        os.kill(os.getpid(), signal.SIGKILL)
    write(self, number, *rest)
Journal.write = wrapped
config = tacit.FrankWolfe(rounds=6, item_means=0.2)
tacit.fit(ratings_for(0), config, epsilon=1.0, checkpoint=folder)
"""


def run_killed(kill_at: int, folder: Path) -> int:
    command = [sys.executable, "-c", SCRIPT, str(kill_at), str(folder)]
    return subprocess.run(command, cwd=Path(__file__).parent.parent, check=False).returncode


def test_kill_9_of_a_real_process_keeps_every_release(tmp_path: Path) -> None:
    assert run_killed(4, tmp_path) == -signal.SIGKILL
    kept = releases(tmp_path)
    assert len(kept) == 3
    tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=tmp_path)
    after = releases(tmp_path)
    assert len(after) == 6
    assert {name: after[name] for name in kept} == kept


@pytest.mark.parametrize(
    ("part", "changes"),
    [
        ("ratings", {"ratings": 1}),
        ("algorithm", {"algorithm": tacit.FrankWolfe(rounds=7, item_means=0.2)}),
        ("budget", {"epsilon": 1.1}),
        ("budget", {"neighbours": "add_remove"}),
        ("noise", {"numerics": "idealised"}),
    ],
)
def test_a_checkpoint_of_another_fit_is_refused(
    part: str, changes: dict[str, object], tmp_path: Path
) -> None:
    def attempt(ratings: int = 0, algorithm: object = CONFIG, **options: object) -> None:
        arguments = {"epsilon": 1.0, "checkpoint": tmp_path} | options
        tacit.fit(ratings_for(ratings), algorithm, **arguments)  # type: ignore[arg-type]

    attempt()
    before = releases(tmp_path)
    with pytest.raises(tacit.CheckpointError, match=f"differs in {part}"):
        attempt(**changes)  # type: ignore[arg-type]
    assert releases(tmp_path) == before


def test_two_at_once_are_refused(ratings: tacit.Ratings, tmp_path: Path) -> None:
    budget = digest_of_budget(tacit.PrivacyBudget(1.0))
    holder = Journal(tmp_path, {"ratings": "x", "budget": budget})
    with pytest.raises(tacit.CheckpointError, match="in use"):
        tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    holder.close()


@pytest.mark.parametrize("name", ["release-0002.safetensors", "fit.json"])
def test_damage_is_noticed(name: str, ratings: tacit.Ratings, tmp_path: Path) -> None:
    tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[-20] ^= 0xFF
    (tmp_path / name).write_bytes(bytes(content))
    with pytest.raises(tacit.CheckpointError):
        tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)


def test_releases_in_the_wrong_place_are_noticed(ratings: tacit.Ratings, tmp_path: Path) -> None:
    tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    (tmp_path / "release-0003.safetensors").rename(tmp_path / "release-0002.safetensors")
    with pytest.raises(tacit.CheckpointError, match="damaged"):
        tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)


def test_a_full_disk_loses_nothing(
    ratings: tacit.Ratings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync
    calls = iter(range(1000))

    def full(descriptor: int) -> None:
        if next(calls) > 6:
            raise OSError(28, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(tacit.CheckpointError, match="No space left"):
            tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    kept = releases(tmp_path)
    assert 0 < len(kept) < 6
    tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path)
    assert {name: releases(tmp_path)[name] for name in kept} == kept
    assert not list(tmp_path.glob("*.part")) + list(tmp_path.glob(".*.part"))


def test_the_folder_is_for_its_owner_only(ratings: tacit.Ratings, tmp_path: Path) -> None:
    tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path / "made" / "new")
    for path in (tmp_path / "made" / "new", *(tmp_path / "made" / "new").glob("[fr]*")):
        assert path.stat().st_mode & 0o077 == 0, path.name


def test_a_file_in_place_of_the_folder(ratings: tacit.Ratings, tmp_path: Path) -> None:
    (tmp_path / "x").write_text("")
    with pytest.raises(tacit.CheckpointError, match="cannot be used"):
        tacit.fit(ratings, CONFIG, epsilon=1.0, checkpoint=tmp_path / "x")
