"""Rankings to compare lists with, all without privacy: EASE, ALS of `implicit`, and their tuning.

Each is made from everyone's ratings and scores new users from their own rows alone. NOT PRIVATE.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

import tacit
from tacit.models.rules import OwnRows
from tacit.models.top_n import best_items, without_rated

__all__ = [
    "ALS_GRID",
    "EASE_GRID",
    "Scored",
    "als",
    "at_the_end",
    "ease",
    "ease_weights",
    "entries",
    "has_implicit",
    "tuned",
]

Settings = dict[str, Any]
Grid = Mapping[str, Sequence[Any]]
BLOCK = 2048
THREADS = int(os.environ.get("OMP_NUM_THREADS", "0"))  # of ALS; 0 is all cores

EASE_GRID: Grid = {
    "rows": ("liked", "rated"),
    "penalty": (1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0, 10_000.0, 30_000.0, 100_000.0),
}
ALS_GRID: Grid = {
    "rows": ("liked", "rated"),
    "factors": (4, 8, 16, 32, 64, 128),
    "alpha": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
    "regularization": (0.01, 0.1, 1.0, 10.0, 100.0),
    "iterations": (5, 10, 20, 40),
}


@dataclass(frozen=True)
class Scored:
    """Recommends by scores computed from a block of users' own ratings, without what they rated."""

    catalogue: tacit.Catalogue
    scores: Callable[[tacit.Ratings], np.ndarray]

    def recommend_rows(
        self, ratings: tacit.Ratings, n: int = 10
    ) -> Iterator[tuple[int, np.ndarray]]:
        """Yield (first row, positions of a block of users' n best items)."""
        for start in range(0, ratings.n_users, BLOCK):
            block = ratings.take_rows(np.arange(start, min(start + BLOCK, ratings.n_users)))
            own = OwnRows(block.indptr, block.items, block.values)
            yield start, best_items(without_rated(self.scores(block), own), n)


def entries(ratings: tacit.Ratings, lowest: float) -> sp.csr_matrix:
    """Users by items, 1 where a rating is at least `lowest`."""
    ones = (ratings.values >= np.float32(lowest)).astype(np.float32)
    shape = (ratings.n_users, ratings.n_items)
    matrix = sp.csr_matrix((ones, ratings.items.astype(np.int32), ratings.indptr), shape)
    matrix.eliminate_zeros()
    return matrix


def ease(train: tacit.Ratings, liked: float) -> Callable[[Settings], Scored]:
    """Return what makes EASE [Steck 2019] of its settings; co-occurrences are counted once.

    With G = X^T X and P = (G + penalty I)^-1 the weights are B_ij = -P_ij / P_jj, and 0 on the
    diagonal; scores are x B.
    """
    lowest = {"liked": liked, "rated": train.rating_range[0]}
    counts: dict[str, np.ndarray] = {}

    def make(settings: Settings) -> Scored:
        rows = settings["rows"]
        if rows not in counts:
            matrix = entries(train, lowest[rows]).astype(np.float64)
            counts[rows] = (matrix.T @ matrix).toarray()
        weights = ease_weights(counts[rows], settings["penalty"])
        return Scored(train.catalogue, lambda own: entries(own, lowest[rows]) @ weights)

    return make


def ease_weights(counts: np.ndarray, penalty: float) -> np.ndarray:
    """Solve the ridge regression of every item on all others."""
    inverse = np.linalg.inv(counts + penalty * np.eye(len(counts)))
    weights = inverse / -np.diag(inverse)
    np.fill_diagonal(weights, 0.0)
    return weights


def has_implicit() -> bool:
    """Whether the package `implicit` can be imported."""
    try:
        import implicit.als  # noqa: F401
    except ImportError:
        return False
    return True


def als(train: tacit.Ratings, liked: float, seed: int = 0) -> Callable[[Settings], Scored]:
    """Return what makes implicit's ALS of its settings; new users' factors are solved for."""
    from implicit.als import AlternatingLeastSquares

    lowest = {"liked": liked, "rated": train.rating_range[0]}

    def make(settings: Settings) -> Scored:
        rows, options = settings["rows"], {k: v for k, v in settings.items() if k != "rows"}
        model = AlternatingLeastSquares(random_state=seed, num_threads=THREADS, **options)
        model.fit(entries(train, lowest[rows]), show_progress=False)

        def scores(own: tacit.Ratings) -> np.ndarray:
            users = model.recalculate_user(np.arange(len(own)), entries(own, lowest[rows]))
            return (users @ model.item_factors.T).astype(np.float64)

        return Scored(train.catalogue, scores)

    return make


def tuned(grid: Grid, quality: Callable[[Settings], float]) -> tuple[Settings, int]:
    """Return the best settings found, and how many were tried.

    For each choice of "rows", starts in the middle of the grid and moves one number by one step for
    as long as any such step helps. `quality` is measured on validation users.
    """
    found = [_climbed({**grid, "rows": (rows,)}, quality) for rows in grid["rows"]]
    best, _, _ = max(found, key=lambda one: one[1])
    return best, sum(tried for _, _, tried in found)


def _climbed(grid: Grid, quality: Callable[[Settings], float]) -> tuple[Settings, float, int]:
    """Return the best settings found, their quality, and how many were tried."""
    known: dict[tuple[int, ...], float] = {}

    def value(at: dict[str, int]) -> float:
        key = tuple(at.values())
        if key not in known:
            known[key] = quality({name: grid[name][place] for name, place in at.items()})
        return known[key]

    best, before = {name: (len(choices) - 1) // 2 for name, choices in grid.items()}, None
    while best != before:
        before = best
        for name, step in ((name, step) for name in grid for step in (1, -1)):
            while 0 <= best[name] + step < len(grid[name]):
                moved = {**best, name: best[name] + step}
                if value(moved) <= value(best):
                    break
                best = moved
    return {name: grid[name][place] for name, place in best.items()}, value(best), len(known)


def at_the_end(grid: Grid, settings: Settings) -> list[str]:
    """Name the numbers that stand at an end of their grid: others beyond it might be better."""
    ends = {name: (choices[0], choices[-1]) for name, choices in grid.items() if name != "rows"}
    return [name for name, pair in ends.items() if settings[name] in pair]
