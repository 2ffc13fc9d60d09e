"""A scorer for pipelines of LensKit that is learned privately and keeps no interactions.

`PrivateScorer` scores from the published model and the history that a query brings. It has no
fallback: an item that the model does not know has no score. LensKit's own pipelines put other
components around a scorer, and two of those are not private: the history lookup stores everyone's
interactions, and the fallback predictor (`BiasScorer`) releases means without noise.
`private_pipeline` builds one without either.
"""

from typing import Any, Literal

import numpy as np

from tacit.algorithms import algorithm_from
from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError, MissingPackage
from tacit.fitting.fit import fit
from tacit.integrations._adapting import budget_asked, model_bytes, model_from_bytes
from tacit.models import Model
from tacit.models.own_ratings import own_interactions, own_row
from tacit.models.rules import Choosing, Floats, OwnRows

try:
    from lenskit.basic.candidates import TrainingItemsCandidateSelector
    from lenskit.basic.topn import TopNConfig, TopNRanker
    from lenskit.data import ID, Dataset, ItemList, QueryInput, RecQuery
    from lenskit.pipeline import Component, Pipeline, PipelineBuilder
    from lenskit.training import Trainable, TrainingOptions
    from pydantic import BaseModel
except ImportError:
    raise MissingPackage("tacit.integrations.lenskit", "LensKit 2025.8", "lenskit") from None

__all__ = ["PrivateScorer", "PrivateScorerConfig", "private_pipeline"]

_DEFAULTS = TrainingOptions()


class PrivateScorerConfig(BaseModel, extra="forbid"):
    """The settings of a `PrivateScorer`."""

    rating_range: tuple[float, float] | None = None
    """The (lowest, highest) rating that is possible: public, never taken from the data."""
    epsilon: float | None = None
    """The privacy loss that a training may spend; each training spends it anew."""
    delta: float = 1e-6
    """The probability with which it may be exceeded."""
    neighbours: Literal["replace", "add_remove"] = "replace"
    """Which two datasets must be hard to tell apart."""
    nonprivate: bool = False
    """Train without noise; the model says NOT PRIVATE."""
    implicit: bool = False
    """Whether interactions have no ratings; then rating_range is left out."""
    method: str | None = None
    """The name of a method, as on the command line; None: the default."""
    settings: dict[str, Any] = {}
    """Settings of the method."""
    public_items: bool = False
    """Whether the dataset's list of items was drawn up without looking at interactions."""
    score: Literal["rating", "list"] = "rating"
    """What scores are: the predicted rating, or what tacit orders its own lists by."""


class PrivateScorer(Component[ItemList], Trainable):  # type: ignore[misc]
    """Scores items by a model that was learned under joint differential privacy.

    After training it holds the published model and nothing of any user. A query is scored from the
    history that it brings (`RecQuery.history_items`, with ratings unless `implicit`); without one,
    as for someone of whom nothing is known. A random seed in the training options is not used:
    noise comes from the operating system.
    """

    config: PrivateScorerConfig
    model_: Model

    def is_trained(self) -> bool:
        """Whether there is a model."""
        return hasattr(self, "model_")

    def train(self, data: Dataset, options: TrainingOptions = _DEFAULTS) -> None:
        """Learn from the interactions of a dataset; this spends epsilon."""
        if self.is_trained() and not options.retrain:
            return
        config = self.config
        if config.settings and config.method is None:
            raise ConfigError("settings without method: name the method that they are of")
        budget = budget_asked(config.epsilon, config.delta, config.neighbours, config.nonprivate)
        algorithm = algorithm_from(config.method, **config.settings)
        self.model_ = fit(self._ratings(data), algorithm, budget=budget)

    def __call__(self, query: QueryInput, items: ItemList) -> ItemList:
        """Return items with scores; one that the model does not know has none (NaN)."""
        if not self.is_trained():
            raise ConfigError("this scorer has not been trained; call train first")
        scores = self._scores(self._own(RecQuery.create(query)))
        if not len(items):
            return ItemList(items, scores=np.empty(0))
        places = self.model_.catalogue.positions(items.ids())
        return ItemList(items, scores=np.where(places >= 0, scores[places], np.nan))

    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, and the model as the bytes of its file."""
        held = model_bytes(self.model_) if self.is_trained() else None
        return {"config": self.config, "model_": held}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.config = state["config"]
        if state["model_"] is not None:
            self.model_ = model_from_bytes(state["model_"])

    def _ratings(self, data: Dataset) -> Ratings:
        """Return a dataset's interactions; every user of it is one, also without interactions."""
        implicit = self.config.implicit
        matrix = (
            data.interactions()
            .matrix()
            .scipy(attribute=None if implicit else "rating", layout="csr")
        )
        catalogue = Catalogue(data.items.ids(), public=self.config.public_items)
        range_ = None if implicit else self.config.rating_range
        return Ratings.from_sparse(
            matrix, rating_range=range_, catalogue=catalogue, implicit=implicit
        )

    def _own(self, query: RecQuery) -> OwnRows:
        """Return the history that a query brings, as far as the model knows its items."""
        model, history = self.model_, query.query_items
        ids = [] if history is None else history.ids()
        places = model.catalogue.positions(ids) if len(ids) else np.empty(0, np.int64)
        known = np.flatnonzero(places >= 0)
        names = model.catalogue.ids.gather(places[known])
        if model.implicit:
            return own_interactions(names, model.catalogue)
        ratings = None if history is None else history.field("rating")
        if len(ids) and ratings is None:
            raise DataError("query: history_items has no field 'rating', and the model needs one")
        values = np.asarray(ratings)[known] if len(ids) else np.empty(0)
        return own_row((names, values), model.catalogue, model.rating_range)

    def _scores(self, own: OwnRows) -> Floats:
        rule = self.model_.rule
        if self.config.score == "list" and isinstance(rule, Choosing):
            return np.asarray(rule.ranking(own)[0])
        return np.asarray(np.clip(rule.scores(own)[0], *self.model_.rating_range))


def private_pipeline(
    scorer: PrivateScorer, *, n: int | None = None, name: str | None = None
) -> Pipeline:
    """Return a pipeline for lists and ratings that stores no interactions and has no fallback.

    Its components are a candidate selector, which knows the list of items and leaves out the
    query's own, the scorer (also under the name rating-predictor) and a ranker. A user's id alone
    finds nothing: a query brings its history.

    Args:
        scorer: trained or not.
        n: how long lists are; None: all items, unless a call says otherwise.
        name: of the pipeline.
    """
    pipe = PipelineBuilder(name=name)
    query = pipe.create_input("query", RecQuery, ID, ItemList)
    items = pipe.create_input("items", ItemList)
    length = pipe.create_input("n", int, None)
    selected = pipe.add_component(
        "candidate-selector", TrainingItemsCandidateSelector(), query=query
    )
    candidates = pipe.use_first_of("candidates", items, selected)
    scores = pipe.add_component("scorer", scorer, query=query, items=candidates)
    pipe.alias("rating-predictor", scores)
    ranked = pipe.add_component("ranker", TopNRanker, TopNConfig(n=n), items=scores, n=length)
    pipe.alias("recommender", ranked)
    pipe.default_component("recommender")
    return pipe.build()
