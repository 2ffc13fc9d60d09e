"""Eigenvectors: of a released matrix, or by private products that never form one."""

import math
from collections.abc import Callable
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

from tacit._validate import Positive, Range

Floats = NDArray[np.float64]
OjaRate = Literal["paper", "theory", "power"] | Positive
OjaSteps = Annotated[int, Range(1, 10_000)]

_DENSE = 1000  # up to this size a direct method is quicker than an iterative one


def top_eigenpair(matrix: Floats) -> tuple[Floats, float]:
    """Return the eigenvector of the largest eigenvalue, largest entry positive, and that value.

    >>> vector, value = top_eigenpair(np.diag([1.0, 3.0]))
    >>> vector.tolist(), value
    ([0.0, 1.0], 3.0)
    """
    size = matrix.shape[0]
    if size <= _DENSE:
        values, vectors = eigh(matrix, subset_by_index=[size - 1, size - 1])
    else:
        values, vectors = eigsh(matrix, k=1, which="LA", v0=np.ones(size))
    vector = vectors[:, 0]
    vector = vector * np.sign(vector[np.argmax(np.abs(vector))])
    return vector + 0.0, float(values[0])


def start_block(items: int, columns: int, seed: int) -> Floats:
    """Return orthonormal columns to begin with: public, and the same for the same seed.

    Algorithm 2 begins with N(0, sigma^2 I), not normalised, which would break its sensitivity.
    """
    block = np.random.default_rng(seed).standard_normal((items, columns))
    return np.asarray(np.linalg.qr(block)[0])


def oja(
    noisy_product: Callable[[Floats, int], Floats],
    start: Floats,
    steps: int,
    rate: OjaRate,
    noise_sd: float,
) -> Floats:
    """Return orthonormal columns near the top eigenvectors, after `steps` noisy products.

    V <- orth(V + eta (W V + noise)). `noisy_product(V, turn)` releases W V. Rates: "paper",
    eta = 1/(Gamma sigma sqrt n); "theory" (Theorem 3.3), eta = 1/(sigma sqrt(n Gamma)); "power",
    eta = infinity, the noisy power method; or a number.

    *Paper:* Algorithm 2, and its block form.
    """
    block = start
    eta = _eta(rate, steps, noise_sd, start.shape[0])
    for turn in range(1, steps + 1):
        product = noisy_product(block, turn)
        moved = product if math.isinf(eta) else block + eta * product
        if not np.any(moved):
            return block
        block = np.asarray(np.linalg.qr(moved)[0])
    return block


def _eta(rate: OjaRate, steps: int, noise_sd: float, items: int) -> float:
    """Return the step size; without noise only the power method makes sense."""
    if rate == "power" or (isinstance(rate, str) and noise_sd == 0.0):
        return math.inf
    if rate == "paper":
        return 1.0 / (steps * noise_sd * math.sqrt(items))
    if rate == "theory":
        return 1.0 / (noise_sd * math.sqrt(items * steps))
    return float(rate)
