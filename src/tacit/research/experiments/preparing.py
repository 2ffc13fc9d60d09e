"""The ratings of an experiment and their splits, the same for every method."""

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.loading import load
from tacit.datasets.synthetic import synthesise
from tacit.errors import DataError
from tacit.evaluation.accuracy import keep_ratings
from tacit.research.experiments.jobs import Job
from tacit.research.experiments.spec import OPEN_RATINGS, multiple_of_truth
from tacit.research.theory import Problem, recommended_rounds

SPLIT_SEED: Final = 20180611
"""Of the places that ratings have in splits."""
_CHUNK = 1 << 22


@dataclass(frozen=True, repr=False)
class Truth:
    """The hidden matrix u v^T of the rank-one ratings."""

    left: NDArray[np.float64]
    right: NDArray[np.float64]

    @property
    def nuclear_norm(self) -> float:
        """||u|| ||v||."""
        return float(np.linalg.norm(self.left) * np.linalg.norm(self.right))

    @property
    def row_norm(self) -> float:
        """The norm of its longest row, L."""
        return float(np.abs(self.left).max() * np.linalg.norm(self.right))


@dataclass(frozen=True, repr=False)
class Prepared:
    """A dataset in memory, from which the parts of any draw are cut."""

    facts: dict[str, Any]
    ratings: Ratings
    _latest: dict[tuple[str, int], tuple[Ratings, Ratings]] = field(default_factory=dict)

    def parts(self, job: Job) -> tuple[Ratings, Ratings]:
        """Return what a job learns from and what it is measured on; the latest are kept."""
        place = job.role, job.draw
        if place not in self._latest:
            self._latest.clear()
            self._latest[place] = self._cut(job)
        return self._latest[place]

    def _cut(self, job: Job) -> tuple[Ratings, Ratings]:
        """Cut out the part that a job is measured on, and what it learns from.

        Every rating has a place in [0, 1), drawn once. With a test share s, the test part of draw
        d has the places from d s to (d + 1) s, so no rating is tested twice. A trial sees none of
        them: it is measured on the next places, and learns from what is beyond.
        """
        share = self.facts["test_share"]
        if self.facts.get("new_users"):
            return self._people(job.draw, self.facts["new_users"])
        if job.role == "trial":
            low, high = job.kept_out, job.kept_out + job.validation
            return self._between(high, 1.0), self._between(low, high, tested=True)
        if share == 0.0:
            return self.ratings, self.ratings
        low, high = job.draw * share, (job.draw + 1) * share
        return self._between(low, high, tested=False), self._between(low, high, tested=True)

    def _people(self, draw: int, share: float) -> tuple[Ratings, Ratings]:
        """Return users who are in the fit and new users; nobody is a new user in two draws."""
        places = np.random.default_rng((SPLIT_SEED, 1)).random(self.ratings.n_users)
        new = (draw * share <= places) & (places < (draw + 1) * share)
        return tuple(self.ratings.take_rows(np.flatnonzero(part)) for part in (~new, new))  # type: ignore[return-value]

    def _between(self, low: float, high: float, tested: bool | None = None) -> Ratings:
        """Return ratings whose place is in [low, high), or those whose place is not.

        Those that are tested are of people who have any; the others of everyone.
        """
        inside = np.concatenate([(low <= part) & (part < high) for part in self._places()])
        kept = ~inside if tested is False else inside
        return keep_ratings(self.ratings, kept, everyone=tested is not True)

    def _places(self) -> Iterator[NDArray[np.float32]]:
        """Yield the places of all ratings, chunk by chunk; the same each time."""
        rng = np.random.default_rng(SPLIT_SEED)
        for low in range(0, len(self.ratings.values), _CHUNK):
            yield rng.random(min(_CHUNK, len(self.ratings.values) - low), np.float32)

    @cached_property
    def truth(self) -> Truth | None:
        """The hidden matrix, where there is one: its vectors are drawn first, whatever is seen."""
        if self.facts.get("synthetic") != "rank-one":
            return None
        wanted = ("users", "items", "seed")
        sizes = {name: self.facts[name] for name in wanted if name in self.facts}
        made = synthesise("rank-one", per_user=1, test_fraction=0.0, **sizes)
        return Truth(*made.truth) if made.truth else None

    def settings_of(self, job: Job) -> dict[str, Any]:
        """Return a job's settings, those given by a word as numbers."""
        settings = dict(job.settings)
        for name in ("nuclear_norm", "row_norm"):
            times = multiple_of_truth(settings.get(name))
            if times is not None and self.truth is not None:
                settings[name] = times * getattr(self.truth, name)
        if settings.get("rounds") == "theory":
            settings["rounds"] = self._rounds(job.epsilon)
        return settings

    def _rounds(self, epsilon: float | None) -> int:
        """Return T* of Theorem 3.2 for the size of this dataset; as for 5 without privacy."""
        users, items = self.ratings.n_users, self.ratings.n_items
        finite = 5.0 if epsilon is None or math.isinf(epsilon) else epsilon
        per_user = max(1, round(len(self.ratings.values) / users))
        scale = self.ratings.rating_range
        problem = Problem.by_rule(
            users=users, items=items, epsilon=finite, per_user=per_user, rating_range=scale
        )
        return max(2, round(recommended_rounds(problem)))


def prepare(facts: dict[str, Any]) -> Prepared:
    """Read or make the ratings of a dataset.

    Raises:
        DataError: its files are not here, or not whole.
        ConfigError: it cannot have this size.
    """
    sizes = {name: size for name, size in facts.items() if name not in _NOT_SIZES}
    if "named" in facts:
        return Prepared(facts, load(facts["named"], **sizes))
    if "file" in facts:
        return Prepared(facts, _open_ratings(facts))
    made = synthesise(facts["synthetic"], test_fraction=0.0, **sizes)
    catalogue = Catalogue(made.items["item"], made.items["title"], public=True)
    ratings = Ratings.from_frame(made.train, rating_range=made.rating_range, catalogue=catalogue)
    return Prepared(facts, ratings)


def _open_ratings(facts: dict[str, Any]) -> Ratings:
    """Read the file that the environment names; it must be as large as the experiment states."""
    bounds = float(facts["lowest"]), float(facts["highest"])
    ratings = Ratings.from_file(os.environ.get(OPEN_RATINGS, ""), rating_range=bounds)
    found = ratings.n_users, ratings.n_items, len(ratings.values)
    if found != (facts["users"], facts["items"], facts["ratings"]):
        raise DataError(
            f"{OPEN_RATINGS}: its file has not the stated numbers of users, items and ratings "
            f"({facts['users']:,}, {facts['items']:,} and {facts['ratings']:,}); name the file of "
            "these ratings, or state its numbers in an experiment of your own"
        )
    return ratings


_NOT_SIZES = ("named", "synthetic", "test_share", "new_users")
