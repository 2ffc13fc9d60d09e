"""What all synthetic ratings share: numbers of ratings, memory for them, and frames."""

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tacit.datasets.synthetic_loops import DrawPlan, Part, Parts, count_held_out


def counts_near(
    users: int,
    law: tuple[float, float],
    limits: tuple[int, int],
    rng: np.random.Generator,
) -> npt.NDArray[np.int64]:
    """Draw how many ratings each user gives: log-normal with this (mean, sd), within limits."""
    counts = np.rint(rng.lognormal(*law, users))
    return np.clip(counts, *limits).astype(np.int64)


def plan_for(
    counts: npt.NDArray[np.int64], fraction: float, n_items: int, rng: np.random.Generator
) -> DrawPlan:
    """Fix the key of all user streams and how many ratings each of them gives."""
    key = rng.integers(2**64, dtype=np.uint64)
    return DrawPlan(np.uint64(key), counts, fraction, n_items)


def parts_of(plan: DrawPlan) -> Parts:
    """Make room for the training ratings and for the held-out ones."""
    held = count_held_out(plan)
    return Parts(_part(plan.counts - held), _part(held))


def _part(counts: npt.NDArray[np.int64]) -> Part:
    """Make room for so many ratings of each user."""
    start = np.concatenate((np.zeros(1, np.int64), np.cumsum(counts)))
    total = int(start[-1])
    ids = np.empty(total, np.uint32), np.empty(total, np.uint32)
    return Part(start, *ids, np.empty(total, np.float32))


def frames_of(parts: Parts, titles: list[str]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """The training ratings, the held-out ones, and the items with their titles."""
    items = pl.DataFrame({"item": np.arange(len(titles), dtype=np.uint32), "title": titles})
    return _frame(parts.train), _frame(parts.test), items


def _frame(part: Part) -> pl.DataFrame:
    """Turn one part into a frame."""
    columns: dict[str, Any] = {"user": part.user, "item": part.item, "rating": part.rating}
    return pl.DataFrame(columns)
