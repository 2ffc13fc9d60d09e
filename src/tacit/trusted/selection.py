"""Keep some of the ratings: each row by itself, before anything is bounded or summed."""

import numpy as np
from numpy.typing import NDArray

from tacit.data.ratings import Ratings
from tacit.kernels.rows import kept_lengths


def keep(ratings: Ratings, kept: NDArray[np.bool_]) -> Ratings:
    """Return the marked ratings. Every user keeps her row, even an empty one."""
    indptr = np.zeros_like(ratings.indptr)
    np.cumsum(kept_lengths(ratings.indptr, kept), out=indptr[1:])
    rows = indptr, ratings.items[kept], ratings.values[kept]
    fixed = ratings.rating_range, ratings.catalogue, ratings.user_ids
    return Ratings(*fixed, *rows, ratings.implicit)


def restricted(ratings: Ratings, chosen: NDArray[np.int64]) -> Ratings:
    """Return the ratings of the chosen items (positions, in order), which are numbered anew."""
    wanted = np.zeros(ratings.n_items, dtype=np.bool_)
    wanted[chosen] = True
    numbers = np.zeros(ratings.n_items, dtype=ratings.items.dtype)
    numbers[chosen] = np.arange(chosen.size)
    rows = keep(ratings, wanted[ratings.items])
    catalogue = ratings.catalogue.rows(chosen)
    return Ratings(
        ratings.rating_range,
        catalogue,
        ratings.user_ids,
        rows.indptr,
        numbers[rows.items],
        rows.values,
        ratings.implicit,
    )
