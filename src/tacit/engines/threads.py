"""Rows in this process, summed by threads (the kernels let go of the interpreter's lock)."""

from typing import Annotated

from tacit._parallel import threads_at_most
from tacit._resources import usable_cores
from tacit._validate import Range, check
from tacit.data.store import RatingsOrStore, Store
from tacit.engines.base import check_room, run_on_threads
from tacit.errors import EngineError
from tacit.kernels.loops import LOOPS, Loops
from tacit.trusted.rows import Rows
from tacit.trusted.statistic import BoundedSum, Statistic


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
        check_room(statistic, self._threads + 4)
        with threads_at_most(self._threads):
            run = run_on_threads(self._rows, self._threads, self.loops)
            return statistic.bounded_sum(self._rows, unit, run)
