"""tacit predict: predicted ratings of items, from one's own ratings."""

from typing import Annotated

import typer

from tacit.cli.options import AsJson, ModelPath, OwnPath, read_own, show_scores

__all__ = ["run"]


def run(
    model: ModelPath,
    ratings: OwnPath = None,
    item: Annotated[
        list[str] | None, typer.Option("--item", help="An item to predict; may be repeated.")
    ] = None,
    std: Annotated[
        bool, typer.Option("--std", help="Also how far off each may be, as one std.")
    ] = False,
    no_clip: Annotated[
        bool,
        typer.Option("--no-clip", help="Do not cut predictions off at the rating range."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Predict your ratings of items. All of the catalogue, or the given ones."""
    import polars as pl

    from tacit.models import Recommendation, load

    found = load(model)
    wanted = pl.Series("item", item) if item else found.catalogue.ids
    own, stds = read_own(ratings, implicit=found.implicit), None
    if std:
        scores, stds = found.predict(own, wanted, return_std=True, clip=not no_clip)
    else:
        scores = found.predict(own, wanted, clip=not no_clip)
    positions = found.catalogue.positions(wanted)
    rows = [
        Recommendation(found.catalogue.ids[int(at)], found.catalogue.title(int(at)), float(score))
        for at, score in zip(positions, scores, strict=True)
        if at >= 0
    ]
    known = None if stds is None else stds[positions >= 0].tolist()
    show_scores(found, rows, as_json, "predictions", known)
