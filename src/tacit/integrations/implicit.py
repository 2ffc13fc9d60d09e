"""The methods of the models of `implicit`, from a private fit: fit, recommend, similar_items.

Programs written for `implicit.als.AlternatingLeastSquares` run with few changes
(docs/integrations/implicit.md lists them). The package `implicit` itself is not needed.
"""

import json
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit._atomic import write_durably
from tacit._damaged import MALFORMED
from tacit._outputs import Kind, Output, check_replaceable
from tacit._validate import Count, check
from tacit.algorithms import Interactions, algorithm_from
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import (
    ConfigError,
    DataError,
    ModelFileError,
    PositionError,
    RefusedError,
    TacitWarning,
)
from tacit.fitting.fit import fit
from tacit.integrations._adapting import (
    budget_asked,
    budget_settings,
    check_columns,
    model_bytes,
    model_from_bytes,
    own_rows,
)
from tacit.integrations._unlike_implicit import refuse_settings, why_absent
from tacit.models import Model
from tacit.models.rules import Comparing, Linear
from tacit.models.top_n import best_items

__all__ = ["PrivateRecommender"]

Floats = NDArray[np.float64]
_LAST = -float(np.finfo(np.float32).max)  # what `implicit` gives for items that are filtered out
_ITSELF = 2.0  # above any cosine, so that an item comes before those that are exactly like it
_UNFITTED = "tacit-unfitted/1"


