"""The published model: anyone's own ratings in, her own predictions out."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.catalogue import Catalogue
from tacit.certificate import Certificate, Verification
from tacit.cores import usable_cores
from tacit.errors import ConfigError
from tacit.models.own import known_positions, own_row
from tacit.models.rules import LocalRule, OwnRows
from tacit.ratings import Ratings

__all__ = ["Model", "Recommendation"]

_BLOCK = 4096  # people scored at a time


@dataclass(frozen=True)
class Recommendation:
    """One recommended item: its id, its title (the id where it has none), the predicted rating."""

    item: Any
    title: str
    score: float


@dataclass(frozen=True, eq=False)
class Model:
    """What a fit publishes: a local rule, the catalogue, and the certificate.

    Nothing in it belongs to any one user. Predictions are made from it and a person's own
    ratings, on any machine, whether or not she was among the users of the fit.
    """

    rule: LocalRule
    catalogue: Catalogue
    rating_range: tuple[float, float]
    certificate: Certificate
    releases: int
    """How many releases the fit made."""

    @property
    def private(self) -> bool:
        """Whether the certificate makes a promise."""
        return self.certificate.private

    def __repr__(self) -> str:
        promise = "NOT PRIVATE"
        if self.certificate.budget and self.private:
            budget = self.certificate.budget
            promise = f"epsilon={budget.epsilon:g}, delta={budget.delta:g}"
        return f"Model({self.rule.kind}, {len(self.catalogue)} items, {promise})"

    def predict(self, own_ratings: Any, items: Any = None) -> NDArray[np.float64]:
        """Return the predicted ratings of `items` (all of the catalogue if None), in their order.

        Args:
            own_ratings: a dict {item: rating}, a frame with columns item and rating, or a pair of
                sequences (items, ratings). Items outside the catalogue are left out, and an
                UnknownItemsWarning says how many.
            items: ids of the wanted items; an unknown one gets NaN.
        """
        own = own_row(own_ratings, self.catalogue, self.rating_range)
        scores: NDArray[np.float64] = self._scores(own)[0]
        if items is None:
            return scores
        positions = known_positions(items, self.catalogue, "wanted items")
        return np.where(positions >= 0, scores[positions], np.nan)

    def recommend(
        self, own_ratings: Any, n: int = 10, *, include_rated: bool = False
    ) -> list[Recommendation]:
        """Return the n items with the best predicted ratings, without those already rated.

        With no ratings of her own it is the list for someone unknown.
        """
        if isinstance(n, bool) or not isinstance(n, int) or n < 1:
            raise ConfigError(f"n={n!r}: expected a whole number of at least 1")
        own = own_row(own_ratings, self.catalogue, self.rating_range)
        scores = self._scores(own)[0]
        order = np.argsort(-scores, kind="stable")
        if not include_rated:
            order = order[~np.isin(order, own.items)]
        return [self._recommendation(int(at), float(scores[at])) for at in order[:n]]

    def predict_rows(self, ratings: Ratings) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield (first row, scores of a block of users by items), each from her own ratings.

        The ratings must be of this model's catalogue (`Ratings.from_...(catalogue=...)`).
        """
        if not np.array_equal(ratings.catalogue.ids, self.catalogue.ids):
            raise ConfigError(
                "ratings are of another catalogue; read them with catalogue=model.catalogue"
            )
        starts = range(0, ratings.n_users, _BLOCK)
        threads = usable_cores()
        with ThreadPoolExecutor(threads) as pool:
            for first in range(0, len(starts), threads):
                group = starts[first : first + threads]
                blocks = pool.map(lambda at: self._block(ratings, at), group)
                yield from zip(group, blocks, strict=True)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a file, whole or not at all."""
        from tacit.models.file import save

        save(self, path)

    def verify(self) -> Verification:
        """Recompute epsilon from the certificate, and check that all published parts are paid."""
        found = self.certificate.verify()
        unpaid = self.rule.unpaid(entry.name for entry in self.certificate.releases)
        if len(self.certificate.releases) != self.releases:
            unpaid.append(f"it rests on {self.releases} releases, and the certificate lists others")
        return Verification(
            found.holds and not unpaid,
            found.epsilon_claimed,
            found.epsilon_recomputed,
            (*found.problems, *unpaid),
        )

    def _block(self, ratings: Ratings, start: int) -> NDArray[np.float64]:
        stop = min(start + _BLOCK, ratings.n_users)
        lo, hi = ratings.indptr[start], ratings.indptr[stop]
        indptr = ratings.indptr[start : stop + 1] - lo
        return self._scores(OwnRows(indptr, ratings.items[lo:hi], ratings.values[lo:hi]))

    def _scores(self, own: OwnRows) -> NDArray[np.float64]:
        """Score by the local rule; no prediction leaves the rating range."""
        return np.clip(self.rule.scores(own), *self.rating_range)

    def _recommendation(self, position: int, score: float) -> Recommendation:
        item = self.catalogue.ids[position]
        return Recommendation(item, self.catalogue.title(position), score)
