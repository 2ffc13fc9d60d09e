"""The most rated items, by a count that is paid for: a smaller catalogue from a larger one."""

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.ledger import Ledger
from tacit.accounting.release import Release, ReleaseKind
from tacit.data.store import RatingsOrStore
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.statistics import ItemCounts
from tacit.trusted.views import ChosenItems, seen

COUNTS = Release(ReleaseKind.ITEM_COUNTS)
"""The release."""
COUNT_SHARE = 0.05
"""Its share of the budget; all else shares the rest."""


def reserve_counts(ledger: Ledger, n_items: int) -> Ledger:
    """Reserve the count of the items; return the part of the ledger that is left for the rest."""
    ledger.reserve(COUNTS, ItemCounts(n_items).sensitivity, COUNT_SHARE)
    return ledger.part(1 - COUNT_SHARE)


def narrowed(mechanism: Mechanism, ratings: RatingsOrStore, top: int) -> RatingsOrStore:
    """Release the counts, and return the ratings of the `top` items that they show."""
    counts = mechanism.release(COUNTS, ItemCounts(ratings.n_items))
    return seen(ratings, ChosenItems(top_items(counts, top)))


def top_items(counts: NDArray[np.float64], top: int) -> NDArray[np.int64]:
    """Return the positions of the largest counts, in the order of the catalogue.

    Of equal counts the earlier item comes first. Post-processing: it reads nothing else.

    >>> top_items(np.array([1.5, -0.3, 4.0, 1.5]), 2).tolist()
    [0, 2]
    """
    return np.sort(np.argsort(-counts, kind="stable")[:top])
