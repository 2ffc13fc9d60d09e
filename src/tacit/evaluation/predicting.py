"""Predictions of held-out ratings only: no user predicts what nobody compares."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.ratings import Ratings
from tacit.evaluation.held_out import HeldOut
from tacit.models.bulk import check_same_kind, pair_predictions
from tacit.models.model import Model
from tacit.models.rules import Pairs

Floats = NDArray[np.float64]


def predicted(
    model: Any, train: Ratings, held_out: HeldOut, *, spread: bool = False
) -> tuple[Floats, Floats]:
    """Return the score of every held-out rating, and its std if `spread`.

    A published model solves once for each user; anything else is asked for blocks of all items.
    """
    own = train.take_rows(held_out.people)
    if isinstance(model, Model):
        check_same_kind(model, own)
        starts = np.searchsorted(held_out.person, np.arange(len(held_out.people) + 1))
        return pair_predictions(model, own, Pairs(starts, held_out.item), spread=spread)
    scores, stds = np.empty(len(held_out.item)), np.empty(len(held_out.item) if spread else 0)
    blocks = model.predict_rows_with_std(own) if spread else model.predict_rows(own)
    for start, block, *more in blocks:
        low, high = np.searchsorted(held_out.person, (start, start + len(block)))
        where = (held_out.person[low:high] - start, held_out.item[low:high])
        scores[low:high] = block[where]
        for spreads in more:
            stds[low:high] = spreads[where]
    return scores, stds
