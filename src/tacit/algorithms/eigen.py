"""Top eigenpairs of released matrices (post-processing)."""

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse.linalg import eigsh

__all__ = ["top_eigenpair"]

_DENSE = 1000  # up to this size a direct method is quicker than an iterative one


def top_eigenpair(matrix: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
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
