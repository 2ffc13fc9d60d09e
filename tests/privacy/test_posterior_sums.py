"""What LatentFactors sums of people, beside dense matrices: in single precision and in double.

People have means, scales and a clip of their own, so that no part of how a rating is read can be
left out. Small enough to run as plain Python, for mutants of these loops.
"""

import numpy as np
import pytest
from tests.support.rows import frozen

from tacit.kernels.latent import LatentArrays, expected_gradient, factor_moments
from tacit.kernels.lines import zeros
from tacit.kernels.own_system import room_for, solve, tables_of
from tacit.kernels.quantise import Quanta
from tacit.kernels.rows import RowArrays

CHOICES, CLIP, WEIGHT = 2, 1.5, 0.3
FINE = Quanta(1e3, 1e-5, 2**52)
SHAPES = {
    "few": (9, 3, (5, 0, 2, 4, 1)),
    "a tile": (16, 15, (16, 15, 3)),
    "a tile and its right side": (16, 16, (16, 15, 14)),
    "fewer ratings than factors": (16, 17, (16, 15, 1)),
    "two tiles": (24, 17, (20, 17, 16)),
    "one factor": (4, 1, (3,)),
    "two factors nearly alike": (2, 2, (2,)),
}
"""Items, factors, and how many ratings people have."""


def people(exactness: float, shape: str = "few") -> tuple[RowArrays, LatentArrays]:
    """Rows with more ratings than factors and with fewer; ratings so exact beside their noise."""
    rng, (n_items, rank, lengths) = np.random.default_rng(3), SHAPES[shape]
    items = np.concatenate([np.sort(rng.choice(n_items, d, replace=False)) for d in lengths])
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    values = rng.uniform(1, 5, items.size).astype(np.float32)
    means, scales = rng.normal(size=len(lengths)), rng.uniform(0.3, 0.8, len(lengths))
    rows = RowArrays(
        *frozen(indptr, items.astype(np.uint16), values),
        rng.uniform(2, 4, n_items), means, scales, CLIP,
    )  # fmt: skip
    factors = rng.normal(size=(n_items, rank))
    if rank > 1:
        factors[:, 1] = factors[:, 0] + 0.02 * factors[:, 1]  # nearly the same column
    roots = exactness * rng.uniform(0.8, 1.2, n_items)
    prior = rng.normal(size=(CHOICES, rank))
    return rows, LatentArrays(factors, roots, rng.normal(size=(n_items, CHOICES)), prior)


def dense(rows: RowArrays, model: LatentArrays) -> tuple[np.ndarray, np.ndarray]:
    """Both sums, as the docstring of kernels.latent says, by numpy."""
    n_items, rank = model.factors.shape
    moments = np.zeros((CHOICES + rank + 1,) * 2)
    gradients = np.zeros((n_items + CHOICES, rank + 1))
    for i, count in enumerate(np.diff(rows.indptr)):
        if not count:
            continue
        own = slice(rows.indptr[i], rows.indptr[i + 1])
        items = rows.items[own].astype(int)
        centred = rows.values[own] - rows.offsets[items] - rows.means[i]
        ratings = np.clip(centred, -CLIP, CLIP) * rows.scales[i]
        found = model.choice[items].sum(axis=0) / np.sqrt(count)
        F, precisions = model.factors[items], model.roots[items] ** 2
        S = np.linalg.inv(F.T @ (precisions[:, None] * F) + np.eye(rank))
        mean = found @ model.prior
        u = mean + S @ F.T @ (precisions * (ratings - F @ mean))
        left = ratings - F @ u
        error = np.sum(precisions * (left**2 + np.einsum("pk,kl,pl->p", F, S, F)))
        vector = np.concatenate([found, u, [np.sqrt(error / count)]])
        moments += np.outer(vector, vector)
        terms = np.column_stack([left[:, None] * u - F @ S, left]) / np.sqrt(count)
        np.add.at(gradients, items, terms)
        gradients[n_items:, :-1] += WEIGHT * np.outer(found, u - mean)
    return moments, gradients


