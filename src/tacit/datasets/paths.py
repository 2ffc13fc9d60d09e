"""Where the files of datasets are: in a folder each, inside the folder that TACIT_DATA names."""

import os
from pathlib import Path

from tacit.datasets.spec import Dataset, Member
from tacit.errors import DataError


def data_folder() -> Path:
    """The folder of all datasets: TACIT_DATA, or a folder for this user's cached files."""
    named = os.environ.get("TACIT_DATA")
    if named:
        return Path(named).expanduser()
    cache = os.environ.get("XDG_CACHE_HOME")
    return (Path(cache) if cache else Path.home() / ".cache") / "tacit"


def folder_of(dataset: Dataset) -> Path:
    """The folder that the files of one dataset are put in."""
    return data_folder() / dataset.name


def find(folder: Path, member: Member) -> Path | None:
    """The file itself or an archive of it: in the folder, or in a folder just below it."""
    for name in (member.name, *member.archives):
        for place in (folder / name, *sorted(folder.glob(f"*/{name}"))):
            if place.is_file():
                return place
    return None


def found(dataset: Dataset, folder: Path) -> list[tuple[Path, Member]]:
    """Every member of a dataset with the file or archive that holds it; an error if one is not."""
    places = [(find(folder, member), member) for member in dataset.members]
    for place, member in places:
        if place is None:
            raise missing(dataset, folder, " or ".join((*member.archives, member.name)))
    return [(place, member) for place, member in places if place is not None]


def whole_folder(dataset: Dataset, folder: Path) -> Path | None:
    """The folder of files that stands for all members, if there is one."""
    return next((folder / name for name in dataset.folders if (folder / name).is_dir()), None)


def is_here(dataset: Dataset, folder: Path) -> bool:
    """Whether there is something to read; synthetic ratings always are."""
    if whole_folder(dataset, folder):
        return True
    return all(find(folder, member) is not None for member in dataset.members)


def missing(dataset: Dataset, folder: Path, name: str) -> DataError:
    """The error for a file that is not there: where it belongs and how to get it."""
    if dataset.downloads:
        advice = f"`tacit data get {dataset.name}` fetches it; or put it there yourself"
    else:
        advice = dataset.how_to_get
    return DataError(
        f"{dataset.title}: no {name} in {folder}. Official address: {dataset.page} . {advice}. "
        "TACIT_DATA names the folder that has a folder for each dataset "
        f"(in use: {data_folder()})."
    )
