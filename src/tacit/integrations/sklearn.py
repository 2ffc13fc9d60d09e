"""An estimator with the manners of scikit-learn: rows of ratings in, whole rows out.

A sample is a person and a feature is an item, so that splits of samples are splits of people: the
unit of privacy. What is missing is NaN in a dense array, and not stored in a sparse matrix.
"""

import warnings
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from tacit.accounting.budget import PrivacyBudget, epsilon_of
from tacit.algorithms import Algorithm
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError, MissingPackage, UnpaidFitsWarning
from tacit.fitting.fit import fit
from tacit.integrations._adapting import budget_asked, model_bytes, model_from_bytes
from tacit.models import Model

try:
    from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError:
    raise MissingPackage("tacit.integrations.sklearn", "scikit-learn", "sklearn") from None

__all__ = ["PrivateRecommender"]

Floats = NDArray[np.float64]
_HIDDEN = 5  # `score` hides every fifth rating of a row
_LONG = (
    "X: it has text; expected a matrix of ratings, a row for each user and a column for each item, "
    "NaN where there is none. A frame of user, item and rating becomes one with frame.pivot(index="
    "'user', columns='item', values='rating')"
)


@dataclass
class _Fits:
    """What an estimator and its clones have in common: how many there are, and their fits.

    Copies of a clone, as other processes get them, do not know of each other's fits. They are
    counted by the number of the clone, which is an upper bound.
    """

    clones: int = 0
    made: int = 0
    copied: bool = False