def summed(
    rows: RowArrays, model: LatentArrays, quanta: Quanta, users: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Both sums of the first users, or of all, in integers."""
    n_items, rank = model.factors.shape
    moments = np.zeros((CHOICES + rank + 1,) * 2, dtype=np.int64)
    gradients = np.zeros((n_items + CHOICES, rank + 1), dtype=np.int64)
    users = rows.means.size if users is None else users
    factor_moments(rows, model, quanta, 0, users, moments)
    expected_gradient(rows, model, WEIGHT, quanta, 0, users, gradients)
    return moments, gradients


@pytest.mark.parametrize(
    ("exactness", "shape"),
    [*((1.0, shape) for shape in SHAPES), (30.0, "few"), (30.0, "two tiles")],
)
def test_sums_are_those_of_dense_matrices(exactness: float, shape: str) -> None:
    """With ratings so exact that single precision does not do, some people solve in double."""
    rows, model = people(exactness, shape)
    moments, gradients = summed(rows, model, FINE)
    exact_moments, exact_gradients = dense(rows, model)
    close = 2e-4 * np.abs(exact_moments).max(), 2e-4 * np.abs(exact_gradients).max()
    assert np.allclose(moments * FINE.quantum**2, np.triu(exact_moments), atol=close[0])
    assert np.allclose(gradients * FINE.quantum, exact_gradients, atol=close[1])


def test_both_precisions_are_needed_here() -> None:
    """The twin: without people of either kind the test above would not compare both."""
    for exactness, kinds in ((1.0, {True}), (30.0, {True, False})):
        rows, model = people(exactness)
        tables, lengths = tables_of(model), np.diff(rows.indptr)
        room = room_for(tables, lengths.max())
        found = {solve(rows, i, tables, room, 3) for i, d in enumerate(lengths) if d}
        assert found == kinds


def test_who_needs_double_precision_adds_her_gradient_too() -> None:
    """One person, so small that it is quick as plain Python too."""
    rows, model = people(300.0, "two factors nearly alike")
    tables = tables_of(model)
    assert not solve(rows, 0, tables, room_for(tables, 2), 2)
    found = np.zeros((2 + CHOICES, 3), dtype=np.int64)
    expected_gradient(rows, model, WEIGHT, FINE, 0, 1, found)
    exact = dense(rows, model)[1]
    assert np.allclose(found * FINE.quantum, exact, atol=1e-4 * np.abs(exact).max())


@pytest.mark.parametrize("bound", [0.01, 0.5])
def test_a_long_gradient_is_shortened_to_its_bound_and_keeps_its_direction(bound: float) -> None:
    rows, model = people(1.0)
    quanta = Quanta(bound, bound * 2.0**-20, 2**40)
    (_, found), (_, whole) = summed(rows, model, quanta, 1), summed(rows, model, FINE, 1)
    length = np.linalg.norm(found * quanta.quantum)
    assert length <= bound * (1 + 1e-9)
    assert length > 0.999 * min(bound, np.linalg.norm(whole * FINE.quantum))
    cosine = np.sum(found * 1.0 * whole) / np.linalg.norm(found) / np.linalg.norm(whole)
    assert cosine == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("bad", [1e30, np.inf])
def test_nobody_adds_what_is_no_number(bad: float) -> None:
    """Numbers of the model that break arithmetic: a user adds nothing, or something bounded."""
    rows, model = people(1.0)
    moments, found = summed(rows, model._replace(prior=np.full_like(model.prior, bad)), FINE, 1)
    assert sum(int(each) ** 2 for each in found.ravel()) <= FINE.most_squared
    assert sum(int(each) for each in np.diag(moments)) <= FINE.most_squared
    assert (found.any() or moments.any()) == (bad < np.inf)


@pytest.mark.parametrize("shape", ["few", "one factor"])
def test_numbers_beyond_single_precision_are_for_double(shape: str) -> None:
    rows, model = people(1.0, shape)
    for prior, does in ((1.0, True), (1e200, False)):
        tables = tables_of(model._replace(prior=np.full_like(model.prior, prior)))
        room = room_for(tables, np.diff(rows.indptr).max())
        assert solve(rows, 0, tables, room, model.factors.shape[1]) == does


def test_nothing_is_written_beside_a_persons_room() -> None:
    rows, model = people(1.0, "a tile")
    tables = tables_of(model)
    before, after = zeros(3, tables.choice.shape[1]), zeros(18, 16)
    room = room_for(tables, 16)._replace(found=before[1:2], gram=after[:16])
    before[0], after[16:] = 7.0, 7.0
    assert solve(rows, 0, tables, room, 15)
    assert np.all(before[0] == 7.0)
    assert np.all(after[16:] == 7.0)
