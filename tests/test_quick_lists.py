"""Lists of many people, made quickly: the numbers are those of loops that are not quick."""

import dataclasses
from typing import Any

import numpy as np
import pytest
from scipy.special import log_ndtr

import tacit
from tacit.kernels.choosing import softplus
from tacit.kernels.latent import posterior_means
from tacit.models.bulk import Wanted, _quick_lists, best_rows
from tacit.models.latent import LatentFactorRule
from tacit.models.rules import OwnRows, Pairs, own_arrays
from tests.conftest import ratings_for

ITEMS = 90


def rule_of(rank: int, size: float = 0.6, noise: float = 0.8) -> LatentFactorRule:
    rng = np.random.default_rng(rank)
    return LatentFactorRule(
        factors=rng.normal(size=(ITEMS, rank)) * size / np.sqrt(rank),
        offsets=3.3 + 0.3 * rng.normal(size=ITEMS),
        noise=noise * (1 + 0.1 * rng.random(ITEMS)),
        choice_factors=0.05 * rng.normal(size=(ITEMS, 5)) + np.eye(5)[0] * 0.1,
        choice_noise=np.full(ITEMS, 0.02),
        prior=0.1 * rng.normal(size=(5, rank)),
        liked=3.8,
    )


def rows_of(*lengths: int) -> OwnRows:
    rng = np.random.default_rng(len(lengths))
    items = [np.sort(rng.choice(ITEMS, length, replace=False)) for length in lengths]
    values = rng.integers(1, 6, sum(lengths)).astype(np.float32)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    return OwnRows(indptr, np.concatenate(items).astype(np.uint16), values)


def in_double(rule: LatentFactorRule, own: OwnRows) -> np.ndarray:
    people = own.indptr.size - 1
    solved = np.zeros((people, rule.factors.shape[1]))
    rows = own_arrays(own, rule.offsets, (False, 0.0, np.inf, np.inf))
    posterior_means(rows, rule._arrays, solved, 0, people)
    return np.asarray(rule.offsets + solved @ rule.factors.T)


class TestPosteriorMeans:
    """kernels.quick, beside the same in double precision."""

    @pytest.mark.parametrize("rank", [1, 7, 16, 40])
    def test_they_are_those_in_double_precision(self, rank: int) -> None:
        """Users with fewer ratings than factors, as many, more, and none, one after the other."""
        rule, own = rule_of(rank), rows_of(80, 3, 0, rank, 1, 90, rank + 1, max(rank - 1, 0), 17)
        assert np.allclose(rule.scores(own), in_double(rule, own), rtol=0, atol=1e-9)

    @pytest.mark.parametrize("noise", [1e-3, 1e-6, 1e-9])
    def test_also_where_single_precision_does_not_do(self, noise: float) -> None:
        rule, own = rule_of(20, noise=noise), rows_of(80, 6, 20, 50)
        exact = in_double(rule, own)
        assert np.allclose(rule.scores(own), exact, rtol=0, atol=1e-8 * np.abs(exact).max())

    def test_of_one_alone_and_among_others_they_are_the_same_bits(self) -> None:
        rule, own = rule_of(20), rows_of(80, 6, 20, 0, 50)
        together = rule._solved(own)
        for row in range(5):
            part = slice(own.indptr[row], own.indptr[row + 1])
            one = OwnRows(own.indptr[row : row + 2] - part.start, own.items[part], own.values[part])
            assert np.array_equal(rule._solved(one)[0], together[row])

    def test_variances_of_pairs_are_those_of_whole_rows(self) -> None:
        rule, own = rule_of(20), rows_of(80, 6, 20, 0, 50)
        items = np.arange(10)
        pairs = Pairs(np.arange(6) * 2, items)
        scores, sds = rule.pair_scores(own, pairs, True)
        where = (pairs.people, items)
        assert np.allclose(scores, rule.scores(own)[where], rtol=0, atol=1e-9)
        assert np.allclose(sds, rule.spread(own)[where], rtol=1e-5)


