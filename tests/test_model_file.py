"""Model files: what is written is read back; what is hostile is a ModelFileError."""

import contextlib
import json
import os
import struct
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

import tacit
from tests.support.sealing import resealed


@pytest.fixture
def model(ratings: tacit.Ratings) -> tacit.Model:
    return tacit.fit(ratings, epsilon=5.0)


@pytest.fixture
def path(model: tacit.Model, tmp_path: Path) -> Path:
    model.save(tmp_path / "m.tacit")
    return tmp_path / "m.tacit"


def test_what_is_saved_is_loaded(model: tacit.Model, path: Path) -> None:
    again = tacit.load(path)
    own = {"film-02": 4.0, "film-05": 1.5}
    assert np.array_equal(again.predict(own), model.predict(own))
    assert again.certificate.to_json() == model.certificate.to_json()
    assert again.catalogue == model.catalogue
    assert again.rating_range == model.rating_range
    assert again.verify().holds


@pytest.mark.parametrize(
    "ids", [[3, 1, 2], [2**63 - 1, 0, -5], ["é", "b c", " "], [2**64 - 1, 1, 2]]
)
def test_ids_of_every_kind_survive(ids: list[object], tmp_path: Path) -> None:
    catalogue = tacit.Catalogue(ids, public=True)
    ratings = tacit.Ratings.from_arrays(
        [1, 1, 2], ids, [1.0, 2.0, 3.0], rating_range=(1, 5), catalogue=catalogue
    )
    tacit.fit(ratings, epsilon=1.0).save(tmp_path / "m.tacit")
    assert tacit.load(tmp_path / "m.tacit").catalogue.ids.to_list() == catalogue.ids.to_list()


def test_saving_leaves_no_trace_of_users(ratings: tacit.Ratings, path: Path) -> None:
    content = path.read_bytes()
    assert b"user-" not in content
    assert ratings.values.tobytes()[:64] not in content


def test_truncation_at_every_length(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    cut = tmp_path / "cut.tacit"
    for length in {0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1}:
        cut.write_bytes(content[:length])
        with pytest.raises(tacit.ModelFileError, match=r"cut\.tacit"):
            tacit.load(cut)


def test_random_damage_is_never_a_crash(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    rng = np.random.default_rng(0)
    hurt = tmp_path / "hurt.tacit"
    for _ in range(400):
        damaged = bytearray(content)
        for _ in range(int(rng.integers(1, 6))):
            damaged[int(rng.integers(0, min(len(damaged), 6000)))] = int(rng.integers(256))
        hurt.write_bytes(bytes(damaged))
        with contextlib.suppress(tacit.ModelFileError):
            tacit.load(hurt).predict({})


def rewritten(path: Path, change: "object") -> None:
    """Write the file again with its header's facts changed by a function, as a forger would."""
    content = path.read_bytes()
    size = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["tacit"])
    change(facts)  # type: ignore[operator]
    header["__metadata__"]["tacit"] = facts if isinstance(facts, str) else json.dumps(facts)
    text = json.dumps(header).encode()
    path.write_bytes(resealed(struct.pack("<Q", len(text)) + text + content[8 + size :]))


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("format", "tacit-model/99"),
        ("format", None),
        ("rating_range", [5, 1]),
        ("rating_range", ["a", "b"]),
        ("rating_range", [0, 10**400]),
        ("rule", {"kind": "os.system", "settings": {}}),
        ("rule", {"kind": "replay", "settings": {}}),
        ("rule", {"kind": ["replay"], "settings": {}}),
        ("certificate", {}),
        ("catalogue", None),
    ],
)
def test_hostile_facts(path: Path, name: str, value: object) -> None:
    rewritten(path, lambda facts: facts.__setitem__(name, value))
    with pytest.raises(tacit.ModelFileError):
        tacit.load(path)


def forged(path: Path, **changes: object) -> None:
    def change(facts: dict[str, dict[str, object]]) -> None:
        facts["certificate"] |= changes

    rewritten(path, change)


def test_a_forged_epsilon_does_not_verify(path: Path) -> None:
    forged(path, epsilon=0.1)
    found = tacit.load(path).verify()
    assert not found.holds
    assert found.epsilon_recomputed == pytest.approx(5.0, rel=1e-6)


def test_a_release_left_out_does_not_verify(path: Path) -> None:
    releases = tacit.load(path).certificate.to_json()["releases"]
    forged(path, releases=releases[:-1])
    found = tacit.load(path).verify()
    assert not found.holds
    assert "more parts" in " ".join(found.problems)


def test_a_wrong_cost_or_flag_is_not_even_read(path: Path) -> None:
    releases = tacit.load(path).certificate.to_json()["releases"]
    forged(path, releases=[releases[0] | {"mu": 0.001}, *releases[1:]])
    with pytest.raises(tacit.ModelFileError, match="cost"):
        tacit.load(path)
    forged(path, releases=releases, private=False)
    with pytest.raises(tacit.ModelFileError, match="contradicts"):
        tacit.load(path)


def test_arrays_that_do_not_fit(path: Path, tmp_path: Path) -> None:
    save_file(
        {"rule.offsets": np.zeros(3)}, tmp_path / "x.tacit", metadata={"format": '"tacit-model/1"'}
    )
    with pytest.raises(tacit.ModelFileError):
        tacit.load(tmp_path / "x.tacit")


@pytest.mark.parametrize("kind", ["missing", "folder", "text", "pickle"])
def test_what_is_no_model_at_all(kind: str, tmp_path: Path) -> None:
    target = tmp_path / "x.tacit"
    if kind == "folder":
        target.mkdir()
    elif kind == "text":
        target.write_text("item,rating\n1,2\n")
    elif kind == "pickle":
        target.write_bytes(b"cos\nsystem\n(S'echo hello'\ntR.")
    with pytest.raises(tacit.ModelFileError, match=r"x\.tacit"):
        tacit.load(target)


def test_a_failed_save_keeps_the_old_file(
    model: tacit.Model, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(tacit.ModelFileError, match="No space left"):
        model.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in path.parent.iterdir()] == ["m.tacit"]


def test_saving_where_there_is_no_folder(model: tacit.Model, tmp_path: Path) -> None:
    with pytest.raises(tacit.ModelFileError, match="its folder does not exist"):
        model.save(tmp_path / "nowhere" / "m.tacit")
    with pytest.raises(tacit.ModelFileError, match="cannot be written: File name too long"):
        model.save(tmp_path / ("m" * 300))
