"""Loops that hold out some of everyone's own ratings, and compare rules on them."""

import numpy as np
from numba import njit

from tacit.kernels.quantise import clip_factor, norm_of, quantise
from tacit.kernels.rows import priorities


@njit(cache=True, nogil=True)
def mark_held_out(rows, seed, below, lo, hi, marks):
    """Mark each rating whose pseudo-random word is under `below`, from that of user `lo` on.

    `rows` are (indptr, items, values). A word depends on the seed and the user's own row only.
    """
    indptr, items, values = rows
    first = indptr[lo]
    for i in range(lo, hi):
        start, stop = indptr[i], indptr[i + 1]
        words = priorities(items[start:stop], values[start:stop], seed)
        for p in range(start, stop):
            marks[p - first] = words[p - start] < below


@njit(cache=True, nogil=True)
def add_losses(losses, quanta, total):
    """Add each user's losses, less their mean and clipped as one vector, in integers.

    Entries are cut towards zero first, so that the quantiser has next to nothing to shorten.
    """
    users, rules = losses.shape
    term = np.empty(rules, dtype=np.int64)
    for i in range(users):
        centred = losses[i] - np.sum(losses[i]) / rules
        factor = clip_factor(norm_of(centred), quanta.bound) / quanta.quantum
        quantise(np.trunc(factor * centred), 1.0, quanta.most_squared, term)
        total += term
