"""A scorer of LensKit: its own test classes, and that nothing of any user is kept.

LensKit needs an older pandas than the rest of the tests, so it has an environment of its own:
`make test-lenskit`.
"""

import os
import pickle
from typing import Any

import numpy as np
import pytest

pytest.importorskip("lenskit")
os.environ.setdefault("LK_NUM_PROCS", "1")  # for a hundred lists, processes cost far more

import pandas as pd
from lenskit import operations
from lenskit.basic import BiasScorer
from lenskit.basic.history import UserTrainingHistoryLookup
from lenskit.data import Dataset, ItemList, RecQuery, from_interactions_df
from lenskit.pipeline import predict_pipeline, topn_pipeline
from lenskit.testing import BasicComponentTests, ScorerTests
from lenskit.training import TrainingOptions

from tacit.errors import ConfigError, DataError
from tacit.integrations.lenskit import PrivateScorer, PrivateScorerConfig, private_pipeline
from tests.integrations.test_pages import PAGES, assert_examples_run

pytestmark = [
    pytest.mark.extras,
    # Of their own classes: fixtures, and a name of theirs that is on its way out.
    pytest.mark.filterwarnings("ignore::pytest.PytestRemovedIn10Warning"),
    pytest.mark.filterwarnings("ignore:user_items is deprecated:DeprecationWarning"),
]
FAST: dict[str, Any] = {"rating_range": (0.5, 5), "method": "moments"}
ONE_FACTOR = FAST | {"settings": {"rank": 1}, "epsilon": None, "nonprivate": True}
"""So that models are of one size, whatever the noise."""


def people(count: int, items: int = 110, per_user: int = 20, seed: int = 0) -> pd.DataFrame:
    """Half stars of people with two tastes."""
    rng = np.random.default_rng(seed)
    tastes = rng.standard_normal((count, 2)) @ rng.standard_normal((2, items)) / 2
    stars = np.clip(np.round(2 * (3 + tastes)) / 2, 0.5, 5)
    rows = np.repeat(np.arange(count), per_user)
    columns = np.concatenate([rng.choice(items, per_user, replace=False) for _ in range(count)])
    frame = {"user_id": rows + 1, "item_id": columns + 1, "rating": stars[rows, columns]}
    return pd.DataFrame(frame | {"timestamp": np.arange(rows.size) + 1_000_000_000})


@pytest.fixture(scope="session")
def ml_ratings() -> pd.DataFrame:
    """In the place of MovieLens, which LensKit's classes ask for."""
    return people(120)


@pytest.fixture(scope="session")
def ml_ds(ml_ratings: pd.DataFrame) -> Dataset:
    return from_interactions_df(ml_ratings)


@pytest.fixture(scope="session")
def ml_100k() -> pd.DataFrame:
    return people(600)


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(1)


class TestComponent(BasicComponentTests):  # type: ignore[misc]
    component = PrivateScorer
    configs = [  # noqa: RUF012 - as LensKit has it
        {"rating_range": (1, 5), "epsilon": 1.0},
        {"epsilon": 0.5, "implicit": True, "neighbours": "add_remove"},
    ]


class TestNoiseless(BasicComponentTests, ScorerTests):  # type: ignore[misc]
    component = PrivateScorer
    config = PrivateScorerConfig(nonprivate=True, **FAST)
    expected_rmse = (0.1, 0.4)  # stars have a spread of 0.7


class TestPrivate(ScorerTests):  # type: ignore[misc]
    component = PrivateScorer
    config = PrivateScorerConfig(epsilon=1.0, **FAST)


class TestInteractions(ScorerTests):  # type: ignore[misc]
    component = PrivateScorer
    config = PrivateScorerConfig(epsilon=1.0, implicit=True)


def trained(data: Dataset, **config: Any) -> PrivateScorer:
    scorer = PrivateScorer(PrivateScorerConfig(**(FAST | {"epsilon": 1.0} | config)))
    scorer.train(data, TrainingOptions())
    return scorer


def test_it_keeps_no_interactions(ml_ds: Dataset) -> None:
    """The settings, and the model as its file: ten times as many people make it no longer.

    The twin is LensKit's history lookup, which a pipeline of theirs has: it grows with them.
    """
    crowd = from_interactions_df(people(2000))
    state = trained(ml_ds, **ONE_FACTOR).__getstate__()
    assert set(state) == {"config", "model_"}
    assert isinstance(state["model_"], bytes)
    few, many = (len(pickle.dumps(trained(data, **ONE_FACTOR))) for data in (ml_ds, crowd))
    assert abs(many - few) < 100  # digits of numbers in the certificate
    lookups = []
    for data in (ml_ds, crowd):
        lookup = UserTrainingHistoryLookup()
        lookup.train(data)
        lookups.append(len(pickle.dumps(lookup)))
    assert lookups[1] > 2 * lookups[0]


