"""What statistics of the users' residuals after the published steps have in common."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.errors import PrivacyError
from tacit.trusted.local_state import FittedValues, RankOneStep
from tacit.trusted.rows import Rows, Run
from tacit.trusted.statistic import Integers, Statistic


class ResidualStatistic(Statistic):
    r"""A statistic of $A_i = P_\Omega(Y_i - Y^*_i)$, with $Y_i$ the fitted row after `steps`.

    A user's residual depends on her own row and on what is published only.
    """

    steps: tuple[RankOneStep, ...]

    def local(self, rows: Rows, run: Run) -> tuple[Any, ...]:
        """Return rows, fitted values and the newest step, which the loop takes in its own pass."""
        arrays = rows.bounded(self.bounds, run)
        state = rows.state(FittedValues, self.bounds, run)
        return arrays, state.values, state.catch_up(self.steps, run)

    def integer_sum(self, rows: Rows, unit: float, run: Run) -> Integers:
        """Sum the users' terms; afterwards local state includes all steps."""
        total = super().integer_sum(rows, unit, run)
        rows.state(FittedValues, self.bounds, run).done(self.steps)
        return total


def check_orthonormal(block: NDArray[np.float64]) -> None:
    """Refuse columns that are not orthonormal: the sensitivity would not hold (Alg. 2's slip)."""
    columns = block.shape[1]
    if not np.allclose(block.T @ block, np.eye(columns), rtol=0.0, atol=1e-9 / columns):
        raise PrivacyError("the columns of a product must be orthonormal; nothing was summed")
