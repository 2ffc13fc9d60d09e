"""tacit extend: a model with items that were not in its fit, known by their public features."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import (
    AsJson,
    FeatureNames,
    Force,
    ItemColumn,
    ModelPath,
    TitleColumn,
    show_json,
)
from tacit.cli.progress import Quiet, say


def run(
    model: ModelPath,
    items: Annotated[
        Path, typer.Argument(metavar="ITEMS", help="A file with columns item, title and features.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the new model goes.")],
    item_column: ItemColumn = None,
    title_column: TitleColumn = None,
    feature: FeatureNames = None,
    force: Force = False,
    as_json: AsJson = False,
    quiet: Quiet = False,  # noqa: ARG001 - its callback has seen it
) -> None:
    """Add items to a model by their public features. It reads no ratings and costs nothing.

    Without --feature the columns are those that the model was fitted with.
    """
    from tacit._outputs import Kind, Output, check_outputs
    from tacit.data.catalogue import Catalogue
    from tacit.models import load

    check_outputs([Output("--output", output, Kind.MODEL)], [model, items], force=force)
    found = load(model)
    known = found.catalogue.features.names if found.catalogue.features else []
    given = Catalogue.from_file(
        items, item=item_column, title=title_column, features=feature or known
    )
    extended = found.with_items(given)
    extended.save(output, overwrite=force)
    added = len(extended.catalogue) - len(found.catalogue)
    if as_json:
        show_json({"model": str(output), "items": len(extended.catalogue), "added": added})
        return
    say(f"wrote {output}: {len(extended.catalogue)} items, {added} of them new")
