"""Local state: what each user computes from the releases so far, from her own row alone.

It is a function of (own row, published steps). A statistic names all steps; the state takes
those it has not taken yet, and begins from scratch if it was interrupted or took others. So it
can be lost at any time: after a crash, or with a worker.
"""

from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit._resources import check_memory
from tacit.kernels.residuals import StepArrays
from tacit.kernels.rows import RowArrays
from tacit.trusted.described import Described
from tacit.trusted.rows import Run

Step = TypeVar("Step", bound=Described)


@dataclass(frozen=True, eq=False)
class RankOneStep(Described):
    """A published direction and how users move along it (Alg. 1, local update).

    Y_i <- project(keep Y_i - gain (A_i . v) v), rows on Omega scaled down to at most `norm`.
    """

    direction: NDArray[np.float64]
    gain: float
    keep: float
    norm: float

    def arrays(self) -> StepArrays:
        """Return what the kernels take."""
        return StepArrays(self.direction, self.gain, self.keep, self.norm)


@dataclass(frozen=True, eq=False)
class LinearStep(Described):
    """A published linear map of rows, Y_i <- Y_i V diag(shrinkage) V^T (Alg. 5: Z/Lambda).

    `vectors` are the orthonormal columns V whose shrinkage is not zero, items x rank.
    """

    vectors: NDArray[np.float64]
    shrinkage: NDArray[np.float64]

    def factors(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return V and diag(shrinkage) V^T, in the precision that rows are kept in."""
        single = self.vectors.astype(np.float32)
        back = (self.vectors * self.shrinkage).T.astype(np.float32)
        return np.ascontiguousarray(single), np.ascontiguousarray(back)


class _Taken(Generic[Step]):
    """Which steps the state includes; none while some are being taken."""

    def __init__(self) -> None:
        """Begin with none."""
        self._steps: list[bytes] | None = None

    def missing(self, steps: tuple[Step, ...]) -> tuple[bool, tuple[Step, ...]]:
        """Return whether to begin from scratch, and the steps to take."""
        done, self._steps = self._steps, None
        fresh = done is None or len(done) > len(steps)
        if done is None or fresh or done != [step.digest for step in steps[: len(done)]]:
            return True, steps
        return False, steps[len(done) :]

    def all(self, steps: tuple[Step, ...]) -> None:
        """Say that the state now includes exactly these steps."""
        self._steps = [step.digest for step in steps]


class FittedValues:
    """Y on Omega: each user's fitted value of each of her ratings, after rank-one steps."""

    def __init__(self, rows: RowArrays) -> None:
        """Begin at Y = 0."""
        self.values = np.zeros(rows.items.size, dtype=np.float32)
        self._rows = rows
        self._moved = False
        self._taken: _Taken[RankOneStep] = _Taken()

    def catch_up(self, steps: tuple[RankOneStep, ...], run: Run) -> StepArrays:
        """Take all steps but the newest, and return that one for the caller's pass to take.

        If there is none to take, it is a step that does not move. `done` must follow.
        """
        fresh, missing = self._taken.missing(steps)
        if fresh and self._moved:
            self.values[:] = 0.0
        self._moved = bool(steps)
        for step in missing[:-1]:
            run.map_users(partial(run.loops.advance, self._rows, self.values, step.arrays()))
        if missing:
            return missing[-1].arrays()
        return StepArrays(np.zeros(self._rows.offsets.size), 0.0, 1.0, np.inf)

    def done(self, steps: tuple[RankOneStep, ...]) -> None:
        """Say that the pass is over and all steps are taken."""
        self._taken.all(steps)


class FilledRows:
    """Y in full: each user's row over all items, after linear steps."""

    def __init__(self, rows: RowArrays) -> None:
        """Begin at Y = 0, if there is room for it."""
        shape = (rows.indptr.size - 1, rows.offsets.size)
        check_memory(
            4 * shape[0] * shape[1],
            f"everyone's row filled in over {shape[1]} items would need more memory",
            "use FrankWolfe, which keeps rated items only, or fewer items",
        )
        self.matrix = np.zeros(shape, dtype=np.float32)
        self._taken: _Taken[LinearStep] = _Taken()

    def missing(self, steps: tuple[LinearStep, ...]) -> tuple[bool, tuple[LinearStep, ...]]:
        """Return whether to begin from scratch, and the steps to take."""
        return self._taken.missing(steps)

    def done(self, steps: tuple[LinearStep, ...]) -> None:
        """Say that all steps are taken."""
        self._taken.all(steps)
