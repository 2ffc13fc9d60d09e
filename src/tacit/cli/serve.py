"""tacit serve: the page and an API for a model, on this machine."""

from pathlib import Path
from typing import Annotated

import typer

from tacit.cli.demo import learn_quickly
from tacit.errors import ConfigError

_LOOPBACK = {"127.0.0.1", "::1", "localhost"}


def run(
    model: Annotated[
        Path | None,
        typer.Argument(metavar="MODEL", help="The model file; with --demo none is needed."),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Learn a model of synthetic films first, and serve it.")
    ] = False,
    folder: Annotated[Path, typer.Option(help="Where the file of --demo goes.")] = Path("demo"),
    host: Annotated[
        str, typer.Option(help="Where to listen; by default this machine alone can connect.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port; 0: any.")] = 8765,
    token_file: Annotated[
        Path | None, typer.Option(help="A file with a bearer token that callers of /v1 must send.")
    ] = None,
    page: Annotated[bool, typer.Option(help="Whether to serve the page, or the API alone.")] = True,
    max_body: Annotated[
        int, typer.Option(min=1, help="Bytes of a request's body, at the most.")
    ] = 1 << 20,
    max_ratings: Annotated[
        int, typer.Option(min=1, help="Ratings of one person, at the most.")
    ] = 5000,
    max_people: Annotated[int, typer.Option(min=1, help="People of a batch, at the most.")] = 100,
    max_at_once: Annotated[
        int, typer.Option(min=1, help="Requests at the same time, at the most.")
    ] = 64,
) -> None:
    """Serve a page that recommends on the visitor's device. And an API for other callers.

    Nothing that is sent to it is stored or logged. A newer model file in the place of the old one
    is taken over while it runs.
    """
    from tacit.serve.limits import Limits
    from tacit.serve.running import check_installed, read_token, serve

    if (model is None) != demo:
        raise ConfigError("give either a model file or --demo")
    limits = Limits(body=max_body, ratings=max_ratings, people=max_people, at_once=max_at_once)
    token = None if token_file is None else read_token(token_file)
    check_installed()
    path = learn_quickly(folder) if model is None else model
    serve(
        path,
        host=host,
        port=port,
        token=token,
        limits=limits,
        page=page,
        ready=lambda taken: _announce(host, taken, page, token is not None),
    )


def _announce(host: str, port: int, page: bool, guarded: bool) -> None:
    shown = f"[{host}]" if ":" in host else host
    address = f"http://{shown}:{port}/"
    where = f"open {address} in a browser" if page else f"the API is at {address}v1/"
    typer.echo(f"{where}; Ctrl-C ends it", err=True)
    if host not in _LOOPBACK and not guarded:
        typer.echo(
            "tacit: note: other machines can connect, and no token is asked for; there is no "
            "encryption either: put a proxy with TLS in front",
            err=True,
        )
