"""tacit certificate: what a model promises, for a person or a machine."""

import typer

from tacit.cli.options import AsJson, ModelPath, show_json


def run(model: ModelPath, as_json: AsJson = False) -> None:
    """Show what a model promises. Also what was released, and what was taken as public."""
    from tacit.models import load

    certificate = load(model).certificate
    if as_json:
        show_json(certificate.to_json())
    else:
        typer.echo(certificate.text())
