"""Run the jobs of one dataset in worker processes, within the cores and memory of this machine."""

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tacit._resources import physical_memory, usable_cores
from tacit.errors import DataError, EngineError
from tacit.research.experiments.jobs import Job
from tacit.research.experiments.running import failed
from tacit.research.experiments.spec import DatasetChoice

_WORKER_BYTES = 500_000_000
_RATING_BYTES = 48  # table, rows and one part of a split, for a moment all at once
_MATRICES = 6  # items by items, in a fit
_CELL_BYTES = 4  # of everyone's row filled in over all items, which Algorithm 5 holds
_USABLE = 0.7  # of the memory that is free
_LIMITS = ("OMP", "OPENBLAS", "MKL", "NUMBA")


@dataclass(frozen=True)
class Crew:
    """How many workers, and how many threads each: their product is at most the cores."""

    workers: int
    threads: int


def crew_for(dataset: DatasetChoice, cores: int | None = None, memory: float | None = None) -> Crew:
    """Choose as many workers as memory allows, a core each; where it allows few, several cores.

    Workers share nothing, so that one is busy while another is in a part that has no threads.
    """
    cores = usable_cores() if cores is None else cores
    matrices = 8 * _MATRICES * dataset.items**2 + _CELL_BYTES * dataset.users * dataset.items
    needed = _WORKER_BYTES + _RATING_BYTES * dataset.ratings + matrices
    room = _USABLE * (_free_memory() if memory is None else memory)
    workers = max(1, int(min(room // needed, cores)))
    return Crew(workers, cores // workers)


def _free_memory() -> float:
    """Return the bytes that programs can still get; all there are if the system does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return physical_memory()
    found = [line.split()[1] for line in lines if line.startswith("MemAvailable")]
    return float(found[0]) * 1024 if found else physical_memory()


@dataclass
class _Post:
    """A place for a worker, on cores of its own; the next worker takes over from one that ended."""

    number: int
    process: "subprocess.Popen[str] | None" = None


@dataclass
class _SharedWork:
    """What the threads that lead the workers share."""

    dataset: dict[str, Any]
    crew: Crew
    limit: float
    free: "queue.SimpleQueue[_Post]" = field(default_factory=queue.SimpleQueue)
    processes: list["subprocess.Popen[str]"] = field(default_factory=list)
    overdue: dict[tuple[str, str], Job] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)
    stopped: bool = False


def run_jobs(
    dataset: DatasetChoice, jobs: Sequence[Job], crew: Crew, limit: float
) -> Generator[dict[str, Any], None, None]:
    """Run jobs of a dataset; yield a row as soon as one is done, or has failed.

    A job that takes longer than `limit` seconds is stopped. Others of the same method and settings
    on this dataset are then not tried: they would take as long.
    """
    crew = Crew(min(crew.workers, len(jobs)), crew.threads)
    shared = _SharedWork(dataset.facts, crew, limit)
    for number in range(crew.workers):
        shared.free.put(_Post(number))
    leaders = ThreadPoolExecutor(crew.workers)
    try:
        for answer in as_completed([leaders.submit(_lead, shared, job) for job in jobs]):
            yield answer.result() | {"workers": crew.workers}
    finally:
        leaders.shutdown(wait=False, cancel_futures=True)
        _stop(shared)
        leaders.shutdown()
        for process in shared.processes:
            _dismiss(process)


def _stop(shared: _SharedWork) -> None:
    with shared.lock:
        shared.stopped = True
        for process in shared.processes:
            process.kill()


def _lead(shared: _SharedWork, job: Job) -> dict[str, Any]:
    """Have a free worker do a job, unless the same took too long before."""
    too_slow = shared.overdue.get(_method_of(job))
    if too_slow is not None:
        return failed(job, _like(too_slow, shared.limit), 0.0)
    post = shared.free.get()
    try:
        if post.process is None or post.process.poll() is not None:
            post.process = _hire(shared, post.number)
        return _ask(shared, post.process, job)
    finally:
        shared.free.put(post)


def _hire(shared: _SharedWork, number: int) -> "subprocess.Popen[str]":
    """Start a worker on cores of its own and let it prepare the dataset."""
    process = _start(shared, number)
    with shared.lock:
        shared.processes.append(process)
        if shared.stopped:
            process.kill()
    answer = _exchange(process, shared.dataset)
    if answer is None:
        name = shared.dataset.get("named") or shared.dataset.get("synthetic")
        raise EngineError(
            f"the worker for {name} ended while it prepared the ratings; its last words "
            "are above; perhaps there is not enough memory"
        )
    if "error" in answer:
        raise DataError(answer["error"])
    return process


def _start(shared: _SharedWork, number: int) -> "subprocess.Popen[str]":
    threads = shared.crew.threads
    cores = _cores()[number * threads : (number + 1) * threads]
    worker = [sys.executable, "-m", "tacit.research.experiments.worker"]
    limits = {f"{library}_NUM_THREADS": str(threads) for library in _LIMITS}
    return subprocess.Popen(  # noqa: S603 - this very interpreter, with numbers
        [*worker, str(threads), *map(str, cores)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, **limits, "POLARS_MAX_THREADS": str(threads)},
        start_new_session=True,  # an interrupt at the keyboard is for this process, which tidies up
    )


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(usable_cores()))


def _ask(shared: _SharedWork, process: "subprocess.Popen[str]", job: Job) -> dict[str, Any]:
    """Have a job done, or stop the worker when its time is over."""
    start = time.perf_counter()
    late = threading.Event()

    def stop() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(shared.limit, stop)
    timer.start()
    answer = _exchange(process, job.facts)
    timer.cancel()
    if answer is not None:
        return answer
    seconds = time.perf_counter() - start
    if late.is_set():
        shared.overdue.setdefault(_method_of(job), job)
        return failed(job, f"over the wall-time cap of {shared.limit:g} s", seconds)
    return failed(job, f"the worker ended with code {process.wait()}: out of memory?", seconds)


def _exchange(process: "subprocess.Popen[str]", content: Any) -> dict[str, Any] | None:
    """Send a line and read the answer; None if the worker ended."""
    if process.stdin is None or process.stdout is None:
        return None
    try:
        process.stdin.write(json.dumps(content) + "\n")
        process.stdin.flush()
    except OSError:
        return None
    line = process.stdout.readline()
    answer: dict[str, Any] | None = json.loads(line) if line.endswith("\n") else None
    return answer


def _dismiss(process: "subprocess.Popen[str]") -> None:
    """Let a worker go: it ends when there is nothing more to read."""
    with contextlib.suppress(OSError), process:  # a worker that was stopped reads nothing more
        if process.stdin is not None:
            process.stdin.close()


def _method_of(job: Job) -> tuple[str, str]:
    return job.algorithm, json.dumps(job.facts["settings"], sort_keys=True)


def _like(job: Job, limit: float) -> str:
    """Say why a job was not tried."""
    return (
        f"not tried: at epsilon {job.epsilon}, draw {job.draw}, the same went over the wall-time "
        f"cap of {limit:g} s"
    )