class PrivateRecommender(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """A private recommender as a transformer of scikit-learn: fills in what is missing.

    After a fit it holds the published model (`model_`) and nothing of any row, so `transform`,
    `predicted_ratings` and `recommend` work for people who were in the fit and for others alike,
    each from her own row. There is no `predict`: that would be one number for each row.

    Every fit spends epsilon anew. Cross-validation and grid search fit clones; from the second fit
    on, each warns with an UnpaidFitsWarning of what all of them cost together. `tacit.tune`
    chooses settings within one budget.

    Args:
        rating_range: (lowest, highest) rating that is possible: public, never taken from X.
        epsilon: the privacy loss that a fit may spend.
        delta: the probability with which it may be exceeded.
        neighbours: "replace" or "add_remove".
        nonprivate: fit without noise; the model says NOT PRIVATE.
        algorithm: settings of a method, such as `tacit.Moments()`; None: `tacit.LatentFactors()`.
        catalogue: the public list of items, one for each column. Without it the columns are the
            items, and the certificate says that they are only assumed to be public.
        outside: what to do with ratings outside the range: "error", or "clip" to move them in.

    Attributes:
        model_: the published model, a `tacit.Model`.
        n_features_in_: how many items there are.
    """

    def __init__(
        self,
        *,
        rating_range: tuple[float, float] | None = None,
        epsilon: float | None = None,
        delta: float = 1e-6,
        neighbours: str = "replace",
        nonprivate: bool = False,
        algorithm: Algorithm | None = None,
        catalogue: Catalogue | None = None,
        outside: str = "error",
    ) -> None:
        self.rating_range = rating_range
        self.epsilon = epsilon
        self.delta = delta
        self.neighbours = neighbours
        self.nonprivate = nonprivate
        self.algorithm = algorithm
        self.catalogue = catalogue
        self.outside = outside

    def fit(self, X: Any, y: Any = None) -> "PrivateRecommender":  # noqa: ARG002 - not needed
        """Learn from people's rows; this spends epsilon, each time anew.

        Args:
            X: ratings, people by items: NaN, or not stored in a sparse matrix, where there is none.
            y: not looked at.
        """
        if self.rating_range is None:
            raise ConfigError(
                "rating_range=None: give the (lowest, highest) rating that is possible, such as "
                "(1, 5); it is public, and is never taken from the ratings"
            )
        budget = budget_asked(self.epsilon, self.delta, self.neighbours, self.nonprivate)
        ratings = self._ratings(self._checked(X, reset=True), self.catalogue)
        if budget is not None:
            self._count(budget)
        self.model_ = fit(ratings, self.algorithm, budget=budget)
        return self

    def predicted_ratings(self, X: Any) -> Floats:
        """Return predicted ratings of every item, each row from the ratings in it."""
        return self._predicted(self._checked(X))

    def transform(self, X: Any) -> Floats:
        """Return rows with what is missing filled in by predictions; ratings stay as they are."""
        entries = self._checked(X)
        filled = self._predicted(entries)
        known = entries.tocoo()
        filled[known.row, known.col] = known.data
        return filled

    def recommend(self, X: Any, n: int = 10) -> NDArray[np.int64]:
        """Return the n best columns for each row, without those rated; short lists end in -1."""
        entries = self._checked(X)
        model = self._fitted()
        blocks = model.recommend_rows(self._ratings(_padded(entries), model.catalogue), n)
        return np.concatenate([best for _, best in blocks])[:-1]

    def score(self, X: Any, y: Any = None) -> float:  # noqa: ARG002 - not needed
        """Return minus the RMSE of every fifth rating of each row, predicted from the others.

        It is computed from ratings, for the owner of the data: NOT PRIVATE.
        """
        entries = self._checked(X).tocsr()
        places = np.arange(entries.nnz) - np.repeat(entries.indptr[:-1], np.diff(entries.indptr))
        hidden = places % _HIDDEN == 0
        whole = entries.tocoo()
        kept = _matrix(whole.data[~hidden], whole.row[~hidden], whole.col[~hidden], whole.shape)
        found = self._predicted(kept)[whole.row[hidden], whole.col[hidden]]
        errors = found - self._within(whole.data[hidden])
        return -float(np.sqrt(np.mean(errors**2))) if errors.size else float("nan")

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            """Say what there is in place of `predict`."""
            told = "; predicted_ratings(X) returns those of every item" if name == "predict" else ""
            said = f"PrivateRecommender has no {name}{told}"
            raise AttributeError(said, name=name, obj=self)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "model_")

    def __sklearn_tags__(self) -> Tags:
        """Say that NaN and sparse matrices are welcome, and that noise is no function of a seed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        tags.non_deterministic = not self.nonprivate
        tags.transformer_tags.preserves_dtype = ["float64"]
        return tags

    def __sklearn_clone__(self) -> "PrivateRecommender":
        """Return an unfitted one with the same settings, which knows that it is one of several."""
        made: PrivateRecommender = super().__sklearn_clone__()
        fits = self.__dict__.setdefault("_fits", _Fits())
        fits.clones += 1
        made._fits, made._number = fits, fits.clones
        return made

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the model as the bytes of its file."""
        state = dict(super().__getstate__())
        if "model_" in state:
            state["model_"] = model_bytes(state["model_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if isinstance(state.get("model_"), bytes):
            state = state | {"model_": model_from_bytes(state["model_"])}
        if "_fits" in state:
            state = state | {"_fits": replace(state["_fits"], copied=True)}
        super().__setstate__(state)

    def _count(self, budget: PrivacyBudget) -> None:
        """Count a private fit; warn from the second on, of this one or of its clones."""
        fits = self.__dict__.setdefault("_fits", _Fits())
        fits.made += 1
        count = max(fits.made, self.__dict__.get("_number", 1) if fits.copied else 1)
        if count < 2:
            return
        together = epsilon_of(budget.mu * count**0.5, budget.delta)
        warnings.warn(
            f"fit {count} of this estimator and its clones, each with epsilon={budget.epsilon:g}: "
            f"of the same people, {count} fits cost epsilon={together:.3g} together, and no "
            "certificate says so. Cross-validation and grid search are not paid for: publish none "
            "of their results, or use tacit.tune, which stays within one budget",
            UnpaidFitsWarning,
            stacklevel=3,
        )

    def _fitted(self) -> Model:
        check_is_fitted(self)
        return self.model_

    def _checked(self, X: Any, *, reset: bool = False) -> Any:
        """Return the ratings in X as a sparse matrix, which may hold zeros."""
        if not reset:
            check_is_fitted(self)
        try:
            found = validate_data(
                self,
                X,
                reset=reset,
                accept_sparse="csr",
                dtype=np.float64,
                ensure_all_finite="allow-nan",
                ensure_min_samples=2 if reset else 1,
                ensure_min_features=2 if reset else 1,
            )
        except ValueError as error:
            if "could not convert string" not in str(error):
                raise
            raise DataError(_LONG) from None  # numpy quotes what it cannot convert: someone's id
        if isinstance(found, np.ndarray):
            people, items = np.nonzero(~np.isnan(found))
            return _matrix(found[people, items], people, items, found.shape)
        entries = found.tocoo()
        there = ~np.isnan(entries.data)
        return _matrix(entries.data[there], entries.row[there], entries.col[there], found.shape)

    def _ratings(self, entries: Any, catalogue: Catalogue | None) -> Ratings:
        moved = entries.copy()
        moved.data = self._within(moved.data)
        return Ratings.from_sparse(moved, rating_range=self.rating_range, catalogue=catalogue)

    def _within(self, values: Floats) -> Floats:
        """Return ratings in the range, if they are to be moved there."""
        if self.outside not in ("error", "clip"):
            raise ConfigError(f"outside={self.outside!r}: expected 'error' or 'clip'")
        if self.outside == "error" or self.rating_range is None:
            return values
        return np.clip(values, *self.rating_range)

    def _predicted(self, entries: Any) -> Floats:
        model = self._fitted()
        ratings = self._ratings(_padded(entries), model.catalogue)
        return np.concatenate([block for _, block in model.predict_rows(ratings)])[:-1]


def _matrix(values: Floats, people: Any, items: Any, shape: tuple[int, int]) -> Any:
    """Return a sparse matrix in rows that keeps its zeros."""
    from scipy.sparse import coo_array

    return coo_array((values, (people, items)), shape=shape).tocsr()


def _padded(entries: Any) -> Any:
    """Return rows with an empty one after them: `Ratings` are of two people at least."""
    people, items = entries.shape
    known = entries.tocoo()
    return _matrix(known.data, known.row, known.col, (people + 1, items))
