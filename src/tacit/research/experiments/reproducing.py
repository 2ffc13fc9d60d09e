"""reproduce: what is missing is computed, what is there is tabled and drawn."""

import json
import os
import re
import shlex
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tacit._atomic import reason_of, write_durably
from tacit._outputs import Kind, Output, check_replaceable
from tacit.datasets.paths import folder_of, is_here
from tacit.datasets.registry import DATASETS
from tacit.errors import ConfigError, DataError
from tacit.reporting.drawing import check_matplotlib
from tacit.reporting.figures import draw
from tacit.reporting.tables import csv_text, markdown_text
from tacit.research.experiments.jobs import Cell, Job, cells_of
from tacit.research.experiments.paths import results_folder
from tacit.research.experiments.pool import crew_for, run_jobs
from tacit.research.experiments.spec import OPEN_RATINGS, DatasetChoice, Experiment
from tacit.research.experiments.store import RunStore, stored_rows
from tacit.research.experiments.summary import points_of

Progress = Callable[[int, int, float], None]
"""Called with (jobs done, jobs in all, seconds left)."""

Rows = Mapping[str, Mapping[str, Any]]

_UNKNOWN = 5.0  # seconds a job takes, while nothing like it has been seen
_NOTHING = "nothing is stored of this experiment yet; leave --stored out to run it"


@dataclass(frozen=True)
class Options:
    """How an experiment is carried out.

    Attributes:
        draws: None: as many as its file says.
        quick: a small form of it, to see what comes out.
        datasets: labels of the datasets that it is run on; empty: all that its file has.
        output: where table and figure go; None: beside the stored runs.
        runs: where stored runs are; None: their usual folder.
        retry: whether jobs that failed before are tried again.
        stored: compute nothing; write table and figure of what is stored so far.
        force: replace files of these names even if they are no results of an experiment.
    """

    draws: int | None = None
    quick: bool = False
    datasets: tuple[str, ...] = ()
    output: Path | None = None
    runs: Path | None = None
    retry: bool = False
    stored: bool = False
    force: bool = False


@dataclass(frozen=True)
class Outcome:
    """What came out: files, and how many jobs were computed, there already, or failed."""

    files: tuple[Path, ...]
    runs: Path
    computed: int
    reused: int
    failed: int
    skipped: tuple[str, ...]


def reproduce(
    experiment: Experiment, options: Options, progress: Progress = lambda *_: None
) -> Outcome:
    """Run what is missing of an experiment, and write its table and its figure. NOT PRIVATE.

    Raises:
        ConfigError: an option cannot be used, matplotlib is missing, or there is a file of another
            kind where the table or the figure goes.
        DataError: none of its datasets is here, and nothing is stored of them.
    """
    check_matplotlib()
    command = _command(experiment, options)
    experiment = _asked(experiment, options)
    runs = options.runs or results_folder(experiment.name)
    output = options.output or runs
    absent = {one.label: _absence(one) for one in experiment.datasets if _absence(one)}
    _check_files(experiment, output, options.force)
    if options.stored or len(absent) == len(experiment.datasets):  # nothing to compute
        before = rows = stored_rows(runs)
    else:
        _check_folder(output)  # before hours of work
        before, rows = _completed(experiment, runs, options.retry, progress)
    jobs = [job for cell in cells_of(experiment, rows) for job in _jobs(cell)]
    found = [rows[job.key] for job in jobs if job.key in rows]
    skipped = _without_values(experiment, rows, absent)
    if not found:
        raise DataError(f"nothing can be run: {' '.join(skipped)}" if skipped else _NOTHING)
    files = _write(experiment, rows, output, (command, skipped))
    fresh = [row for row in found if before.get(row["key"]) is not row]
    failures = sum(row["status"] == "failed" for row in found)
    return Outcome(files, runs, len(fresh), len(found) - len(fresh), failures, skipped)


