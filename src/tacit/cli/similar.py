"""tacit similar: the items that are most like one."""

import warnings
from typing import Annotated

import typer

from tacit.cli.options import AsJson, ModelPath, item_table, show_json, show_table
from tacit.errors import TacitWarning

_ALIKE = 0.995  # is shown as 1.00


def run(
    model: ModelPath,
    item: Annotated[str, typer.Argument(metavar="ITEM", help="The id of an item.")],
    n: Annotated[int, typer.Option("-n", help="How many items.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Show the items most similar to one. It reads published numbers only, and no ratings."""
    from dataclasses import asdict

    from tacit.models import load

    found = load(model)
    rows = found.similar_items(item, n)
    if as_json:
        show_json({"similar": [asdict(row) for row in rows], "private": found.private})
        return
    table = item_table(found, "> similarity")
    titled = found.catalogue.titles is not None
    for row in rows:
        table.add_row(str(row.item), *[row.title] * titled, f"{row.similarity:.2f}")
    show_table(table)
    if len(rows) > 1 and rows[-1].similarity >= _ALIKE:
        message = "these items are all alike to the model, whose latent factors are too few to tell"
        warnings.warn(f"{message} them apart: do not rely on the order", TacitWarning, stacklevel=1)
