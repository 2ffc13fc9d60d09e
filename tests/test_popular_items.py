"""Matrices of popular items alone: what their rows are, what follows from them, and when."""

from dataclasses import replace

import numpy as np
import pytest

import tacit
from tacit.algorithms import interactions, latent_shares
from tacit.algorithms.base import Facts
from tacit.algorithms.latent_shares import popular_items
from tacit.engines import ThreadEngine
from tacit.errors import PrivacyError
from tacit.estimation.choice import choice_factors
from tacit.estimation.cooccurrence import co_ratings
from tacit.estimation.spiked_covariance import readable_items
from tacit.evaluation import evaluate, split
from tacit.trusted.rows import RowBounds, Rows, Run
from tests.conftest import ratings_for

USERS, ITEMS, EACH = 4000, 300, 40


def people() -> tacit.Ratings:
    """Items of unequal popularity, of which two groups of people like different halves."""
    rng = np.random.default_rng(0)
    odds = (np.arange(ITEMS) + 30.0) ** -1.0 * np.ones((USERS, 1))
    chosen = np.argsort(-np.log(rng.random((USERS, ITEMS))) / odds, axis=1)[:, :EACH]
    sign = np.where(rng.random(ITEMS) < 0.5, 1.0, -1.0)[chosen]
    liked = 0.6 * sign * rng.choice([-1.0, 1.0], (USERS, 1))
    values = np.clip(np.rint(3 + liked + 0.8 * rng.standard_normal((USERS, EACH))), 1, 5)
    return tacit.Ratings.from_arrays(
        np.repeat(np.arange(USERS), EACH), chosen.ravel(), values.ravel(), rating_range=(1.0, 5.0)
    )


def bounds(items: list[int] | None, most: int | None = None) -> RowBounds:
    return RowBounds(
        most, np.full(12, 3.0), True, 1.0, bias_shrinkage=2.0, by_sqrt_count=True,
        items=None if items is None else np.array(items),
    )  # fmt: skip


def run() -> Run:
    return Run(lambda task: [task(0, 40)])


@pytest.mark.parametrize("most", [None, 2])
def test_rows_are_those_of_people_who_rated_only_these_items(most: int | None) -> None:
    ratings, items = ratings_for(3, users=40, items=12, per_user=7), [1, 4, 5, 8, 11]
    inside = np.isin(ratings.items, items)
    counts = np.add.reduceat(inside, ratings.indptr[:-1])
    narrow = replace(
        ratings, indptr=np.append(0, np.cumsum(counts)), items=ratings.items[inside],
        values=ratings.values[inside],
    )  # fmt: skip
    found = Rows(ratings).bounded(bounds(items, most), run())
    told = Rows(narrow).bounded(bounds(None, most), run())
    for name in ("indptr", "items", "values", "means", "scales"):
        assert np.array_equal(getattr(found, name), getattr(told, name))
    whole = Rows(ratings).bounded(bounds(None, most), run())
    assert not np.array_equal(whole.scales, told.scales)


@pytest.mark.parametrize("items", [[3, 1], [1, 1], [-1, 2], [2, 12]])
def test_items_that_are_none_are_refused(items: list[int]) -> None:
    with pytest.raises(PrivacyError, match="must rise"):
        Rows(ratings_for(3, users=40, items=12, per_user=7)).bounded(bounds(items), run())


def test_how_often_pairs_of_them_are_rated_is_known() -> None:
    """Lists of 12 leave some three ratings of eight items; taken for lists of just three, pairs
    would be half as frequent again."""
    rng = np.random.default_rng(1)
    users, items, length, few = 40_000, 30, 12, np.arange(8)
    rated = np.zeros((users, items))
    for row in rated:
        row[rng.permutation(items)[:length]] = 1.0
    counts = (rated / np.sqrt(length)).sum(axis=0, keepdims=True)
    known = co_ratings(np.vstack([0 * counts, counts]), 1e-9, (12,), float(users))
    known = known._replace(lengths=np.array([1.0, 12.0]), stratum_sizes=np.array([1e-6, users]))
    rows = rated[:, few]
    rows = rows / np.sqrt(np.maximum(rows.sum(axis=1), 1.0))[:, None]
    true, found = rows.T @ rows, known.alone(few).pairs()
    apart = ~np.eye(few.size, dtype=bool)
    assert float(found[apart].mean()) == pytest.approx(float(true[apart].mean()), rel=0.12)
    without = found[apart].mean() / (length * 8 / items - 1) * (length * 8 / items)
    assert without > 1.2 * true[apart].mean()