def test_a_whole_pipeline_of_ours_keeps_none_either(ml_ds: Dataset) -> None:
    pipes = []
    for data in (ml_ds, from_interactions_df(people(2000))):
        pipe = private_pipeline(PrivateScorer(PrivateScorerConfig(**ONE_FACTOR)), n=5)
        pipe.train(data)
        pipes.append(sum(len(pickle.dumps(pipe.component(n.name))) for n in nodes(pipe)))
    assert abs(pipes[1] - pipes[0]) < 100


def nodes(pipe: Any) -> list[Any]:
    return [node for node in pipe.nodes() if pipe.component(node.name) is not None]


def test_there_is_no_fallback(ml_ds: Dataset) -> None:
    """What the model does not know has no score; LensKit's default pipeline would make one up."""
    scorer = PrivateScorer(PrivateScorerConfig(epsilon=1.0, **FAST))
    pipe = private_pipeline(scorer)
    pipe.train(ml_ds)
    kinds = {type(pipe.component(node.name)) for node in nodes(pipe)}
    assert not kinds & {BiasScorer, UserTrainingHistoryLookup}
    found = operations.predict(pipe, RecQuery(), ItemList([1, 2, 99_999]))
    assert np.isnan(found.scores()[2])
    assert np.isfinite(found.scores()[:2]).all()
    theirs = predict_pipeline(scorer)  # the twin
    assert any(isinstance(theirs.component(node.name), BiasScorer) for node in nodes(theirs))


def test_a_user_id_alone_finds_nothing(ml_ds: Dataset) -> None:
    """The scores of someone of the training data are those of a stranger, until she brings hers."""
    pipe = private_pipeline(PrivateScorer(PrivateScorerConfig(nonprivate=True, **FAST)))
    pipe.train(ml_ds)
    some = ItemList(ml_ds.items.ids()[:20])
    hers, strangers = (operations.score(pipe, who, some).scores() for who in (1, -5))
    np.testing.assert_array_equal(hers, strangers)
    known = RecQuery(user_id=1, history_items=ml_ds.user_row(1))
    assert not np.array_equal(operations.score(pipe, known, some).scores(), hers)
    listed = operations.recommend(pipe, known, n=7)
    assert len(listed) == 7
    assert not set(listed.ids()) & set(ml_ds.user_row(1).ids())


def test_scores_are_those_of_the_model(ml_ds: Dataset) -> None:
    scorer = trained(ml_ds)
    row = ml_ds.user_row(3)
    own = dict(zip(row.ids().tolist(), row.field("rating").tolist(), strict=True))
    found = scorer(RecQuery(history_items=row), ItemList([5, 9])).scores()
    np.testing.assert_allclose(found, scorer.model_.predict(own, [5, 9]))
    by_list = trained(ml_ds, score="list", method=None)
    everything = ItemList(ml_ds.items.ids())
    best = by_list(RecQuery(history_items=row), everything).top_n(1).ids()[0]
    unseen = by_list.model_.recommend(own, 1, include_rated=True)
    assert best == unseen[0].item


def test_it_is_not_trained_twice_unless_asked(ml_ds: Dataset) -> None:
    scorer = trained(ml_ds)
    before = scorer.model_
    scorer.train(ml_ds, TrainingOptions(retrain=False))
    assert scorer.model_ is before
    scorer.train(ml_ds, TrainingOptions(retrain=True))
    assert scorer.model_ is not before


def test_what_it_refuses(ml_ds: Dataset) -> None:
    with pytest.raises(ConfigError, match="give epsilon"):
        PrivateScorer().train(ml_ds)
    with pytest.raises(ConfigError, match="name the method"):
        PrivateScorer(epsilon=1, settings={"rank": 3}).train(ml_ds)
    with pytest.raises(ConfigError, match="not been trained"):
        PrivateScorer(epsilon=1)(None, ItemList([1]))
    with pytest.raises(DataError, match="no field 'rating'"):
        trained(ml_ds)(RecQuery(history_items=ItemList([1, 2])), ItemList([3]))


def test_their_topn_pipeline_works_too(ml_ds: Dataset) -> None:
    pipe = topn_pipeline(PrivateScorer(PrivateScorerConfig(epsilon=1.0, **FAST)), n=4)
    pipe.train(ml_ds)
    assert len(operations.recommend(pipe, 1)) == 4


def test_the_examples_of_its_page_run() -> None:
    assert_examples_run(PAGES / "lenskit.md")
