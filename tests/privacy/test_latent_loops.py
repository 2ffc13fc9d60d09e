"""The loops of the latent factor model against the same sums with dense matrices, user by user.

Users have from none to more ratings than there are factors, so that both forms of the posterior are
met, and sizes are such that loops that take four rows at a time have some left over.
"""

import math

import numpy as np
import pytest
from tests.support.by_hand import ITEMS, ratings_with_empty_rows

from tacit.kernels.latent import (
    _add_equations,
    expected_equations,
    expected_gradient,
    factor_moments,
    posterior_means,
)
from tacit.kernels.quantise import Quanta
from tacit.kernels.solving import cholesky, inverse_of, solve_rows, subtract_rows
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistics import LatentModel

LENGTHS, CHOICES = (3, 0, 1, 7, 2, 5, 10, 6), 3
RANKS = (1, 5, 6)
FINE = Quanta(1e3, 1e-6, 2**52)  # nobody is clipped, and rounding is too small to see


class World:
    """Rows and a model for one number of factors, and what everyone's posterior is."""

    def __init__(self, rank: int) -> None:
        rng = np.random.default_rng(rank)
        items = [np.sort(rng.choice(ITEMS, d, replace=False)) for d in LENGTHS]
        rated = [rng.integers(2, 11, d) / 2 for d in LENGTHS]
        offsets = rng.uniform(2, 4, ITEMS)
        people = [
            dict(zip(own.tolist(), y, strict=True)) for own, y in zip(items, rated, strict=True)
        ]
        bounds = RowBounds(None, offsets, False, np.inf, 0)
        run = Run(lambda task: [task(0, len(LENGTHS))])
        self.rows = Rows(ratings_with_empty_rows(people)).bounded(bounds, run)
        self.model = LatentModel(
            rng.standard_normal((ITEMS, rank)),
            rng.uniform(0.5, 2, ITEMS),
            rng.standard_normal((ITEMS, CHOICES)),
            rng.standard_normal((CHOICES, rank)),
        ).arrays()
        self.rank = rank
        self.users = [
            self._posterior(own, y - offsets[own]) for own, y in zip(items, rated, strict=True)
        ]

    def _posterior(self, items: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, ...]:
        """Return her items, what she rated, c, u and S."""
        factors, roots, choice, prior = self.model
        present = np.zeros(ITEMS)
        present[items] = 1 / np.sqrt(max(items.size, 1))
        c = choice.T @ present if items.size else np.eye(CHOICES)[0]
        F, weights = factors[items], np.diag(roots[items] ** 2)
        S = np.linalg.inv(np.eye(self.rank) + F.T @ weights @ F)
        start = prior.T @ c
        u = start + S @ F.T @ weights @ (y - F @ start)
        return items, y, c, u, S

    def summed(self, loop, shape, *rest, quanta=FINE):
        """Return what a loop adds, in two parts."""
        total, users = np.zeros(shape, dtype=np.int64), len(LENGTHS)
        for lo, hi in ((0, 3), (3, users)):
            loop(self.rows, self.model, *rest, quanta, lo, hi, total)
        return total.astype(float)


@pytest.fixture(scope="module", params=RANKS)
def world(request: pytest.FixtureRequest) -> World:
    return World(request.param)


def test_posterior_means_of_everyone_and_of_a_part(world: World) -> None:
    found = np.full((len(LENGTHS), world.rank), 7.0)
    posterior_means(world.rows, world.model, found, 1, len(LENGTHS))
    expected = np.array([u for *_, u, _ in world.users])
    assert np.all(found[0] == 7.0)
    assert np.allclose(found[1:], expected[1:], rtol=1e-10)


def test_factor_moments(world: World) -> None:
    factors, roots = world.model.factors, world.model.roots
    size = CHOICES + world.rank + 1
    expected = np.zeros((size, size))
    for items, y, c, u, S in world.users:
        if items.size:
            F, weights = factors[items], roots[items] ** 2
            errors = (y - F @ u) ** 2 + np.einsum("jk,kl,jl->j", F, S, F)
            v = np.concatenate([c, u, [np.sqrt(np.mean(weights * errors))]])
            expected += np.outer(v, v)
    found = world.summed(factor_moments, (size, size)) * FINE.quantum**2
    assert np.allclose(found, np.triu(expected), rtol=1e-5, atol=5e-5)


