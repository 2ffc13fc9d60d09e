"""Loops over the bytes of a text table: whether ids are written in the plainest way.

Readers of numbers take `007`, `+7` and `-0` for what they are worth. As ids these are texts of
their own, so such a reader may be used only where there are none of them.
"""

from itertools import pairwise

import numpy as np
from numba import njit
from numpy.typing import NDArray

from tacit._parallel import parallel_map
from tacit._resources import usable_cores

_NEWLINE, _RETURN, _BLANK, _QUOTE, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _ASCII = (
    np.uint8(code) for code in (10, 13, 32, 34, 43, 45, 46, 48, 57, 127)
)
_BLOCK = 1 << 15


def no_odd_starts(text: NDArray[np.uint8], separator: int) -> bool:
    """Whether no field begins with what a reader of integers drops, and there are no quotes.

    It drops +, the sign of -0, zeros before another digit, and some of the signs that are blank or
    beyond ASCII. `written_plainly` says more, field by field, but this is much quicker.
    """
    spans = _spans(text.size)
    framed = np.concatenate([[_NEWLINE], text[:2], [_NEWLINE]])  # no byte is before the first field
    begins = _odd_starts(framed, np.uint8(separator), 0, 2)
    work = parallel_map(lambda span: _odd_starts(text, np.uint8(separator), *span), spans)
    return not begins and not any(work)


def written_plainly(
    text: NDArray[np.uint8], wanted: NDArray[np.bool_], separator: int, digits: int
) -> bool:
    """Whether the wanted fields of all lines are `-?(0|[1-9][0-9]*)(.0*)?` or empty.

    They have at most `digits` digits before the point. A quote anywhere is not plain: then a
    separator need not separate.
    """
    task = (wanted, np.uint8(separator), digits)
    return all(parallel_map(lambda span: _plain(text, task, *span), _spans(text.size)))


def _spans(size: int) -> list[tuple[int, int]]:
    """Ranges that cover so many bytes, one per core."""
    edges = np.linspace(0, size, usable_cores() + 1).astype(np.int64).tolist()
    return list(pairwise(edges))


@njit(cache=True, nogil=True)
def _mark_odd(text, separator, odd):
    """Mark what is odd at the second of three bytes; no branches, so that it is vector code."""
    for k in range(text.size - 2):
        before, first, second = text[k], text[k + 1], text[k + 2]
        start = (before == separator) | (before == _NEWLINE)
        blank = (first <= _BLANK) & (first != separator)
        blank &= (first != _NEWLINE) & (first != _RETURN)
        zero = (first == _ZERO) & (second >= _ZERO) & (second <= _NINE)
        zero |= (first == _MINUS) & (second == _ZERO)
        start &= blank | zero | (first == _PLUS) | (first > _ASCII)
        odd[k] = start | (before == _QUOTE) | (first == _QUOTE) | (second == _QUOTE)


@njit(cache=True, nogil=True)
def _odd_starts(text, separator, start, stop):
    """Whether anything is odd about a field that begins after start <= byte < stop."""
    odd = np.zeros(_BLOCK, dtype=np.bool_)
    for at in range(start, stop, _BLOCK):
        _mark_odd(text[at : min(at + _BLOCK, stop) + 2], separator, odd)
        if odd.any():
            return True
    return False


@njit(cache=True, nogil=True)
def _plain(text, task, start, stop):
    """Do it for the lines that begin at start <= byte < stop; the last may go on beyond."""
    wanted, separator, digits = task
    at = start
    while 0 < at < stop and text[at - 1] != _NEWLINE:
        at += 1
    column = 0
    while at < text.size and (column > 0 or at < stop):
        if column < wanted.size and wanted[column]:
            at = _after_integer(text, at, digits)
            if not _at_end(text, at, separator):
                return False
        while at < text.size and text[at] != separator and text[at] != _NEWLINE:
            if text[at] == _QUOTE:
                return False
            at += 1
        column = column + 1 if at < text.size and text[at] == separator else 0
        at += 1
    return True


@njit(cache=True, nogil=True)
def _after_integer(text, at, digits):
    """Return where a whole number ends that begins here; where it begins, if there is none."""
    size = text.size
    first = at + 1 if at < size and text[at] == _MINUS else at
    stop = first
    while stop < size and stop - first < digits and _ZERO <= text[stop] <= _NINE:
        stop += 1
    if stop == first or (text[first] == _ZERO and (stop > first + 1 or first > at)):
        return at
    if stop < size and text[stop] == _POINT:
        stop += 1
        while stop < size and text[stop] == _ZERO:
            stop += 1
    return stop


@njit(cache=True, nogil=True)
def _at_end(text, at, separator):
    """Whether a field ends here."""
    if at < text.size and text[at] == _RETURN:
        at += 1
        return at == text.size or text[at] == _NEWLINE
    return at >= text.size or text[at] == separator or text[at] == _NEWLINE
