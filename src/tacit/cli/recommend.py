"""tacit recommend: the best items for one's own ratings."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tacit.cli.bulk import BulkOutput, Request, refuse_alone
from tacit.cli.options import AsJson, Force, Layout, ModelPath, OwnPath, read_own, show_scores
from tacit.errors import ConfigError

if TYPE_CHECKING:
    from tacit.models import Model


def run(
    model: ModelPath,
    *,
    ratings: OwnPath = None,
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    include_rated: Annotated[
        bool, typer.Option("--include-rated", help="Also items that you have rated.")
    ] = False,
    by: Annotated[
        str | None,
        typer.Option(
            help="How the list is sorted: by 'rating', by 'choice' (what you would pick next), or, "
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
        typer.Option("--because", help="Also show how much each of your ratings contributes."),
    ] = False,
    output: BulkOutput = None,
    layout: Layout,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Recommend items to you. Without ratings of your own, it is the list for someone unknown.

    With -o it writes everyone's list: columns user, rank, item, (title,) score and, where the model
    knows it, choice.
    """
    from tacit.data.readers.registry import read_items
    from tacit.models import load

    filters = {"only": only, "exclude": exclude}
    request = None
    if output is None:
        refuse_alone(layout, {"--force": force})
    else:
        if because or as_json:
            raise ConfigError("-o FILE has neither --because nor --json; leave them out")
        read = [model, *(path for path in filters.values() if path is not None)]
        request = Request.checked(output, ratings, read, layout, force)
    found = load(model)
    chosen: dict[str, Any] = {
        "candidates": None if only is None else read_items(only),
        "exclude": None if exclude is None else read_items(exclude),
        "include_rated": include_rated,
        "by": by,
    }
    if request is not None:
        _everyone(found, request, n, chosen)
        return
    own = read_own(ratings, layout, implicit=found.implicit)
    show_scores(
        found, found.recommend(own, n, because=because, **chosen), as_json, "recommendations"
    )


def _everyone(model: "Model", request: Request, n: int, chosen: "dict[str, Any]") -> None:
    """Write everyone's list."""
    from tacit.models.bulk import list_frames, list_schema

    wanted = model.wanted(n, **chosen)
    everyone, left_out = request.ratings_for(model)
    schema = list_schema(model, everyone.user_ids)
    request.write(schema, list_frames(model, everyone, wanted), left_out)
