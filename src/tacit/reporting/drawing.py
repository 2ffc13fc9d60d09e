"""What all figures share: one calm look, the check before anything is computed, and the file."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tacit._atomic import durable_file, reason_of
from tacit._outputs import Kind, Output, check_replaceable
from tacit.errors import ConfigError, MissingPackage

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDINGS = (".svg", ".png")
INK: Final = "#222222"
QUIET: Final = "#6f6f6f"
GRID: Final = "#ececec"
_STYLE: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "text.color": INK,
    "axes.edgecolor": QUIET,
    "axes.labelcolor": INK,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": QUIET,
    "ytick.color": QUIET,
    "svg.fonttype": "none",
    "svg.hashsalt": "tacit",
}


def check_matplotlib() -> None:
    """Refuse to begin what could not be drawn in the end."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingPackage("a figure", "matplotlib", "figures") from None


def check_picture(option: str, path: Path, *, overwrite: bool = False) -> None:
    """Refuse a picture that cannot be drawn, before anything is computed."""
    if path.suffix not in ENDINGS:
        raise ConfigError(f"{option} {path}: expected a name that ends in .svg or .png")
    check_replaceable(Output(option, path, Kind.PICTURE), overwrite=overwrite)
    check_matplotlib()


@contextmanager
def calm_style() -> Iterator[None]:
    """Draw in this style, and leave everyone else's alone."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure whole or not at all; without a date, so that it is the same file each time."""
    metadata = {"Date": None} if path.suffix == ".svg" else None
    try:
        with durable_file(path) as file:
            figure.savefig(file, format=path.suffix[1:], dpi=160, metadata=metadata)
    except OSError as error:
        raise ConfigError(f"the figure {path} cannot be written: {reason_of(error)}") from None
