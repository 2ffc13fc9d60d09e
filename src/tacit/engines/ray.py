"""Rows in the processes of a Ray cluster: each sums over its shards, the driver adds them up.

Workers read their shards from the store themselves; rows never travel. Their partial sums travel
sealed, under a key that lies in a file beside the rows and never goes through Ray. Noise is drawn
by the mechanism, in the driver alone, after the sum. A worker that dies is started again by Ray,
reads its shards again, and takes the steps of its users anew from the releases in the statistic it
is asked for: the sum is the same integers.
"""

import contextlib
import os
import shutil
import signal
import tempfile
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any

from tacit._atomic import reason_of
from tacit._resources import physical_memory, usable_cores
from tacit._validate import Range, check
from tacit.data.ratings import Ratings
from tacit.data.store import RatingsOrStore, Store, View
from tacit.data.store_writer import write_store
from tacit.engines.ray_worker import Answer, Task, Worker
from tacit.errors import ConfigError, EngineError
from tacit.trusted.sealing import new_key
from tacit.trusted.statistic import BoundedSum, Statistic

_OBJECTS = 200_000_000  # bytes of shared memory for messages: statistics and sealed sums
_PATIENCE = 300.0  # seconds for a worker to say hello
_ROOM = 6  # bytes of memory per byte of rows that are kept, local state included
_TOKEN = new_key().hex()  # of the clusters that this process starts; Ray keeps the first it sees


