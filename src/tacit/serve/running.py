"""Start the server: on loopback unless told otherwise, with no log of who asked what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tacit.errors import ConfigError
from tacit.serve.limits import Limits

_SHORTEST = 16


def check_installed() -> None:
    """Refuse kindly if the packages of the server are missing."""
    try:
        import fastapi  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError:
        raise ConfigError(
            "tacit serve needs FastAPI and uvicorn: pip install 'tacit[serve]'; or write the page "
            "to a folder with `tacit export-web`, which needs neither"
        ) from None


def read_token(path: Path) -> str:
    """Read a bearer token from the first line of a file.

    Raises:
        ConfigError: there is none, or it is too short to be a secret.
    """
    try:
        token = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeError):
        raise ConfigError(f"--token-file {path}: expected a file with a line of ASCII") from None
    if len(token) < _SHORTEST or not token.isprintable() or " " in token:
        raise ConfigError(
            f"--token-file {path}: expected one line of at least {_SHORTEST} printable characters "
            "without spaces"
        )
    return token


def serve(
    model: Path,
    *,
    host: str = "127.0.0.1",
    port: int = 8765,
    token: str | None = None,
    limits: Limits | None = None,
    page: bool = True,
    ready: Callable[[int], None] | None = None,
) -> None:
    """Serve a model until interrupted; requests that have begun are answered first.

    Args:
        model: the model file.
        host: where to listen.
        port: the port; 0 takes any that is free.
        token: what callers of the API must send, if anything.
        limits: what callers may ask for.
        page: whether the page is served, or the API alone.
        ready: told the port once the server listens.

    Raises:
        ModelFileError: the file is not a valid model.
        ConfigError: a package is missing, or the address cannot be had.
    """
    check_installed()
    import uvicorn

    from tacit.serve.app import create_app

    config = uvicorn.Config(
        create_app(model, limits=limits, token=token, page=page),
        host=host,
        port=port,
        access_log=False,
        log_level="critical",  # its messages may quote a request
        server_header=False,
        ws="none",
        timeout_graceful_shutdown=10,
    )
    server: Any = uvicorn.Server(config)
    start = server.startup

    async def startup(sockets: Any = None) -> None:
        await start(sockets=sockets)
        if ready is not None and server.servers:
            ready(int(server.servers[0].sockets[0].getsockname()[1]))

    server.startup = startup
    try:
        server.run()
    except SystemExit:
        raise ConfigError(
            f"--host {host} --port {port}: cannot listen there; another program may, or it is no "
            "address of this machine"
        ) from None
