"""Sums over shards of a store, in one process: what engines of stores are made of."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tacit._parallel import threads_at_most
from tacit.data.ratings import Ratings
from tacit.data.store import Store
from tacit.engines.base import run_on_threads
from tacit.errors import EngineError
from tacit.kernels.loops import LOOPS, Loops
from tacit.trusted.rows import Rows
from tacit.trusted.statistic import BoundedSum, Statistic

Result = TypeVar("Result")


class ShardSums:
    """Sums statistics over the users of some shards.

    Shards are read one after another, and the next one while one is summed. With `keep` their rows
    stay in memory, with the local state that goes with them. Without, a shard's rows are dropped
    when its part of the sum is there: memory is that of two shards and their local state, and each
    sum takes all steps anew, from the releases that its statistic names.
    """

    def __init__(
        self,
        store: Store,
        numbers: Sequence[int],
        *,
        threads: int,
        keep: bool = False,
        loops: Loops = LOOPS,
    ) -> None:
        """Take some shards, by their numbers; nothing is read yet."""
        self._store, self._numbers = store, tuple(numbers)
        self._threads, self._keep, self._loops = threads, keep, loops
        self._kept: dict[int, Rows] = {}

    def sum(
        self, statistic: Statistic, unit: float, watch: Callable[[float], None] | None = None
    ) -> BoundedSum:
        """Sum over the users of all shards; `watch` is told the share of shards that are done."""
        total: BoundedSum | None = None
        parts = self._each_rows(lambda rows: self._part(rows, statistic, unit))
        for done, part in enumerate(parts, start=1):
            total = part if total is None else total + part
            if watch:
                watch(done / len(self._numbers))
        if total is None:
            raise EngineError("there are no shards to sum over")
        return total

    def _each_rows(self, work: Callable[[Rows], Result]) -> Iterator[Result]:
        """Work on the rows of each shard in turn, while the next one is read."""
        with ThreadPoolExecutor(1) as reader:
            missing = iter([number for number in self._numbers if number not in self._kept])
            coming = self._read(reader, missing)
            for number in self._numbers:
                if number not in self._kept:
                    ratings = coming.result()
                    coming = self._read(reader, missing)
                    with threads_at_most(self._threads):
                        rows = Rows(ratings)
                    if self._keep:
                        self._kept[number] = rows
                    result = work(rows)
                    del rows, ratings  # before anything waits for the next one
                else:
                    result = work(self._kept[number])
                yield result

    def _read(self, reader: ThreadPoolExecutor, missing: Iterator[int]) -> "Future[Ratings]":
        """Begin to read the next shard that is missing; an idle wait if there is none."""
        number = next(missing, None)
        return Future() if number is None else reader.submit(self._store.shard, number, ids=False)

    def _part(self, rows: Rows, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum over the users of one shard."""
        with threads_at_most(self._threads):
            run = run_on_threads(rows, self._threads, self._loops)
            return statistic.bounded_sum(rows, unit, run)
