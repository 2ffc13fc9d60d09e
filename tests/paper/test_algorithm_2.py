"""Algorithm 2 (private Oja) and its block form, written a second time: dense, from the paper's box.

They share no code with the package. Given the same noise, both must agree to 1e-5.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.paper.test_algorithm_1 import problem
from tests.support.attack import (
    change,
    opposites,
    plain,
)
from tests.support.recorded import recorded_noise

import tacit
from tacit.estimation.eigen import oja, start_block
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import ResidualEnergy, ResidualProduct, product_sensitivity

N, T, GAMMA = 12, 4, 5
BETA = 0.05
ENERGY_SHARE = 0.1  # of a round, for the eigenvalue


def clip_rows(rows: np.ndarray, bound: float) -> np.ndarray:
    lengths = np.linalg.norm(rows, axis=1)
    return rows * np.minimum(1, bound / np.maximum(lengths, 1e-300))[:, None]


def dense_algorithm_2(
    A: np.ndarray, v: np.ndarray, eta: float, noises: list[np.ndarray]
) -> np.ndarray:
    """Return v-hat_Gamma. The start is normalised first, as the box forgets to do.

    LAPACK, which the package uses to normalise, leaves the first entry negative; the paper leaves
    the vector as it is. An eigenvector's sign is free, and so is that of g: it is turned along.
    """
    v = v / np.linalg.norm(v)
    for g in noises:
        g = g if v[0] < 0 else -g  # noqa: PLW2901
        product = A.T @ (A @ v) + g
        v = product if math.isinf(eta) else v + eta * product
        v = v / np.linalg.norm(v)
    return v


def dense_block_form(
    W: np.ndarray, V: np.ndarray, eta: float, noises: list[np.ndarray]
) -> np.ndarray:
    """Return V-hat_Gamma: Algorithm 2 with QR instead of normalising."""
    V = np.linalg.qr(V)[0]
    for G in noises:
        product = W @ V + G.reshape(V.shape)
        V = np.linalg.qr(product if math.isinf(eta) else V + eta * product)[0]
    return V


ETAS: dict[str, Callable[[float], float]] = {
    "paper": lambda sigma: 1 / (GAMMA * sigma * math.sqrt(N)),  # the box
    "theory": lambda sigma: 1 / math.sqrt(sigma**2 * N * GAMMA),  # Theorem 3.3, V = sigma^2 n
    "power": lambda _: math.inf,
}


def start(seed: int, columns: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((N, columns))


def dense_frank_wolfe_with_oja(
    target: np.ndarray,
    seen: np.ndarray,
    *,
    k: float,
    L: float,
    clip: float,
    eta: float,
    sigmas: tuple[float, float],
    noises: list[np.ndarray],
    shift: bool,
) -> np.ndarray:
    """Return Algorithm 1's Y^(T), with Algorithm 2 in the place of the eigenpair."""
    sigma, energy_sigma = sigmas
    Y_star = target * np.minimum(1, L / np.linalg.norm(target * seen, axis=1))[:, None]
    Y = np.zeros_like(target)
    for t in range(1, T):
        A = clip_rows(seen * (Y - Y_star), clip)
        *vectors, last = noises[(t - 1) * (GAMMA + 1) : t * (GAMMA + 1)]
        v = dense_algorithm_2(A, start(t)[:, 0], eta, [sigma * g for g in vectors])
        squared = np.linalg.norm(A @ v) ** 2 + energy_sigma * float(last[0])
        lam = math.sqrt(max(squared, sigma))
        if shift:
            lam += math.sqrt(sigma * math.log(N / BETA)) * N**0.25
        Y = (1 - 1 / T) * Y - k / T * np.outer((seen * (Y - Y_star)) @ v / lam, v)
        lengths = np.linalg.norm(seen * Y, axis=1)
        Y = Y * np.minimum(1, L / np.maximum(lengths, 1e-300))[:, None]
    return Y


def sigmas_of(budget: tacit.PrivacyBudget, clip: float) -> tuple[float, float]:
    """Return the noise of a product and of an eigenvalue: sensitivity B^2, whatever the relation.

    The product's is enlarged by 2^-20, for rounding.
    """
    round_mu = budget.mu / math.sqrt(T - 1)
    one = clip**2 * (1 + 2.0**-20) / (round_mu * math.sqrt((1 - ENERGY_SHARE) / GAMMA))
    return one, clip**2 / (round_mu * math.sqrt(ENERGY_SHARE))


CASES: dict[str, dict[str, Any]] = {
    "projection bites": {"row_norm": 0.6},
    "no shift": {"row_norm": 0.9, "shift": False},
    "residuals clipped": {"row_norm": 0.9, "residual_clip": 0.6},
}