class PrivateRecommender:
    """A private recommender with the interface of the models of `implicit`.

    `fit` takes a sparse matrix of users by items. That an entry is stored, and is not zero, is all
    that counts: confidences are not looked at. After it the object holds the published model and
    nothing of any user, so `recommend` always computes from the row that it is given, and there are
    no `user_factors` and `similar_users`.

    Args:
        epsilon: the privacy loss that a fit may spend; every call of `fit` spends it anew.
        delta: the probability with which it may be exceeded.
        neighbours: "replace" or "add_remove".
        nonprivate: fit without noise; the model says NOT PRIVATE.
        algorithm: settings of the method, `Interactions(...)`.
        catalogue: the public list of items, one for each column. Without it the columns are taken
            as the items, and the certificate says that they are only assumed to be public.
        theirs: settings of `AlternatingLeastSquares`: each is refused with what to do instead.

    >>> from scipy.sparse import csr_matrix
    >>> model = PrivateRecommender(nonprivate=True)
    >>> likes = csr_matrix([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 1], [0, 0, 1, 1]] * 50)
    >>> model.fit(likes, show_progress=False)
    >>> ids, scores = model.recommend(0, csr_matrix([[1, 0, 0, 0]]), N=1)
    >>> ids
    array([1], dtype=int32)
    """

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float = 1e-6,
        neighbours: str = "replace",
        nonprivate: bool = False,
        algorithm: Interactions | None = None,
        catalogue: Catalogue | None = None,
        **theirs: Any,
    ) -> None:
        refuse_settings(theirs)
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.nonprivate = nonprivate
        self.algorithm = algorithm
        self.catalogue = catalogue
        self.model: Model | None = None

    def fit(
        self,
        user_items: Any,
        show_progress: bool = True,
        callback: Callable[[int, float, float], object] | None = None,
    ) -> None:
        """Learn from a sparse matrix of users by items; every call spends epsilon anew.

        Args:
            user_items: a CSR matrix; other sparse formats are converted, with a warning.
            show_progress: whether to show a progress bar, of releases made.
            callback: called after each release with (how many are made, seconds since the start,
                the share that is made).
        """
        budget = budget_asked(self.epsilon, self.delta, self.neighbours, self.nonprivate)
        likes = _interactions(user_items)
        ratings = Ratings.from_sparse(likes, implicit=True, catalogue=self.catalogue)
        with _Progress(show_progress, callback) as progress:
            self.model = fit(ratings, self.algorithm, budget=budget, progress=progress)

    def recommend(
        self,
        userid: Any,
        user_items: Any,
        N: int = 10,
        filter_already_liked_items: bool = True,
        filter_items: Any = None,
        recalculate_user: bool = True,  # noqa: ARG002 - there is no other way
        items: Any = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the N best items and their scores, for one user or for several.

        Args:
            userid: a number, or several; only says how many rows there are. Nothing is known of a
                user but the row that is given.
            user_items: a CSR matrix with one row for each of the users: what they interacted with.
            N: how many; lists of several users that are too short end in -1.
            filter_already_liked_items: leave out what is in a user's row.
            filter_items: leave out these columns.
            recalculate_user: as `implicit` has it; it is always so.
            items: rank these columns only, all of them: what is left out comes last.
        """
        model = self._fitted()
        own = _rows_of(userid, user_items, model)
        scores = model.rule.scores(own)
        gone = np.zeros(scores.shape, dtype=bool)
        if filter_already_liked_items:
            gone[np.repeat(np.arange(len(gone)), np.diff(own.indptr)), own.items] = True
        ids, found = _ranked(scores, gone, N, filter_items, items)
        return _alone(ids, found) if np.isscalar(userid) else (ids, found)

    def similar_items(
        self,
        itemid: Any,
        N: int = 10,
        recalculate_item: bool = False,
        item_users: Any = None,  # noqa: ARG002 - only for recalculate_item
        filter_items: Any = None,
        items: Any = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return the N most similar items, the item itself first, and their cosines.

        Raises:
            RefusedError: `recalculate_item`, which would read people's rows without noise.
        """
        if recalculate_item:
            raise RefusedError(
                "recalculate_item=True: an item would be described by the rows of those who "
                "touched it, without noise; similar_items reads the published model only"
            )
        model = self._fitted()
        rule = model.rule
        if not isinstance(rule, Comparing):
            raise ConfigError(f"similar_items: the local rule {rule.kind} does not compare items")
        wanted = _positions("itemid", np.atleast_1d(itemid), len(model.catalogue))
        scores = np.array([rule.similarities(int(place)) for place in wanted])
        scores[np.arange(wanted.size), wanted] = _ITSELF
        ids, found = _ranked(scores, np.isnan(scores), N, filter_items, items)
        found = np.minimum(found, np.float32(1.0))
        return _alone(ids, found) if np.isscalar(itemid) else (ids, found)

    def explain(
        self,
        userid: int,
        user_items: Any,
        itemid: int,
        user_weights: None = None,  # noqa: ARG002 - nothing is worth keeping between calls
        N: int = 10,
    ) -> tuple[float, list[tuple[int, float]], None]:
        """Return the score of an item, and the N items of a user's row that add most to it.

        Args:
            userid: the row of `user_items` that is the user's.
            user_items: a CSR matrix: all rows, or one, with userid=0.
            itemid: the column to explain.
            user_weights: as `implicit` has it; not used, and None is returned for it.
            N: how many items.

        Returns:
            The score that `recommend` gives; (column, what it adds) of the items that add most;
            None. What all items of the row add, and the score of someone who touched as many
            items of which nothing is known, make up the score.
        """
        model = self._fitted()
        rows = _csr(user_items).shape[0]
        if not 0 <= userid < rows:
            raise PositionError(
                f"userid={userid!r}: user_items has {rows} rows; give the whole matrix, or one row "
                "and userid=0"
            )
        own = _rows_of(0, user_items[userid], model)
        wanted = _positions("itemid", [itemid], len(model.catalogue))
        rule = model.rule
        if not isinstance(rule, Linear):
            raise ConfigError(f"explain: the local rule {rule.kind} is not linear in one's items")
        baseline, added = rule.contributions(own, wanted)
        best = np.argsort(-added[0], kind="stable")[: check("N", N, Count)]
        found = [(int(own.items[k]), float(added[0, k])) for k in best]
        return float(baseline[0] + added[0].sum()), found, None

    @property
    def item_factors(self) -> NDArray[np.float32]:
        """A vector for each column, as `Model.item_vectors`: published, and so public.

        Its product with `recalculate_user` is the score of the item.
        """
        return self._fitted().item_vectors.astype(np.float32)

    def recalculate_user(self, userid: Any, user_items: Any) -> NDArray[np.float32]:
        """Return the vector of a user's row, or of several, as `Model.user_vector`.

        It tells about the row, and no certificate covers it: do not publish it.
        """
        model = self._fitted()
        scores = model.rule.scores(_rows_of(userid, user_items, model))
        vectors = np.array([model.vector_of_scores(row) for row in scores], dtype=np.float32)
        return vectors[0] if np.isscalar(userid) else vectors

    if not TYPE_CHECKING:  # so that mypy still finds attributes that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            """Say why an attribute of the models of `implicit` is missing."""
            said = f"PrivateRecommender has no {name}{why_absent(name)}"
            raise AttributeError(said, name=name, obj=self)

    def similar_users(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse: nothing is kept of users, and who is like whom is what is protected."""
        raise RefusedError(
            "similar_users: a published model holds nothing of any user, and to say who is like "
            "whom would tell one user about another; similar_items compares items"
        )

    def save(self, file: str | PathLike[str] | BinaryIO) -> None:
        """Write the model file to a path or an open file; `tacit.load` and `tacit verify` read it.

        Before a fit, what is written is the settings.
        """
        content = self._settings() if self.model is None else model_bytes(self.model)
        if not isinstance(file, str | PathLike):
            file.write(content)
        elif self.model is not None:
            self.model.save(file)
        else:
            check_replaceable(Output("file", Path(file), Kind.MODEL), overwrite=False)
            write_durably(Path(file), content)

    @classmethod
    def load(cls, file: str | PathLike[str] | BinaryIO) -> "PrivateRecommender":
        """Read what `save` wrote, or any model file of interactions."""
        content = Path(file).read_bytes() if isinstance(file, str | PathLike) else file.read()
        if content[:1] == b"{":
            return cls(**_read_settings(content))
        return cls.of(model_from_bytes(content))

    @classmethod
    def of(cls, model: Model) -> "PrivateRecommender":
        """Put this interface around a model of interactions."""
        if not model.implicit:
            raise ConfigError("model: it was learned from ratings; expected one of interactions")
        made = cls(**budget_settings(model.certificate))
        made.model = model
        return made

    def __repr__(self) -> str:
        """Show the budget, or the model."""
        return f"PrivateRecommender({self.model or f'epsilon={self.epsilon}'})"

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the model as the bytes of its file."""
        held = None if self.model is None else model_bytes(self.model)
        return self.__dict__ | {"model": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        held = state["model"]
        self.__dict__ |= state | {"model": None if held is None else model_from_bytes(held)}

    def _fitted(self) -> Model:
        if self.model is None:
            raise ConfigError("this recommender has not been fitted; call fit first")
        return self.model

    def _settings(self) -> bytes:
        """Return what an unfitted recommender is, as JSON."""
        if self.catalogue is not None:
            raise ConfigError("save before fit: a catalogue cannot be kept; fit first")
        budget = {name: getattr(self, name) for name in ("epsilon", "delta", "neighbours")}
        method = None if self.algorithm is None else asdict(self.algorithm)
        facts = {"format": _UNFITTED, **budget, "nonprivate": self.nonprivate, "algorithm": method}
        return json.dumps(facts).encode()


class _Progress:
    """What a fit calls after each release: a bar, and a callback in the manner of `implicit`."""

    def __init__(self, show: bool, callback: Callable[[int, float, float], object] | None) -> None:
        self.show, self.callback, self.start = show, callback, time.perf_counter()

    def __enter__(self) -> Callable[[int, int], None]:
        from rich.progress import Progress

        self.bar = Progress(disable=not self.show, transient=True)
        self.bar.__enter__()
        self.task = self.bar.add_task("releases", total=None)
        return self._made

    def _made(self, done: int, planned: int) -> None:
        self.bar.update(self.task, completed=done, total=planned)
        if self.callback is not None:
            self.callback(done, time.perf_counter() - self.start, done / max(1, planned))

    def __exit__(self, *error: Any) -> None:
        self.bar.__exit__(*error)


def _interactions(user_items: Any) -> Any:
    """Return a matrix without stored zeros; dislikes, which are negative, are refused."""
    if not hasattr(user_items, "tocsr"):
        kind = type(user_items).__name__
        raise ConfigError(f"user_items={kind}: expected a scipy sparse matrix, users by items")
    if user_items.format != "csr":
        theirs = getattr(sys.modules.get("implicit.utils"), "ParameterWarning", TacitWarning)
        warnings.warn(
            f"user_items: expected CSR, and it is {user_items.format.upper()}: converted",
            theirs,
            stacklevel=3,
        )
    likes = user_items.tocsr(copy=True)
    likes.sum_duplicates()
    likes.eliminate_zeros()
    negative = int(np.sum(~(likes.data > 0)))
    if negative:
        raise DataError(
            f"user_items: {negative} entries are negative or not numbers; interactions have no "
            "sign: leave dislikes out, or fit ratings with tacit.fit"
        )
    return likes


def _csr(user_items: Any) -> Any:
    """Return a CSR matrix as it is; anything else is refused."""
    if getattr(user_items, "format", None) != "csr":
        raise ConfigError(
            "user_items: expected a CSR matrix with a row for each of the users; nothing is kept "
            "of users, so their own rows come with each call"
        )
    return user_items


def _rows_of(userid: Any, user_items: Any, model: Model) -> Any:
    """Return the rows that the users bring."""
    _csr(user_items)
    people = 1 if np.isscalar(userid) else len(userid)
    if user_items.shape[0] != people:
        raise ConfigError(
            f"user_items: {user_items.shape[0]} rows for {people} users; expected one for each, "
            "as in user_items[userid]"
        )
    check_columns("user_items", user_items.shape[1], model.catalogue)
    likes = user_items.copy()
    likes.eliminate_zeros()
    return own_rows(likes)


def _positions(name: str, given: Any, count: int) -> NDArray[np.int64]:
    """Return columns that exist, or say that some do not."""
    wanted = np.asarray(given)
    if wanted.dtype.kind not in "iu" and wanted.size:
        raise ConfigError(f"{name}: expected numbers of columns")
    outside = int(np.sum((wanted < 0) | (wanted >= count)))
    if outside:
        raise PositionError(f"{name}: {outside} columns do not exist; there are {count}, from 0")
    return wanted.astype(np.int64)


def _ranked(
    scores: Floats, gone: NDArray[np.bool_], count: int, filter_items: Any, items: Any
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return everyone's best columns and their scores."""
    count = check("N", count, Count)
    if items is not None and filter_items is not None:
        raise ConfigError("items and filter_items: give one of them")
    width = scores.shape[1]
    if items is None:
        left_out = [] if filter_items is None else filter_items
        gone[:, _positions("filter_items", left_out, width)] = True
        best = best_items(np.where(gone, -np.inf, scores), count)
        places = np.maximum(best, 0)
        found = np.where(best >= 0, np.take_along_axis(scores, places, axis=1), _LAST)
        return best.astype(np.int32), found.astype(np.float32)
    chosen = np.unique(_positions("items", items, width))
    kept = np.where(gone, _LAST, scores)[:, chosen]
    best = best_items(kept, count)
    found = np.take_along_axis(kept, best, axis=1)
    return chosen[best].astype(np.int32), found.astype(np.float32)


def _alone(
    ids: NDArray[np.int32], scores: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the list of one user, as long as it is."""
    there = ids[0] >= 0
    return ids[0][there], scores[0][there]


def _read_settings(content: bytes) -> dict[str, Any]:
    """Read the settings of an unfitted recommender, trusting none of them."""
    try:
        facts = json.loads(content)
        method = facts.pop("algorithm")
        if facts.pop("format") != _UNFITTED:
            raise ModelFileError("file: expected settings that PrivateRecommender.save wrote")
        known = {name: facts[name] for name in ("epsilon", "delta", "neighbours", "nonprivate")}
        algorithm = None if method is None else algorithm_from("interactions", **method)
        return known | {"algorithm": algorithm}
    except MALFORMED:
        raise ModelFileError("file: neither a model nor the settings of one") from None
