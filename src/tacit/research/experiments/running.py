"""One job: fit on the training part, measure on the held-out part, and note what it took."""

import json
import math
import platform
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from tacit.accounting.budget import PrivacyBudget
from tacit.algorithms import algorithm_from
from tacit.data.ratings import Ratings
from tacit.engines import ThreadEngine
from tacit.errors import TacitError
from tacit.evaluation import (
    ExactPopularity,
    evaluate,
    global_mean_accuracy,
    item_mean_accuracy,
    rank,
    rank_new_users,
    user_mean_accuracy,
)
from tacit.fitting.fit import fit
from tacit.models import Model
from tacit.research.experiments.jobs import Job
from tacit.research.experiments.preparing import SPLIT_SEED, Prepared, Truth
from tacit.research.experiments.spec import NEW_USERS, POPULARITY, YARDSTICKS
from tacit.research.experiments.store import row_of

_LENGTH = 10  # of lists
_PLAIN: dict[str, Callable[[Ratings, Ratings], Any]] = {
    "user-mean": user_mean_accuracy,
    "item-mean": item_mean_accuracy,
    "global-mean": global_mean_accuracy,
}


def run_job(job: Job, prepared: Prepared, threads: int) -> dict[str, Any]:
    """Carry out a job; whatever goes wrong becomes a row that says so."""
    _forget_peak()
    start = time.perf_counter()
    try:
        measured = _measured(job, prepared, threads)
    except TacitError as error:
        return failed(job, f"{type(error).__name__}: {error}", time.perf_counter() - start)
    except Exception as error:  # its text could hold numbers from the ratings
        return failed(job, type(error).__name__, time.perf_counter() - start)
    return row_of(
        job,
        status="done",
        seed=SPLIT_SEED,
        seconds=time.perf_counter() - start,
        peak_bytes=_peak(),
        threads=threads,
        versions=versions(),
        finished=now(),
        **measured,
    )


def failed(job: Job, reason: str, seconds: float) -> dict[str, Any]:
    """Return the row of a job that gave nothing, and why."""
    return row_of(
        job, status="failed", reason=reason, seconds=seconds, versions=versions(), finished=now()
    )


def _measured(job: Job, prepared: Prepared, threads: int) -> dict[str, Any]:
    train, test = prepared.parts(job)
    if job.algorithm == POPULARITY:
        return _lists(ExactPopularity(train), test, job.draw)
    if job.algorithm in YARDSTICKS:
        return _accuracy(_PLAIN[job.algorithm](train, test))
    start = time.perf_counter()
    model = _model(job, prepared, train, threads)
    found: dict[str, Any] = {"fit_seconds": time.perf_counter() - start}
    found["used"] = json.dumps(dict(model.certificate.public))
    if prepared.facts["test_share"] == 0.0 and prepared.truth is not None:
        return found | {"frobenius": _distance(model, train, prepared.truth)}
    if prepared.facts.get("new_users"):
        return found | _lists(model, test, job.draw)
    found |= _accuracy(evaluate(model, train, test))
    if job.ranking:
        lists = rank(model, train, test, min(_LENGTH, train.n_items))
        found |= {"ndcg": lists.ndcg, "recall": lists.recall, "coverage": lists.coverage}
    return found


def _lists(model: Model | ExactPopularity, new: Ratings, draw: int) -> dict[str, Any]:
    """Measure lists of new users; the same ratings are held out for every method."""
    lists = rank_new_users(model, new, seed=draw)
    return {name: getattr(lists, name).mean for name in NEW_USERS}


def _model(job: Job, prepared: Prepared, train: Ratings, threads: int) -> Model:
    """Fit; trials have noise from their key, so that a choice once made is made again."""
    config = algorithm_from(job.algorithm, **prepared.settings_of(job))
    seed = int(job.key[:12], 16) if job.role == "trial" else None
    budget, words = None, (job.neighbours, job.accounting)
    if job.epsilon is not None and math.isfinite(job.epsilon):
        budget = PrivacyBudget(job.epsilon, job.delta, *words)  # type: ignore[arg-type]
    engine = ThreadEngine(threads)
    return fit(train, config, budget=budget, engine=engine, noise_seed_unsafe=seed)


def _accuracy(found: Any) -> dict[str, Any]:
    return {
        "rmse": found.rmse,
        "mae": found.mae,
        "test_ratings": found.ratings,
        "skipped": found.skipped,
    }


def _distance(model: Model, ratings: Ratings, truth: Truth) -> float:
    """Return ||Y - Y*||_F over all entries, with rows scaled so that the longest has norm 1."""
    total = 0.0
    for start, scores in model.predict_rows(ratings):
        hidden = np.outer(truth.left[start : start + len(scores)], truth.right)
        total += float(np.sum((scores - hidden) ** 2))
    return math.sqrt(total) / truth.row_norm


def versions() -> str:
    """Return what this was computed with."""
    packages = ("tacit", "numpy", "scipy", "numba", "polars")
    found = {name: version(name) for name in packages}
    return json.dumps({"python": platform.python_version(), "machine": platform.machine(), **found})


def now() -> str:
    """Return the time, to the second."""
    return datetime.now(UTC).isoformat(timespec="seconds")


def _forget_peak() -> None:
    """Let the system measure the peak of memory from here on, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def _peak() -> int | None:
    """Return the peak of this process's memory; None where the system does not tell."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    sizes = [line.split()[1] for line in lines if line.startswith("VmHWM")]
    return int(sizes[0]) * 1024 if sizes else None
