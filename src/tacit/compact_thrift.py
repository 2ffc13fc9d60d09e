"""Thrift's compact protocol, in which Parquet writes its footer and its page headers.

Only what a guard needs: a structure becomes a dict from field number to value. It is strict where
a lenient reader could see other numbers than the next one: a field given twice, and a number too
large for its type, are refused.

A large file has thousands of page headers, so the loop over fields has numbers and texts in line.
"""

from typing import Any

__all__ = ["Fields", "Unsound", "read_structure"]

Fields = dict[int, Any]
"""By field number: whole numbers, truth values, bytes, lists, structures; None for the rest."""

_DEEPEST = 24
_BYTE, _SHORT, _INTEGER, _LONG, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCTURE = range(3, 13)
_PLAIN = {_BYTE: 1, _DOUBLE: 8}
_BITS = {_SHORT: 16, _INTEGER: 32, _LONG: 64}


class Unsound(ValueError):  # noqa: N818 - it reads as a sentence
    """The bytes are not what they claim to be."""


def read_structure(content: bytes, start: int = 0) -> tuple[Fields, int]:
    """Read the structure that begins at a place; return its fields and the place after it."""
    try:
        fields, end = _structure(content, start, 0)
    except IndexError:
        end = len(content) + 1
    if end > len(content):
        raise Unsound("it is cut short")
    return fields, end


def _structure(content: bytes, at: int, depth: int) -> tuple[Fields, int]:
    fields: Fields = {}
    number = 0
    while head := content[at]:
        at += 1
        if head > 15:
            number += head >> 4
        else:
            number, at = _whole(content, at, _SHORT)
        if number in fields:
            raise Unsound("a field is given twice")
        kind = head & 15
        if kind == _INTEGER or kind == _LONG:  # noqa: PLR1714, SIM109 - this is the hot place
            value = content[at]
            at += 1
            if value > 127:
                value, at = _natural(content, at - 1)
                if value >> _BITS[kind]:
                    raise Unsound("a number is too large for its type")
            fields[number] = (value >> 1) ^ -(value & 1)
        elif kind <= 2:  # the type of a truth value is its value
            fields[number] = kind == 1
        else:
            fields[number], at = _value(content, at, kind, depth)
    return fields, at + 1


def _value(content: bytes, at: int, kind: int, depth: int) -> tuple[Any, int]:
    if kind == _BINARY:
        length, at = _natural(content, at)
        return content[at : at + length], at + length
    if kind in _BITS:
        return _whole(content, at, kind)
    if depth > _DEEPEST:
        raise Unsound("it is nested too deeply")
    if kind == _STRUCTURE:
        return _structure(content, at, depth + 1)
    if kind in (_LIST, _SET):
        return _list(content, at, depth)
    if kind == _MAP:
        return _map(content, at, depth)
    if kind in _PLAIN:
        return None, at + _PLAIN[kind]
    raise Unsound("a type that does not exist")


def _natural(content: bytes, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first."""
    byte = content[at]
    value, shift = byte & 127, 7
    while byte >= 128:
        at += 1
        byte = content[at]
        value |= (byte & 127) << shift
        shift += 7
        if shift > 70:
            raise Unsound("a number is too long")
    return value, at + 1


def _whole(content: bytes, at: int, kind: int) -> tuple[int, int]:
    """A number with its sign in the lowest bit."""
    value, at = _natural(content, at)
    if value >> _BITS[kind]:
        raise Unsound("a number is too large for its type")
    return (value >> 1) ^ -(value & 1), at


def _list(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    length, kind = content[at] >> 4, content[at] & 15
    at += 1
    if length == 15:
        length, at = _natural(content, at)
    return _elements(content, at, (kind,), length, depth)


def _map(content: bytes, at: int, depth: int) -> tuple[list[Any], int]:
    """Keys and values by turns."""
    length, at = _natural(content, at)
    if not length:
        return [], at
    kinds = content[at] >> 4, content[at] & 15
    return _elements(content, at + 1, kinds, 2 * length, depth)


def _elements(
    content: bytes, at: int, kinds: tuple[int, ...], length: int, depth: int
) -> tuple[list[Any], int]:
    """Values of one kind, or of two by turns; in a list a truth value takes a byte."""
    if length > 2 * (len(content) - at):  # each takes a byte at least
        raise Unsound("it is cut short")
    values = []
    for k in range(length):
        kind = kinds[k % len(kinds)]
        if at >= len(content):
            raise Unsound("it is cut short")
        value, at = _value(content, at, _BYTE if kind in (1, 2) else kind, depth + 1)
        values.append(value)
    return values, at
