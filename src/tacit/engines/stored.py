"""Rows on disk, summed shard by shard: for more ratings than fit into memory."""

from collections.abc import Callable
from typing import Annotated

from tacit._resources import usable_cores
from tacit._validate import Range, check
from tacit.data.store import RatingsOrStore, Store
from tacit.engines.base import check_room
from tacit.engines.shards import ShardSums
from tacit.errors import EngineError
from tacit.kernels.loops import LOOPS, Loops
from tacit.trusted.statistic import BoundedSum, Statistic


class StoreEngine:
    """Streams the shards of a store for every sum; `threads` defaults to the cores it may use.

    Peak memory is that of two shards (one is read while one is summed) and of the local state of
    one, whatever the size of the store. The releases and the model are those of `ThreadEngine`, to
    the last bit. What it costs: every sum reads the store, bounds the rows and takes all steps of
    a method with local state (FrankWolfe) anew.

    Args:
        threads: how many.
        progress: called during each sum with the share of it that is done, from 0 to 1.
    """

    loops: Loops = LOOPS
    progress: Callable[[float], None] | None

    def __init__(
        self, threads: int | None = None, *, progress: Callable[[float], None] | None = None
    ) -> None:
        """Set the number of threads."""
        check("threads", threads, Annotated[int, Range(1, 1024)] | None)
        self._threads = threads or usable_cores()
        self.progress = progress
        self._users = 0
        self._sums: ShardSums | None = None

    @property
    def threads(self) -> int:
        """How many threads a fit may use."""
        return self._threads

    @property
    def n_users(self) -> int:
        """How many users' rows it holds."""
        return self._users

    def take(self, ratings: RatingsOrStore) -> None:
        """Take the store of a new fit."""
        if not isinstance(ratings, Store):
            raise EngineError(
                f"ratings={type(ratings).__name__}: this engine streams a tacit.Store, made with "
                "tacit partition; for ratings in memory use ThreadEngine"
            )
        numbers = range(len(ratings.shards))
        self._users = ratings.n_users
        self._sums = ShardSums(ratings, numbers, threads=self._threads, loops=self.loops)

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum a statistic over all users, in integer multiples of `unit`."""
        if self._sums is None:
            raise EngineError("the engine holds no rows: take(store) comes first")
        check_room(statistic, self._threads + 6)
        return self._sums.sum(statistic, unit, self.progress)