def _completed(
    experiment: Experiment, runs: Path, retry: bool, progress: Progress
) -> tuple[Rows, Rows]:
    """Compute what is missing, and return what was stored before and what is stored then."""
    with RunStore(runs) as store:
        before = dict(store.rows)
        for _ in range(max(len(method.grids) for method in experiment.methods)):
            _compute(experiment, store, "trials", retry, progress)  # later grids need the best
        _compute(experiment, store, "runs", retry, progress)  # of earlier ones, and so do runs
        return before, store.rows


def _without_values(
    experiment: Experiment, rows: Rows, absent: Mapping[str, str]
) -> tuple[str, ...]:
    """Return the lines of datasets that are not here and of which nothing is stored either."""
    points = points_of(experiment, rows)
    known = {point.cell.dataset.label for point in points if point.values}
    return tuple(line for label, line in absent.items() if label not in known)


def _asked(experiment: Experiment, options: Options) -> Experiment:
    """Return the experiment as the options want it."""
    if options.quick:
        experiment = experiment.made_quick()
    if options.datasets:
        experiment = _narrowed(experiment, options.datasets)
    if options.draws is None:
        return experiment
    tuned = any(method.grid for method in experiment.methods)
    share = max(max(one.test_share, one.new_users) for one in experiment.datasets)
    most = experiment.draws if tuned else int(1 / share) if share else 1000
    if not 1 <= options.draws <= most:
        reason = "settings are tuned on the rest" if tuned else "nothing is tested twice"
        raise ConfigError(f"--draws {options.draws}: expected 1 to {most} ({reason})")
    if not tuned:
        return replace(experiment, draws=options.draws)
    methods = tuple(replace(m, draws=_fewer(m.draws, options.draws)) for m in experiment.methods)
    return replace(experiment, methods=methods)


def _narrowed(experiment: Experiment, labels: Sequence[str]) -> Experiment:
    """Return the experiment on some of its datasets, under a name of its own."""
    known = {dataset.label.lower(): dataset for dataset in experiment.datasets}
    for label in labels:
        if label.lower() not in known:
            raise ConfigError(f"--dataset {label!r}: expected one of {', '.join(map(repr, known))}")
    datasets = tuple(one for label, one in known.items() if label in map(str.lower, labels))
    name = "-".join([experiment.name, *(one.label.lower() for one in datasets)])
    return replace(experiment, name=re.sub(r"[^\w-]+", "-", name).strip("-"), datasets=datasets)


def _fewer(own: int | None, asked: int) -> int:
    return asked if own is None else min(own, asked)


def _command(experiment: Experiment, options: Options) -> str:
    """Return the command that makes the same again."""
    words = ["tacit", "reproduce", experiment.file or experiment.name]
    if options.draws is not None:
        words += ["--draws", str(options.draws)]
    words += [word for label in options.datasets for word in ("--dataset", label)]
    words += ["--quick"] * options.quick + ["--stored"] * options.stored
    for option, folder in (("--output", options.output), ("--runs", options.runs)):
        if folder is not None and not folder.is_absolute():
            words += [option, str(folder)]
    return shlex.join(words)


def _check_folder(output: Path) -> None:
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"--output {output} cannot be used: {reason_of(error)}") from None


def _check_files(experiment: Experiment, output: Path, force: bool) -> None:
    """Refuse to replace a file that no experiment wrote."""
    kinds = {"csv": Kind.RESULTS, "md": Kind.RESULTS, "svg": Kind.PICTURE, "png": Kind.PICTURE}
    for ending, kind in kinds.items():
        if output.is_dir():
            file = output / f"{experiment.name}.{ending}"
            check_replaceable(Output("--output", file, kind), overwrite=force)


def _absence(dataset: DatasetChoice) -> str:
    """Say that the files of a dataset are not here; nothing if they are."""
    if dataset.synthetic:
        return ""
    if dataset.is_file:
        return _no_file(dataset)
    known = DATASETS[dataset.source]
    if is_here(known, folder_of(known)):
        return ""
    how = f"tacit data info {known.name}"
    return (
        f"{dataset.label} is left out: its files are not in {known.name} in the folder that "
        f"TACIT_DATA names; `{how}` says how to get them."
    )


