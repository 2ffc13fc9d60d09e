"""What statistics of the users' posterior means in the latent factor model have in common."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import PrivacyError
from tacit.kernels.latent import LatentArrays
from tacit.trusted.described import Described
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LatentModel(Described):
    r"""The published numbers that a user's posterior follows from, given her own row.

    With $x_i = e_i/\sqrt{d_i}$, $e_i$ her 0/1 row and $d_i$ its sum, and $C$ = `choice`,
    $P$ = `prior`, $F$ = `factors`, $D$ = diag(`noise`):

    $$c_i = C^T x_i, \quad u_i \sim N(P^T c_i, I), \quad y_{ij} \sim N(m_j + F_j u_i, D_j).$$

    $m$ are the offsets of the row bounds. `hat u_i` and $S_i$ below are the mean and the
    covariance of $u_i$ given her ratings.
    """

    factors: Floats
    noise: Floats
    choice: Floats
    prior: Floats

    def arrays(self) -> LatentArrays:
        """Return what the loops take, or refuse shapes that would make them read elsewhere."""
        fits = self.factors.ndim == self.choice.ndim == 2 and self.choice.shape[1] > 0
        fits = fits and self.noise.shape == self.factors.shape[:1] == self.choice.shape[:1]
        fits = fits and self.prior.shape == (self.choice.shape[1], self.factors.shape[1])
        if not (fits and np.all(self.noise > 0)):
            raise PrivacyError("the arrays of a latent model do not fit; nothing was summed")
        parts = (self.factors, 1.0 / np.sqrt(self.noise), self.choice, self.prior)
        return LatentArrays(*(np.ascontiguousarray(part, dtype=np.float64) for part in parts))


class PosteriorStatistic(Statistic):
    """A statistic of users' posteriors: of one's own row, and of what is published."""

    bounds: RowBounds
    model: LatentModel

    def arrays(self) -> LatentArrays:
        """Return the published numbers for the loops; they must be of these items."""
        if self.model.factors.shape[0] != self.bounds.offsets.size:
            raise PrivacyError("the latent model is of other items; nothing was summed")
        return self.model.arrays()

    def parts(self, local: tuple[Any, ...], bound: float) -> tuple[Any, ...]:
        """Return rows and model, checked; a bound that bounds nothing is refused."""
        if not 0 < bound < math.inf:
            raise PrivacyError("the bound on a user's term must be finite; nothing was summed")
        return (*local, self.arrays())