def test_expected_gradients(world: World) -> None:
    factors = world.model.factors
    expected = np.zeros((ITEMS + CHOICES, world.rank + 1))
    for items, y, c, u, S in world.users:
        if items.size:
            left = y - factors[items] @ u
            rows = np.column_stack([np.outer(left, u) - factors[items] @ S, left])
            expected[items] += rows / np.sqrt(items.size)
            expected[ITEMS:, :-1] += 0.4 * np.outer(c, u - world.model.prior.T @ c)
    found = world.summed(expected_gradient, expected.shape, 0.4) * FINE.quantum
    assert np.allclose(found, expected, rtol=1e-5, atol=5e-5)


@pytest.mark.parametrize("root", [False, True])
def test_expected_equations(world: World, root: bool) -> None:
    pairs = np.triu_indices(world.rank + 1)
    expected = np.zeros((ITEMS, pairs[0].size + world.rank + 2))
    for items, y, _, u, S in world.users:
        second = np.zeros((world.rank + 1, world.rank + 1))
        second[:-1, :-1] = S
        second += np.outer([*u, 1.0], [*u, 1.0])
        for item, rating in zip(items, y, strict=True):
            row = np.concatenate([second[pairs], rating * u, [rating, rating**2]])
            expected[item] += row / (np.sqrt(items.size) if root else 1.0)
    found = world.summed(expected_equations, expected.shape, root) * FINE.quantum
    assert np.allclose(found, expected, rtol=1e-5, atol=5e-5)


