"""tacit recommend: the best items for one's own ratings."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson, ModelPath, OwnPath, read_own, show_scores

__all__ = ["run"]


def run(
    model: ModelPath,
    ratings: OwnPath = None,
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    include_rated: Annotated[
        bool, typer.Option("--include-rated", help="Also items that you have rated.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            help="What the list is ordered by: 'rating', 'choice' (what you would pick next), or, "
            "left out, both together where the model knows both."
        ),
    ] = None,
    only: Annotated[
        Path | None, typer.Option(help="Recommend only the items of this file (a column item).")
    ] = None,
    exclude: Annotated[
        Path | None, typer.Option(help="Never recommend the items of this file (a column item).")
    ] = None,
    because: Annotated[
        bool,
        typer.Option("--because", help="Also what your ratings add to each predicted rating."),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to you. Without ratings of your own, it is the list for someone unknown."""
    from tacit.models import load

    found = load(model)
    own = read_own(ratings, implicit=found.implicit)
    chosen = found.recommend(
        own,
        n,
        include_rated=include_rated,
        by=by,  # type: ignore[arg-type]  # checked there
        candidates=None if only is None else read_own(only, implicit=True),
        exclude=None if exclude is None else read_own(exclude, implicit=True),
        because=because,
    )
    show_scores(found, chosen, as_json, "recommendations")
