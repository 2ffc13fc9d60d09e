"""Limit the threads of linear algebra (BLAS) to the cores that a fit was given.

BLAS starts a thread for each core by itself. Its threads wait for each other in a busy loop, so
that beside another busy process each small product can take a hundred times as long; and called
from several threads of ours, it starts all of its own for each of them.
"""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any

_LARGE = 1500  # rows; smaller matrices are factorised sooner by one thread than by two that wait

_lock = Lock()
_asked: list[int] = []
_found: list[tuple[Any, int]] = []  # libraries, and how many threads each had before anyone asked
_known: list[Any] = [0]  # how many modules there were when libraries were looked for, and these


@contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Let BLAS use at most so many threads in this process; of several that ask, the fewest.

    A smaller number that was set before, by OPENBLAS_NUM_THREADS say, stays.
    """
    with _lock:
        if not _asked:
            _found[:] = _libraries()
        _asked.append(most)
        _set()
    try:
        yield
    finally:
        with _lock:
            _asked.remove(most)
            _set()


def blas_for(rows: int, threads: int) -> AbstractContextManager[None]:
    """Let BLAS use these threads for matrices of so many rows, if they are large enough for it."""
    return blas_threads(threads if rows >= _LARGE else 1)


def _libraries() -> list[tuple[Any, int]]:
    """Return every BLAS of this process with its number of threads."""
    import scipy.linalg  # noqa: F401  # it brings a BLAS of its own, which is found once loaded
    from threadpoolctl import ThreadpoolController

    if _known[0] != len(sys.modules):  # looking takes milliseconds; a new module may bring one
        found = ThreadpoolController().select(user_api="blas").lib_controllers
        _known[:] = [len(sys.modules), *found]
    return [(library, library.num_threads) for library in _known[1:]]


def _set() -> None:
    for library, before in _found:
        library.set_num_threads(min([before, *_asked]))
