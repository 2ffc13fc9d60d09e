"""Start the server: on loopback unless told otherwise, with no log of who asked what."""

from pathlib import Path
from typing import Any

from tacit.errors import ConfigError
from tacit.serve.limits import Limits

__all__ = ["check_installed", "read_token", "serve"]

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
) -> None:
    """Serve a model until interrupted; requests that have begun are answered first.

    Raises:
        ModelFileError: the file is no sound model.
        ConfigError: a package is missing.
    """
    check_installed()
    import uvicorn

    from tacit.serve.app import create_app

    app = create_app(model, limits=limits, token=token, page=page)
    settings: dict[str, Any] = {"access_log": False, "log_level": "warning"}
    uvicorn.run(
        app,
        host=host,
        port=port,
        server_header=False,
        h11_max_incomplete_event_size=1 << 14,
        timeout_graceful_shutdown=10,
        **settings,
    )
