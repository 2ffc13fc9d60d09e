"""Rows in this process, summed by threads (the kernels let go of the interpreter's lock)."""

from collections.abc import Callable
from typing import Annotated, TypeVar

import numpy as np

from tacit._parallel import parallel_map, threads_at_most
from tacit._resources import check_memory, usable_cores
from tacit._validate import Range, check
from tacit.data.store import RatingsOrStore, Store
from tacit.errors import EngineError
from tacit.kernels.loops import LOOPS, Loops
from tacit.trusted.rows import Rows, Run
from tacit.trusted.statistic import BoundedSum, Statistic

__all__ = ["ThreadEngine"]

Result = TypeVar("Result")


class ThreadEngine:
    """Holds all rows in this process; `threads` defaults to the cores it may use.

    Sums are of integers, so the result does not depend on the number of threads. A subclass may
    have other `loops`.
    """

    loops: Loops = LOOPS

    def __init__(self, threads: int | None = None) -> None:
        """Set the number of threads."""
        check("threads", threads, Annotated[int, Range(1, 1024)] | None)
        self._threads = threads or usable_cores()
        self._rows: Rows | None = None

    @property
    def threads(self) -> int:
        """How many threads a fit may use: for sums, and for linear algebra on releases."""
        return self._threads

    @property
    def n_users(self) -> int:
        """How many users' rows it holds."""
        return self._rows.n_users if self._rows else 0

    def take(self, ratings: RatingsOrStore) -> None:
        """Take the rows of a new fit."""
        if isinstance(ratings, Store):
            raise EngineError(
                f"ratings={ratings!r}: this engine holds rows in memory, and these are on disk; "
                "leave engine= out, or give tacit.StoreEngine(threads)"
            )
        with threads_at_most(self._threads):
            self._rows = Rows(ratings)

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum a statistic over all users, in integer multiples of `unit`."""
        if self._rows is None:
            raise EngineError("the engine holds no rows: take(ratings) comes first")
        needed = 8 * int(np.prod(statistic.shape)) * (self._threads + 4)
        check_memory(
            needed,
            f"a sum of shape {statistic.shape} would need {needed:,} bytes, more",
            "use an algorithm without such a matrix (FrankWolfe(eigen='oja'), --algorithm oja), or "
            "fewer items (top_items, --top-items)",
        )
        with threads_at_most(self._threads):
            return statistic.bounded_sum(self._rows, unit, Run(self._each, self.loops))

    def _each(self, task: Callable[[int, int], Result]) -> list[Result]:
        """Run a task on ranges of users that hold about the same number of ratings."""
        indptr = self._rows.indptr if self._rows else np.zeros(1, np.int64)
        marks = np.linspace(0, indptr[-1], self._threads + 1)[1:-1]
        edges = [0, *np.searchsorted(indptr, marks).tolist(), len(indptr) - 1]
        return parallel_map(task, edges[:-1], edges[1:])
