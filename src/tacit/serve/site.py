"""The page as files: the programs of the folder `web`, and a model in a form that a page can load.

The page may connect to nothing, from its first byte: its content-security policy has `connect-src
'none'`. So the model does not come by a request of the page's program. It is a module of its own,
`model.js`, with the bytes of the model file in base64, which the browser loads with the page.
"""

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

from tacit._atomic import reason_of, write_durably
from tacit._outputs import Kind, Output, check_outputs
from tacit.errors import ConfigError

_PACKAGED = Path(__file__).parent / "web"
_CHECKOUT = Path(__file__).parents[3]
_MARK = ".tacit-site"

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'none'; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
"""What the page may load: its own programs and style. It may connect to nothing."""


def page_files() -> dict[str, bytes]:
    """Return the files of the page by name, without a model."""
    folder = _CHECKOUT / "web"
    if not ((_CHECKOUT / "pyproject.toml").is_file() and (folder / "tacit.js").is_file()):
        folder = _PACKAGED
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.suffix in {".js", ".html", ".css"}
    }


def model_module(content: bytes) -> bytes:
    r"""Return a module of the bytes of a model file.

    >>> model_module(b"tea")
    b'export default "dGVh";\n'
    """
    return b'export default "' + base64.b64encode(content) + b'";\n'


def tag_of(content: bytes) -> str:
    """Return an entity tag: the same bytes have the same one."""
    return f'"{hashlib.sha256(content).hexdigest()[:32]}"'


def export_site(model: Path, folder: Path, *, force: bool = False) -> Mapping[str, int]:
    """Write a folder with the page and a model that any static host can serve.

    Args:
        model: a model file; it is checked as `tacit.load` does.
        folder: where the files go; it is made if it is missing. Files of an earlier export are
            replaced; a folder with anything else is refused, since a host would publish that too.
        force: whether the folder may hold other files; those of the same names are replaced.

    Returns:
        The size of each file in bytes.

    Raises:
        ModelFileError: the file is not a valid model.
        ConfigError: the folder cannot be written, or has files that no export wrote.
    """
    from tacit.models import load

    load(model)
    content = model.read_bytes()
    files = page_files() | {"model.js": model_module(content), "model.tacit": content}
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"--output {folder}: it is a file; give the name of a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        mark = folder / _MARK
        outputs = [Output("--output", folder / name, Kind.RATINGS) for name in files]
        check_outputs(outputs, [model], force=force or mark.is_file())
        if not force and not mark.is_file() and any(folder.iterdir()):
            raise ConfigError(
                f"--output {folder}: the folder has other files, which a host would publish with "
                "the page; give a new folder, or write into this one with --force"
            )
        write_durably(mark, b"The files of `tacit export-web` here are replaced by the next one.\n")
        for name, written in files.items():
            write_durably(folder / name, written)
    except OSError as error:
        raise ConfigError(f"--output {folder}: {reason_of(error)}") from None
    return {name: len(written) for name, written in files.items()}
