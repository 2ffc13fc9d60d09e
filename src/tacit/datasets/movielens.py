"""MovieLens: a table of ratings and a list of films, from the archive or unpacked."""

from pathlib import Path

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.archives import member_bytes, member_path
from tacit.datasets.paths import found
from tacit.datasets.spec import Dataset, Member
from tacit.errors import DataError

_SEPARATORS = {"u.item": "|", "movies.dat": "::"}


def read(dataset: Dataset, folder: Path) -> Ratings:
    """All ratings of one MovieLens dataset, with the titles of its films.

    Users, films and ratings are the first three columns of `u.data` (tabs), `ratings.dat` (`::`)
    or `ratings.csv` (with a header). The list of films is the published one, so it has films that
    nobody rated.
    """
    ratings, films = found(dataset, folder)
    catalogue = _catalogue(*films)
    with member_path(*ratings) as path:
        return Ratings.from_file(
            path,
            rating_range=dataset.range,
            catalogue=catalogue,
            unknown_items="drop",  # noticed by their number: see loading
        )


def _catalogue(source: Path, member: Member) -> Catalogue:
    """The list of films: `movies.csv`, or a number and a title at the start of each line."""
    if member.name.endswith(".csv"):
        with member_path(source, member) as path:
            return Catalogue.from_file(path, item="movieId", title="title")
    lines = _text(member_bytes(source, member)).splitlines()
    fields = [line.split(_SEPARATORS[member.name], 2)[:2] for line in lines if line]
    if not all(len(pair) == 2 and pair[0].isdecimal() for pair in fields):
        raise DataError(f"{source}: {member.name} is not a list of films; get it again")
    numbers, titles = [int(pair[0]) for pair in fields], [pair[1] for pair in fields]
    return Catalogue(numbers, titles)  # type: ignore[arg-type]


def _text(content: bytes) -> str:
    """Text in UTF-8 or, as in the older datasets, in Latin-1."""
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return content.decode("latin-1")
