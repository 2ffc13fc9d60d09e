"""Two tables out of one: what to fit on, and what is held out. For the owner of the ratings."""

from typing import Annotated

import numpy as np
import polars as pl

from tacit._validate import Range, check, one_of, refuse
from tacit.errors import DataError

_WAYS = ("time", "random")
_KEY = ["user", "item"]


def split_table(
    table: pl.DataFrame, *, share: float = 0.1, by: str = "time", seed: int = 0
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return (train, test) of a table with columns user, item and, to split by it, time.

    By time, test are the latest ratings of all, about `share` of them: every rating in test is
    later than every one in train, as when a model is fitted today and used from tomorrow on. (The
    last ratings of each user would be predicted by a model that has seen what others rated later.)
    By random, each rating is in test with chance `share`. Of a pair of user and item that is in
    both, only the rating in train is kept: it would not be held out.

    Raises:
        ConfigError: `share` or `by` cannot be used.
        DataError: there are no times, or nothing would be left in one of the two.

    >>> log = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "time": [5, 9, 6]})
    >>> [part["time"].to_list() for part in split_table(log, share=0.4)]
    [[5, 6], [9]]
    """
    check("share", share, Annotated[float, Range(0, 1, "()")])
    if by not in _WAYS:
        refuse("by", by, one_of(by, _WAYS))
    held = _latest(table["time"], share) if by == "time" else _drawn(len(table), share, seed)
    train, test = table.filter(~held), table.filter(held)
    test = test.join(train.select(_KEY).unique(), on=_KEY, how="anti", maintain_order="left")
    if not len(train) or not len(test):
        raise DataError(
            f"share={share!r}: nothing is left to fit on or nothing to test on; give another share"
            + (", or by='random' if many ratings have the same time" if by == "time" else "")
        )
    return train, test


def _latest(times: pl.Series, share: float) -> pl.Series:
    """Whether each rating is later than the last one to fit on; equal times stay together."""
    moments = _moments(times)
    kept = max(1, round((1 - share) * len(moments)))
    later: pl.Series = moments > moments.sort()[min(kept, len(moments)) - 1]
    return later


def _moments(times: pl.Series) -> pl.Series:
    """Times that can be compared: numbers, dates, or text in ISO 8601."""
    if times.dtype == pl.String:
        try:
            times = times.str.to_datetime(strict=True)
        except pl.exceptions.PolarsError:
            times = pl.Series(times.name, [None])
    if times.null_count() or not (times.dtype.is_numeric() or times.dtype.is_temporal()):
        raise DataError(
            f"column {times.name!r}: not all are times; expected numbers such as 964982703, dates, "
            "or text such as 2020-01-31 12:00:00"
        )
    return times


def _drawn(rows: int, share: float, seed: int) -> pl.Series:
    return pl.Series(np.random.default_rng(seed).random(rows) < share)
