"""Checkpoints that were damaged, emptied in part, or belong to another fit."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.trusted import mechanism
from tests.conftest import ratings_for
from tests.faults.child import CONFIG
from tests.faults.running import releases
from tests.fuzz.mutators import mutated, mutated_header


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("finished")
    tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder)
    return folder


@pytest.fixture
def folder(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "copy"))


def fit(folder: Path) -> tacit.Model:
    return tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder)


def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("drawn again")

    monkeypatch.setattr(mechanism, "floor_normals", never)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_release_that_is_lost_is_not_drawn_again(number: int, folder: Path) -> None:
    """Later releases were made of it: with another in its place they would be of no fit at all."""
    (folder / f"release-{number:04d}.safetensors").unlink()
    before = releases(folder)
    with pytest.raises(tacit.CheckpointError, match=f"later releases than number {number}"):
        fit(folder)
    assert releases(folder) == before


def test_the_last_release_cannot_be_missed(folder: Path) -> None:
    """Nobody can tell a release that was lost from one that was not made yet; nothing used it."""
    last = sorted(folder.glob("release-*"))[-1]
    last.unlink()
    assert fit(folder).verify().holds
    assert last.exists()


@pytest.mark.parametrize("kept", [0, 7, 8, 100, -1])
def test_a_release_that_is_cut_short(
    kept: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_noise(monkeypatch)
    path = folder / "release-0002.safetensors"
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(tacit.CheckpointError, match="is damaged"):
        fit(folder)


def test_any_damage_is_noticed(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutants of a release: refused, or read as the very values that were written."""
    no_noise(monkeypatch)
    path = folder / "release-0002.safetensors"
    whole, refused = path.read_bytes(), 0
    right = fit(folder).predict({"film-02": 4.0})
    for number in range(150):
        vary = mutated_header if number % 2 else mutated
        path.write_bytes(vary(whole, number))
        try:
            found = fit(folder).predict({"film-02": 4.0})
        except tacit.CheckpointError:
            refused += 1
        else:
            assert np.array_equal(found, right), number
    assert refused > 100


@pytest.mark.parametrize(
    "change",
    [
        lambda header: header["values"].__setitem__("dtype", "I64"),
        lambda header: header["values"].__setitem__("shape", [225]),
        lambda header: header["__metadata__"].__setitem__("tacit", "[" * 100_000),
        lambda header: header["__metadata__"].__setitem__("tacit", "{}"),
        lambda header: header["__metadata__"].__setitem__("tacit", "7"),
    ],
)
def test_a_header_that_says_something_else(change: object, folder: Path) -> None:
    """The same bytes under another type or shape are other values."""
    path = folder / "release-0002.safetensors"
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    change(header)  # type: ignore[operator]
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    with pytest.raises(tacit.CheckpointError, match="is damaged"):
        fit(folder)


@pytest.mark.parametrize("text", ["", "{", "[]", "7", "null", '"x"', "[" * 100_000, "\x00", "\xff"])
def test_a_description_that_is_damaged(text: str, folder: Path) -> None:
    (folder / "fit.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(tacit.CheckpointError):
        fit(folder)


def test_a_description_that_is_lost(folder: Path) -> None:
    (folder / "fit.json").unlink()
    with pytest.raises(tacit.CheckpointError, match="has releases but no"):
        fit(folder)


def test_the_search_for_candidates_has_other_checkpoints(folder: Path) -> None:
    """A fit with other public settings of how it is done is refused too, not only other ratings."""
    with pytest.raises(tacit.CheckpointError, match="differs in preparation"):
        tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder, top_items=10)
    with pytest.raises(tacit.CheckpointError, match="differs in budget"):
        tacit.fit(ratings_for(0), CONFIG, budget=None, checkpoint=folder)
    with pytest.raises(tacit.CheckpointError, match="differs in noise"):
        tacit.fit(ratings_for(0), CONFIG, epsilon=1.0, checkpoint=folder, noise_seed_unsafe=1)
