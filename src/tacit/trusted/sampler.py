"""The exact Gaussian sampler: floor(2^bits Z) as integers, Z standard normal, from a secure source.

Floating-point Gaussian samplers leak in their low bits (Mironov 2012; Haney et al. 2022).
This one uses no floating point at all. It is a rejection method in the manner of Karney
("Sampling exactly from the normal distribution", 2016): |Z| = (j + x)/16, where the cell j is
drawn with probability proportional to exp(-(j/16)^2/2), x is uniform in (0, 1), and the pair is
accepted with probability exp(-x(2j + x)/512). Every probability is realised by comparing
uniform deviates, whose binary digits are drawn only as far as a comparison needs. Cells below 256
come from a table; all others are one outcome of it, the tail, with a law of its own (normal_tail).

*Guarantee:* adding floor(2^bits Z) to an integer statistic w gives floor(w + 2^bits Z), which
is post-processing of the ideal Gaussian mechanism; so its cost is exactly that of N(0, s^2)
noise with s = 2^bits units, whatever the grid. The probability of every value up to 1024 standard
deviations is right to a factor 1 +- 2^-320: cells are drawn from 512-digit probabilities, and an
error is raised if two deviates agree in 512 digits, or a value lies further out. None of this
depends on any data (Lemma 8 of docs/privacy/proofs.md).

The words come from the operating system's cryptographic generator, straight and for every
release anew: there is no key or state in this process to seed, to fork or to steal.
"""

import os
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext
from functools import cache
from itertools import accumulate
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.errors import ConfigError, EngineError
from tacit.trusted.exact_normal import BROKEN, CELLS, DIGITS, RESERVE, TAIL, fill
from tacit.trusted.normal_tail import REPEATS, floor_tail_normal

Words = NDArray[np.uint64]
Integers = NDArray[np.int64]

MOST_BITS = 52  # values stay within 2^62: 1024 standard deviations of 2^52 units
_BLOCK = 1 << 20  # words fetched at a time
_WORDS_A_VALUE = 4  # a little more than one value uses; only the number of fetches depends on it


class NoiseSource(Protocol):
    """Where random words come from."""

    @property
    def secure(self) -> bool:
        """Whether the words cannot be predicted by anyone."""
        ...

    def words(self, count: int) -> Words:
        """Return fresh, independent, uniform 64-bit words."""
        ...

    def start(self, release: int) -> None:
        """Begin the release of this number."""
        ...


class SystemNoise:
    """Words from the operating system's cryptographic generator."""

    secure = True

    def words(self, count: int) -> Words:
        """Return fresh words that no one can predict or repeat."""
        return np.frombuffer(os.urandom(8 * count), dtype=np.uint64)

    def start(self, release: int) -> None:
        """Do nothing: there is no state."""


class SeededNoiseUnsafe:
    """Repeatable words for experiments: whoever knows the seed removes the noise."""

    secure = False

    def __init__(self, seed: int) -> None:
        """Take the seed; each release gets a stream of its own."""
        self._seed = seed
        self.start(0)

    def words(self, count: int) -> Words:
        """Return the next words of this release's stream."""
        words = self._generator.random_raw(count)
        words.flags.writeable = False  # as those of the system: loops are compiled once for both
        return words

    def start(self, release: int) -> None:
        """Begin the stream that belongs to this release, whatever was drawn before."""
        self._generator = np.random.Philox(np.random.SeedSequence([self._seed, release]))


def floor_normals(source: NoiseSource, size: int, bits: int) -> Integers:
    """Draw `size` independent values floor(2^bits Z), 0 <= bits <= 52, Z exactly normal.

    They are at least -2^62 and below 2^62.
    """
    if not 0 <= bits <= MOST_BITS:
        raise ConfigError(f"bits={bits!r}: expected 0 to {MOST_BITS}, or noise could overflow")
    values = np.empty(size, dtype=np.int64)
    filled = 0
    while filled < size:
        wanted = (size - filled) * _WORDS_A_VALUE + 2 * RESERVE
        words = source.words(min(wanted, _BLOCK))
        filled, state = fill(values, filled, bits, _cell_table(), words)
        if state == BROKEN:
            raise EngineError(REPEATS)
        if state == TAIL:
            filled = _fill_from_tail(values, filled, bits, source)
    return values


def _fill_from_tail(values: Integers, filled: int, bits: int, source: NoiseSource) -> int:
    """Draw a value whose cell is in the tail; if it is rejected, it has to begin anew."""
    value = floor_tail_normal(_one_by_one(source), bits)
    if value is None:
        return filled
    values[filled] = value
    return filled + 1


def _one_by_one(source: NoiseSource) -> Iterator[int]:
    while True:
        yield int(source.words(1)[0])


def idealised_normals(source: NoiseSource, size: int, bits: int) -> Integers:
    """Draw floor(2^bits Z) with Z by floating-point inversion: quick, for experiments only."""
    from scipy.special import ndtri

    uniforms = ((source.words(size) >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53
    return np.floor(np.ldexp(ndtri(uniforms), bits)).astype(np.int64)


@cache
def _cell_table() -> tuple[Words, Integers]:
    """Return the cumulative probabilities of the cells, to 512 bits, and where to start looking.

    Powers lose at most 6 of 200 digits, and 512 bits are 155; exponentials would take longer.
    """
    with localcontext(Context(prec=200)):  # the cells from 2 CELLS on add up to less than 10^-220
        unit = (-Decimal(1) / 512).exp()
        sums = list(accumulate(unit ** (j * j) for j in range(2 * CELLS)))
        steps = [int(Decimal(2) ** (64 * DIGITS) * total / sums[-1]) for total in sums[:CELLS]]
    shifts = [64 * (DIGITS - 1 - place) for place in range(DIGITS)]
    digits = [[(step >> shift) % 2**64 for shift in shifts] for step in steps]
    cumulative = np.array([[*row, DIGITS] for row in digits], dtype=np.uint64)
    guide = np.searchsorted(cumulative[:, 0], np.arange(256, dtype=np.uint64) << np.uint64(56))
    return cumulative, guide.astype(np.int64)
