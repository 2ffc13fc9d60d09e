"""A loop that reads ratings listed by film or by user: a line that names it, then its ratings."""

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

_NEWLINE, _RETURN = 10, 13
_MOST_DIGITS = 9


class Signs(NamedTuple):
    """The bytes that matter: after a group's number, between fields, and between lines."""

    group: int
    field: int


class Taken(NamedTuple):
    """Where ratings go, one place each: the group, the first field, the second field."""

    groups: npt.NDArray[np.int32]
    others: npt.NDArray[np.int32]
    values: npt.NDArray[np.uint8]


@nb.njit(cache=True, nogil=True)
def _parse_number(text: npt.NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The number at a place and the place after it; -1 where there is none, or a long one."""
    number, start = 0, at
    while at < len(text) and 48 <= text[at] <= 57:
        if at - start < _MOST_DIGITS:
            number = 10 * number + (text[at] - 48)
        at += 1
    return (number if 0 < at - start <= _MOST_DIGITS else -1), at


@nb.njit(cache=True, nogil=True)
def _ends(text: npt.NDArray[np.uint8], at: int) -> bool:
    """Whether a line ends at a place."""
    return at == len(text) or text[at] == _NEWLINE or text[at] == _RETURN


@nb.njit(cache=True, nogil=True)
def parse_lines(
    text: npt.NDArray[np.uint8], signs: Signs, group: int, taken: Taken
) -> tuple[int, int, int]:
    """Read whole lines: `7:` or `7|3` opens group 7; `12,4,...` is value 4 of 12 in the group.

    Args:
        text: whole lines.
        signs: what stands after a group's number and between fields.
        group: the group that is open at the start; -1 is none.
        taken: room for as many ratings as there are lines.

    Returns:
        How many ratings were taken, how many lines make no sense, and the group open at the end.
    """
    count, wrong, at = 0, 0, 0
    while at < len(text):
        first, at = _parse_number(text, at)
        value = -1
        if first >= 0 and at < len(text) and text[at] == signs.group:
            group = first
            if not _ends(text, at + 1):
                first, at = _parse_number(text, at + 1)
                wrong += first < 0 or not _ends(text, at)
        elif first >= 0 and group >= 0 and at < len(text) and text[at] == signs.field:
            value, at = _parse_number(text, at + 1)
            if 0 <= value <= 255 and (_ends(text, at) or text[at] == signs.field):
                taken.groups[count] = group
                taken.others[count] = first
                taken.values[count] = value
                count += 1
            else:
                wrong += 1
        elif first >= 0 or not _ends(text, at):
            wrong += 1
        while at < len(text) and text[at] != _NEWLINE:
            at += 1
        at += 1
    return count, wrong, group
