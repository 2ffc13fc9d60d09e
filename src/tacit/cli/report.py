"""tacit report: one HTML page about a model, for one's own data."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tacit.cli.options import Force, Layout, ModelPath
from tacit.cli.progress import Quiet, say, status
from tacit.cli.sources import own_ratings
from tacit.errors import ConfigError, DataError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tacit.data.ratings import Ratings
    from tacit.models import Model
    from tacit.reporting.html import Measure, Scored


def run(
    model: ModelPath,
    *,
    ratings: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE", help="Held-out ratings, to measure with (NOT PRIVATE); may be repeated."
        ),
    ] = None,
    train: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE",
            help="With --ratings: the ratings that predictions are made from. Left out, a fifth of "
            "each user's --ratings is held out and predicted from the rest.",
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the page goes (MODEL.html if left out)."),
    ] = None,
    layout: Layout,
    force: Force = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Write a page about a model. Its promise, its budget, what it found, and sample lists.

    One file for a browser, which loads nothing from a network. Without --ratings everything in it
    may be published like the model; with them it has figures that are NOT PRIVATE.
    """
    from tacit._outputs import Kind, Output, check_outputs
    from tacit.data.readers.registry import files_of
    from tacit.models import load
    from tacit.reporting.html import write_report
    from tacit.reporting.model_sections import model_sections

    page = output or model.with_suffix(".html")
    parts = [files_of(names) if names else [] for names in (train, ratings)]
    _check(page, train, ratings)
    inputs = [model, *parts[0], *parts[1]]
    check_outputs([Output("--output", page, Kind.REPORT)], inputs, force=force)
    with status("measuring and drawing"):
        found = load(model)
        accuracies, measures = _measured(found, (parts[0], parts[1]), layout)
        write_report(
            page,
            model=found,
            accuracies=accuracies,
            person={},
            recommendations=(),
            measures=measures,
            more=model_sections(found),
            overwrite=force,
        )
    note = " (NOT PRIVATE: it has figures measured on ratings)" if measures else ""
    say(f"wrote {page}{note}")


def _check(page: Path, train: list[str] | None, ratings: list[str] | None) -> None:
    if page.suffix.lower() not in {".html", ".htm"}:
        raise ConfigError(f"--output {page}: expected a name that ends in .html")
    if train and not ratings:
        raise ConfigError("--train goes with --ratings, the held-out ratings; give them too")


def _measured(
    model: "Model", files: tuple[list[Path], list[Path]], layout: Layout
) -> "tuple[Sequence[Scored], Sequence[Measure]]":
    """Measure predictions and lists, as `tacit evaluate` does."""
    from tacit.evaluation import calibrate, evaluate, rank_new_users, user_mean_accuracy

    train, held_out = files
    if not held_out:
        return (), ()
    if model.implicit:
        return (), (rank_new_users(model, own_ratings(model, held_out, layout)[0]),)
    own, test = _parts(model, train, held_out, layout)
    label = f"tacit ({model.rule.kind})"
    accuracies = [
        ("user mean (free)", user_mean_accuracy(own, test), True),
        (label, evaluate(model, own, test), model.private),
    ]
    ranked = _lists(model, own, test)
    return accuracies, [*ranked, *([calibrate(model, own, test)] if model.knows_std else [])]


def _parts(
    model: "Model", train: list[Path], held_out: list[Path], layout: Layout
) -> "tuple[Ratings, Ratings]":
    """Return what users predict from, and what is predicted."""
    from tacit.evaluation import fold_in

    given = own_ratings(model, held_out, layout)[0]
    if train:
        return own_ratings(model, train, layout)[0], given
    try:
        parts = fold_in(given)
    except DataError as error:
        raise DataError(f"{error}; or give --train, with what users predict from") from None
    return parts.own, parts.held_out


def _lists(model: "Model", own: "Ratings", test: "Ratings") -> "list[Measure]":
    """Rank; nothing if no held-out rating is high enough to be liked."""
    from tacit.evaluation import ExactPopularity, rank

    length = min(10, len(model.catalogue))
    try:
        popular = rank(ExactPopularity(own), own, test, length)
        return [(rank(model, own, test, length), popular)]
    except DataError:
        return []