def compared(
    case: str, rate: str, budget: tacit.PrivacyBudget, patch: pytest.MonkeyPatch, k: float = 20.0
) -> float:
    """Return how far Frank-Wolfe with Oja is from the dense version with this k."""
    full, seen, ratings = problem(1)
    config = tacit.FrankWolfe(
        rounds=T, nuclear_norm=20.0, max_ratings=None, centre=False, eigen="oja",
        oja_steps=GAMMA, oja_rate=rate, beta=BETA, **CASES[case],
    )  # fmt: skip
    drawn = recorded_noise(patch)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    assert [noise.size for noise in drawn] == [*[N] * GAMMA, 1] * (T - 1)
    clip = config.residual_clip * config.row_norm
    sigmas = sigmas_of(budget, clip)
    expected = dense_frank_wolfe_with_oja(
        full, seen, k=k, L=config.row_norm, clip=clip, eta=ETAS[rate](sigmas[0]),
        sigmas=sigmas, noises=drawn, shift=config.shift,
    )  # fmt: skip
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    return float(np.max(np.abs(found - np.clip(expected, -1, 1))))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("rate", ETAS)
@pytest.mark.parametrize("epsilon", [1.0, 50.0, 2000.0])
def test_frank_wolfe_with_oja_is_algorithms_1_and_2(
    case: str, rate: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert compared(case, rate, tacit.PrivacyBudget(epsilon), monkeypatch) < 1e-5


def test_it_is_so_under_add_remove(monkeypatch: pytest.MonkeyPatch) -> None:
    budget = tacit.PrivacyBudget(50.0, neighbours="add_remove")
    assert compared("no shift", "theory", budget, monkeypatch) < 1e-4  # on a coarser grid


def test_a_wrong_constant_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: k, the eigenvalue's share or eta, a little off, are further away than 1e-5."""
    budget = tacit.PrivacyBudget(50.0)
    case = ("no shift", "theory", budget)
    assert compared(*case, monkeypatch, k=20.2) > 1e-4
    with monkeypatch.context() as patch:
        patch.setitem(ETAS, "theory", ETAS["paper"])
        assert compared(*case, patch) > 1e-4
    with monkeypatch.context() as patch:
        patch.setitem(globals(), "ENERGY_SHARE", 0.11)
        assert compared(*case, patch) > 1e-4


@pytest.mark.parametrize("eigen", ["power", "oja"])
@pytest.mark.parametrize("rank", [1, 3])
@pytest.mark.parametrize("rate", ["theory", "paper"])
@pytest.mark.parametrize("epsilon", [2.0, 200.0])
def test_svd_by_products_is_the_block_form(
    eigen: str, rank: int, rate: str, epsilon: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    full, seen, ratings = problem(2)
    config = tacit.SVD(
        rank=rank, eigen=eigen, oja_steps=GAMMA, oja_rate=rate, start_seed=7, count_share=0.0,
        row_norm=0.7, max_ratings=5, centre=False,
    )  # fmt: skip
    drawn = recorded_noise(monkeypatch)
    budget = tacit.PrivacyBudget(epsilon)
    model = tacit.fit(ratings, config, budget=budget, noise_seed_unsafe=3)
    assert [noise.size for noise in drawn] == [N * rank] * GAMMA
    sensitivity = 0.7**2 * (1 + 2.0**-20) * (1 if rank == 1 else math.sqrt(2))
    sigma = sensitivity * math.sqrt(GAMMA) / budget.mu
    eta = ETAS["power" if eigen == "power" else rate](sigma)
    A = clip_rows(seen * full, 0.7)
    V = dense_block_form(A.T @ A, start(7, rank), eta, [sigma * noise for noise in drawn])
    expected = 12 / 5 * (seen * full) @ V @ V.T
    (_, found), = model.predict_rows(ratings)  # fmt: skip
    assert np.max(np.abs(found - np.clip(expected, -1, 1))) < 1e-5
    if eigen == "oja":  # the twin: the other rate is another subspace
        other = ETAS["paper" if rate == "theory" else "theory"](sigma)
        wrong = dense_block_form(A.T @ A, start(7, rank), other, [sigma * g for g in drawn])
        assert np.max(np.abs(wrong @ wrong.T - V @ V.T)) > 1e-4


def test_the_block_form_of_one_column_is_algorithm_2() -> None:
    rng = np.random.default_rng(0)
    A, noises = rng.standard_normal((30, N)), list(5 * rng.standard_normal((GAMMA, N)))
    v0 = rng.standard_normal(N)
    block = dense_block_form(A.T @ A, v0[:, None], 0.01, noises)[:, 0]
    vector = dense_algorithm_2(A, v0, 0.01, noises)
    assert np.allclose(block, -np.sign(vector[0]) * vector, atol=1e-12)


@pytest.mark.parametrize("rate", ["power", 0.01, 10.0])
def test_without_noise_it_comes_to_the_top_eigenvectors(rate: Any) -> None:
    rng = np.random.default_rng(1)
    basis = np.linalg.qr(rng.standard_normal((N, N)))[0]
    W = (basis * 2.0 ** -np.arange(N)) @ basis.T * 100
    found = oja(lambda V, _: W @ V, start_block(N, 3, 0), 200, rate, 0.0)
    assert np.allclose(found.T @ found, np.eye(3), atol=1e-12)
    assert np.allclose(found @ found.T, basis[:, :3] @ basis[:, :3].T, atol=1e-6)


def test_the_eigenvalue_is_one_more_release_and_is_paid_for() -> None:
    """The box counts Gamma releases a round; there are Gamma + 1."""
    _, _, ratings = problem(3)
    config = tacit.FrankWolfe(rounds=T, eigen="oja", oja_steps=GAMMA)
    model = tacit.fit(ratings, config, epsilon=1.0)
    names = [entry.name for entry in model.certificate.releases]
    assert sum(name.startswith("product ") for name in names) == GAMMA * (T - 1)
    assert sum(name.startswith("energy ") for name in names) == T - 1
    assert model.certificate.exact_epsilon == pytest.approx(1.0, rel=1e-6)


def test_no_release_is_items_by_items(monkeypatch: pytest.MonkeyPatch) -> None:
    """Matrix-free: no sum, and so no noise, is larger than the vector."""
    drawn = recorded_noise(monkeypatch)
    tacit.fit(problem(3)[2], tacit.FrankWolfe(rounds=3, eigen="oja"), epsilon=1.0)
    assert max(noise.size for noise in drawn) == N


def test_an_unnormalised_start_would_break_the_sensitivity() -> None:
    """The box begins with v_0 ~ N(0, sigma^2 I): the first product then moves by sigma sqrt n B^2.

    One user, who turns her row towards v_0, moves A^T A v_0 far beyond the bound that the noise
    is calibrated to; with v_0 normalised first she stays within it.
    """
    bound, items = 3.0, 10
    stated = product_sensitivity(bound, 1)
    sigma = bound**2 * math.sqrt(256 * GAMMA * math.log(2 / 1e-6))  # the box, epsilon = 1
    for seed in range(20):
        v0 = sigma * np.random.default_rng(seed).standard_normal(items)
        row = {item: 3.0 + 2.0 * math.copysign(1, v0[item]) for item in range(items)}
        other = dict.fromkeys(row, 3.0)
        a = bound * np.sign(v0) / math.sqrt(items)
        as_printed = np.linalg.norm(a * (a @ v0))
        assert as_printed > 0.1 * sigma * math.sqrt(items) * stated.replace
        normalised = ResidualProduct(plain(most=None), (), bound, v0[:, None] / np.linalg.norm(v0))
        moved = change(normalised, [{0: 1.0}], row, other)
        assert moved <= stated.replace
        assert moved == pytest.approx(as_printed / np.linalg.norm(v0), rel=1e-6)


def test_the_start_is_public_and_orthonormal() -> None:
    for columns in (1, 4):
        block = start_block(N, columns, 3)
        assert np.array_equal(block, start_block(N, columns, 3))
        assert np.allclose(block.T @ block, np.eye(columns), atol=1e-14)
    assert not np.allclose(np.abs(start_block(N, 1, 3)), np.abs(start_block(N, 1, 4)))


def test_product_and_energy_are_what_they_say() -> None:
    """Against dense sums of the same rows, with a user longer than the bound among them."""
    before, after = opposites(4, flip=False)
    rows = np.zeros((2, 10))
    rows[0, :4], rows[1, 4:8] = 2.0, 2.0
    rows = clip_rows(rows, 3.0)
    V = np.linalg.qr(np.random.default_rng(2).standard_normal((10, 2)))[0]
    bounds = RowBounds(None, np.full(10, 3.0), False, 3.0)
    W = np.outer(rows[0], rows[0]) - np.outer(rows[1], rows[1])
    product = ResidualProduct(bounds, (), 3.0, V)
    assert change(product, [{9: 1.0}], before, after) == pytest.approx(
        float(np.linalg.norm(W @ V)), rel=1e-6
    )
    energy = ResidualEnergy(bounds, (), 3.0, V[:, 0])
    assert change(energy, [{9: 1.0}], before, after) == pytest.approx(
        abs(float(V[:, 0] @ W @ V[:, 0])), rel=1e-6
    )
