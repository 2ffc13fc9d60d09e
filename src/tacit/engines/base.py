"""The protocol of engines: where rows live, and who sums them.

An engine holds rows and turns statistics into bounded sums. To write one (a cluster, a GPU):

- keep the rows of each shard in a `tacit.trusted.rows:Rows`, which caches bounded rows and local
  state by the value of what is asked for;
- for each sum, have every shard call `statistic.bounded_sum(rows, unit, run)`, with a `Run` that
  says how to go through its users and which loops to use;
- add the partial sums up. They are integers, so the order changes nothing. Between processes they
  travel sealed (`BoundedSum.seal`), under a key that `tacit.trusted.sealing:new_key` makes for the
  fit.

An engine never sees a number of a sum: only the mechanism opens one. It must sum every user once.
"""

from collections.abc import Callable
from typing import Protocol, TypeVar

import numpy as np

from tacit._parallel import parallel_map
from tacit._resources import check_memory
from tacit.data.store import RatingsOrStore
from tacit.kernels.loops import Loops
from tacit.trusted.rows import Rows, Run
from tacit.trusted.statistic import BoundedSum, Statistic

Result = TypeVar("Result")


class Engine(Protocol):
    """Where rows live: holds them, and turns statistics into bounded sums."""

    @property
    def n_users(self) -> int:
        """How many users' rows it holds."""
        ...

    def take(self, ratings: RatingsOrStore) -> None:
        """Take the rows of a new fit, or refuse what is not where it can use it."""
        ...

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum a statistic over all users, in integer multiples of `unit`."""
        ...


def run_on_threads(rows: Rows, threads: int, loops: Loops) -> Run:
    """Go through users in one range for each thread, of about the same number of ratings."""

    def each(task: Callable[[int, int], Result]) -> list[Result]:
        marks = np.linspace(0, rows.indptr[-1], threads + 1)[1:-1]
        edges = [0, *np.searchsorted(rows.indptr, marks).tolist(), rows.n_users]
        return parallel_map(task, edges[:-1], edges[1:])

    return Run(each, loops)


def check_room(statistic: Statistic, arrays: int) -> None:
    """Refuse a sum whose shape does not fit into memory so many times."""
    needed = 8 * int(np.prod(statistic.shape)) * arrays
    check_memory(
        needed,
        f"a sum of shape {statistic.shape} would need {needed:,} bytes, more",
        "use an algorithm without such a matrix (FrankWolfe(eigen='oja'), --algorithm oja), or "
        "fewer items (top_items, --top-items)",
    )
