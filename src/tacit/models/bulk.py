"""The local rule for many people at once: blocks of users, shared among the cores; frames out.

Every person's numbers come from her own row and the published arrays, as in `Model.recommend` and
`Model.predict`. A few blocks for each core are in memory at a time.
"""

import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tacit._blas import blas_threads
from tacit._compiling import tell_again
from tacit._resources import usable_cores
from tacit.data.build import Rules
from tacit.data.ids import clean_ids, rows_of
from tacit.data.ratings import Ratings
from tacit.data.tables import Columns, read_frame
from tacit.errors import ConfigError, UnknownItemsError, UnknownItemsWarning
from tacit.models.own_ratings import known_positions
from tacit.models.rules import (
    Choosing,
    Floats,
    Listing,
    Lists,
    OwnRows,
    Pairs,
    Pairwise,
    Uncertain,
)
from tacit.models.top_n import SHORT, best_items, without_rated

if TYPE_CHECKING:
    from tacit.models.model import Model

_BLOCK = 4096  # people scored at a time, at the most
_FEWEST = 64
_SCORES = 1 << 18  # scores held at a time by each thread: an array of these fits into a cache
_Made = TypeVar("_Made")


class Wanted(NamedTuple):
    """What lists are wanted: their length, the items that may be in them, and their order."""

    n: int
    allowed: NDArray[np.bool_]
    include_rated: bool = False
    by: str | None = None