def _no_file(dataset: DatasetChoice) -> str:
    """Say that nobody has named the file of a dataset; nothing if it is there."""
    named = os.environ.get(OPEN_RATINGS)
    if named and Path(named).is_file():
        return ""
    return (
        f"{dataset.label} is left out: its ratings may not be passed on, and {OPEN_RATINGS} names "
        "no file; set it to a file with columns user, item, rating to have them measured."
    )


def _jobs(cell: Cell) -> Iterator[Job]:
    yield from cell.trials
    yield from cell.runs


def _compute(
    experiment: Experiment, store: RunStore, stage: str, retry: bool, progress: Progress
) -> None:
    """Compute the trials or the runs that are missing, dataset by dataset."""
    missing = _missing(experiment, store.rows, stage, retry)
    waiting = {job.key: job for _, jobs in missing for job in jobs}
    done, total = 0, len(waiting)
    for dataset, jobs in missing:
        crew = crew_for(dataset)
        progress(done, total, _expected_seconds(waiting.values(), store.rows) / crew.workers)
        with closing(run_jobs(dataset, jobs, crew, experiment.wall_seconds)) as rows:
            for row in rows:
                store.add(row)
                waiting.pop(row["key"])
                done += 1
                left = _expected_seconds(waiting.values(), store.rows)
                progress(done, total, left / crew.workers)


def _missing(
    experiment: Experiment, rows: Rows, stage: str, retry: bool
) -> list[tuple[DatasetChoice, list[Job]]]:
    """Return what has to be computed by dataset, each job once, draw by draw."""
    found: dict[str, tuple[DatasetChoice, dict[str, Job]]] = {}
    for cell in cells_of(experiment, rows):
        if _absence(cell.dataset):
            continue
        dataset = cell.dataset if stage == "runs" else cell.tuned_on
        _, jobs = found.setdefault(dataset.identity, (dataset, {}))
        for job in getattr(cell, stage):
            row = rows.get(job.key)
            if row is None or (retry and row["status"] == "failed"):
                jobs[job.key] = job
    return [
        (dataset, sorted(jobs.values(), key=lambda job: job.draw))
        for dataset, jobs in found.values()
        if jobs
    ]


def _write(
    experiment: Experiment, rows: Rows, output: Path, made: tuple[str, Sequence[str]]
) -> tuple[Path, ...]:
    """Write table and figure from what is stored."""
    _check_folder(output)
    points = points_of(experiment, rows)
    command, skipped = made
    texts = {
        "csv": csv_text(experiment, points),
        "md": markdown_text(experiment, points, command, skipped),
    }
    files = []
    for ending, text in texts.items():
        files.append(output / f"{experiment.name}.{ending}")
        write_durably(files[-1], text.encode())
    return (*files, *draw(experiment, points, output))


def _expected_seconds(jobs: Iterable[Job], rows: Rows) -> float:
    """Return the seconds that jobs will take one after the other.

    A job takes as long as those of the same dataset and method, else of the same dataset, else as
    any.
    """
    seen: dict[tuple[str, ...], list[float]] = {}
    for row in rows.values():
        if row["seconds"]:
            for place in _places(row["dataset"], row["algorithm"]):
                seen.setdefault(place, []).append(row["seconds"])
    typical = {place: statistics.fmean(seconds) for place, seconds in seen.items()}
    total = 0.0
    for job in jobs:
        places = _places(json.dumps(job.facts["dataset"], sort_keys=True), job.algorithm)
        total += next((typical[place] for place in places if place in typical), _UNKNOWN)
    return total


def _places(dataset: str, algorithm: str) -> tuple[tuple[str, ...], ...]:
    """Return what a job is like, the closest first."""
    return (dataset, algorithm), (dataset,), ()
