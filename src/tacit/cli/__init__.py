"""The command line: one file per verb. Heavy imports wait until a verb needs them."""

import logging
import os
import signal
import sys
import warnings
from collections.abc import Callable
from io import TextIOWrapper
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
    split,
    synth,
    tune,
    verify,
)
from tacit.cli.options import INTERRUPTED, WithExamples, WithSettings, spelled_out
from tacit.cli.progress import reset_quiet
from tacit.errors import TacitError, TacitWarning

__all__ = ["app", "main"]

UsageError: Any = typer.BadParameter.__base__  # of unknown options, missing arguments and the like

app = typer.Typer(
    name="tacit",
    help="Recommendations learned from people's ratings, with a proof of how little anyone else "
    "can tell of what one person rated.",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for verb in (
    synth, split, partition, plan, fit, refit, tune, extend,
    predict, recommend, similar, evaluate, report,
    certificate, verify, card, sign, audit, info,
    demo, serve, export_web, reproduce,
):  # fmt: skip
    kind = WithSettings if verb in (fit, audit) else WithExamples
    name = verb.__name__.rpartition(".")[2].replace("_", "-")
    app.command(name, cls=kind)(spelled_out(verb.run))
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


def _once() -> Callable[[str], None]:
    """Return what shows a text the first time: a command has several parts that compile loops."""
    told: set[str] = set()

    def tell(text: str) -> None:
        if text not in told:
            told.add(text)
            _show_warning(text)

    return tell


class _Noted(logging.Handler):
    """Shows a log record as a note."""

    def emit(self, record: logging.LogRecord) -> None:
        _show_warning(record.getMessage())


_NOTED = _Noted()


def _show_resumed() -> None:
    """Let a fit say which releases it reads back from its checkpoint."""
    log = logging.getLogger("tacit.resumed")
    log.setLevel(logging.INFO)
    log.addHandler(_NOTED)


def main() -> None:
    """Run the command line; an error is one line, and the exit code is 2."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # tidies up as after Ctrl-C
    if isinstance(sys.stdout, TextIOWrapper):  # titles may have letters that a locale has not
        sys.stdout.reconfigure(errors="replace")
    warnings.simplefilter("always", TacitWarning)
    warnings.showwarning = _show_warning
    reset_quiet()
    tell_with(_once())
    _show_resumed()
    try:
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:  # a reader such as `head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except TacitError as error:
        _fail(str(error))
    except UsageError as error:
        _fail(_usage(error))
    except (KeyboardInterrupt, typer.Abort):  # before a verb has begun, or at a question
        typer.echo("tacit: interrupted", err=True)
        code = INTERRUPTED
    sys.exit(code)


def _usage(error: Any) -> str:
    """Say what is wrong with what was typed, and where examples are."""
    message = error.format_message().rstrip(".?")
    for said, plain in _PLAINER.items():
        message = message.replace(said, plain)
    if "No such option: --user " in f"{message} ":
        message = f"{message}; a model holds no users: give her own ratings with --ratings FILE"
    command = getattr(getattr(error, "ctx", None), "command_path", "") or _typed_command()
    return f"{message}; {command} --help shows what to type"


_PLAINER = {
    "Input should be a valid number, unable to parse string as a number": "expected a number such "
    "as 0.5, with a decimal point",
    "Input should be a valid integer, unable to parse string as an integer": "expected a whole "
    "number such as 10000, in digits alone",
    "requires 2 arguments": "takes two numbers, such as 1 5",
}
"""What the parser says of numbers, and what is said instead."""


def _typed_command() -> str:
    """Return the command as far as it names a verb, where the error does not know it."""
    verbs = {each.name for each in app.registered_commands} | {
        each.name for each in app.registered_groups
    }
    verb = sys.argv[1] if len(sys.argv) > 1 else ""
    return f"tacit {verb}" if verb in verbs else "tacit"


def _fail(message: str) -> NoReturn:
    typer.echo(f"tacit: error: {' '.join(message.split())}", err=True)
    sys.exit(2)