def blocks(ratings: Ratings, make: Callable[[OwnRows, int], _Made]) -> Iterator[tuple[int, _Made]]:
    """Yield (first row, what is made of a block of users' own rows and that row), in order."""
    tell_again()
    size = min(_BLOCK, max(_FEWEST, _SCORES // max(1, ratings.n_items)))
    starts = range(0, ratings.n_users, size)
    threads = usable_cores()
    with ThreadPoolExecutor(threads) as pool:
        for first in range(0, len(starts), 4 * threads):
            group = starts[first : first + 4 * threads]
            with blas_threads(1):  # each block has a core already
                made = list(pool.map(lambda at: make(_own_rows(ratings, at, size), at), group))
            yield from zip(group, made, strict=True)


def _own_rows(ratings: Ratings, start: int, size: int) -> OwnRows:
    """Return the rows of some users."""
    stop = min(start + size, ratings.n_users)
    lo, hi = ratings.indptr[start], ratings.indptr[stop]
    indptr = ratings.indptr[start : stop + 1] - lo
    return OwnRows(indptr, ratings.items[lo:hi], ratings.values[lo:hi])


def rules_for(model: "Model", duplicates: str = "error") -> Rules:
    """Return what is laid down of own ratings for a model; those of one person will do."""
    scale = None if model.implicit else model.rating_range
    rules = Rules.checked(scale, duplicates, model.catalogue, model.implicit)
    return replace(rules, fewest_users=1)


def ratings_for(model: "Model", given: Any, columns: Columns | None = None) -> Ratings:
    """Return people's own ratings for a model: as they are, or from a frame with user ids.

    Ratings of items that the model does not have are left out, with a warning that counts them.
    """
    if isinstance(given, Ratings):
        check_same_kind(model, given)
        return given
    table = read_frame(given, columns or Columns(), implicit=model.implicit)
    rules = rules_for(model)
    try:
        return Ratings.of_tables([dict(table)], rules)
    except UnknownItemsError as error:
        message = f"{error.rows} rows are of items that are not in the catalogue and are left out"
        warnings.warn(message, UnknownItemsWarning, stacklevel=3)
    return Ratings.of_tables([dict(table)], replace(rules, unknown_items="drop"))


def check_same_kind(model: "Model", ratings: Ratings) -> None:
    """Refuse ratings of another catalogue, and interactions for a model of ratings."""
    if not np.array_equal(ratings.catalogue.ids, model.catalogue.ids):
        raise ConfigError(
            "ratings are of another catalogue; read them with catalogue=model.catalogue"
        )
    if ratings.implicit != model.implicit:
        raise ConfigError(
            f"ratings with implicit={ratings.implicit} for a model with "
            f"implicit={model.implicit}; read them with implicit={model.implicit}"
        )


def list_schema(model: "Model", users: pl.Series) -> dict[str, Any]:
    """Return the columns of `list_frames` with their types."""
    columns: dict[str, Any] = {"user": users.dtype, "rank": pl.UInt32}
    columns["item"] = model.catalogue.ids.dtype
    if model.catalogue.titles is not None:
        columns["title"] = pl.String
    columns["score"] = pl.Float32
    return columns | ({"choice": pl.Float32} if isinstance(model.rule, Choosing) else {})


def list_frames(model: "Model", ratings: Ratings, wanted: Wanted) -> Iterator[pl.DataFrame]:
    """Yield everyone's list as frames with the columns of `list_schema`, users in their order."""
    schema = list_schema(model, ratings.user_ids)

    def frame(own: OwnRows, start: int) -> pl.DataFrame:
        best, columns = _lists(model, own, wanted)
        there = best.reshape(-1) >= 0
        people = np.repeat(np.arange(start, start + len(best)), best.shape[1])[there]
        listed = best.reshape(-1)[there]
        found: dict[str, Any] = {
            "user": ratings.user_ids.gather(people),
            "rank": np.tile(np.arange(1, best.shape[1] + 1), len(best))[there],
            "item": model.catalogue.ids.gather(listed),
        }
        if model.catalogue.titles is not None:
            titles = model.catalogue.titles.gather(listed)
            found["title"] = titles.fill_null(model.catalogue.ids.gather(listed).cast(pl.String))
        found |= {name: array.reshape(-1)[there] for name, array in columns.items()}
        return pl.DataFrame(found).cast(pl.Schema(schema))

    for _, made in blocks(ratings, frame):
        yield made


def _lists(
    model: "Model", own: OwnRows, wanted: Wanted
) -> tuple[NDArray[np.int64], dict[str, Floats]]:
    """Return positions of everyone's best items, with their scores and shares of choice."""
    if (quick := _quick_lists(model, own, wanted)) is not None:
        shown = np.clip(quick.scores, *model.rating_range)
        return quick.items, {"score": shown, "choice": quick.shares}
    rule, scores = model.rule, model.rule.scores(own)
    choice = rule.choice(own) if isinstance(rule, Choosing) else None
    if choice is None or not isinstance(rule, Choosing) or wanted.by == "rating":
        order = scores.copy()
    else:
        order = choice.copy() if wanted.by == "choice" else rule.ranked(scores, choice)
    order[:, ~wanted.allowed] = -np.inf
    if not wanted.include_rated:
        order = without_rated(order, own)
    best = best_items(order, wanted.n)
    found = {"score": np.clip(np.take_along_axis(scores, best, axis=1), *model.rating_range)}
    if choice is not None:
        choice[order == -np.inf] = 0.0
        whole = np.maximum(choice.sum(axis=1, keepdims=True), 1e-300)
        found["choice"] = np.take_along_axis(choice, best, axis=1) / whole
    return best, found


def _quick_lists(model: "Model", own: OwnRows, wanted: Wanted) -> Lists | None:
    """Return everyone's lists without scores of all items, where the rule makes such lists."""
    rule = model.rule
    if wanted.by is not None or wanted.n > SHORT or not isinstance(rule, Listing):
        return None
    rated = own
    if wanted.include_rated:
        rated = OwnRows(np.zeros_like(own.indptr), own.items[:0], own.values[:0])
    return rule.lists(own, rated, wanted.allowed, wanted.n)


def best_rows(model: "Model", own: OwnRows, wanted: Wanted) -> NDArray[np.int64]:
    """Return positions of everyone's best items, by scores that are not cut off."""
    if (quick := _quick_lists(model, own, wanted)) is not None:
        return quick.items
    order = model._order(wanted.by)(own)
    order[:, ~wanted.allowed] = -np.inf
    return best_items(order if wanted.include_rated else without_rated(order, own), wanted.n)


def recommend_frame(model: "Model", given: Any, wanted: Wanted) -> pl.DataFrame:
    """Return the lists of all users of a frame, or of Ratings, as one frame."""
    ratings = ratings_for(model, given)
    frames = list(list_frames(model, ratings, wanted))
    return pl.concat(frames) if frames else pl.DataFrame(schema=list_schema(model, pl.Series([])))


def pair_predictions(
    model: "Model", ratings: Ratings, pairs: Pairs, *, spread: bool = False, clip: bool = True
) -> tuple[Floats, Floats]:
    """Return the predicted rating of each pair of row and item, and its std if `spread`."""
    if spread:
        model._uncertain("stds")
    scores = np.empty(pairs.items.size)
    stds = np.empty(pairs.items.size if spread else 0)

    def predict(own: OwnRows, start: int) -> None:
        bounds = pairs.starts[start : start + own.indptr.size]
        where = slice(int(bounds[0]), int(bounds[-1]))
        asked = Pairs(bounds - bounds[0], pairs.items[where])
        scores[where], found = _of_pairs(model, own, asked, spread)
        if spread:
            stds[where] = found

    for _ in blocks(ratings, predict):
        pass
    low, high = model.rating_range
    if clip:
        np.clip(scores, low, high, out=scores)
    return scores, np.minimum(stds, (high - low) / 2, out=stds)


def _of_pairs(model: "Model", own: OwnRows, pairs: Pairs, spread: bool) -> tuple[Floats, Floats]:
    """Return scores and stds of a block, without all other items where the rule can do that."""
    rule = model.rule
    if isinstance(rule, Pairwise):
        return rule.pair_scores(own, pairs, spread)
    where = (pairs.people, pairs.items)
    stds = rule.spread(own)[where] if spread and isinstance(rule, Uncertain) else np.empty(0)
    return rule.scores(own)[where], stds


def predict_frame(
    model: "Model", given: Any, pairs: Any, *, spread: bool = False, clip: bool = True
) -> pl.DataFrame:
    """Return a frame user, item, score (and std) in the order of `pairs`, a frame user, item.

    A user without ratings is predicted as someone unknown; an unknown item has no score.
    """
    ratings = ratings_for(model, given)
    table = read_frame(pairs, Columns(), implicit=True)
    users, items = clean_ids(table["user"]), clean_ids(table["item"])
    positions = known_positions(items, model.catalogue, "wanted items")
    found = _looked_up(model, ratings, rows_of(users, ratings.user_ids), positions)
    columns = dict(zip(("score", "std"), found(spread, clip), strict=False))
    known = pl.Series(positions >= 0)
    frame = pl.DataFrame({"user": users, "item": items, **columns})
    shown = [pl.when(known).then(pl.col(name).cast(pl.Float32)).alias(name) for name in columns]
    return frame.with_columns(shown)


def _looked_up(
    model: "Model", ratings: Ratings, rows: NDArray[np.int64], items: NDArray[np.int64]
) -> Callable[[bool, bool], tuple[Floats, ...]]:
    """Return what predicts pairs of row and position, each -1 where unknown, in their order."""
    asked = np.flatnonzero((rows >= 0) & (items >= 0))
    asked = asked[np.argsort(rows[asked], kind="stable")]
    people, counts = np.unique(rows[asked], return_counts=True)
    pairs = Pairs(np.concatenate(([0], np.cumsum(counts))), items[asked])

    def predict(spread: bool, clip: bool) -> tuple[Floats, ...]:
        own = ratings.take_rows(people)
        known = pair_predictions(model, own, pairs, spread=spread, clip=clip)
        unknown = model.predict([] if model.implicit else {}, clip=clip), np.empty(0)
        if spread:
            unknown = model.predict({}, return_std=True, clip=clip)
        made = []
        for of_known, of_unknown in zip(known[: 1 + spread], unknown, strict=False):
            every = np.where(items >= 0, of_unknown[items], np.nan)
            every[asked] = of_known
            made.append(every)
        return tuple(made)

    return predict
