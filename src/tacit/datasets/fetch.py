"""fetch: download a dataset that anyone may have; the only place that uses the network."""

import hashlib
from pathlib import Path
from typing import Any

from tacit.datasets.paths import folder_of
from tacit.datasets.spec import Dataset, Download
from tacit.errors import ConfigError, DataError


def fetch(dataset: Dataset, folder: Path | None = None, *, overwrite: bool = False) -> list[Path]:
    """Download the files of a dataset, through pooch; those that are there already are kept.

    Args:
        dataset: what to download.
        folder: where to; None is the folder that `load` reads from.
        overwrite: whether a file of the same name that is not the published one is replaced.

    Raises:
        ConfigError: it cannot be fetched: it is synthetic, or one has to agree to its terms, or
            another file has its name.
        DataError: pooch is not installed, the network fails, or a file is not the published one.
    """
    if not dataset.downloads:
        raise ConfigError(f"{dataset.name}: {_why_not(dataset)}")
    place = folder_of(dataset) if folder is None else folder
    for download in dataset.downloads:
        _refuse_other(place / download.name, download, overwrite)
    pooch = _pooch()
    return [_fetched(pooch, download, place) for download in dataset.downloads]


def _why_not(dataset: Dataset) -> str:
    """Why a dataset is not downloaded, and what to do."""
    if not dataset.members:
        return "it is synthetic and needs no download"
    return (
        "tacit cannot download it, since its owner asks for a login. "
        f"Official address: {dataset.page} . "
        f"{dataset.how_to_get}: {folder_of(dataset)}"
    )


def _refuse_other(path: Path, download: Download, overwrite: bool) -> None:
    """Refuse to replace a file that is not the published one: it may be someone's own."""
    if overwrite or download.sha256 is None or not path.is_file():
        return
    with path.open("rb") as file:
        same = hashlib.file_digest(file, "sha256").hexdigest() == download.sha256
    if not same:
        raise ConfigError(
            f"{path}: the file is there already and is not the published one (its sha256 is "
            "another); move it away, or replace it with --force (in Python: overwrite=True)"
        )


def _pooch() -> Any:
    """The package that downloads, which is not needed for anything else."""
    try:
        import pooch
    except ImportError:
        raise DataError(
            "downloading needs pooch: pip install 'tacit[download]'; or download the files with a "
            "browser (`tacit data info NAME` says from where and where to put them)"
        ) from None
    return pooch


def _fetched(pooch: Any, download: Download, folder: Path) -> Path:
    """Fetch one file, unless the same is there; a file whose sha256 differs is not kept."""
    known = None if download.sha256 is None else f"sha256:{download.sha256}"
    pooch.get_logger().setLevel("WARNING")
    try:
        got = pooch.retrieve(download.address, known, fname=download.name, path=folder)
    except OSError as error:  # those of requests and of urllib among them
        raise DataError(
            f"{download.address} cannot be fetched ({type(error).__name__}); is this machine "
            f"online? With a browser: save it as {folder / download.name}"
        ) from None
    except ValueError:
        raise DataError(
            f"{download.address}: what came is not the published file (its sha256 is another); "
            "nothing was kept; try again later"
        ) from None
    return Path(got)
