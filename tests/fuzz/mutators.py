"""Damage: bytes of a sound file changed at random, more often where they matter.

A mutant is a function of its seed file and a number, so that a failure can be made again.
"""

import json
import struct
from copy import copy, deepcopy
from typing import Any

import numpy as np

from tests.support.sealing import resealed

Generator = np.random.Generator

_EXTREME = [
    0,
    1,
    2**7 - 1,
    2**7,
    2**8 - 1,
    2**15,
    2**16 - 1,
    2**31 - 1,
    2**31,
    2**32 - 1,
    2**63 - 1,
    2**63,
    2**64 - 1,
]
_WORDS = [
    b"null",
    b"NaN",
    b"1e999",
    b"-1",
    b"[]",
    b"{}",
    b'""',
    b"9" * 30,
    b"\x00",
    b'"',
    b"\n",
    b"\r",
    b"::",
    b",",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
]


def mutated(content: bytes, number: int, hot: tuple[tuple[int, int], ...] = ()) -> bytes:
    """The mutant of this number; places in the `hot` ranges are hit about half of the time."""
    rng = np.random.default_rng(number)
    damaged = bytearray(content)
    for _ in range(int(rng.choice([1, 1, 1, 2, 4, 16]))):
        if damaged:
            _CHANGES[int(rng.integers(len(_CHANGES)))](damaged, _place(rng, damaged, hot), rng)
    return bytes(damaged)


def _place(rng: Generator, content: bytearray, hot: tuple[tuple[int, int], ...]) -> int:
    low, high = 0, len(content)
    if hot and rng.random() < 0.6:
        low, high = hot[int(rng.integers(len(hot)))]
        low = min(low, len(content) - 1)
        high = max(low + 1, min(high, len(content)))
    return int(rng.integers(low, high))


def _flip(content: bytearray, at: int, rng: Generator) -> None:
    content[at] ^= 1 << int(rng.integers(8))


def _set(content: bytearray, at: int, rng: Generator) -> None:
    content[at] = int(rng.integers(256))


def _extreme(content: bytearray, at: int, rng: Generator) -> None:
    value = _EXTREME[int(rng.integers(len(_EXTREME)))]
    width = int(rng.choice([1, 2, 4, 8]))
    content[at : at + width] = struct.pack("<Q", value)[:width]


def _varint(content: bytearray, at: int, rng: Generator) -> None:
    """Put a number as thrift and its kin write it, in place of one to nine bytes."""
    value = _EXTREME[int(rng.integers(len(_EXTREME)))]
    coded = bytearray()
    while value >= 128:
        coded.append(value & 127 | 128)
        value >>= 7
    coded.append(value)
    content[at : at + int(rng.integers(1, 10))] = coded


def _delete(content: bytearray, at: int, rng: Generator) -> None:
    del content[at : at + int(rng.integers(1, 20))]


def _insert(content: bytearray, at: int, rng: Generator) -> None:
    content[at:at] = rng.bytes(int(rng.integers(1, 20)))


def _word(content: bytearray, at: int, rng: Generator) -> None:
    word = _WORDS[int(rng.integers(len(_WORDS)))]
    content[at : at + int(rng.integers(len(word) + 1))] = word


def _copy(content: bytearray, at: int, rng: Generator) -> None:
    """Write bytes of one place to another."""
    source, length = int(rng.integers(len(content))), int(rng.integers(1, 40))
    content[at : at + int(rng.choice([0, length]))] = content[source : source + length]


def _repeat(content: bytearray, at: int, rng: Generator) -> None:
    length = int(rng.integers(1, 40))
    content[at:at] = bytes(content[at : at + length]) * int(rng.integers(1, 50))


def _cut(content: bytearray, at: int, rng: Generator) -> None:
    if rng.random() < 0.3:
        del content[at:]


_CHANGES = (
    _flip,
    _flip,
    _set,
    _set,
    _extreme,
    _extreme,
    _varint,
    _varint,
    _delete,
    _insert,
    _word,
    _copy,
    _repeat,
    _cut,
)


_VALUES = [
    None,
    True,
    False,
    0,
    -1,
    1e308,
    float("nan"),
    float("inf"),
    2**31,
    -(2**63),
    10**40,
    10**400,
    1e-320,
    1e200,
    "",
    "x",
    "\x00",
    "../../x",
    [],
    {},
    [[]],
    {"x": 1},
    [0] * 50,
    "\ud800",
    [None],
    0.5,
    "replace",
    "exact",
]


def mutated_json(content: bytes, number: int) -> bytes:
    """The mutant of this number of a JSON document: still JSON, with some values exchanged."""
    rng = np.random.default_rng(number)
    value = json.loads(content)
    for _ in range(int(rng.choice([1, 1, 2, 5]))):
        value = _exchanged(value, rng)
    return json.dumps(value).encode()


def mutated_header(content: bytes, number: int) -> bytes:
    """The mutant of this number of a safetensors file: its header, or the facts in it, changed.

    Its digest is right where it can be, or nothing behind the digest would be attacked.
    """
    rng = np.random.default_rng(number)
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    if rng.random() < 0.3:
        text = mutated_json(json.dumps(header).encode(), number)
    else:
        facts = header["__metadata__"]["tacit"].encode()
        header["__metadata__"]["tacit"] = mutated_json(facts, number).decode()
        text = json.dumps(header).encode()
    body = bytearray(content[8 + size :])
    if rng.random() < 0.3:
        at = int(rng.integers(len(body) // 8)) * 8
        body[at : at + 8] = struct.pack("<d", float(rng.choice([np.nan, np.inf, 1e308, -1, 0])))
    return resealed(len(text).to_bytes(8, "little") + text + bytes(body))


def _exchanged(value: Any, rng: Generator) -> Any:
    """Exchange one value somewhere in a tree, or take it out, or put it in twice."""
    value = copy(value)
    places = (
        list(value)
        if isinstance(value, dict)
        else list(range(len(value)))
        if isinstance(value, list)
        else []
    )
    if not places or rng.random() < 0.1:
        return deepcopy(_VALUES[int(rng.integers(len(_VALUES)))])
    at = places[int(rng.integers(len(places)))]
    what = rng.random()
    if what < 0.1:
        del value[at]
    elif what < 0.2 and isinstance(value, list):
        value.append(value[at])
    else:
        value[at] = _exchanged(value[at], rng)
    return value
