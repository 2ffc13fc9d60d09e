"""The command line: one file per verb. Heavy imports wait until a verb needs them."""

import signal
import sys
import warnings
from typing import Any, NoReturn

import typer

from tacit._compiling import tell_with
from tacit.cli import (
    audit,
    book,
    card,
    certificate,
    data,
    demo,
    evaluate,
    export_web,
    extend,
    fit,
    info,
    partition,
    plan,
    predict,
    recommend,
    refit,
    report,
    reproduce,
    serve,
    sign,
    similar,
    synth,
    tune,
    verify,
)
from tacit.cli.options import WithExamples, WithSettings
from tacit.cli.progress import be_loud
from tacit.errors import TacitError, TacitWarning

__all__ = ["app", "main"]

_INTERRUPTED = 130

UsageError: Any = typer.BadParameter.__base__  # of unknown options, missing arguments and the like

app = typer.Typer(
    name="tacit",
    help="Recommendations learned from people's ratings, with a proof of how little anyone else "
    "can tell of what one person rated.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (
    synth, partition, plan, fit, refit, tune, extend,
    predict, recommend, similar, evaluate, report,
    certificate, verify, card, sign, audit, info,
    demo, serve, export_web, reproduce,
):  # fmt: skip
    kind = WithSettings if verb in (fit, audit) else WithExamples
    name = verb.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name, cls=kind)(verb.run)
app.add_typer(
    book.app, name="book", help="Lifetime budgets: new, show, plan, export, verify, merge."
)
app.add_typer(data.app, name="data", help="The named datasets: list, info, get.")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Show the version."),
) -> None:
    if version:
        from importlib.metadata import version as installed

        typer.echo(installed("tacit"))
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    typer.echo(f"tacit: note: {message}", err=True)


def main() -> None:
    """Run the command line; an error is one line, and the exit code is 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as after Ctrl-C
    warnings.simplefilter("always", TacitWarning)
    warnings.showwarning = _show_warning
    be_loud()
    tell_with(_show_warning)
    try:
        code = app(standalone_mode=False)
    except TacitError as error:
        _fail(str(error))
    except UsageError as error:
        _fail(_usage(error))
    except (KeyboardInterrupt, typer.Abort):
        code = _INTERRUPTED
    if code == _INTERRUPTED:
        typer.echo("tacit: interrupted; nothing half-done was left behind", err=True)
    sys.exit(code)


def _usage(error: Any) -> str:
    """Say what is wrong with what was typed, and where examples are."""
    message = error.format_message().rstrip(".")
    if "No such option: --user " in f"{message} ":
        message = f"{message}; a model holds no users: give her own ratings with --ratings FILE"
    command = getattr(getattr(error, "ctx", None), "command_path", "") or "tacit"
    return f"{message}; {command} --help shows what to type"


def _fail(message: str) -> NoReturn:
    typer.echo(f"tacit: error: {' '.join(message.split())}", err=True)
    sys.exit(2)