def test_choice_factors_of_them_are_those_of_all_items() -> None:
    rng = np.random.default_rng(2)
    users, items, length = 60_000, 40, 12
    loadings = np.where(np.arange(items) % 2 == 0, 0.6, -0.6)
    odds = (np.arange(items) + 10.0) ** -1.0
    chances = odds * (1 + loadings * rng.choice([-1.0, 1.0], (users, 1)))
    chosen = np.argsort(-np.log(rng.random((users, items))) / chances, axis=1)[:, :length]
    rated = np.zeros((users, items))
    np.put_along_axis(rated, chosen, 1.0, axis=1)
    weights, few = (rated / np.sqrt(length)).sum(axis=0), np.arange(20)

    def found(of: np.ndarray, alone: bool) -> tuple[np.ndarray, float]:
        rows = rated[:, of]
        divided = rows.sum(axis=1) if alone else np.full(users, float(length))
        pairs = (rows / np.maximum(divided, 1.0)[:, None]).T @ rows
        told = choice_factors((pairs, 1.0), (weights, 1.0), of, float(users), (5, 0), alone)
        return told.loadings[:20], told.total

    every, total = found(np.arange(items), False)
    alone, told = found(few, True)
    assert every.shape[1] >= 1
    ahead, beside = ((each - each.mean(axis=0))[:, -1] for each in (every, alone))
    assert abs(np.corrcoef(ahead, beside)[0, 1]) > 0.95
    assert np.std(beside) == pytest.approx(np.std(ahead), rel=0.35)
    assert told == pytest.approx(total, rel=0.15)


def rated_by(ratings: tacit.Ratings):
    weights = np.bincount(ratings.items, minlength=ratings.n_items) / np.sqrt(EACH)
    known = co_ratings(weights[None], 1e-9, (), float(ratings.n_users))
    return known._replace(lengths=np.array([float(EACH)]))


def test_the_more_noise_the_fewer_items_and_they_are_the_popular_ones() -> None:
    ratings = people()
    rated, sizes = rated_by(ratings), []
    for epsilon in (100.0, 2.0, 0.5, 0.01):
        facts = Facts(ITEMS, (1.0, 5.0), USERS, tacit.PrivacyBudget(epsilon))
        items = popular_items(facts, rated)[0]
        sizes.append(ITEMS if items is None else items.size)
        if items is not None:
            others = np.delete(rated.weights, items)
            assert rated.weights[items].min() >= others.max()
            assert np.all(np.diff(items) > 0)
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == ITEMS
    assert sizes[-1] >= 20
    assert popular_items(replace(facts, budget=None), rated) == (None, None)


def test_they_are_no_more_than_a_matrix_may_have() -> None:
    weights = 1.0 / np.arange(1, 10_001)
    for count, size in ((0, 20), (500, 500), (9_999, 4_000)):
        found = readable_items(weights, 500.0, count)
        assert found is not None
        assert np.array_equal(found, np.arange(size))
    assert readable_items(weights, 500.0, 10_000) is None
    assert readable_items(weights, 5.0, 0) is None
    few = readable_items(np.ones(100), 20.0, 0)
    assert few is not None
    assert few.size == 40


def test_interactions_are_told_apart_with_fewer_users(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    users, items, length = 3000, 300, 30
    group = rng.integers(0, 2, (users, 1))
    odds = (np.arange(items) + 20.0) ** -1.0 * np.where(np.arange(items) % 2 == group, 2.0, 1.0)
    chosen = np.argsort(-np.log(rng.random((users, items))) / odds, axis=1)[:, :length]
    touched = tacit.Ratings.from_arrays(
        np.repeat(np.arange(users), length), chosen.ravel(), implicit=True
    )

    def found() -> int:
        model = tacit.fit(touched, tacit.Interactions(), epsilon=0.8, noise_seed_unsafe=1)
        return int(model.rule.factors.shape[1])

    alone = found()
    monkeypatch.setattr(interactions, "_CLEAR", 0.0)
    assert (alone, found()) == (1, 0)


def test_factors_are_found_where_a_matrix_of_all_items_shows_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Items outside of the matrix have loadings too: gradients tell them."""
    train, test = split(people(), 0.2, np.random.default_rng(0))

    def error() -> tuple[int, int, float]:
        model = tacit.fit(
            train, epsilon=0.7, noise_seed_unsafe=1, engine=ThreadEngine(1),
        )  # fmt: skip
        loadings = model.rule.factors[:, 1:]
        reached = int(np.count_nonzero(np.any(loadings, axis=1)))
        return loadings.shape[1], reached, evaluate(model, train, test).rmse

    found, reached, with_them = error()
    monkeypatch.setattr(latent_shares, "_READABLE", (1e-9, 1e-9))
    none, _, without = error()
    assert found >= 1
    assert reached == ITEMS
    assert none == 0
    assert with_them < without - 0.01