def plain_lists(rule: LatentFactorRule, own: OwnRows, wanted: Wanted) -> list[tuple[Any, ...]]:
    """Items, scores and shares of everyone's list, from whole rows in double precision."""
    scores, choice = in_double(rule, own), rule.choice(own)
    liking = rule._liking_power * log_ndtr((scores - rule.liked) / np.sqrt(rule.noise))
    made = []
    for i, order in enumerate(np.log(choice) + liking):
        there = wanted.allowed.copy()
        if not wanted.include_rated:
            there[own.items[own.indptr[i] : own.indptr[i + 1]]] = False
        best = [k for k in np.argsort(-order, kind="stable") if there[k]][: wanted.n]
        made.append((best, scores[i, best], choice[i, best] / choice[i, there].sum()))
    return made


class TestLists:
    """models.bulk, where the rule makes lists."""

    @pytest.mark.parametrize("power", [0.5, 1.0, 0.7])
    @pytest.mark.parametrize(("n", "include_rated"), [(1, False), (10, False), (90, True)])
    def test_they_are_the_best_of_whole_rows(
        self, power: float, n: int, include_rated: bool
    ) -> None:
        rule, own = rule_of(16), rows_of(80, 3, 0, 90, 17, 85)
        rule.__dict__["_liking_power"] = power
        allowed = np.arange(ITEMS) % 7 != 2
        wanted = Wanted(n, allowed, include_rated)
        found = rule.lists(own, own if not include_rated else rows_of(*[0] * 6), allowed, n)
        assert found.items.shape == (6, n)
        for i, (items, scores, shares) in enumerate(plain_lists(rule, own, wanted)):
            size = len(items)
            assert found.items[i].tolist() == items + [-1] * (n - size)
            assert np.allclose(found.scores[i, :size], scores, rtol=0, atol=1e-9)
            assert np.allclose(found.shares[i, :size], shares, rtol=1e-12)

    def test_the_order_is_that_of_ranking(self) -> None:
        """One way is quick, and the other what `by` and long lists take."""
        ratings = ratings_for(0, users=300)
        model = tacit.fit(ratings, budget=None)
        own = OwnRows(ratings.indptr, ratings.items, ratings.values)
        wanted = Wanted(5, np.ones(ratings.n_items, np.bool_))
        assert _quick_lists(model, own, wanted) is not None
        rule: Any = model.rule
        slow = dataclasses.replace(model, rule=_Slow(rule))
        assert _quick_lists(slow, own, wanted) is None
        assert np.array_equal(best_rows(model, own, wanted), best_rows(slow, own, wanted))

    def test_what_is_no_number_is_in_no_list(self) -> None:
        rule, own = rule_of(3), rows_of(4, 0)
        rule.offsets[5] = np.nan
        found = rule.lists(own, own, np.ones(ITEMS, np.bool_), ITEMS)
        assert 5 not in found.items
        assert found.items[1, -1] == -1


class _Slow:
    """A rule that knows what people choose, and makes no lists itself."""

    kind = "slow"

    def __init__(self, rule: LatentFactorRule) -> None:
        self.scores, self.choice = rule.scores, rule.choice
        self.ranking, self.ranked = rule.ranking, rule.ranked


class TestSoftplus:
    """kernels.choosing."""

    def test_it_is_that_of_numpy(self) -> None:
        numbers = np.concatenate([np.linspace(-60, 60, 4801), [-700.0, 0.0, -0.0, 1e-300, 1e9]])
        found = numbers[None].copy()
        softplus(found)
        assert np.allclose(found[0], np.logaddexp(0, numbers), rtol=1e-14, atol=0)

    def test_the_ends_are_positive_and_what_is_no_number_stays_so(self) -> None:
        found = np.array([[-1e300, -np.inf, np.inf, np.nan]])
        softplus(found)
        assert (found[0, :2] > 0).all()
        assert found[0, 2] == np.inf
        assert np.isnan(found[0, 3])
