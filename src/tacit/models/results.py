"""The results of a model: recommendations, their reasons, and similar items."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Reason:
    """One of her own ratings, and what it adds to a prediction.

    Attributes:
        item: the item that she rated.
        title: its title, or the id where it has none.
        rating: how she rated it; 1 for interactions.
        contribution: what it adds to the predicted rating, or for interactions to the share.
    """

    item: Any
    title: str
    rating: float
    contribution: float


@dataclass(frozen=True)
class Recommendation:
    """One recommended item.

    Attributes:
        item: its id.
        title: its title, or the id where it has none.
        score: the predicted rating, or for interactions the predicted share.
        choice: the share of her next choices that it is expected to be, among the items that could
            be recommended; None where the model does not know what people choose.
        baseline: the prediction without the values of her ratings; None if not asked for.
        because: all of her ratings, the largest contributions first; None if not asked for.
            baseline and contributions add up to the prediction before it is moved into the rating
            range.
    """

    item: Any
    title: str
    score: float
    choice: float | None = None
    baseline: float | None = None
    because: tuple[Reason, ...] | None = None


@dataclass(frozen=True)
class SimilarItem:
    """One item that is similar to another.

    Attributes:
        item: its id.
        title: its title, or the id where it has none.
        similarity: from -1 to 1; 1 for an item of which the same is published.
    """

    item: Any
    title: str
    similarity: float
