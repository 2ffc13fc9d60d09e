"""The folders of experiments and of their results: in a checkout, or in the installed package."""

from pathlib import Path

from tacit._atomic import reason_of
from tacit._validate import one_of, refuse
from tacit.errors import ConfigError

_PACKAGED = Path(__file__).parent / "files"
_CHECKOUT = Path(__file__).parents[4]


def _checkout_folder() -> Path | None:
    """The folder `experiments` of a checkout, if the package runs from one."""
    found = (_CHECKOUT / "pyproject.toml").is_file() and (_CHECKOUT / "src" / "tacit").is_dir()
    folder = _CHECKOUT / "experiments"
    return folder if found and folder.is_dir() else None


def full_name(name: str) -> str:
    """The name of an experiment; the paper's figures had other numbers once.

    >>> full_name("fig1b"), full_name("fig2a"), full_name("oja")
    ('figure-2b', 'figure-3a', 'oja')
    """
    for old, new in (("fig1", "figure-2"), ("fig2", "figure-3")):
        if name.startswith(old) and len(name) == len(old) + 1:
            return new + name[-1]
    return name


def experiment_names() -> list[str]:
    """The names of all experiments."""
    return sorted(path.stem for path in (_checkout_folder() or _PACKAGED).glob("*.toml"))


def experiment_text(name: str) -> str:
    """The text of an experiment's file.

    Raises:
        ConfigError: there is none of this name.
    """
    names = experiment_names()
    if name not in names:
        known = one_of(name, names)
        refuse("experiment", name, f"a file of your own whose name ends in .toml, or {known}")
    return ((_checkout_folder() or _PACKAGED) / f"{name}.toml").read_text(encoding="utf-8")


def file_text(path: Path) -> str:
    """The text of a file of one's own.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {reason_of(error)}") from None


def results_folder(name: str) -> Path:
    """Where the results of an experiment go: in a checkout, or below the working folder."""
    beside = _checkout_folder()
    return (beside / "results" if beside else Path("tacit-results")) / name
