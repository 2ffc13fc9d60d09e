"""What a process of the cluster does: it holds shards, and answers with sealed sums.

It opens the store at its own path, so that rows never travel. What it is told is public: which
shards, what is seen of them, a statistic, a unit. What it answers is sealed, or says in public
words what went wrong. All it holds can be lost at any time: a call names everything that it needs.
"""

import os
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tacit._atomic import reason_of
from tacit.data.store import Store, View, is_store
from tacit.engines.shards import ShardSums
from tacit.errors import EngineError, TacitError
from tacit.trusted.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Task:
    """Where a worker's rows are: a store, which of its shards, and what is seen of them."""

    folder: str
    stamp: str
    numbers: tuple[int, ...]
    views: tuple[View, ...]
    take: int
    """How often the engine has taken rows: another number means other rows."""
    keep: bool
    key_file: str


class Answer(NamedTuple):
    """A sealed sum, or what went wrong, in words without a number from anyone's ratings."""

    sealed: bytes
    trouble: str = ""


class Worker:
    """One process of the cluster."""

    def __init__(self) -> None:
        """Hold nothing yet."""
        self._take = -1
        self._sums: ShardSums | None = None

    def hello(self) -> tuple[int, bool]:
        """Return the id of this process, and whether the cluster asks for a token."""
        return os.getpid(), os.environ.get("RAY_AUTH_MODE", "").lower() == "token"

    def sum(self, task: Task, statistic: Statistic, unit: float) -> Answer:
        """Sum a statistic over the users of some shards."""
        # What an error says may quote what it is about; what is not ours to word is left out.
        try:
            total = self._sums_of(task).sum(with_writable_arrays(statistic), unit)
            return Answer(total.seal(read_key(task.key_file)))
        except TacitError as error:
            return Answer(b"", str(error))
        except Exception as error:
            return Answer(b"", f"a worker failed ({type(error).__name__})")

    def _sums_of(self, task: Task) -> ShardSums:
        """Return the rows that a task names; they are read if they are not there."""
        if self._sums is None or self._take != task.take:
            self._sums = None
            if not is_store(task.folder):
                raise EngineError(
                    f"store {task.folder}: a worker does not find it; it must be at the same path "
                    "on all machines of the cluster"
                )
            store = Store.open(task.folder)
            if store.stamp != task.stamp:
                raise EngineError(f"store {task.folder}: another one lies at the place of a worker")
            for view in task.views:
                store = store.view(with_writable_arrays(view))
            self._sums = ShardSums(store, task.numbers, threads=1, keep=task.keep)
            self._take = task.take
        return self._sums


def read_key(path: str) -> bytes:
    """Return the key of the fit: it lies beside the rows, which are as secret as it is."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise EngineError(
            f"{path}: a worker cannot read the key of the fit ({reason_of(error)}); the store must "
            "be one folder that all machines of the cluster share, at the same path, not copies"
        ) from None


def with_writable_arrays(value: Any) -> Any:
    """Return a description whose arrays can be written to, as they can where it was made.

    Arrays that come out of a message cannot, and loops would be compiled for them once more.
    """
    if isinstance(value, np.ndarray):
        return value.copy()
    if isinstance(value, tuple | list) and not hasattr(value, "_fields"):
        return type(value)(with_writable_arrays(part) for part in value)
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            object.__setattr__(value, field.name, with_writable_arrays(getattr(value, field.name)))
    return value
