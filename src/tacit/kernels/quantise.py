r"""The quantiser: a real vector becomes integers of bounded norm. The only loop that does so.

*Formal guarantee.* For every vector $v$, factor $c$ and $0 \le M \le 2^{52}$, `quantise` ends, and
writes integers $k$ with $\sum_p k_p^2 \le M$: in exact arithmetic, whatever $v$ and $c$ are, and
whatever floating point did before. No error is raised, since an error would tell of someone's row.

*Proof of the bound.* It returns zeros, or the $k$ whose computed $s = \sum_p k_p^2$ is at most $M$.
Here $k_p$ are whole numbers in doubles, and partial sums of squares never fall. As long as they are
at most $2^{53}$ they are exact. The first that is not exact is at least $2^{53} > M$, and later
ones are no smaller, so $s \le M$ says that all of them were exact. An $s$ that is not finite fails
the comparison. If $s \le 2^{52}$, every $|k_p| \le 2^{26}$, so that an int64 holds it.

*Proof that it ends.* Try number $t$ multiplies the factor by $\sqrt{M/s}\,(1 - t\,10^{-9}) < 1$, so
after $T$ tries it is below $c\,e^{-T^2 10^{-9}/2}$. Rounding lengthens by at most $\sqrt{n}/2$ for
$n$ entries: tries end when the factor times $\|v\|$ is below $\sqrt{M} - \sqrt{n}/2$, or every
entry is below $1/2$, whichever comes first. With $n \le 2^{23}$ and $M = 2^{52}$ that is a
reduction by $2^{-15}$, 250 tries; one or two are usual.

| case | integers |
|---|---|
| no entries, or all zero | none, or zeros |
| norm exactly $\sqrt{M}/c$, or an ulp above it | rounded; shortened if rounding made it longer |
| one entry | at most $\lfloor\sqrt{M}\rfloor$ in size |
| tiny: all entries below $1/(2c)$ | zeros |
| huge: above $\sqrt{M}/c$, and $s$ is finite | shortened to $\sqrt{M}$ |
| $s$ above $2^{53}$, no longer exact | shortened: it is above $M$ all the same |
| $s$ overflows | zeros |
| an entry that is NaN or infinite | zeros |
| $c$ zero, NaN or infinite | zeros |
| $M = 0$ | zeros |
"""

from typing import NamedTuple

import numpy as np
from numba import njit

from tacit.kernels.lanes import put_rounded

MOST_EXACT = 2**52
"""The largest M that the guarantee covers."""


class Quanta(NamedTuple):
    """How a vector becomes integers: it is clipped to norm `bound` and divided by `quantum`.

    `most_squared` is the largest squared norm of the integers, M above.
    """

    bound: float
    quantum: float
    most_squared: int


@njit(cache=True, nogil=True)
def quantise(vector, factor, most_squared, integers):
    """Write vector * factor as integers of squared norm <= most_squared (guarantee above)."""
    tries = 0
    while True:
        squared = put_rounded(vector, factor, integers)
        if squared <= most_squared:
            return
        if not squared < np.inf:
            integers[: vector.size] = 0
            return
        tries += 1  # rounding lengthened it: shorten it by that much, and by more each time
        factor *= np.sqrt(most_squared / squared) * (1.0 - tries * 1e-9)


@njit(cache=True, nogil=True)
def clip_factor(norm, bound):
    """Return what a vector of this norm is multiplied by to be at most `bound` long, up to 1.

    It is 0 for a norm that is infinite or not a number.
    """
    if norm <= bound:
        return 1.0
    return bound / norm if norm < np.inf else 0.0


@njit(cache=True, nogil=True)
def norm_of(vector):
    """Return the L2 norm, summed from the first entry to the last."""
    total = 0.0
    for p in range(vector.size):
        total += vector[p] * vector[p]
    return np.sqrt(total)