def test_someone_whose_arithmetic_breaks_down_adds_nothing_and_the_next_does(world: World) -> None:
    """Infinite weights make a posterior that is no number; later users are summed all the same."""
    broken = world.rows.items[0]
    roots = world.model.roots.copy()
    roots[broken] = np.inf
    model = world.model._replace(roots=roots)
    kept = [i for i, (items, *_) in enumerate(world.users) if broken not in items]
    for loop, shape, rest in (
        (factor_moments, (CHOICES + world.rank + 1,) * 2, ()),
        (expected_gradient, (ITEMS + CHOICES, world.rank + 1), (0.4,)),
        (expected_equations, (ITEMS, (world.rank + 1) * (world.rank + 2) // 2 + world.rank + 2),
         (False,)),
    ):  # fmt: skip
        total, alone = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        loop(world.rows, model, *rest, FINE, 0, len(LENGTHS), total)
        for i in kept:
            loop(world.rows, world.model, *rest, FINE, i, i + 1, alone)
        assert np.array_equal(total, alone)
    means = np.full((len(LENGTHS), world.rank), 7.0)
    posterior_means(world.rows, model, means, 0, len(LENGTHS))
    assert np.all((means == 7.0).all(axis=1) == [i not in kept for i in range(len(LENGTHS))])


def test_a_posterior_that_is_infinite_is_not_written(world: World) -> None:
    """Someone without ratings has the mean that the prior gives to average people."""
    prior = world.model.prior.copy()
    prior[0] = np.inf
    found = np.full((len(LENGTHS), world.rank), 7.0)
    empty = LENGTHS.index(0)
    posterior_means(world.rows, world.model._replace(prior=prior), found, empty, empty + 1)
    assert np.all(found == 7.0)


def equations(
    shared: list[float], terms: list[list[float]], bound: float, most: int, quantum: float = 1.0
) -> tuple[list[int], list[int]]:
    """Return what one user adds: what her items share, and all of their own terms."""
    own, count = np.array(terms), len(terms)
    total = np.zeros((count, len(shared) + own.shape[1]), dtype=np.int64)
    with np.errstate(over="ignore", invalid="ignore", divide="raise"):
        quanta = Quanta(bound, quantum, most)
        _add_equations(np.array(shared), own, np.arange(count, dtype=np.uint16), quanta, total)
    assert (total[:, : len(shared)] == total[0, : len(shared)]).all()
    return total[0, : len(shared)].tolist(), total[:, len(shared) :].ravel().tolist()


@pytest.mark.parametrize("scale", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("count", [1, 3])
def test_equations_are_clipped_as_one_vector(scale: float, count: int) -> None:
    """What is shared counts once for each item."""
    shared, terms = [1.5 * scale, -0.5 * scale], [[0.7 * scale, 2.0 * scale, -1.1 * scale]] * count
    norm = math.sqrt(count * (np.dot(shared, shared) + np.dot(terms[0], terms[0])))
    factor = min(1.0, 3.0 / norm)
    one, own = equations(shared, terms, 3.0, 2**52, 1e-6)
    assert np.allclose(np.array(one) * 1e-6, factor * np.array(shared), rtol=1e-5)
    assert np.allclose(np.array(own) * 1e-6, factor * np.ravel(terms), rtol=1e-5)


@pytest.mark.parametrize(
    ("shared", "terms", "bound", "most", "expected"),
    [
        ([2.0], [[3.0]], 4.0, 13, ([2], [3])),  # just fits
        ([2.0], [[3.0, 0.6]], 4.0, 13, None),  # 4 + 10 would be one too many
        ([2.0], [[0.6] * 3] * 4, 5.0, 21, None),  # rounding makes the terms longer
        ([0.51] * 6, [[0.0]] * 15, 5.0, 24, None),  # rounding makes the shared part longer
        ([1.2, 0.0, 0.0], [[0.0]], 5.0, 25, ([1, 0, 0], [0])),  # short, and not cut to nothing
        ([2.51] * 3, [[0.0]], 20.0, 400, ([2, 2, 2], [0])),  # no longer than 0.1 % and one each
        ([1e200], [[1.0]], 5.0, 25, ([0], [0])),  # its norm overflows
    ],
)
def test_equations_of_one_user_are_bounded_in_integers(
    shared: list[float],
    terms: list[list[float]],
    bound: float,
    most: int,
    expected: tuple[list[int], list[int]] | None,
) -> None:
    one, own = equations(shared, terms, bound, most)
    assert len(terms) * sum(k * k for k in one) + sum(k * k for k in own) <= most
    if expected is not None:
        assert (one, own) == expected


@pytest.mark.parametrize("size", [1, 2, 4, 5, 9])
def test_solving_with_a_cholesky_factor(size: int) -> None:
    rng = np.random.default_rng(size)
    half = rng.standard_normal((size + 2, size))
    gram = 1e-3 * (half.T @ half + np.eye(size))  # corners below 1 are sound too
    upper = np.triu(gram) + np.tril(np.full((size, size), np.nan), -1)  # only this half is read
    assert cholesky(upper)
    U = np.triu(upper)
    assert np.allclose(U.T @ U, gram, rtol=1e-12)
    assert np.allclose(inverse_of(U) @ U, np.eye(size), atol=1e-12)
    right = 1e-3 * rng.standard_normal((size, 3))
    solved = right.copy()
    solve_rows(U, solved)
    assert np.allclose(gram @ solved, right, atol=1e-11)


@pytest.mark.parametrize("bad", [0.0, -1.0, np.inf, np.nan])
@pytest.mark.parametrize("at", [0, 2])
def test_no_cholesky_factor_of_what_is_not_positive(bad: float, at: int) -> None:
    gram = np.eye(3)
    gram[at, at] = bad
    assert not cholesky(gram)


@pytest.mark.parametrize("count", [0, 1, 4, 6, 9])
def test_rows_are_subtracted_from_where_they_start(count: int) -> None:
    rng = np.random.default_rng(count)
    matrix, weights = rng.standard_normal((12, 7)), rng.standard_normal(count)
    sums = rng.standard_normal(5)
    expected = sums - weights @ matrix[2 : 2 + count, 2:]
    subtract_rows(sums, weights, matrix, 2, 2)
    assert np.allclose(sums, expected, rtol=1e-12, atol=1e-12)
