r"""Which spikes stand out of a noisy symmetric matrix, and how well their vectors are found.

The matrix is $x_1 x_1^T + x_2 x_2^T + \dots + H$, the entries of $H$ independent with mean 0 and
variances $s_{jk}$, those of $x_k$ independent with variances $l_k y_j$. For $z$ above the edge of
the noise, the resolvent $(z - H)^{-1}$ is nearly diagonal, with the solution of

$$ M_j(z) = \frac{1}{z - \sum_k s_{jk} M_k(z)}. $$

The edge is the smallest $z$ for which there is one. A spike $x$ gives an eigenvalue $z$ beyond the
edge if $\sum_j x_j^2 M_j(z) = 1$ there; else it is lost in the noise. Its eigenvector is
$v = c\, (z - H)^{-1} x$: entry $j$ is $c\, M_j x_j$ plus noise, $E v_j^2 = c^2 T_j$ with
$T_j = M_j^2 (x_j^2 + \sum_k s_{jk} T_k)$, and $c$ makes its norm 1.

If all $s_{jk} = s^2$, this is the spiked Wigner matrix: edge $2 s \sqrt n$, a spike of size
$\theta = |x|^2$ is seen if $\theta > s \sqrt n$, at $z = \theta + n s^2/\theta$, with squared
overlap $1 - n s^2/\theta^2$ (Baik, Ben Arous, Péché; Benaych-Georges, Nadakuditi).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_STEPS = 160  # of the iteration for M; near the edge it is off by about (pi/160)^2
_CONVERGED = 1e-10  # relative change of M in a step
_REFINED = 4  # times that the edge is bracketed
_GRID = 12  # points at which it is tried each time
_FARTHEST = 1e5  # times the edge: eigenvalues that are tabulated
_TABLE = 48  # of them


class Spike(NamedTuple):
    """An eigenvalue beyond the noise, and the entries of its vector for each group.

    Attributes:
        value: the eigenvalue, z.
        signal: c M_j, so that an entry is signal times x_j, plus noise.
        energy: the mean square of an entry.
    """

    value: float
    signal: Floats
    energy: Floats


class Noise:
    """Noise whose variance depends on the group of the row and of the column."""

    def __init__(self, variances: Floats, sizes: Floats) -> None:
        """Find the edge, and M beyond it."""
        self._flow = variances * sizes
        self._sizes = sizes
        self.edge = _edge(self._flow)
        reach = np.geomspace(1e-3, _FARTHEST, _TABLE)
        self._values = self.edge * (1 + reach)
        self._resolvent = _resolvent(self._flow, self._values)

    def spike(self, profile: Floats, size: float) -> Spike | None:
        """Return what becomes of a spike with x_j^2 = size profile_j on average, if it is seen."""
        strength = size * (self._resolvent @ (self._sizes * profile))
        if strength[0] <= 1:
            return None
        value = float(np.exp(np.interp(0.0, -np.log(strength), np.log(self._values))))
        if strength[-1] > 1:  # so far out that M is 1/z
            value = size * float(self._sizes @ profile)
        resolvent = self._at(value)
        square = resolvent**2
        system = np.eye(square.size) - square[:, None] * self._flow
        energy = np.asarray(np.linalg.solve(system, square * size * profile), dtype=np.float64)
        norm = float(self._sizes @ energy)
        return Spike(value, resolvent / np.sqrt(norm), energy / norm)

    def size_at(self, profile: Floats, value: float) -> float:
        """Return the size of a spike of this profile whose eigenvalue is `value`."""
        return 1.0 / float(self._at(value) @ (self._sizes * profile))

    def _at(self, value: float) -> Floats:
        """Return M(z), between those that are tabulated; beyond them it is 1/z."""
        if value > self._values[-1]:
            return np.full(self._sizes.size, 1.0 / value)
        places = np.log(self._values)
        at = min(max(math.log(value), float(places[0])), float(places[-1]))
        upper = min(int(np.searchsorted(places, at, side="right")), places.size - 1)
        part = (at - places[upper - 1]) / (places[upper] - places[upper - 1])
        log = (1 - part) * np.log(self._resolvent[upper - 1])
        return np.asarray(np.exp(log + part * np.log(self._resolvent[upper])))


def _edge(flow: Floats) -> float:
    """Return the smallest z for which M(z) exists."""
    high = 2.0 * float(np.sqrt(flow.sum(axis=1).max()))
    low = 0.2 * high
    for _ in range(_REFINED):
        tried = np.linspace(low, high * (1 + 1e-9), _GRID)
        exists = np.isfinite(_resolvent(flow, tried)[:, 0])
        first = int(np.argmax(exists))
        low, high = float(tried[max(first - 1, 0)]), float(tried[first])
    return high


def _resolvent(flow: Floats, values: Floats) -> Floats:
    """Return M(z) for each z, a row each; NaN where there is none."""
    found = np.zeros((values.size, len(flow)))
    moving = np.arange(values.size)  # those that have not converged yet
    for _ in range(_STEPS):
        under = values[moving, None] - found[moving] @ flow.T
        exists = np.all(under > 0, axis=1, keepdims=True)
        new = np.where(exists, 1.0 / np.abs(under), np.nan)
        change = np.max(np.abs(new - found[moving]) / new, axis=1)
        found[moving] = new
        moving = moving[change > _CONVERGED]
        if not moving.size:
            break
    return found
