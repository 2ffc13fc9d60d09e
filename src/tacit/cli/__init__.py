"""The command line: one file per verb. Heavy imports wait until a verb needs them."""

import sys
import warnings

import typer

from tacit.cli import certificate, demo, evaluate, fit, info, predict, recommend, synth, verify
from tacit.errors import TacitError, TacitWarning

__all__ = ["app", "main"]

app = typer.Typer(
    name="tacit",
    help="Recommendations learned from people's ratings, with a proof that nobody else can tell "
    "what anyone rated.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (synth, fit, predict, recommend, evaluate, certificate, verify, info, demo):
    app.command(verb.__name__.rpartition(".")[2])(verb.run)


@app.callback(invoke_without_command=True)
def _root(version: bool = typer.Option(False, "--version", help="Show the version.")) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("tacit"))
        raise typer.Exit


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"tacit: note: {message}", err=True)


def main() -> None:
    """Run the command line; an error of ours is one line, and the exit code is 2."""
    warnings.simplefilter("always", TacitWarning)
    warnings.showwarning = _show_warning
    try:
        app()
    except TacitError as error:
        typer.echo(f"tacit: error: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except KeyboardInterrupt:
        typer.echo("tacit: interrupted; nothing half-done was left behind", err=True)
        sys.exit(130)
