"""Co-rating counts estimated from activity-stratified item counts.

All of it is post-processing. People with long lists rate rare items, and rate them together; so the
number of people who rated two items is not the product of two shares. Among people whose lists
are about as long it nearly is.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tacit.estimation.empirical_bayes import shrunk

Floats = NDArray[np.float64]

_SHORTEST = 0.01  # a list, of those that a few items leave of long ones


class CoRatings(NamedTuple):
    """How much is known of items and pairs of items, with e_ij = 1 where user i rated item j.

    Attributes:
        weights: sum_i e_ij / sqrt(d_i), for each item.
        error: the sd of the noise in a weight, over the weight.
        inverse_counts: sum_i e_ij / d_i, for each item.
        stratum_sizes: how many have lists of about each of the `lengths`.
        lengths: of lists, typical for each stratum.
        stratum_weights: the weights of each stratum, strata by items.
    """

    weights: Floats
    error: Floats
    inverse_counts: Floats
    stratum_sizes: Floats
    lengths: Floats
    stratum_weights: Floats

    @property
    def shares(self) -> Floats:
        """Each item's share of all ratings."""
        return np.asarray(self.weights / self.weights.sum())

    def pairs(self) -> Floats:
        """Return sum_i e_ij e_ik / d_i, items by items."""
        return np.asarray(
            (self.stratum_weights / self.stratum_sizes[:, None]).T @ self.stratum_weights
        )

    def squares(self) -> Floats:
        """Return sum_i e_ij e_ik / d_i^2, items by items."""
        return np.asarray(
            (self.stratum_weights / (self.stratum_sizes * self.lengths)[:, None]).T
            @ self.stratum_weights
        )

    def alone(self, items: NDArray[np.int64]) -> "CoRatings":
        r"""Return what is known of these items if only their ratings count.

        Lists of length d are Poisson then, of mean l = d times the items' share of the stratum. Two
        items have $E[e_j e_k / d_i]$ = their shares times $l E[1/(2 + Poisson(l))]$, where it is l
        for lists of that very length: $(l - 1 + e^{-l})/l$ times as much.
        """
        inside = self.stratum_weights[:, items]
        part = inside.sum(axis=1) / self.stratum_weights.sum(axis=1)
        lengths = np.maximum(self.lengths * part, _SHORTEST)
        paired = (lengths + np.expm1(-lengths)) / lengths
        weights = inside * np.sqrt(paired / part)[:, None]
        return self._replace(
            weights=weights.sum(axis=0),
            error=self.error[items],
            inverse_counts=(1 / np.sqrt(lengths)) @ weights,
            lengths=lengths,
            stratum_weights=weights,
        )

    def among(self, items: NDArray[np.int64]) -> "CoRatings":
        """Return what is known of these items only."""
        return self._replace(
            weights=self.weights[items],
            error=self.error[items],
            inverse_counts=self.inverse_counts[items],
            stratum_weights=self.stratum_weights[:, items],
        )


def activity_strata(most: int, affordable: float) -> tuple[int, ...]:
    """Return the lengths of lists, up to `most`, at which a new stratum begins.

    Each is sqrt2 times the one before, or 2 or 4 times, so that there are no more strata than are
    affordable; none if even that is too many.

    >>> activity_strata(20, 100.0)
    (2, 3, 4, 6, 8, 12, 16)
    >>> activity_strata(20, 4.0)
    (4, 16)
    """
    for halvings in (1, 2, 4):
        steps = range(2, 2 * math.ceil(math.log2(max(most, 2))) + 1)
        edges = {math.ceil(2 ** (step / 2)) for step in steps if step % halvings == 0}
        inside = tuple(sorted(edge for edge in edges if edge <= most))
        if len(inside) + 1 <= affordable:
            return inside
    return ()


def co_ratings(counts: Floats, noise_sd: float, edges: tuple[int, ...], users: float) -> CoRatings:
    """Return what released counts, strata by items, tell of items and of pairs.

    In stratum c with lists of about d_c ratings, w_cj = sum_i e_ij / sqrt(d_i) and hence
    m_c = sum_j w_cj / sqrt(d_c) people; within it, w_cj w_ck / m_c is the weight of a pair. All
    strata are first taken to have one shape, and as much of how they differ from it is put back as
    noise cannot have made.
    """
    totals = np.maximum(counts.sum(axis=1), max(noise_sd * math.sqrt(counts.shape[1]), 1e-12))
    part = totals / math.sqrt(float(totals @ totals))
    stratum_weights = np.outer(part, np.maximum(part @ counts, max(noise_sd, 1e-12)))
    if edges:
        variances = np.full(counts.shape[1], noise_sd**2)
        gaps = [shrunk(gap, variances, 1e-9).estimates for gap in counts - stratum_weights]
        stratum_weights = np.maximum(stratum_weights + gaps, 1e-12)
    return _of_strata(stratum_weights, _lengths(edges), users, noise_sd * float(part.sum()))


def _of_strata(
    stratum_weights: Floats, lengths: Floats, users: float, noise_sd: float
) -> CoRatings:
    """Return the co-ratings of strata with lists of about the given lengths, of so many users."""
    weights, roots = stratum_weights.sum(axis=0), np.sqrt(lengths)
    roots = np.maximum(roots * float(np.sum(stratum_weights.sum(axis=1) / roots)) / users, 1.0)
    return CoRatings(
        weights=weights,
        error=noise_sd / weights,
        inverse_counts=(1 / roots) @ stratum_weights,
        stratum_sizes=stratum_weights.sum(axis=1) / roots,
        lengths=roots**2,
        stratum_weights=stratum_weights,
    )


def _lengths(edges: tuple[int, ...]) -> Floats:
    """Return a typical length of list in each stratum: between its first and its last."""
    first = np.array([1, *edges], dtype=float)
    last = np.array([*(edge - 1 for edge in edges), 1.3 * first[-1]], dtype=float)
    return np.asarray(np.sqrt(first * last))
