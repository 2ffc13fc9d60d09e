"""tacit predict: predicted ratings of items, from one's own ratings."""

import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bulk import BulkOutput, Request, refuse_alone
from tacit.cli.options import AsJson, Force, Layout, ModelPath, OwnPath, read_own, show_scores
from tacit.errors import ConfigError, UnknownItemsWarning

if TYPE_CHECKING:
    import polars as pl

    from tacit.models import Model


def run(
    model: ModelPath,
    *,
    ratings: OwnPath = None,
    item: Annotated[
        list[str] | None,
        typer.Option("--item", metavar="ITEM", help="An item to predict; may be repeated."),
    ] = None,
    std: Annotated[
        bool,
        typer.Option("--std", help="Also show the standard deviation of each prediction error."),
    ] = False,
    no_clip: Annotated[
        bool,
        typer.Option("--no-clip", help="Do not clip predictions to the rating range."),
    ] = False,
    pairs: Annotated[
        Path | None,
        typer.Option(help="With -o: the pairs to predict, a file with columns user, item."),
    ] = None,
    output: BulkOutput = None,
    layout: Layout,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Predict your ratings of items. All of the catalogue, or the given ones.

    With -o and --pairs it writes predictions of many users: columns user, item, score and std.
    """
    if output is not None:
        _check_bulk(output, pairs, {"--item": item, "--json": as_json})
        request = Request.checked(output, ratings, [model, *files_of_pairs(pairs)], layout, force)
        _everyone(model, request, pairs, (std, not no_clip))
        return
    refuse_alone(layout, {"--pairs": pairs is not None, "--force": force})
    from tacit.models import Recommendation, load

    found = load(model)
    wanted = _known(found, item) if item else found.catalogue.ids
    own = read_own(ratings, layout, implicit=found.implicit)
    stds = None
    if std:
        scores, stds = found.predict(own, wanted, return_std=True, clip=not no_clip)
    else:
        scores = found.predict(own, wanted, clip=not no_clip)
    rows = [
        Recommendation(found.catalogue.ids[int(at)], found.catalogue.title(int(at)), float(score))
        for at, score in zip(found.catalogue.positions(wanted), scores, strict=True)
    ]
    show_scores(found, rows, as_json, "predictions", None if stds is None else stds.tolist())


def _known(model: "Model", items: list[str]) -> "pl.Series":
    """Return the items that the catalogue has; name the others, and refuse if there are no more."""
    import polars as pl

    wanted = pl.Series("item", items)
    there = pl.Series(model.catalogue.positions(wanted) >= 0)
    unknown = ", ".join(wanted.filter(~there))
    if not there.any():
        raise ConfigError(
            f"--item {unknown}: the catalogue of this model does not have it; give ids as in "
            "`tacit recommend`"
        )
    if unknown:
        message = f"--item {unknown}: not in the catalogue of this model, and left out"
        warnings.warn(message, UnknownItemsWarning, stacklevel=1)
    return wanted.filter(there)


def _check_bulk(output: Path, pairs: Path | None, others: dict[str, Any]) -> None:
    """Refuse predictions of many users without pairs, or with what is for one."""
    if pairs is None:
        raise ConfigError(f"-o {output}: give the pairs to predict with --pairs FILE (user, item)")
    for name, value in others.items():
        if value:
            raise ConfigError(f"{name} is for one user; leave it out, or leave out -o")


def files_of_pairs(pairs: Path | None) -> list[Path]:
    """Return the files that --pairs names."""
    from tacit.data.readers.registry import files_of

    return [] if pairs is None else files_of(pairs)


def _everyone(model: Path, request: Request, pairs: Path | None, how: tuple[bool, bool]) -> None:
    """Write the predictions of all pairs."""
    import polars as pl

    from tacit.data.readers.registry import read_file
    from tacit.models import load

    (std, clip), found = how, load(model)
    everyone, left_out = request.ratings_for(found)
    roles = request.layout.columns.pair
    tables = [pl.DataFrame(read_file(path, roles)) for path in files_of_pairs(pairs)]
    asked = pl.concat(tables, how="vertical_relaxed")
    frame = found.predict_frame(everyone, asked, return_std=std, clip=clip)
    request.write(dict(frame.schema), iter([frame]), left_out)
