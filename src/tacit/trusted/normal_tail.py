"""The tail of the exact Gaussian, |Z| >= 16, in plain Python integers.

sampler.py comes here once in 2^188 values, so nothing here has to be quick. It must be exact all
the same: at a large epsilon, neighbours are many standard deviations apart, and what one of them
cannot reach would give the other away.

With |Z| = (j + x)/16, the cell is j = 256 + i, i >= 0, with probability proportional to

    exp(-j^2/512) = exp(-128) exp(-i) exp(-i^2/512),

x is uniform in (0, 1), and the pair is accepted with probability exp(-x(2j + x)/512).
"""

from collections.abc import Iterator

from tacit.errors import EngineError
from tacit.trusted.exact_normal import CELLS, DIGITS

FURTHEST = 1 << 14  # cells: 1024 standard deviations, so that 52-bit noise stays within 2^62
REPEATS = "the random generator of this machine repeats itself; not usable"
_TOO_FAR = (
    "a noise value beyond 1024 standard deviations was proposed, which has a probability below "
    "10^-7000: the random generator of this machine is not usable; nothing was released"
)


class Deviate:
    """A uniform number in (0, 1); its binary digits, 64 to a place, are drawn when needed."""

    def __init__(self, words: Iterator[int]) -> None:
        """Draw the first place."""
        self._words = words
        self._places = [next(words)]

    def place(self, number: int) -> int:
        """Return the digits of this place."""
        while len(self._places) <= number:
            self._places.append(next(self._words))
        return self._places[number]

    def __lt__(self, other: "Deviate") -> bool:
        """Compare, drawing digits until they differ."""
        for number in range(DIGITS):
            left, right = self.place(number), other.place(number)
            if left != right:
                return left < right
        raise EngineError(REPEATS)


def _thinned(words: Iterator[int], whole: int, part: Deviate | None, size: int) -> bool:
    """Return true with probability (whole + part)/size, size a power of two."""
    choice = next(words) * size >> 64
    if choice != whole:
        return choice < whole
    return part is not None and Deviate(words) < part


def exp_minus(words: Iterator[int], whole: int, size: int, part: Deviate | None = None) -> bool:
    """Return true with probability exp(-h), h = whole/size, or exp(-hx), h = (whole + x)/size.

    x is `part`. In the run 1 or x > z1 > z2 > ..., each step also thinned by h <= 1, at least n
    steps succeed with probability h^n/n!, or (hx)^n/n!; so their number is even with exp(-h), or
    exp(-hx).
    """
    last, length = part, 0
    while _thinned(words, whole, part, size):
        new = Deviate(words)
        if last is not None and not new < last:
            break
        last = new
        length += 1
    return length % 2 == 0


def tail_cell(words: Iterator[int]) -> int:
    """Draw j >= 256 with probability proportional to exp(-j^2/512)."""
    while True:
        i = 0
        while exp_minus(words, 1, 1):
            i += 1
            if CELLS + i >= FURTHEST:
                raise EngineError(_TOO_FAR)
        ones, rest = divmod(i * i, 512)
        if all(exp_minus(words, 1, 1) for _ in range(ones)) and exp_minus(words, rest, 512):
            return CELLS + i


def accept(words: Iterator[int], j: int, x: Deviate) -> bool:
    """Return true with probability exp(-x(2j + x)/512), for any j.

    It is a product of as many equal factors, a power of two, as make each thinning at most one.
    """
    factors = 1 << (2 * j // 512).bit_length()
    return all(exp_minus(words, 2 * j, 512 * factors, x) for _ in range(factors))


def floor_tail_normal(words: Iterator[int], bits: int) -> int | None:
    """Draw floor(2^bits Z) for a cell in the tail; None if it is rejected."""
    j, x = tail_cell(words), Deviate(words)
    if not accept(words, j, x):
        return None
    size = ((j << 64) + x.place(0)) >> (68 - bits)
    return -size - 1 if next(words) & 1 else size
