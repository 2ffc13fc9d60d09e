"""Jester 1: spreadsheets with a row per user, read through python-calamine."""

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.datasets.archives import member_bytes
from tacit.datasets.paths import found
from tacit.datasets.spec import Dataset
from tacit.errors import DataError

_NOT_RATED = 99.0


def read(dataset: Dataset, folder: Path) -> Ratings:
    """All ratings of Jester, rescaled; users are numbered from 1 in the order of the files.

    A row holds how many jokes a user rated, then a column for every joke: a number from -10 to 10,
    or 99 where she did not rate it.
    """
    jokes = dataset.counts.items
    parts, first = [], 1
    for source, member in found(dataset, folder):
        cells = _cells(source, member_bytes(source, member), jokes)
        parts.append(_ratings(cells, first, dataset))
        first += len(cells)
    users, items, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    catalogue = Catalogue(np.arange(1, jokes + 1))  # type: ignore[arg-type]
    return Ratings.from_arrays(
        users, items, values, rating_range=dataset.range, catalogue=catalogue
    )


def _cells(source: Path, content: bytes, jokes: int) -> NDArray[np.float64]:
    """The ratings in a spreadsheet, a row per user, without the first column, which is checked."""
    cells = _table(source, content, jokes + 1)
    wrong = int(np.sum(cells[:, 0] != np.sum(cells[:, 1:] != _NOT_RATED, axis=1)))
    if wrong:
        raise DataError(f"{source}: {wrong} row(s) without as many ratings as they say")
    return cells[:, 1:]


def _table(source: Path, content: bytes, width: int) -> NDArray[np.float64]:
    """The numbers of the first sheet, taken over row by row to save memory."""
    reading = _reading()
    try:
        sheet = reading.CalamineWorkbook.from_filelike(io.BytesIO(content)).get_sheet_by_index(0)
        cells = np.empty((sheet.height, width))
        for place, row in enumerate(sheet.iter_rows()):
            cells[place] = row
    except (reading.CalamineError, IndexError, TypeError, ValueError):
        raise DataError(
            f"{source}: not a spreadsheet with {width} columns of numbers; get it again"
        ) from None
    return cells


def _reading() -> Any:
    """The package that reads spreadsheets, which is not needed for anything else."""
    try:
        import python_calamine
    except ImportError:
        raise DataError(
            "Jester is a set of spreadsheets, and python-calamine reads them: "
            "pip install 'tacit[data]'"
        ) from None
    return python_calamine


def _ratings(
    cells: NDArray[np.float64], first: int, dataset: Dataset
) -> tuple[NDArray[np.int32], NDArray[np.int16], NDArray[np.float32]]:
    """Users, jokes and rescaled ratings of one spreadsheet."""
    rows, columns = np.nonzero(cells != _NOT_RATED)
    (low, high), (lowest, highest) = dataset.scale, dataset.range
    values = (cells[rows, columns] - low) * ((highest - lowest) / (high - low)) + lowest
    return (
        (rows + first).astype(np.int32),
        (columns + 1).astype(np.int16),
        values.astype(np.float32),
    )
