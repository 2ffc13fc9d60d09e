"""What Theorem B.3 asks of a matrix: incoherence, condition number and spectral gap.

For matrices that are public or synthetic. Computed from people's ratings these numbers are NOT
PRIVATE.
"""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tacit.errors import ConfigError

_NEGLIGIBLE = 1e-10  # of the largest singular value: below this a matrix has no such direction


def incoherence(matrix: ArrayLike, rank: int, *, as_printed: bool = False) -> float:
    """Return mu, from 1 (every row and column alike) to max(m, n)/r (all in one row or column).

        mu = max( (m/r) max_i ||U U^T e_i||^2,  (n/r) max_j ||V V^T f_j||^2 )

    with U and V the top r left and right singular vectors.

    *Paper:* Definition B.2, which prints the norms without squares. The square is that of
    [jin2016provable], which it cites, and without it no matrix has the mu = O(1) of Remark 5: the
    most even one would have mu = sqrt(max(m, n)/r). `as_printed=True` leaves it out.

    >>> round(incoherence([[1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, -1.0]], rank=1), 6)
    1.0
    >>> round(incoherence([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]], rank=1), 6)
    4.0
    """
    left, values, right = np.linalg.svd(_matrix(matrix, rank), full_matrices=False)
    _check_rank(values, rank)
    sides = (left[:, :rank], right[:rank].T)
    squares = [len(side) / rank * _largest_row(side, as_printed) for side in sides]
    return max(squares)


def spectral_gap(matrix: ArrayLike, rank: int) -> float:
    """Return alpha_r^2 - alpha_(r+1)^2, the gap between squared singular values.

    *Paper:* Equation (11), for P(Y*).

    >>> round(spectral_gap([[3.0, 0.0], [0.0, 2.0]], rank=1), 6)
    5.0
    """
    values = _singular_values(matrix, rank)
    after = float(values[rank]) if rank < values.size else 0.0
    return float(values[rank - 1]) ** 2 - after**2


def condition_number(matrix: ArrayLike, rank: int) -> float:
    """Return kappa = ||Y||_2 / lambda_r(Y), for a matrix of rank at least r.

    *Paper:* Theorem B.3.

    >>> round(condition_number([[6.0, 0.0], [0.0, 2.0]], rank=2), 6)
    3.0
    """
    values = _singular_values(matrix, rank)
    _check_rank(values, rank)
    return float(values[0] / values[rank - 1])


def _singular_values(matrix: ArrayLike, rank: int) -> NDArray[np.float64]:
    return np.asarray(np.linalg.svd(_matrix(matrix, rank), compute_uv=False))


def _largest_row(basis: NDArray[np.float64], as_printed: bool) -> float:
    """Return the largest ||U U^T e_i||^2 = ||U_i||^2, or its root."""
    largest = float((basis**2).sum(axis=1).max())
    return math.sqrt(largest) if as_printed else largest


def _matrix(matrix: Any, rank: int) -> NDArray[np.float64]:
    """Check a matrix and a rank."""
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        raise ConfigError("matrix: expected a table of finite numbers, with no gaps")
    if isinstance(rank, bool) or rank != int(rank) or not 1 <= rank <= min(array.shape):
        raise ConfigError(f"rank={rank!r}: expected a whole number from 1 to {min(array.shape)}")
    return array


def _check_rank(values: NDArray[np.float64], rank: int) -> None:
    """Refuse a matrix of smaller rank: its r-th direction would be rounding error."""
    if values[rank - 1] <= _NEGLIGIBLE * values[0]:
        raise ConfigError(f"rank={rank}: the matrix has a smaller rank")
