"""How the tests run: what would make them slow on all cores, or leave files open."""

import io
import os

import numpy as np
import scipy.linalg
from tests.faults import child as faults
from tests.fuzz import child as fuzz
from threadpoolctl import threadpool_info


def test_blas_has_the_threads_it_was_given() -> None:
    """One, set in conftest before numpy was loaded: later it would have no effect."""
    assert np.allclose(np.linalg.eigvalsh(np.eye(3)), scipy.linalg.eigvalsh(np.eye(3)))  # both load
    given = int(os.environ["OPENBLAS_NUM_THREADS"])
    found = [one for one in threadpool_info() if one["internal_api"] == "openblas"]
    assert [one for one in found if one["num_threads"] != given] == []


def test_programs_of_the_tests_open_nothing_when_they_are_loaded() -> None:
    """pytest loads them too, to look for doctests; what is open then is never closed."""
    for module in (faults, fuzz):
        assert [name for name, one in vars(module).items() if isinstance(one, io.IOBase)] == []
