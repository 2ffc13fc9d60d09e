"""tacit reproduce: an experiment by its name: stored runs, a table and a figure. NOT PRIVATE."""

import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AsJson, Force, show_json
from tacit.cli.progress import duration
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.research.experiments.reproducing import Options, Outcome
    from tacit.research.experiments.spec import Experiment

_EVERY = 30.0  # seconds between lines where stderr is no terminal


def run(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="An experiment (--list has all), or a TOML file."),
    ] = None,
    draws: Annotated[
        int | None, typer.Option(help="How often each fit is repeated; its file says if left out.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A small version, to try the experiment.")
    ] = False,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="LABEL",
            help="Only this dataset of it, by its label; may be repeated.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(help="The folder for table and figure; that of the runs if left out."),
    ] = None,
    runs: Annotated[
        Path | None, typer.Option(help="Folder of stored runs; experiments/results/NAME if none.")
    ] = None,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run jobs again that failed before.")
    ] = False,
    stored: Annotated[
        bool,
        typer.Option("--stored", help="Compute nothing; make table and figure from stored runs."),
    ] = False,
    force: Force = False,
    show_list: Annotated[bool, typer.Option("--list", help="List the experiments.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run an experiment and draw its figure (NOT PRIVATE). Only what is missing is computed."""
    if show_list:
        _show_list(as_json)
        return
    from tacit.research.experiments.reading import read_experiment
    from tacit.research.experiments.reproducing import Options

    if name is None:
        raise ConfigError("give the NAME of an experiment; `tacit reproduce --list` has them all")
    experiment = read_experiment(name)
    options = Options(
        draws=draws,
        quick=quick,
        datasets=tuple(dataset or ()),
        output=output,
        runs=runs,
        retry=retry,
        stored=stored,
        force=force,
    )
    try:
        outcome = _shown(experiment, options)
    except KeyboardInterrupt:
        typer.echo("jobs that are done are kept; the same command goes on from there", err=True)
        raise
    _report(experiment, outcome, as_json)


def _show_list(as_json: bool) -> None:
    from tacit.research.experiments.paths import experiment_names
    from tacit.research.experiments.reading import read_experiment

    found = [read_experiment(name) for name in experiment_names()]
    if as_json:
        entries = [{"name": one.name, "title": one.title, "about": one.about} for one in found]
        show_json({"experiments": entries})
        return
    width = max((len(one.name) for one in found), default=0)
    for one in found:
        typer.echo(f"{one.name:<{width}}  {one.title}")


def _shown(experiment: "Experiment", options: "Options") -> "Outcome":
    """Run, and say how many jobs are done and how long the rest will take."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from tacit.research.experiments.reproducing import reproduce

    console = Console(stderr=True)
    if not console.is_terminal:
        return reproduce(experiment, options, _in_lines())
    left = TextColumn("{task.fields[left]}")
    columns = TextColumn("jobs"), BarColumn(), MofNCompleteColumn(), left
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None, left="")

        def progress(done: int, total: int, seconds: float) -> None:
            bar.update(task, completed=done, total=total, left=f"{duration(seconds)} left")

        return reproduce(experiment, options, progress)


def _in_lines(clock: Callable[[], float] = time.monotonic) -> Callable[[int, int, float], None]:
    """Return what says how far it is in lines, for a log: at the beginning and now and then."""
    last = -math.inf

    def progress(done: int, total: int, seconds: float) -> None:
        nonlocal last
        if clock() - last >= _EVERY:
            last = clock()
            typer.echo(f"{done} of {total} jobs, about {duration(seconds)} left", err=True)

    return progress


def _report(experiment: "Experiment", outcome: "Outcome", as_json: bool) -> None:
    counts = {"computed": outcome.computed, "reused": outcome.reused, "failed": outcome.failed}
    if as_json:
        files = [str(path) for path in outcome.files]
        about = {"experiment": experiment.name, "label": "NOT PRIVATE", "runs": str(outcome.runs)}
        show_json({**about, "files": files, **counts, "skipped": list(outcome.skipped)})
        return
    for line in outcome.skipped:
        typer.echo(line, err=True)
    typer.echo("NOT PRIVATE: computed from held-out ratings, for the owner of the data")
    typer.echo(", ".join(f"{count} {name}" for name, count in counts.items()))
    for path in outcome.files:
        typer.echo(f"wrote {path}")
