"""tacit card: a README for a model hub, written from the certificate."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import AsJson, Force, ModelPath, show_json


def run(
    model: ModelPath,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The file to write; printed if left out.")
    ] = None,
    title: Annotated[str, typer.Option(help="The heading of the card.")] = "A private recommender",
    licence: Annotated[
        str | None, typer.Option("--licence", help="The licence of the model, such as cc-by-4.0.")
    ] = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Write a model card from the certificate.

    Metadata, the promise in words, and how to use the model. Everything in it is in the model file
    already. With --json: the metadata alone.
    """
    from tacit._atomic import write_durably
    from tacit._outputs import Kind, Output, check_outputs
    from tacit.models import load
    from tacit.reporting.card import metadata, model_card

    if output is not None:
        check_outputs([Output("--output", output, Kind.CARD)], [model], force=force)
    found = load(model)
    if output is not None:
        write_durably(output, model_card(found, title, licence).encode())
    if as_json:
        show_json(metadata(found, licence) | ({"card": str(output)} if output else {}))
    elif output is not None:
        typer.echo(f"wrote {output}")
    else:
        typer.echo(model_card(found, title, licence), nl=False)
