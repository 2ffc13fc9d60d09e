"""Rows in this process, summed by threads (the kernels let go of the interpreter's lock)."""

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from tacit.cores import usable_cores
from tacit.errors import ConfigError, EngineError
from tacit.private.rows import Rows
from tacit.private.statistics import BoundedSum, Statistic
from tacit.ratings import Ratings

__all__ = ["ThreadEngine"]

Result = TypeVar("Result")


class ThreadEngine:
    """Holds all rows in this process; `threads` defaults to the cores it may use.

    Sums are of integers, so the result does not depend on the number of threads.
    """

    def __init__(self, threads: int | None = None) -> None:
        """Set the number of threads."""
        if threads is not None and (isinstance(threads, bool) or not 1 <= threads <= 1024):
            raise ConfigError(f"threads={threads!r}: expected a whole number from 1 to 1024")
        self._threads = threads or usable_cores()
        self._rows: Rows | None = None

    @property
    def n_users(self) -> int:
        """How many users' rows it holds."""
        return self._rows.n_users if self._rows else 0

    def take(self, ratings: Ratings) -> None:
        """Take the rows of a new fit."""
        self._rows = Rows(ratings)

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum a statistic over all users, in integer multiples of `unit`."""
        if self._rows is None:
            raise EngineError("the engine holds no rows: take(ratings) comes first")
        _check_memory(statistic, self._threads)
        return BoundedSum(statistic.units(self._rows, unit, self._each), unit)

    def _each(self, task: Callable[[int, int], Result]) -> list[Result]:
        """Run a task on ranges of users that hold about the same number of ratings."""
        indptr = self._rows.indptr if self._rows else np.zeros(1, np.int64)
        marks = np.linspace(0, indptr[-1], self._threads + 1)[1:-1]
        edges = [0, *np.searchsorted(indptr, marks).tolist(), len(indptr) - 1]
        with ThreadPoolExecutor(self._threads) as pool:
            return list(pool.map(task, edges[:-1], edges[1:]))


def _check_memory(statistic: Statistic, threads: int) -> None:
    """Refuse a statistic whose sum does not fit, before anything is computed."""
    needed = 8 * int(np.prod(statistic.shape)) * (threads + 4)
    there = _physical_memory()
    if needed > there:
        raise EngineError(
            f"a sum of shape {statistic.shape} needs {needed:,} bytes and this machine has "
            f"{there:,}; use a form that needs no such matrix (eigen='oja'), or fewer items"
        )


def _physical_memory() -> float:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # a system that does not tell
        return float("inf")
