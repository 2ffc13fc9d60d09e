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

from typing import Protocol

from tacit.data.store import RatingsOrStore
from tacit.trusted.statistic import BoundedSum, Statistic

__all__ = ["Engine"]


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
