"""Run work on several threads; compiled loops release the interpreter lock."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from tacit._blas import blas_threads
from tacit._resources import usable_cores

Piece = TypeVar("Piece")
Result = TypeVar("Result")


_most: ContextVar[int | None] = ContextVar("most", default=None)


@contextmanager
def threads_at_most(threads: int) -> Iterator[None]:
    """Let the work inside be shared among so many threads of ours, and BLAS have one in each."""
    token = _most.set(threads)
    try:
        with blas_threads(1):
            yield
    finally:
        _most.reset(token)


def _threads() -> int:
    return min(usable_cores(), _most.get() or 1 << 20)


def chunks_of(pieces: Sequence[Piece]) -> list[Sequence[Piece]]:
    """Split pieces into runs that follow each other, one per thread."""
    edges = np.linspace(0, len(pieces), min(_threads(), len(pieces)) + 1).astype(int)
    return [pieces[a:b] for a, b in pairwise(edges)]


def spans_of(starts: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Split groups or rows into one range per thread, of about as many ratings each."""
    goals = np.linspace(0, int(starts[-1]), _threads() + 1)[1:-1]
    edges = [0, *np.searchsorted(starts, goals).tolist(), starts.size - 1]
    return [(a, b) for a, b in pairwise(edges) if a < b]


def parallel_map(work: Callable[..., Result], *arguments: Iterable[Any]) -> list[Result]:
    """Run one call per argument, each in its own thread; the first of them in this one."""
    calls = list(zip(*arguments, strict=True))
    if len(calls) < 2:
        return [work(*call) for call in calls]
    with ThreadPoolExecutor(len(calls) - 1) as pool:
        others = pool.map(lambda call: work(*call), calls[1:])
        return [work(*calls[0]), *others]


def map_chunks(work: Callable[[Piece], Result], pieces: Sequence[Piece]) -> list[Result]:
    """Apply `work` to every piece, the pieces shared among the threads."""
    done = parallel_map(lambda part: [work(piece) for piece in part], chunks_of(pieces))
    return [result for part in done for result in part]
