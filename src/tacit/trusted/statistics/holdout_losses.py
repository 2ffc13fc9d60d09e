"""Comparing published rules on ratings that were held out.

Of each user's own ratings a pseudo-random part is held out; the rest is what rules are learned
from, and what a rule sees of her when it predicts the part.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import Sensitivity
from tacit.data.ratings import Ratings
from tacit.kernels.holdout import mark_held_out
from tacit.kernels.loops import Loops
from tacit.trusted.quantise import norm_quanta
from tacit.trusted.rows import RowBounds, all_ratings
from tacit.trusted.selection import keep
from tacit.trusted.statistic import Adder, Integers, Statistic, any_vector

Floats = NDArray[np.float64]


class _Own(NamedTuple):
    """Own ratings as published rules take them."""

    indptr: NDArray[np.int64]
    items: NDArray[Any]
    values: NDArray[np.float32]


class Rule(Protocol):
    """A published rule: own ratings in, own scores out."""

    def scores(self, own: Any) -> Floats:
        """Return everyone's predicted rating of every item, people by items."""
        ...


@dataclass(frozen=True)
class Holdout:
    """Which of a user's own ratings are held out: about `share` of them. Both are public.

    Whether a rating is held out depends on the seed and on her own row, on nobody else's.
    """

    share: float
    seed: int

    def marks(self, rows: tuple[Any, Any, Any], lo: int, hi: int) -> NDArray[np.bool_]:
        """Return whether each rating of the users lo <= i < hi is held out."""
        indptr, _, _ = rows
        marks = np.empty(indptr[hi] - indptr[lo], dtype=np.bool_)
        mark_held_out(rows, self.seed, np.uint64(self.share * 2.0**64), lo, hi, marks)
        return marks

    def rest(self, ratings: Ratings) -> Ratings:
        """Return everyone's ratings that are not held out; every user keeps her row."""
        rows = (ratings.indptr, ratings.items, ratings.values)
        return keep(ratings, ~self.marks(rows, 0, ratings.n_users))


@dataclass(frozen=True, eq=False)
class HeldOutLosses(Statistic):
    r"""For each of K published rules, how far its error is above the average rule's, over users.

    User $i$'s loss $l_k$ is the mean, over her held-out ratings, of
    $(y - \text{prediction})^2 / (hi - lo)^2$, with predictions from her other ratings, clipped to
    the range $[lo, hi]$. Her term is $l - \text{mean}(l)$, scaled down to norm $C$ = `clip` if it
    is longer; zero if nothing of hers is held out. The mean loss is subtracted because only
    differences matter.

    *Paper:* none; Section 4 tunes on the ratings.
    *Guarantee:* L2 norm. A user's term has norm at most $C$, by the quantiser:
    add_remove is C; replace is 2 C by the triangle inequality, reached by two users who prefer
    different rules by far. Without the clip a term could have norm sqrt(K)/2, and an exchange
    sqrt(K). Everyone is scored by herself, so that nobody else's term depends on who she is, not
    even in its rounding. A score that is not a number counts as the largest loss.
    """

    rules: tuple[Rule, ...]
    n_items: int
    rating_range: tuple[float, float]
    holdout: Holdout
    clip: float
    term_bits = 26

    @property
    def bounds(self) -> RowBounds:  # type: ignore[override]
        """All ratings, as they are."""
        return all_ratings(self.n_items)

    @property
    def sensitivity(self) -> Sensitivity:
        """$C$, and $2 C$ when a row is replaced."""
        return any_vector(self.clip)

    @property
    def shape(self) -> tuple[int, ...]:
        """One number for each rule."""
        return (len(self.rules),)

    def adder(self, local: tuple[Any, ...], unit: float, loops: Loops) -> Adder:
        """Score everyone by every rule and add the clipped differences."""
        own = _Own(*local[0][:3])
        quanta = norm_quanta(self.clip, unit)

        def add(lo: int, hi: int, total: Integers) -> None:
            loops.add_losses(self._losses(own, lo, hi), quanta, total)

        return add

    def _losses(self, rows: _Own, lo: int, hi: int) -> Floats:
        """Return the users' losses, users by rules."""
        losses = np.zeros((hi - lo, len(self.rules)))
        marks = self.holdout.marks(tuple(rows), lo, hi)  # type: ignore[arg-type]
        first = rows.indptr[lo]
        for user in range(lo, hi):
            start, stop = rows.indptr[user], rows.indptr[user + 1]
            held = marks[start - first : stop - first]
            if held.any():
                hers = rows.items[start:stop], rows.values[start:stop]
                losses[user - lo] = self._losses_of(*hers, held)
        return losses

    def _losses_of(
        self, items: NDArray[Any], values: NDArray[np.float32], held: NDArray[np.bool_]
    ) -> Floats:
        """Return one user's loss under each rule."""
        low, high = self.rating_range
        ends = np.array([0, held.size - held.sum()], dtype=np.int64)
        own = _Own(ends, items[~held], values[~held])
        wanted, truth = items[held], values[held]
        losses = np.ones(len(self.rules))
        # No warning of overflow: it would depend on somebody's row.
        with np.errstate(all="ignore"):
            for at, rule in enumerate(self.rules):
                scores = np.clip(rule.scores(own)[0, wanted], low, high)
                loss = np.mean(((truth - scores) / (high - low)) ** 2)
                losses[at] = loss if loss <= 1.0 else 1.0
        return losses
