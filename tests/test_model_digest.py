"""The digest in model files: whatever bit an accident hits, the file is refused."""

import json
from pathlib import Path

import pytest

import tacit
from tests.conftest import ratings_for
from tests.fuzz.mutators import mutated
from tests.support.sealing import resealed, without_digest

OLD = Path(__file__).parent / "files" / "format-1.tacit"
"""Written by tacit before files had digests."""


@pytest.fixture(scope="module")
def small() -> bytes:
    """The file of a model of two items."""
    ratings = tacit.Ratings.from_arrays([1, 1, 2], [7, 8, 7], [1, 2, 3], rating_range=(1, 5))
    return bytes_of(tacit.fit(ratings, tacit.FrankWolfe(rounds=2), epsilon=1.0))


@pytest.fixture(scope="module")
def larger() -> list[bytes]:
    configs = (None, tacit.FrankWolfe(rounds=3), tacit.SVD())
    return [bytes_of(tacit.fit(ratings_for(0), config, epsilon=5.0)) for config in configs]


def bytes_of(model: tacit.Model) -> bytes:
    from tests.fuzz.subjects import saved

    return saved(model)


def flips_unnoticed(content: bytes, bits: range, path: Path) -> list[int]:
    """Flip these bits of a file, one at a time; return those with which it still loads."""
    path.write_bytes(content)
    found = []
    with path.open("r+b", buffering=0) as file:
        for bit in bits:
            at, byte = bit // 8, content[bit // 8]
            file.seek(at)
            file.write(bytes([byte ^ 1 << bit % 8]))
            if loads(path):
                found.append(bit)
            file.seek(at)
            file.write(bytes([byte]))
    return found


def loads(path: Path) -> bool:
    """Whether it is not refused as unsound, or for its digest."""
    try:
        tacit.load(path)
    except tacit.ModelFileError as error:
        return "digest" not in str(error) and "not a valid model file" not in str(error)
    return True


@pytest.mark.parametrize("step", [9, pytest.param(1, marks=pytest.mark.slow)])
def test_every_flipped_bit_is_noticed(step: int, small: bytes, tmp_path: Path) -> None:
    """Of every byte one, in the usual run; all of them in the slow one."""
    bits = range(0, 8 * len(small), step)
    assert flips_unnoticed(small, bits, tmp_path / "x.tacit") == []


def test_without_a_digest_flips_go_unnoticed(small: bytes, tmp_path: Path) -> None:
    """The twin: the same model in format 1 hides hundreds of them; a third is tried."""
    old = without_digest(small)
    assert len(flips_unnoticed(old, range(3, 8 * len(old), 27), tmp_path / "x.tacit")) > 33


def mutants_unnoticed(contents: list[bytes], count: int, path: Path) -> list[int]:
    found = []
    for number in range(count):
        content = contents[number % len(contents)]
        hurt = mutated(content, number)
        path.write_bytes(hurt)
        if hurt != content and loads(path):
            found.append(number)
    return found


@pytest.mark.parametrize("count", [300, pytest.param(10_000, marks=pytest.mark.slow)])
def test_random_damage_is_noticed(count: int, larger: list[bytes], tmp_path: Path) -> None:
    assert mutants_unnoticed(larger, count, tmp_path / "x.tacit") == []


def test_random_damage_to_files_without_digests(larger: list[bytes], tmp_path: Path) -> None:
    """The twin."""
    old = [without_digest(content) for content in larger]
    assert len(mutants_unnoticed(old, 200, tmp_path / "x.tacit")) > 10


def test_damage_is_named(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.tacit"
    path.write_bytes(small[:-1] + bytes([small[-1] ^ 1]))
    with pytest.raises(tacit.ModelFileError, match=r"x\.tacit .* does not match its digest"):
        tacit.load(path)


def test_another_program_finds_the_same_digest(small: bytes, tmp_path: Path) -> None:
    """`resealed` is written from the description, and changes nothing."""
    assert resealed(small) == small
    path = tmp_path / "x.tacit"
    path.write_bytes(small)
    found = tacit.load(path).digest
    assert found is not None
    assert found.encode() in small
    assert len(found) == len("sha256:") + 64


def test_files_from_before_still_load(tmp_path: Path) -> None:
    model = tacit.load(OLD)
    assert model.digest is None
    assert model.verify().holds
    assert model.catalogue.ids.to_list() == ["tea", "milk", "rice"]
    model.save(tmp_path / "new.tacit")
    assert tacit.load(tmp_path / "new.tacit").digest is not None


@pytest.mark.parametrize("stated", [None, "", 7, "sha256:" + "0" * 63, "md5:" + "0" * 64])
def test_the_digest_cannot_be_left_out(stated: object, small: bytes, tmp_path: Path) -> None:
    """Neither in format 2, nor by calling a file with a digest one of format 1."""
    size = int.from_bytes(small[:8], "little")
    header = json.loads(small[8 : 8 + size])
    facts = json.loads(header["__metadata__"]["tacit"])
    for change in ({"digest": stated}, {"digest": stated, "format": "tacit-model/1"}):
        header["__metadata__"]["tacit"] = json.dumps(facts | change)
        text = json.dumps(header).encode()
        path = tmp_path / "x.tacit"
        path.write_bytes(len(text).to_bytes(8, "little") + text + small[8 + size :])
        with pytest.raises(tacit.ModelFileError, match=r"digest|tacit-model/2"):
            tacit.load(path)


def test_texts_that_look_like_a_digest(tmp_path: Path) -> None:
    """Sixty-four zeros in somebody's title change nothing."""
    zeros = "sha256:" + 64 * "0"
    catalogue = tacit.Catalogue(["a", zeros], titles=[zeros, "b"], public=True)
    ratings = tacit.Ratings.from_arrays(
        [1, 2], ["a", zeros], [1, 2], rating_range=(1, 5), catalogue=catalogue
    )
    tacit.fit(ratings, epsilon=1.0).save(tmp_path / "m.tacit")
    assert tacit.load(tmp_path / "m.tacit").catalogue.title(0) == zeros
