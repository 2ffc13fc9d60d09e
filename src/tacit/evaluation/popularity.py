"""The same list for everyone: the most popular items. NOT PRIVATE: counts are exact."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings

_BLOCK = 1 << 16  # people at a time


class ExactPopularity:
    """Recommends what most people in `train` have, without what a person has herself: NOT PRIVATE.

    A yardstick for `rank`: what recommendations gain over it is what they know of tastes.
    """

    def __init__(self, train: Ratings) -> None:
        """Count every item, without noise."""
        self.catalogue: Catalogue = train.catalogue
        counts = np.bincount(train.items, minlength=train.n_items)
        self._order = np.argsort(-counts, kind="stable")  # equal counts: as in the catalogue

    def recommend_rows(
        self, ratings: Ratings, n: int = 10
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (first row, positions of a block of users' n best items that they do not have)."""
        from tacit.kernels.lists import first_others

        for start in range(0, ratings.n_users, _BLOCK):
            stop = min(start + _BLOCK, ratings.n_users)
            lists = np.empty((stop - start, min(n, self._order.size)), np.int64)
            first_others(self._order, ratings.indptr[start : stop + 1], ratings.items, lists)
            yield start, lists
