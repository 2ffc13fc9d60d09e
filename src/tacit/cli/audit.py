"""tacit audit: attack a configuration, or the one that a model's certificate names."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import AsJson, Force, Settings, show_json
from tacit.cli.progress import Quiet, say, stages
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.accounting.budget import PrivacyBudget
    from tacit.algorithms import Algorithm
    from tacit.audit import Audit, Scale
    from tacit.audit.progress import Progress
    from tacit.models import Model


def run(
    target: Annotated[
        str,
        typer.Argument(
            metavar="TARGET",
            help="A model file, or an algorithm such as moments or svd.",
        ),
    ],
    epsilon: Annotated[
        float | None, typer.Option(help="The promise to attack, for an algorithm.")
    ] = None,
    delta: Annotated[float, typer.Option(help="The delta of that promise.")] = 1e-6,
    neighbours: Annotated[str, typer.Option(help="replace or add_remove.")] = "replace",
    accounting: Annotated[
        str, typer.Option(help="How noise follows from epsilon: exact, or paper for comparison.")
    ] = "exact",
    rating_range: Annotated[
        tuple[float, float], typer.Option(help="The range of the synthetic ratings.")
    ] = (1.0, 5.0),
    settings: Settings = None,
    parts: Annotated[
        str | None,
        typer.Option(help="Some of sensitivity,rating,game,membership,reconstruction,noise."),
    ] = None,
    trials: Annotated[
        int | None,
        typer.Option(help="Fits with the person and as many without; 1000, or 200 if quick."),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            help="The random seed of the game; left out, noise is the operating system's."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option("--quick", help="Fewer fits and shorter searches, for a first impression."),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Write the result to a file: .txt, .json or .html."),
    ] = None,
    picture: Annotated[
        Path | None,
        typer.Option(
            help="Draw what an attacker reads about one person: .svg, .png; no ending: both."
        ),
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Attack the promise. Synthetic people, real noise; exit code 1 if anything does not hold."""
    from tacit.audit import Scale

    _check_outputs(target, output, picture, force)
    scale = Scale(trials=trials, seed=seed, quick=quick)
    found: Algorithm | Model = _found(target, settings or [])
    budget = _budget(found, epsilon, delta, neighbours, accounting)
    if picture is not None:
        _draw(found, budget, rating_range, picture, seed or 0)
    result = _audited(found, budget, rating_range, parts, scale)
    if as_json:
        show_json(result.to_json())
    else:
        say(result.text())
    if output is not None:
        _write(result, output, force)
    if not result.holds:
        raise typer.Exit(1)


def _found(target: str, settings: list[str]) -> "Algorithm | Model":
    """Return the algorithm of this name with its settings, or the model in this file."""
    from tacit._validate import one_of
    from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
    from tacit.cli.making import algorithm_of
    from tacit.models import load

    known = ALGORITHMS | IMPLICIT_ALGORITHMS
    if target in known:
        return algorithm_of(target, settings, None, implicit=target in IMPLICIT_ALGORITHMS)
    if not Path(target).exists():
        raise ConfigError(
            f"TARGET {target}: neither a file nor an algorithm; expected a model file or "
            f"{one_of(target, known)}"
        )
    if settings:
        raise ConfigError(f"--set {settings[0]}: the certificate of {target} names the settings")
    return load(target)


def _budget(
    found: "Algorithm | Model",
    epsilon: float | None,
    delta: float,
    neighbours: str,
    accounting: str,
) -> "PrivacyBudget | None":
    """Return the promise to attack; that of a model is its certificate's."""
    from tacit.accounting.budget import PrivacyBudget
    from tacit.models import Model

    if isinstance(found, Model):
        if epsilon is not None:
            raise ConfigError(
                f"--epsilon {epsilon:g}: a model's certificate names it; leave it out"
            )
        return None
    if epsilon is None:
        raise ConfigError(
            "--epsilon is missing: an audit needs a promise to attack; give --epsilon 1"
        )
    return PrivacyBudget(epsilon, delta, neighbours, accounting)  # type: ignore[arg-type]


def _audited(
    found: "Algorithm | Model",
    budget: "PrivacyBudget | None",
    rating_range: tuple[float, float],
    parts: str | None,
    scale: "Scale",
) -> "Audit":
    """Run the attacks, showing which one is at work and how much of it is left."""
    from tacit.audit import PARTS, audit

    wanted = PARTS if parts is None else [part.strip() for part in parts.split(",")]
    with stages() as tell:
        progress = _in_turn(wanted, tell)
        return audit(
            found,
            budget=budget,
            rating_range=rating_range,
            parts=wanted,
            scale=scale,
            progress=progress,
        )


def _in_turn(parts: "Sequence[str]", tell: "Progress") -> "Progress":
    """Tell of each part, and of the next as soon as one is done: planning its steps takes time."""
    order = list(parts)
    tell(f"audit: {order[0]}", 0, 0)

    def progress(part: str, done: int, planned: int) -> None:
        tell(f"audit: {part}", done, planned)
        if done == planned and part in order[:-1]:
            tell(f"audit: {order[order.index(part) + 1]}", 0, 0)

    return progress


def _draw(
    found: "Algorithm | Model",
    budget: "PrivacyBudget | None",
    rating_range: tuple[float, float],
    picture: Path,
    seed: int,
) -> None:
    """Draw what someone who knows everyone else reads about one synthetic person.

    What is replaced was checked before.
    """
    from tacit.audit.progress import Steps
    from tacit.audit.target import Target, target_of_model
    from tacit.models import Model
    from tacit.reporting.audit_figure import draw

    if isinstance(found, Model):
        subject = target_of_model(found)
    elif budget is not None:
        subject = Target(found, budget, rating_range)
    else:
        return
    with stages() as progress:
        steps = Steps(partial(progress, "audit: picture"))
        draw(picture, subject, seed, overwrite=True, steps=steps)


def _check_outputs(target: str, output: Path | None, picture: Path | None, force: bool) -> None:
    """Refuse files that cannot be written, before an hour of attacks."""
    from tacit._outputs import Kind, Output, check_outputs
    from tacit.audit.result import check_page
    from tacit.reporting.audit_figure import files_of_picture
    from tacit.reporting.drawing import check_picture

    if output is not None:
        check_page(output.name)
    drawn = [] if picture is None else files_of_picture(picture)
    pages = [] if output is None else [Output("--output", output, Kind.AUDIT)]
    pages += [Output("--picture", file, Kind.PICTURE) for file in drawn]
    check_outputs(pages, [Path(target)], force=force)
    for file in drawn:
        check_picture("--picture", file, overwrite=force)


def _write(result: "Audit", output: Path, force: bool) -> None:
    """Write the page in the form that its name says."""
    import json

    from tacit._atomic import write_durably
    from tacit._outputs import Kind, Output, check_replaceable

    if output.suffix == ".json":
        content = json.dumps(result.to_json(), indent=2) + "\n"
    else:
        content = result.page() if output.suffix == ".html" else result.text() + "\n"
    check_replaceable(Output("--output", output, Kind.AUDIT), overwrite=force)
    write_durably(output, content.encode())