class Ray:
    """Sums over rows in the processes of a Ray cluster; needs the extra `tacit[ray]`.

    The releases and the model are those of `ThreadEngine`, to the last bit. Machines of the cluster
    see rows: they are as trusted as this one.

    Args:
        address: of a running cluster, "auto" or "host:port"; None starts one on this machine, with
            a token, without a dashboard, and in a folder that is removed when it ends.
        workers: how many processes hold rows, a core each; None is a process for each core, or for
            each shard where there are fewer.
        keep: whether workers keep rows between sums; None: if they fit into half of this machine's
            memory.

    A `Store` must be at the same path on all machines. `Ratings` in memory are written to a private
    temporary store on this machine, which serves for a cluster of this machine only. Use it in a
    `with`, or call `close`; what was started ends with the process at the latest.
    """

    def __init__(
        self, *, address: str | None = None, workers: int | None = None, keep: bool | None = None
    ) -> None:
        """Start or find the cluster."""
        check("workers", workers, Annotated[int, Range(1, 4096)] | None)
        check("keep", keep, bool | None)
        if address is not None and (not isinstance(address, str) or "://" in address):
            raise ConfigError(f"address={address!r}: expected 'auto', 'host:port' or None")
        self._ray = _imported()
        self._wanted, self._keep = workers, keep
        self._folder = Path(tempfile.mkdtemp(prefix="tacit-ray-"))  # mode 0700
        self._key, self._key_file = new_key(), self._folder / "key"
        self._written_down = [self._folder]
        self._end = weakref.finalize(self, _remove, self._written_down)
        self._connect(address, workers or usable_cores())
        self._workers: list[Any] = []
        self._tasks: list[Task] = []
        self._users = self._takes = 0

    def __enter__(self) -> "Ray":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End what was started."""
        self.close()

    @property
    def n_users(self) -> int:
        """How many users' rows it holds."""
        return self._users

    def take(self, ratings: RatingsOrStore) -> None:
        """Take the rows of a new fit: a store, or ratings that are written to a private one."""
        if not self._end.alive:
            raise EngineError("the engine was closed; make another one")
        views: tuple[View, ...] = ()
        if isinstance(ratings, Ratings):
            store = self._written(ratings)
        else:
            store, views = ratings, ratings.views
        self._users, self._takes = store.n_users, self._takes + 1
        self._start(min(len(store.shards), self._wanted or self._cores()))
        self._hide_key(store.folder)
        keep = self._keeps(store) if self._keep is None else self._keep
        self._tasks = [
            Task(
                folder=str(store.folder.resolve()),
                stamp=store.stamp,
                numbers=tuple(range(at, len(store.shards), len(self._workers))),
                views=views,
                take=self._takes,
                keep=keep,
                key_file=str(self._key_file.resolve()),
            )
            for at in range(len(self._workers))
        ]

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum a statistic over all users, in integer multiples of `unit`."""
        if not self._tasks:
            raise EngineError("the engine holds no rows: take(ratings) comes first")
        sent = self._ray.put(statistic)  # public, and sent to each machine once
        pairs = zip(self._workers, self._tasks, strict=True)
        waiting = [worker.sum.remote(task, sent, unit) for worker, task in pairs]
        total: BoundedSum | None = None
        while waiting:
            (ready, *_), waiting = self._ray.wait(waiting, num_returns=1)
            part = BoundedSum.unseal(self._answer(ready), self._key, statistic)
            total = part if total is None else total + part
            del ready
        return total  # type: ignore[return-value]  # there is a task at the least

    def close(self) -> None:
        """End the workers, and the cluster if it was started here; remove all that was written."""
        if self._end.alive:
            self._key_file.unlink(missing_ok=True)
            for worker in self._workers:
                self._ray.kill(worker)
            self._workers, self._tasks = [], []
            self._disconnect()
            self._end()

    def _answer(self, reference: Any) -> bytes:
        """Return what a worker has sealed, or raise what it says went wrong."""
        try:
            answer: Answer = self._ray.get(reference)
        except self._ray.exceptions.RayError as error:
            raise EngineError(
                f"the cluster lost a worker for good ({type(error).__name__})"
            ) from None
        if answer.trouble:
            raise EngineError(answer.trouble)
        return answer.sealed

    def _connect(self, address: str | None, cores: int) -> None:
        """Join the cluster, or start one; a connection that was there is used, and left."""
        self._joined = not self._ray.is_initialized()
        if not self._joined and address is None:
            self._end()
            raise EngineError(
                "this process has joined a Ray cluster already; give address='auto' to use it, or "
                "leave it first with ray.shutdown()"
            )
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": 50}
        if address is None:
            options |= {"num_cpus": cores, "object_store_memory": _OBJECTS}
            options |= {"include_dashboard": False, "_temp_dir": str(self._folder / "ray")}
            self._settings = _settings_of_a_cluster(self._folder)
        else:
            options["address"] = address
            self._settings = {"RAY_AUTH_MODE": "token"}
        if self._joined:
            self._before = {name: os.environ.get(name) for name in self._settings}
            os.environ.update(self._settings)
            try:
                self._ray._raylet.Config.initialize("")  # it reads the mode once, when imported
                with _own_signals():
                    self._init(options)
            except Exception as error:  # Ray raises bare ones, too
                self._disconnect()
                self._end()
                raise _no_cluster(address, error) from None

    def _init(self, options: dict[str, Any]) -> None:
        """Join or start the cluster; on a busy machine the first start may take Ray too long."""
        try:
            self._ray.init(**options)
        except Exception:
            if "address" in options:
                raise
            self._ray.shutdown()
            self._ray.init(**options)

    def _disconnect(self) -> None:
        """Leave the cluster, which ends if it was started here."""
        if not self._joined:
            return
        with _own_signals():
            self._ray.shutdown()
        for name, value in self._before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value

    def _cores(self) -> int:
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def _start(self, count: int) -> None:
        """Have so many workers; Ray starts one that dies again, and repeats what it was doing."""
        if len(self._workers) == count:
            return
        for worker in self._workers:
            self._ray.kill(worker)
        if count > self._cores():
            raise EngineError(
                f"workers={count}: the cluster has {self._cores()} cores, and a worker takes one"
            )
        again = {"max_restarts": -1, "max_task_retries": -1, "num_cpus": 1}
        kind = self._ray.remote(**again)(Worker)
        self._workers = [kind.remote() for _ in range(count)]
        self._greet()

    def _greet(self) -> list[int]:
        """Wait for all workers; refuse a cluster that anyone can join. Return their processes."""
        try:
            found = self._ray.get([w.hello.remote() for w in self._workers], timeout=_PATIENCE)
        except self._ray.exceptions.RayError as error:
            raise EngineError(
                f"workers of the cluster do not start ({type(error).__name__}); is tacit installed "
                "on all its machines, in the same version?"
            ) from None
        if not all(token for _, token in found):
            raise EngineError(
                "the cluster asks for no token: anyone on its network could read the ratings; "
                "start it with RAY_AUTH_MODE=token"
            )
        return [process for process, _ in found]

    def _written(self, ratings: Ratings) -> Store:
        """Write ratings to a private store, in place of the former."""
        folder = self._folder / f"rows-{self._takes}"
        shutil.rmtree(self._folder / f"rows-{self._takes - 1}", ignore_errors=True)
        return write_store(ratings, folder, self._wanted or self._cores())

    def _hide_key(self, folder: Path) -> None:
        """Put the key of the fit beside the rows, for their owner only."""
        self._key_file.unlink(missing_ok=True)
        self._key_file = folder / f".fit-{os.getpid()}-{id(self)}.key"
        self._written_down[1:] = [self._key_file]
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with os.fdopen(os.open(self._key_file, flags, 0o600), "wb") as file:
                file.write(self._key)
        except OSError as error:
            raise EngineError(
                f"store {folder}: the key of the fit cannot be written there ({reason_of(error)})"
            ) from None

    def _keeps(self, store: Store) -> bool:
        """Whether all rows, with what users make of them, fit into half of the memory."""
        rows = 6 * sum(shard.ratings for shard in store.shards) + 8 * store.n_users
        return rows * _ROOM <= physical_memory() / 2


def _remove(paths: list[Path]) -> None:
    """Remove what was written, at the latest when the process ends."""
    for path in paths:
        path.unlink(missing_ok=True) if path.is_file() else shutil.rmtree(path, ignore_errors=True)


def _imported() -> Any:
    """Return Ray, or say how to get it."""
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise ConfigError(
            "engine=Ray: the package ray is missing; pip install 'tacit[ray]'"
        ) from None
    return ray


def _settings_of_a_cluster(folder: Path) -> dict[str, str]:
    """Settings of a cluster of this machine: a token that nobody else has; no usage reports.

    Workers have the priority of this process. Ray would give them a lower one (15), and a fit
    beside a busy process would wait for it.
    """
    token = folder / "token"
    token.touch(mode=0o600)
    token.write_text(_TOKEN)
    return {
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_DEDUP_LOGS": "0",
        "RAY_worker_niceness": "0",
    }


def _no_cluster(address: str | None, error: BaseException) -> EngineError:
    kind = type(error).__name__
    if address is None:
        return EngineError(f"Ray cannot start a cluster on this machine ({kind})")
    return EngineError(
        f"address={address}: no Ray cluster can be joined there ({kind}); is it running, and is "
        "its token in RAY_AUTH_TOKEN, in the file of RAY_AUTH_TOKEN_PATH, or in ~/.ray/auth_token?"
    )


@contextlib.contextmanager
def _own_signals() -> Iterator[None]:
    """Keep what this process does when it is told to end: Ray puts its own in place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
