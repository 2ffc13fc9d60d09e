"""tacit export-web: the page with a model, as a folder for any static host."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.options import Force, ModelPath


def run(
    model: ModelPath,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    force: Force = False,
) -> None:
    """Write the page with a model to a folder. Any static host can serve it, and needs no more."""
    from tacit.serve.site import export_site

    sizes = export_site(model, output, force=force)
    total = sum(sizes.values())
    typer.echo(
        f"wrote {output}: {len(sizes)} files, {total / 1e6:.1f} MB, for any static host; to try it:"
    )
    typer.echo(f"python3 -m http.server --bind 127.0.0.1 --directory {shlex.quote(str(output))}")
