"""The same list for everyone: the most popular items. NOT PRIVATE: counts are exact."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.models.rules import OwnRows
from tacit.models.top_n import best_items, without_rated

__all__ = ["ExactPopularity"]

_BLOCK = 1024  # people at a time


class ExactPopularity:
    """Recommends what most people in `train` have, without what a person has herself: NOT PRIVATE.

    A yardstick for `rank`: what recommendations gain over it is what they know of tastes.
    """

    def __init__(self, train: Ratings) -> None:
        """Count every item, without noise."""
        self.catalogue: Catalogue = train.catalogue
        self._counts = np.bincount(train.items, minlength=train.n_items).astype(np.float64)

    def recommend_rows(
        self, ratings: Ratings, n: int = 10
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (first row, positions of a block of users' n best items that they do not have)."""
        for start in range(0, ratings.n_users, _BLOCK):
            stop = min(start + _BLOCK, ratings.n_users)
            low, high = ratings.indptr[start], ratings.indptr[stop]
            indptr = ratings.indptr[start : stop + 1] - low
            own = OwnRows(indptr, ratings.items[low:high], ratings.values[low:high])
            scores = np.repeat(self._counts[None], stop - start, axis=0)
            yield start, best_items(without_rated(scores, own), n)
