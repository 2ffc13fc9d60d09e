"""How the tests run: what would make them slow on all cores at once."""

import os

import numpy as np
import scipy.linalg
from threadpoolctl import threadpool_info


def test_blas_has_the_threads_it_was_given() -> None:
    """One, set in conftest before numpy was loaded: later it would have no effect."""
    assert np.allclose(np.linalg.eigvalsh(np.eye(3)), scipy.linalg.eigvalsh(np.eye(3)))  # both load
    given = int(os.environ["OPENBLAS_NUM_THREADS"])
    found = [one for one in threadpool_info() if one["internal_api"] == "openblas"]
    assert [one for one in found if one["num_threads"] != given] == []
