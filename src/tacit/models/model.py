"""The published model: anyone's own ratings in, her own predictions out."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from tacit._compiling import tell_again
from tacit._validate import Count, check
from tacit.accounting.certificate import Certificate, Verification
from tacit.accounting.promise import shown
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.tables import as_kind_of
from tacit.errors import ConfigError
from tacit.models.bulk import (
    Wanted,
    best_rows,
    blocks,
    check_same_kind,
    predict_frame,
    recommend_frame,
)
from tacit.models.filters import allowed_items, named_positions
from tacit.models.implicit import InteractionRule
from tacit.models.own_ratings import own_interactions, own_row, wanted_positions
from tacit.models.results import Reason, Recommendation, SimilarItem
from tacit.models.rules import (
    Choosing,
    Comparing,
    Floats,
    Linear,
    LocalRule,
    OwnRows,
    Uncertain,
)
from tacit.models.top_n import best_items
from tacit.models.vectors import HasVectors

_Made = TypeVar("_Made")


@dataclass(frozen=True, eq=False)
class Model(HasVectors):
    """What a fit publishes: a local rule, the catalogue, and the certificate.

    Nothing in it belongs to any one user. Predictions are made from it and a person's own
    ratings, on any machine, whether or not she was among the users of the fit.
    """

    rule: LocalRule
    catalogue: Catalogue
    rating_range: tuple[float, float]
    certificate: Certificate
    releases: int
    """How many releases the fit made."""
    digest: str | None = None
    """The digest of the file that it was read from; None if it has none, or there is no file."""

    @property
    def private(self) -> bool:
        """Whether the certificate makes a promise."""
        return self.certificate.private

    @property
    def implicit(self) -> bool:
        """Whether it was learned from interactions, and takes no ratings."""
        return isinstance(self.rule, InteractionRule)

    @property
    def algorithm(self) -> str:
        """The name of the algorithm; of a file of an older version, that of the local rule."""
        method = self.certificate.method
        return self.rule.kind if method is None else method.name

    @property
    def knows_std(self) -> bool:
        """Whether the local rule can say how far off a prediction may be."""
        return isinstance(self.rule, Uncertain)

    def __repr__(self) -> str:
        promise = "NOT PRIVATE"
        if self.certificate.budget and self.private:
            budget = self.certificate.budget
            promise = f"epsilon={shown(budget.epsilon)}, delta={shown(budget.delta)}"
        return f"Model({self.algorithm}, {len(self.catalogue)} items, {promise})"

    @overload
    def predict(
        self,
        own_ratings: Any,
        items: Any = None,
        *,
        return_std: Literal[False] = False,
        clip: bool = True,
    ) -> Floats: ...

    @overload
    def predict(
        self, own_ratings: Any, items: Any = None, *, return_std: Literal[True], clip: bool = True
    ) -> tuple[Floats, Floats]: ...

    def predict(
        self, own_ratings: Any, items: Any = None, *, return_std: bool = False, clip: bool = True
    ) -> Floats | tuple[Floats, Floats]:
        """Return the predicted ratings of `items` (all of the catalogue if None), in their order.

        Args:
            own_ratings: a dict {item: rating}, a frame with columns item and rating, or a pair of
                sequences (items, ratings). For a model of interactions: a list of items, or a
                frame with a column item; what is returned is the share of her further
                interactions that each item is expected to have. Items outside the catalogue are
                left out, and an UnknownItemsWarning says how many.
            items: ids of the wanted items, or a frame with a column item; an unknown one gets NaN.
            return_std: also return how far off each may be, as a standard deviation: a pair
                (ratings, stds). Only for local rules that know it. None exceeds half the width of
                the rating range, as nothing in that range has more.
            clip: whether predictions beyond the rating range are moved to its ends. The algorithms
                of the paper do not do that; clip=False gives theirs.

        Raises:
            ConfigError: return_std for a local rule that knows no posterior.
        """
        check("return_std", return_std, bool)
        check("clip", clip, bool)
        rule = self._uncertain("return_std=True (--std)") if return_std else None
        own = self._own(own_ratings)
        found = [self._scores(own, clip)[0]]
        if rule is not None:
            found.append(self._stds(own, rule)[0])
        if items is not None:
            positions = wanted_positions(items, self.catalogue)
            found = [np.where(positions >= 0, array[positions], np.nan) for array in found]
        return found[0] if rule is None else (found[0], found[1])

    def recommend(
        self,
        own_ratings: Any,
        n: int = 10,
        *,
        include_rated: bool = False,
        by: Literal["rating", "choice"] | None = None,
        candidates: Any = None,
        exclude: Any = None,
        because: bool = False,
    ) -> list[Recommendation]:
        """Return the n best items, without those already rated.

        Args:
            own_ratings: as in `predict`. With none it is the list for someone unknown.
            n: how many.
            include_rated: whether items that she rated are in the list too.
            by: what it is ordered by. None: how likely she chooses an item times (a power of) how
                likely she likes it, where the model knows both (`LatentFactors`), otherwise the
                prediction;
                "rating": the predicted rating, not cut off at the ends of the rating range;
                "choice": how likely she chooses it.
            candidates: recommend none but these items: a list of ids, or a frame with a column
                item; None: all of the catalogue.
            exclude: never recommend these items; in the same forms.
            because: also say what each of her ratings adds to each predicted rating. Only for local
                rules that are linear in one's own ratings.

        Raises:
            ConfigError: an item of `candidates` or `exclude` is not in the catalogue, no item is
                left, or `because` for a local rule that is not linear.
        """
        tell_again()
        n = check("n", n, Count)
        check("because", because, bool)
        rule = self._linear() if because else None
        wanted = self.wanted(n, include_rated, by, candidates, exclude)
        own = self._own(own_ratings)
        best = best_rows(self, own, wanted)[0]
        best = best[best >= 0]
        shown = np.clip(self.rule.scores(own)[0], *self.rating_range)
        shares = self._choice_shares(own, wanted.allowed, include_rated)
        found = [
            Recommendation(
                *self._named(at), float(shown[at]), None if shares is None else float(shares[at])
            )
            for at in best
        ]
        return found if rule is None else self._with_reasons(found, best, own, rule)

    def similar_items(self, item: Any, n: int = 10) -> list[SimilarItem]:
        """Return the n items that are most similar to one, the most similar first.

        It reads published numbers only. `LatentFactors`: the mean of the cosine of choice factors
        (who chooses one chooses the other) and the cosine of rating factors, less the mean of all
        items (who likes one likes the other). Other methods: the cosine of item factors, or the
        correlation in the published covariance (`Cleansing(local="neighbours")`). Items of which
        nothing is published but a mean or their popularity are left out.

        Args:
            item: the id of an item of the catalogue.
            n: how many.

        Raises:
            ConfigError: the catalogue does not have the item, or no factor of it is published.
        """
        n = check("n", n, Count)
        place = int(named_positions("item", [item], self.catalogue)[0])
        if not isinstance(self.rule, Comparing):
            raise ConfigError(
                f"similar_items: the local rule of this model ({self.rule.kind}) does not tell "
                "which items are alike; LatentFactors does"
            )
        similarities = self.rule.similarities(place)
        if np.isnan(similarities[place]):
            raise ConfigError(
                f"item={item!r}: no factors of it are published, so nothing tells what it is like; "
                "a fit with more ratings or a larger epsilon may find some"
            )
        similarities[place] = np.nan
        best = best_items(similarities[None], n)[0]
        return [SimilarItem(*self._named(at), float(similarities[at])) for at in best[best >= 0]]

    def predict_rows(self, ratings: Ratings, *, clip: bool = True) -> Iterator[tuple[int, Floats]]:
        """Yield (first row, scores of a block of users by items), each from her own ratings.

        The ratings must be of this model's catalogue (`Ratings.from_...(catalogue=...)`); `clip` as
        in `predict`.
        """
        check("clip", clip, bool)
        yield from self._blocks(ratings, lambda own: self._scores(own, clip))

    def predict_rows_with_std(self, ratings: Ratings) -> Iterator[tuple[int, Floats, Floats]]:
        """Yield (first row, scores, stds) as `predict_rows` and `predict(return_std=True)` do."""
        rule = self._uncertain("predict_rows_with_std")
        blocks = self._blocks(ratings, lambda own: (self._scores(own), self._stds(own, rule)))
        for start, (scores, stds) in blocks:
            yield start, scores, stds

    def recommend_rows(
        self,
        ratings: Ratings,
        n: int = 10,
        *,
        include_rated: bool = False,
        by: Literal["rating", "choice"] | None = None,
        candidates: Any = None,
        exclude: Any = None,
    ) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield (first row, a block of users' n best items), as positions in the catalogue.

        As `recommend` does for one; a list that is too short ends in -1.
        """
        wanted = self.wanted(n, include_rated, by, candidates, exclude)
        yield from self._blocks(ratings, lambda own: best_rows(self, own, wanted))

    def recommend_frame(self, ratings: Any, n: int = 10, **how: Any) -> Any:
        """Return the lists of many users: a frame user, rank, item, (title,) score (and choice).

        Args:
            ratings: everyone's own ratings: a frame with columns user, item and rating (or user
                and item; of polars, pandas or pyarrow, as is what is returned), or Ratings.
            n: how long lists are.
            how: include_rated, by, candidates and exclude, as in `recommend`.
        """
        return as_kind_of(recommend_frame(self, ratings, self.wanted(n, **how)), ratings)

    def wanted(
        self,
        n: int,
        include_rated: bool = False,
        by: Any = None,
        candidates: Any = None,
        exclude: Any = None,
    ) -> Wanted:
        """Return a checked description of lists, for `models.bulk`."""
        n = check("n", n, Count)
        self._order(by)
        return Wanted(n, allowed_items(candidates, exclude, self.catalogue), include_rated, by)

    def predict_frame(
        self, ratings: Any, pairs: Any, *, return_std: bool = False, clip: bool = True
    ) -> Any:
        """Return predictions of many pairs: a frame user, item, score (and std), in their order.

        Args:
            ratings: as in `recommend_frame`. Someone who has none is predicted as a stranger is.
            pairs: a frame with columns user and item, whose kind is returned; an unknown item
                has a score of null.
            return_std: with a column of stds, as in `predict`.
            clip: as in `predict`.
        """
        if return_std:
            self._uncertain("return_std=True (--std)")
        found = predict_frame(self, ratings, pairs, spread=return_std, clip=clip)
        return as_kind_of(found, pairs)

    def with_items(self, catalogue: Catalogue) -> "Model":
        """Return the model with the items of a catalogue added, known by their features.

        The features of the items that the model has say what features mean: if it was fitted
        without any, `catalogue` lists these items too. New items have predictions with a larger
        std. Only published numbers and features are used, so it costs nothing.

        Args:
            catalogue: items with public features, in the columns of those of the fit; the items
                that the model has already stay as they are.

        Raises:
            ConfigError: there are no features, or this model's method cannot use them.
        """
        from tacit.models.item_features import extended

        return extended(self, catalogue)

    def save(self, path: str | PathLike[str], *, overwrite: bool = False) -> None:
        """Write the model to a file, whole or not at all.

        A model that is there is replaced; any other file only with overwrite=True.
        """
        from tacit.models.file import save

        save(self, path, overwrite=overwrite)

    def explain(self) -> str:
        """Say what was chosen and why, what the budget paid for, and what followed from it."""
        from tacit.models.explaining import explain

        return explain(self)

    def verify(self) -> Verification:
        """Recompute epsilon from the certificate, and compare its releases with the model's parts.

        Releases are compared by their kinds and number. That the model was computed from them, and
        that they were made as stated, cannot be seen from a file.
        """
        found = self.certificate.verify()
        missing_releases = self.rule.missing_releases(
            entry.release for entry in self.certificate.releases
        )
        if len(self.certificate.releases) != self.releases:
            missing_releases.append(
                f"it rests on {self.releases} releases, and the certificate lists others"
            )
        problems = (*found.problems, *missing_releases)
        return replace(found, holds=found.holds and not missing_releases, problems=problems)

    def _blocks(
        self, ratings: Ratings, make: Callable[[OwnRows], _Made]
    ) -> Iterator[tuple[int, _Made]]:
        """Yield (first row, what is made of a block of users' own rows), a block per thread."""
        check_same_kind(self, ratings)
        yield from blocks(ratings, lambda own, _: make(own))

    def _own(self, own_ratings: Any) -> OwnRows:
        """Return a person's own ratings, or interactions, as a row."""
        if self.implicit:
            return own_interactions(own_ratings, self.catalogue)
        return own_row(own_ratings, self.catalogue, self.rating_range)

    def _scores(self, own: OwnRows, clip: bool = True) -> Floats:
        """Score by the local rule; unless `clip` is off, no prediction leaves the rating range."""
        scores = self.rule.scores(own)
        return np.clip(scores, *self.rating_range, out=scores) if clip else scores

    def _stds(self, own: OwnRows, rule: Uncertain) -> Floats:
        """Return stds; nothing in the rating range has one above half its width."""
        lo, hi = self.rating_range
        stds = rule.spread(own)
        return np.minimum(stds, (hi - lo) / 2, out=stds)

    def _named(self, position: np.int64) -> tuple[Any, str]:
        """Return the id and the title of an item."""
        return self.catalogue.ids[int(position)], self.catalogue.title(int(position))

    def _with_reasons(
        self, found: list[Recommendation], best: NDArray[np.int64], own: OwnRows, rule: Linear
    ) -> list[Recommendation]:
        """Add to each recommendation what each of her ratings contributes."""
        baselines, every = rule.contributions(own, best)
        rated = [self._named(at) for at in own.items]
        explained = []
        for row, baseline, added in zip(found, baselines, every, strict=True):
            order = np.argsort(-np.abs(added), kind="stable")
            reasons = tuple(
                Reason(*rated[k], float(own.values[k]), float(added[k])) for k in map(int, order)
            )
            explained.append(replace(row, baseline=float(baseline), because=reasons))
        return explained

    def _order(self, by: Any) -> Callable[[OwnRows], Floats]:
        """Return what lists are ordered by."""
        if by not in (None, "rating", "choice"):
            raise ConfigError(f"by={by!r}: expected 'rating' or 'choice', or leave it out")
        if isinstance(self.rule, Choosing) and by != "rating":
            return self.rule.choice if by == "choice" else self.rule.ranking
        if (by == "choice") != self.implicit and by is not None:
            raise ConfigError(
                f"by={by!r}: this model ({self.algorithm}) does not know it; leave it out, or fit "
                "ratings with LatentFactors, which knows what people choose and how they rate it"
            )
        return self.rule.scores

    def _choice_shares(
        self, own: OwnRows, allowed: NDArray[np.bool_], include_rated: bool
    ) -> Floats | None:
        """Return one person's scores of choice, as shares of what could be recommended to her."""
        if not isinstance(self.rule, Choosing):
            return None
        scores = self.rule.choice(own)[0]
        open_to_her = allowed.copy()
        if not include_rated:
            open_to_her[own.items] = False
        return np.asarray(scores / max(float(scores[open_to_her].sum()), 1e-300))

    def _linear(self) -> Linear:
        """Return the local rule if it is linear in one's own ratings."""
        if isinstance(self.rule, Linear):
            return self.rule
        raise ConfigError(
            f"because=True (--because): the local rule of this model ({self.rule.kind}) is not "
            "linear in one's own ratings, so they have no separate contributions; leave it out, or "
            "fit with LatentFactors, Moments, ALS or Interactions"
        )

    def _uncertain(self, what: str) -> Uncertain:
        """Return the local rule if it knows how far off it may be."""
        if isinstance(self.rule, Uncertain):
            return self.rule
        raise ConfigError(
            f"{what}: the local rule of this model ({self.rule.kind}) knows no uncertainty; those "
            "that solve a ridge regression do: FrankWolfe(local='ridge'), "
            "Cleansing(local='factors'), NoisyGradient, ALS, Moments, LatentFactors"
        )
