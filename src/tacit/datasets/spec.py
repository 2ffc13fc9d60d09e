"""The description of a dataset: what is publicly known before anyone has its files."""

from dataclasses import dataclass
from typing import NamedTuple


class Counts(NamedTuple):
    """The published numbers of users, items and ratings; loading compares with them."""

    users: int
    items: int
    ratings: int


class Member(NamedTuple):
    """A file that is read: by itself, or inside an archive.

    Attributes:
        name: its file name, without folders.
        most_bytes: more than it can have; a larger one is refused before it is unpacked.
        archives: names of archives that may hold it.
        sha256: of its content, where that is known for sure.
    """

    name: str
    most_bytes: int
    archives: tuple[str, ...] = ()
    sha256: str | None = None


class Download(NamedTuple):
    """A file that anyone may fetch.

    Attributes:
        name: what it is called once it is here.
        address: where it is fetched from.
        sha256: of its content, where that is known for sure.
    """

    name: str
    address: str
    sha256: str | None = None


@dataclass(frozen=True)
class Dataset:
    """One named dataset.

    Attributes:
        name: what `load` calls it, and the folder that its files are in.
        title: what people call it.
        page: its official address; empty for synthetic ratings.
        licence: in one line.
        counts: what loading must find.
        scale: the lowest and the highest rating in the files.
        reader: the module beside this one whose `read` reads its files.
        members: the files that are read, in that order.
        folders: folders of files that may stand for all members, inside the dataset's folder.
        downloads: what `tacit data get` fetches; empty where a person has to agree first.
        how_to_get: what a person has to do where it cannot be fetched.
        rating_range: after rescaling, as in the paper; the scale itself where that is None.
        max_ratings: at most so many ratings a user in the paper's private experiments (its xi);
            None keeps all. `load` does not cut: fits do.
    """

    name: str
    title: str
    page: str
    licence: str
    counts: Counts
    scale: tuple[float, float]
    reader: str
    members: tuple[Member, ...] = ()
    folders: tuple[str, ...] = ()
    downloads: tuple[Download, ...] = ()
    how_to_get: str = ""
    rating_range: tuple[float, float] | None = None
    max_ratings: int | None = 80

    @property
    def range(self) -> tuple[float, float]:
        """The lowest and the highest rating that `load` can give."""
        return self.scale if self.rating_range is None else self.rating_range
