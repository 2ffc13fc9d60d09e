"""Views of the ratings in a fit: all of them, chosen items only, or without the held-out part.

A view is a public rule that is applied to each row by itself. So it can be applied to ratings in
memory at once, and to a store as its shards are read, wherever that is, with the same result.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.store import RatingsOrStore, Store, View
from tacit.trusted.selection import restricted
from tacit.trusted.statistics.holdout_losses import Holdout


@dataclass(frozen=True, eq=False)
class ChosenItems:
    """Ratings of some items (positions, in order), which are numbered anew."""

    positions: NDArray[np.int64]

    def __call__(self, ratings: Ratings) -> Ratings:
        """Return the ratings of these items."""
        return restricted(ratings, self.positions)

    def catalogue(self, catalogue: Catalogue) -> Catalogue:
        """Return the catalogue of these items."""
        return catalogue.rows(self.positions)


@dataclass(frozen=True)
class NotHeldOut:
    """Everyone's ratings that are not held out."""

    holdout: Holdout

    def __call__(self, ratings: Ratings) -> Ratings:
        """Return what is not held out."""
        return self.holdout.rest(ratings)

    def catalogue(self, catalogue: Catalogue) -> Catalogue:
        """Return the same catalogue."""
        return catalogue


def seen(ratings: RatingsOrStore, view: View) -> RatingsOrStore:
    """Return what is seen of ratings; of a store it is seen as shards are read."""
    return ratings.view(view) if isinstance(ratings, Store) else view(ratings)
