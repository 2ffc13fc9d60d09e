"""Compiled loops of the exact Gaussian sampler: random words in, integers out (see sampler.py).

`words` is a tape of random 64-bit words, tape[0] the next position on it and tape[1] the state:
SOUND, TAIL (the value being drawn is in the tail, which normal_tail.py draws) or BROKEN. A deviate
is an array of its binary digits, 64 to a place, with the number of places drawn so far behind them.
"""

import numpy as np
from numba import njit

SOUND, TAIL, BROKEN = 0, 1, 2
DIGITS = 8  # places that a deviate may have
CELLS = 256  # cells of the table, each a sixteenth of a standard deviation; beyond is the tail
RESERVE = 4096  # words kept back for the value being drawn
_ATTEMPT = 2560  # of them for one attempt at it: its run takes at most 24 words a step
_LONGEST_RUN = 100  # steps, which a run reaches with a probability below 1/100! = 2^-525


@njit(cache=True, nogil=True)
def _next(words, tape):
    word = words[tape[0]]
    tape[0] += 1
    return word


@njit(cache=True, nogil=True)
def _fresh(deviate, words, tape):
    deviate[0] = _next(words, tape)
    deviate[DIGITS] = np.uint64(1)


@njit(cache=True, nogil=True)
def _digit(deviate, place, words, tape):
    if deviate[DIGITS] <= place:
        deviate[place] = _next(words, tape)
        deviate[DIGITS] = np.uint64(place + 1)
    return deviate[place]


@njit(cache=True, nogil=True)
def _less(a, b, words, tape):
    """Compare two deviates, drawing digits until they differ; BROKEN if they never do."""
    if a[0] != b[0]:
        return a[0] < b[0]
    for place in range(1, DIGITS):
        left = _digit(a, place, words, tape)
        right = _digit(b, place, words, tape)
        if left != right:
            return left < right
    tape[1] = BROKEN
    return False


@njit(cache=True, nogil=True)
def _cell(deviate, cumulative, guide, words, tape):
    """Draw j with probability proportional to exp(-(j/16)^2/2); CELLS stands for all beyond.

    Inversion, digit by digit.
    """
    _fresh(deviate, words, tape)
    j = guide[deviate[0] >> np.uint64(56)]
    while j < CELLS and not _less(deviate, cumulative[j], words, tape):
        j += 1
    return j


@njit(cache=True, nogil=True)
def _thinned(choice, j, x, spare, words, tape):
    """Return true with probability (2j + x)/512; `choice` is uniform in 0 ... 511."""
    if choice != 2 * j:
        return choice < 2 * j
    _fresh(spare, words, tape)
    return _less(spare, x, words, tape)


@njit(cache=True, nogil=True)
def _accept(choice, j, x, trio, words, tape):
    """Return true with probability exp(-x(2j + x)/512).

    In the run x > z1 > z2 > ..., each step also thinned by (2j + x)/512, n steps succeed with
    probability lambda^n / n!, lambda = x(2j + x)/512; so the run is even with exp(-lambda).
    """
    last, new, spare = trio[0], trio[1], trio[2]
    length = 0
    while length < _LONGEST_RUN and _thinned(choice, j, x, spare, words, tape):
        _fresh(new, words, tape)
        if not _less(new, x if length == 0 else last, words, tape):
            break
        last, new = new, last
        length += 1
        choice = np.int64(_next(words, tape) >> np.uint64(55))
    return length % 2 == 0


@njit(cache=True, nogil=True)
def _signed(word, j, x, bits):
    if bits > 4:
        size = (np.int64(j) << (bits - 4)) + np.int64(x[0] >> np.uint64(68 - bits))
    else:
        size = np.int64(j) >> (4 - bits)
    return -size - 1 if word & np.uint64(1) else size


@njit(cache=True, nogil=True)
def _draw(bits, cumulative, guide, x, trio, words, tape):
    """Draw floor(2^bits Z): the sign is the lowest bit of the word whose top bits thin the run."""
    while words.size - tape[0] >= _ATTEMPT:
        j = _cell(trio[0], cumulative, guide, words, tape)
        if j == CELLS:
            tape[1] = max(tape[1], TAIL)
            return np.int64(0)
        _fresh(x, words, tape)
        word = _next(words, tape)
        if _accept(np.int64(word >> np.uint64(55)), j, x, trio, words, tape):
            return _signed(word, j, x, bits)
    tape[1] = BROKEN
    return np.int64(0)


@njit(cache=True, nogil=True)
def fill(values, filled, bits, table, words):
    """Fill `values` while the tape is long enough; return how far, and the state."""
    cumulative, guide = table
    tape = np.zeros(2, dtype=np.int64)
    x = np.zeros(DIGITS + 1, dtype=np.uint64)
    trio = np.zeros((3, DIGITS + 1), dtype=np.uint64)
    while filled < values.size and words.size - tape[0] >= RESERVE:
        value = _draw(bits, cumulative, guide, x, trio, words, tape)
        if tape[1] != SOUND:
            break
        values[filled] = value
        filled += 1
    return filled, tape[1]
