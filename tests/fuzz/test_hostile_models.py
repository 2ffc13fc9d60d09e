"""Model files made to hurt: sizes that lie, arrays that are no numbers, files that are no files."""

import json
import os
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save

import tacit
from tacit.models import file as file_module
from tests.conftest import ratings_for
from tests.support.sealing import resealed

Header = dict[str, Any]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("m") / "m.tacit"
    tacit.fit(ratings_for(0), tacit.FrankWolfe(rounds=3, item_means=0.2), epsilon=5.0).save(path)
    return path.read_bytes()


def parts(content: bytes) -> tuple[Header, bytes]:
    size = int.from_bytes(content[:8], "little")
    return json.loads(content[8 : 8 + size]), content[8 + size :]


def joined(header: Header | bytes, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return resealed(struct.pack("<Q", len(text)) + text + body)


def refused(path: Path, content: bytes) -> str:
    """It is a ModelFileError, and takes no more memory than a few times the file."""
    path.write_bytes(content)
    tracemalloc.start()
    try:
        with pytest.raises(tacit.ModelFileError) as caught:
            tacit.load(path)
        assert tracemalloc.get_traced_memory()[1] < 40 * len(content) + 10_000_000
    finally:
        tracemalloc.stop()
    assert "does not match its digest" not in str(caught.value), "nothing behind it was attacked"
    return str(caught.value)


CHANGES: dict[str, Callable[[Header], object]] = {
    "huge shape": lambda h: h["rule.offsets"].update(shape=[2**60]),
    "shape that overflows": lambda h: h["rule.offsets"].update(shape=[2**32, 2**32, 15]),
    "negative shape": lambda h: h["rule.offsets"].update(shape=[-15]),
    "negative offset": lambda h: h["rule.offsets"].update(data_offsets=[-8, 112]),
    "offsets the wrong way round": lambda h: h["rule.offsets"].update(data_offsets=[120, 0]),
    "offsets outside": lambda h: h["rule.offsets"].update(data_offsets=[0, 2**62]),
    "two arrays in one place": lambda h: h.update({"rule.twin": h["rule.offsets"]}),
    "a hole": lambda h: h.pop("rule.offsets"),
    "no such type": lambda h: h["rule.offsets"].update(dtype="OBJ"),
    "another type": lambda h: h["rule.offsets"].update(dtype="I64"),
    "complex numbers": lambda h: h["rule.offsets"].update(dtype="C64"),
    "no metadata": lambda h: h.pop("__metadata__"),
    "metadata of numbers": lambda h: h.update(__metadata__={"tacit": 7}),
    "facts that are no object": lambda h: h.update(__metadata__={"tacit": "[]"}),
    "facts nested deeply": lambda h: h.update(__metadata__={"tacit": "[" * 10**6}),
}


@pytest.mark.parametrize("name", CHANGES)
def test_headers_that_lie(name: str, whole: bytes, tmp_path: Path) -> None:
    header, body = parts(whole)
    CHANGES[name](header)
    refused(tmp_path / "x.tacit", joined(header, body))


def test_an_array_given_twice(whole: bytes, tmp_path: Path) -> None:
    header, body = parts(whole)
    text = json.dumps(header)
    twice = text[:-1] + ', "rule.offsets": ' + json.dumps(header["rule.offsets"]) + "}"
    path = tmp_path / "x.tacit"
    path.write_bytes(joined(twice.encode(), body))
    try:
        model = tacit.load(path)
    except tacit.ModelFileError:
        return
    path.write_bytes(whole)  # a reader that takes one of two equal entries is right too
    assert np.array_equal(model.predict({}), tacit.load(path).predict({}))


@pytest.mark.parametrize("size", [0, 1, 2**24 + 1, 2**31, 2**63, 2**64 - 1])
def test_header_lengths_that_lie(size: int, whole: bytes, tmp_path: Path) -> None:
    refused(tmp_path / "x.tacit", struct.pack("<Q", size) + whole[8:])


def test_a_header_of_lists_without_end(whole: bytes, tmp_path: Path) -> None:
    """JSON of 30 MB would be gigabytes of lists: it is refused by its length."""
    header, body = parts(whole)
    header["__metadata__"]["tacit"] = "[" + "[]," * 10_000_000 + "[]]"
    message = refused(tmp_path / "x.tacit", joined(header, body))
    assert "does not begin as a model does" in message


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_that_are_no_numbers(value: float, whole: bytes, tmp_path: Path) -> None:
    header, body = parts(whole)
    for name, about in header.items():
        if name.startswith("rule."):
            start, _ = about["data_offsets"]
            changed = body[:start] + struct.pack("<d", value) + body[start + 8 :]
            refused(tmp_path / "x.tacit", joined(header, changed))


def test_a_file_larger_than_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file with holes costs nothing to make; it is refused before it is read."""
    path = tmp_path / "x.tacit"
    with path.open("wb") as file:
        file.truncate(9 * 2**30)
    with pytest.raises(tacit.ModelFileError, match="larger than any model"):
        tacit.load(path)
    monkeypatch.setattr(file_module, "physical_memory", lambda: 2.0**20)
    path.write_bytes(save({"rule.offsets": np.zeros(2**17)}))
    with pytest.raises(tacit.ModelFileError, match="than this machine can hold"):
        tacit.load(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
@pytest.mark.timeout(30)
def test_pipes_and_devices_are_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(tacit.ModelFileError, match="a pipe or a device"):
            tacit.load(path)
        with pytest.raises(tacit.DataError):
            tacit.Ratings.from_file(path, rating_range=(1, 5))
        with pytest.raises(tacit.DataError, match="a pipe or a device"):
            tacit.Catalogue.from_file(path)


@pytest.mark.parametrize("kind", ["../../etc/passwd", "/etc/passwd", "os.system", "__class__", ""])
def test_names_are_never_paths_or_code(kind: str, whole: bytes, tmp_path: Path) -> None:
    """Neither the kind of a rule nor the name of an array is looked up anywhere but in a table."""
    header, body = parts(whole)
    facts = json.loads(header["__metadata__"]["tacit"])
    facts["rule"]["kind"] = kind
    header["__metadata__"]["tacit"] = json.dumps(facts)
    refused(tmp_path / "x.tacit", joined(header, body))
    header, body = parts(whole)
    header[f"rule.{kind}"] = header.pop("rule.offsets")
    refused(tmp_path / "x.tacit", joined(header, body))
    assert [path.name for path in tmp_path.iterdir()] == ["x.tacit"]
