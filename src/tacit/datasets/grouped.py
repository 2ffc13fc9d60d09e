"""Netflix Prize and Yahoo! Music C15: ratings listed by film or by user, read in pieces.

Netflix opens a film with `1:` and goes on with lines `customer,rating,date`. Yahoo! Music opens a
user with `1|4` (she has four ratings) and goes on with lines `item<TAB>score<TAB>day<TAB>time`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.archives import member_stream
from tacit.datasets.grouped_loops import Signs, Taken, parse_lines
from tacit.datasets.paths import found, missing, whole_folder
from tacit.datasets.spec import Dataset, Member
from tacit.errors import DataError

_PIECE = 1 << 26
_LONGEST = 1 << 20
_FILM_BYTES = 10_000_000
_SIGNS = {"netflix": Signs(ord(":"), ord(",")), "yahoo-music": Signs(ord("|"), ord("\t"))}


def read(dataset: Dataset, folder: Path) -> Ratings:
    """All ratings of a dataset that is listed by film (Netflix) or by user (Yahoo! Music)."""
    places = _film_files(dataset, folder) or found(dataset, folder)
    columns = _columns(places, _SIGNS[dataset.name])
    groups, others, values = (np.concatenate(columns.pop(0)) for _ in Taken._fields)
    by_film = dataset.name == "netflix"
    users, items = (others, groups) if by_film else (groups, others)
    _refuse_outside(dataset, values)
    (low, high), (lowest, highest) = dataset.scale, dataset.range
    table = (np.arange(256) - low) * ((highest - lowest) / (high - low)) + lowest
    numbers = np.arange(dataset.counts.items) + by_film  # films from 1, musical items from 0
    return Ratings.from_arrays(
        users,
        items,
        table.astype(np.float32)[values],
        rating_range=dataset.range,
        catalogue=Catalogue(numbers),  # type: ignore[arg-type]
        unknown_items="drop",  # noticed by their number: see loading
    )


def _film_files(dataset: Dataset, folder: Path) -> list[tuple[Path, Member]]:
    """The file of every film in a training_set folder; empty when there is no such folder."""
    films = whole_folder(dataset, folder)
    if films is None:
        return []
    names = [f"mv_{film:07d}.txt" for film in range(1, dataset.counts.items + 1)]
    for name in names:
        if not (films / name).is_file():
            raise missing(dataset, films, name)
    return [(films / name, Member(name, _FILM_BYTES)) for name in names]


def _columns(places: list[tuple[Path, Member]], signs: Signs) -> list[list[NDArray[Any]]]:
    """The pieces of every column; a column can be let go of as soon as it is joined."""
    columns: list[list[NDArray[Any]]] = [[] for _ in Taken._fields]
    for place in places:
        for part in _file(*place, signs):
            for column, piece in zip(columns, part, strict=True):
                column.append(piece)
    return columns


def _file(source: Path, member: Member, signs: Signs) -> Iterator[list[NDArray[Any]]]:
    """Groups, others and values of one file, piece by piece."""
    group, wrong = -1, 0
    with member_stream(source, member) as stream:
        for text in _whole_lines(stream, source):
            room = int(np.count_nonzero(text == ord("\n"))) + 1
            taken = Taken(np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room, "u1"))
            count, bad, group = parse_lines(text, signs, group, taken)
            wrong += bad
            yield [taken.groups[:count], taken.others[:count], taken.values[:count]]
    if wrong:
        raise DataError(f"{source}: {wrong} line(s) of {member.name} that are no ratings")
    if group < 0:
        raise DataError(f"{source}: no ratings in {member.name}")


def _whole_lines(stream: IO[bytes], source: Path) -> Iterator[NDArray[np.uint8]]:
    """The bytes of a stream, cut after line breaks."""
    rest = b""
    while piece := stream.read(_PIECE):
        cut = piece.rfind(b"\n") + 1
        if not cut and len(rest) > _LONGEST:
            raise DataError(f"{source}: a line that is longer than any rating; get it again")
        if cut:
            yield np.frombuffer(rest + piece[:cut], np.uint8)
            rest = piece[cut:]
        else:
            rest += piece
    if rest:
        yield np.frombuffer(rest, np.uint8)


def _refuse_outside(dataset: Dataset, values: NDArray[np.uint8]) -> None:
    """Refuse ratings that are not on the dataset's scale."""
    low, high = dataset.scale
    outside = int(np.count_nonzero((values < low) | (values > high)))
    if outside:
        raise DataError(
            f"{dataset.title}: {outside} ratings outside of the scale {low:g}..{high:g}"
        )
