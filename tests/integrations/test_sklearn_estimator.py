"""An estimator of scikit-learn: its own suite, and what it cannot know of: privacy."""

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest

import tacit
from tacit.accounting.budget import epsilon_of
from tacit.errors import ConfigError, DataError, UnpaidFitsWarning

pytest.importorskip("sklearn")

from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from tacit.integrations.sklearn import PrivateRecommender

pytestmark = pytest.mark.extras

QUICK = tacit.Moments()
NOISELESS = PrivateRecommender(
    rating_range=(-4, 4), nonprivate=True, outside="clip", algorithm=QUICK
)
PRIVATE = PrivateRecommender(rating_range=(-4, 4), epsilon=1.0, outside="clip", algorithm=QUICK)


@pytest.mark.filterwarnings("ignore::tacit.errors.UnpaidFitsWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@parametrize_with_checks([NOISELESS, PRIVATE])
def test_checks_of_scikit_learn(estimator: Any, check: Any) -> None:
    """Every check, and no exception. Four are skipped by themselves where there is noise: they
    compare two fits, and the tag `non_deterministic` says that these differ."""
    check(estimator)


def ratings(people: int = 60, items: int = 8, seed: int = 0) -> np.ndarray[Any, Any]:
    """Stars of two kinds of people, with half of them missing."""
    rng = np.random.default_rng(seed)
    kinds, signs = rng.integers(0, 2, people) * 2 - 1, np.resize([1, -1], items)
    stars = np.clip(3 + 1.5 * kinds[:, None] * signs + rng.normal(0, 0.3, (people, items)), 1, 5)
    stars[rng.random((people, items)) < 0.5] = np.nan
    return stars


def estimator(**settings: Any) -> PrivateRecommender:
    return PrivateRecommender(**({"rating_range": (1, 5), "algorithm": QUICK} | settings))


def test_what_is_missing_is_filled_in_and_the_rest_stays() -> None:
    rows = ratings()
    made = estimator(nonprivate=True).fit(rows)
    filled = made.transform(rows)
    known = ~np.isnan(rows)
    np.testing.assert_array_equal(filled[known], rows[known])
    assert np.isfinite(filled).all()
    np.testing.assert_array_equal(filled[~known], made.predicted_ratings(rows)[~known])
    truth = np.clip(3 + 1.5 * np.sign(np.nanmean((rows - 3) * np.resize([1, -1], 8), axis=1)), 1, 5)
    assert np.mean(np.abs(filled[:, 0] - truth)) < 0.8  # a fit of nothing is 1.5 off


def test_a_sparse_matrix_is_the_same_rows() -> None:
    rows = ratings()
    known = ~np.isnan(rows)
    entries = rows[known]
    sparse = csr_array((entries, np.nonzero(known)), shape=rows.shape)
    made = estimator(nonprivate=True).fit(rows)
    np.testing.assert_allclose(made.transform(sparse), made.transform(rows))
    np.testing.assert_array_equal(made.recommend(sparse, n=2), made.recommend(rows, n=2))
    one = made.recommend(rows[:1], n=8)[0]
    assert not set(one[one >= 0]) & set(np.flatnonzero(known[0]))


def test_params_and_clone() -> None:
    made = estimator(epsilon=0.5)
    assert made.get_params()["epsilon"] == 0.5
    assert clone(made.set_params(epsilon=2.0)).epsilon == 2.0
    assert not hasattr(clone(made.fit(ratings())), "model_")
    assert made.model_.certificate.budget.epsilon == 2.0  # type: ignore[union-attr]


def test_cross_validation_warns_that_it_is_not_paid_for() -> None:
    """Three folds: the second and the third warn, with what the fits cost together."""
    with pytest.warns(UnpaidFitsWarning) as seen:
        cross_val_score(estimator(epsilon=1.0), ratings(), cv=3)
    told = [str(each.message) for each in seen if each.category is UnpaidFitsWarning]
    assert [text.split(" of ")[0] for text in told] == ["fit 2", "fit 3"]
    budget = tacit.PrivacyBudget(1.0)
    together = epsilon_of(budget.mu * 3**0.5, budget.delta)
    assert f"epsilon={together:.3g} together" in told[-1]
    assert "tacit.tune" in told[-1]


def test_grid_search_warns_too_and_fits_without_noise_do_not() -> None:
    grid = {"algorithm": [QUICK, tacit.Moments(rank=2)]}
    with pytest.warns(UnpaidFitsWarning) as seen:
        GridSearchCV(estimator(epsilon=1.0), grid, cv=2).fit(ratings())
    told = [str(each.message) for each in seen if each.category is UnpaidFitsWarning]
    assert [text.split(" of ")[0] for text in told] == [f"fit {count}" for count in (2, 3, 4, 5)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(estimator(nonprivate=True), grid, cv=2).fit(ratings())
        estimator(epsilon=1.0).fit(ratings())  # one fit is what its certificate says
    assert search.best_score_ < 0


def test_clones_in_other_processes_know_their_number() -> None:
    made = estimator(epsilon=1.0)
    clone(made)
    second = pickle.loads(pickle.dumps(clone(made)))  # noqa: S301 - our own
    with pytest.warns(UnpaidFitsWarning, match="fit 2 of"):
        second.fit(ratings())


def test_a_pickle_holds_the_published_model_and_nothing_else() -> None:
    rows = ratings()
    made = estimator(nonprivate=True).fit(rows)
    again = pickle.loads(pickle.dumps(made))  # noqa: S301 - our own
    np.testing.assert_array_equal(again.transform(rows), made.transform(rows))
    one = estimator(nonprivate=True, algorithm=tacit.Moments(rank=1))  # models of one size
    few, many = (len(pickle.dumps(clone(one).fit(ratings(people)))) for people in (60, 6000))
    assert abs(many - few) < 100
    assert isinstance(made.__getstate__()["model_"], bytes)


def test_it_works_in_a_pipeline_and_keeps_names() -> None:
    pandas = pytest.importorskip("pandas")
    rows = pandas.DataFrame(ratings(), columns=[f"film {at}" for at in range(8)])
    pipe = make_pipeline(FunctionTransformer(), estimator(nonprivate=True))
    filled = pipe.set_output(transform="pandas").fit_transform(rows)
    assert list(filled.columns) == list(rows.columns)


def test_a_long_frame_is_told_what_to_become_without_naming_anyone() -> None:
    long = pd.DataFrame({"user": ["anna", "ben"], "item": ["a", "b"], "rating": [1.0, 2.0]})
    with pytest.raises(DataError, match=r"frame\.pivot\(index='user'") as told:
        estimator(epsilon=1).fit(long)
    assert "anna" not in str(told.value)
    wide = long.pivot(index="user", columns="item", values="rating")
    assert estimator(nonprivate=True).fit(wide).transform(wide).shape == (2, 2)


def test_there_is_no_predict_and_it_says_what_there_is() -> None:
    assert not hasattr(estimator(), "predict")
    with pytest.raises(AttributeError, match=r"no predict; predicted_ratings\(X\)"):
        estimator().predict(ratings())


def test_what_it_refuses() -> None:
    rows = ratings()
    with pytest.raises(ConfigError, match="rating_range=None"):
        PrivateRecommender(epsilon=1).fit(rows)
    with pytest.raises(ConfigError, match="give epsilon"):
        estimator().fit(rows)
    with pytest.raises(ConfigError, match="outside='drop'"):
        estimator(nonprivate=True, outside="drop").fit(rows)
    with pytest.raises(DataError, match="outside of the rating range"):
        estimator(nonprivate=True).fit(np.where(np.isnan(rows), np.nan, 9 * rows))
