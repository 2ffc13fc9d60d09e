"""Ids are read cell by cell: what one person writes changes nobody else's row."""

import re
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tacit.data.catalogue import Catalogue
from tacit.data.ratings import Ratings
from tacit.data.readers import text as text_reader
from tacit.data.readers.registry import read_file
from tacit.data.tables import column_of
from tacit.errors import DataError
from tests.support.cases import slow

RANGE = (1.0, 5.0)
SEPARATORS = {"r.csv": ",", "r.tsv": "\t", "r.dat": "::"}
ODD = [
    *["7", "07", "007", "+7", "-7", "7.0", "7.", "7.00", "-7.0", "7.5", "0", "0.0", "-0", "-0.0"],
    *["00", "1e3", "x", "7x", "x7", " 7", "7 ", "\t7 ", ".0", ".", "-", "--7", "1_0", "0x7", "٧"],
    *[str(2**53 + 1), str(2**63 - 1), str(2**63), f"-{2**63}", str(2**64 - 1), str(2**64)],
    *["9" * 18, "9" * 19, "9" * 30, "123456789012345.0", "9007199254740993.0", "nan", "inf", "é"],
]


def key(cell: str) -> str:
    """Which id a cell stands for, by itself: written again, in the plainest way."""
    cell = cell.strip()
    whole = re.fullmatch(r"(0|-?[1-9][0-9]*)\.0*", cell)
    return whole[1] if whole else cell


def rows_of(ratings: Ratings) -> dict[str, list[tuple[int, float]]]:
    """Everyone's row as it enters a fit, by the text of her id."""
    rows = {}
    for at, user in enumerate(ratings.user_ids.cast(pl.String).to_list()):
        own = slice(ratings.indptr[at], ratings.indptr[at + 1])
        items, values = ratings.items[own].tolist(), ratings.values[own].tolist()
        rows[user] = list(zip(items, values, strict=True))
    return rows


def read(path: Path, lines: list[tuple[str, str, str]], catalogue: Catalogue) -> Ratings:
    separator = SEPARATORS[path.name]
    texts = [separator.join(line) for line in [("user", "item", "rating"), *lines]]
    path.write_text("\n".join(texts) + "\n")
    asked = {"catalogue": catalogue, "unknown_items": "drop"}
    return Ratings.from_file(path, rating_range=RANGE, duplicates="last", **asked)


@pytest.fixture(params=["small", "large"])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small files go the way of large ones too, where numbers are read at once if they may be."""
    monkeypatch.setattr(text_reader, "_LARGE", 0 if request.param == "large" else 1 << 40)
    monkeypatch.setattr(text_reader, "_SAMPLE", 20)
    return str(request.param)


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("name", ["r.csv", slow("r.tsv"), slow("r.dat")])
@pytest.mark.parametrize("written", ["{}", "{}.0"])
def test_what_one_person_writes_changes_nobody_elses_row(
    tmp_path: Path, name: str, written: str
) -> None:
    """The attack that was found: 197 ratings or 1, as one of 40 people writes `3.0` or `x`."""
    catalogue = Catalogue([1, 2, 3, 4, 5])
    others = [
        (str(user), written.format(item), str(1 + (user + item) % 5))
        for user in range(39)
        for item in range(1, 6)
    ]
    expected = None
    for item in ODD:
        if item.strip() != item and name == "r.tsv":
            continue
        rows = rows_of(read(tmp_path / name, [*others, ("99", item, "3")], catalogue))
        own = rows.pop("99")
        assert own == ([(int(key(item)) - 1, 3.0)] if key(item) in set("12345") else [])
        assert sum(map(len, rows.values())) == 195
        expected = expected or rows
        assert rows == expected


@pytest.mark.usefixtures("size")
@pytest.mark.parametrize("name", ["r.csv", slow("r.tsv"), slow("r.dat")])
def test_what_one_person_is_called_changes_nobody_elses_id(tmp_path: Path, name: str) -> None:
    """The attack that was found: 40 users or 79, as one more is called 7 or x."""
    catalogue = Catalogue(["a", "b"])
    lines = [(f"{user}", "a", "1") for user in range(100, 140)]
    lines += [(f"{user}.0", "b", "2") for user in range(100, 140)]
    for user in ODD:
        if user.strip() != user and name == "r.tsv":
            continue
        rows = rows_of(read(tmp_path / name, [*lines, (user, "a", "3")], catalogue))
        assert rows.pop(key(user)) == [(0, 3.0)]
        assert len(rows) == 40
        assert all(row == [(0, 1.0), (1, 2.0)] for row in rows.values())


@pytest.mark.usefixtures("size")
def test_every_cell_is_read_as_if_it_were_alone(tmp_path: Path) -> None:
    """Pairs of odd cells, below lines of each kind, against the rule in one line."""
    path = tmp_path / "r.csv"
    others = np.random.default_rng(3).permutation(ODD).tolist()
    for usual, (one, other) in product(["5", "5.0", "q", '"5"'], zip(ODD, others, strict=True)):
        cells = [*[usual] * 30, one, other]
        path.write_text("user,item,rating\n" + "".join(f"{cell},{cell},1\n" for cell in cells))
        table = read_file(path, {"user": None, "item": None})
        expected = [key(cell.strip('"')) for cell in cells]
        for column in table.values():
            ids = column.cast(pl.Int64) if column.dtype == pl.Float64 else column
            assert ids.cast(pl.String).to_list() == expected, (usual, one, other)


def test_large_files_of_plain_numbers_are_read_as_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The quick way is taken where it may be, and not where a later line forbids it."""
    monkeypatch.setattr(text_reader, "_LARGE", 0)
    taken = []
    scan = text_reader._scan

    def watched(layout: Any, source: Any, types: Any) -> Any:
        taken.append(types[0])
        return scan(layout, source, types)

    monkeypatch.setattr(text_reader, "_scan", watched)
    plain = "".join(f"{k},{k % 7},3,0{k}:10\r\n" for k in range(1, 3000))
    cases = {"": pl.Int64(), "007,1,3,x\n": pl.String(), '8,1,3,"x"\n': pl.String()}
    for mark, (late, kind) in product(["", "\ufeff"], cases.items()):
        taken.clear()
        (tmp_path / "r.csv").write_text(mark + plain + late, newline="")
        users = read_file(tmp_path / "r.csv", {"user": None, "item": None, "rating": None})["user"]
        assert taken == [kind]
        assert users[-1] == {"": 2999, "007,1,3,x\n": "007"}.get(late, 8)


@pytest.mark.parametrize("wanted", [[7, 8], ["7", "8"], [7.0, 8.0], ["8", "x", "7"]])
def test_an_integer_and_its_text_are_one_id_to_a_catalogue(wanted: list[Any]) -> None:
    expected = {"7": 1, "8": 0, "x": -1}
    for ids in ([8, 7], ["8", "7"], ["8", "7", "é"], [8, 7, 2**64 - 1]):
        found = Catalogue(ids).positions(wanted).tolist()
        assert found == [
            expected[f"{id:.0f}" if isinstance(id, float) else str(id)] for id in wanted
        ]


def test_a_list_of_integers_and_floats_changes_no_integer() -> None:
    """As floats 2^53 and 2^53 + 1 are the same; neither is taken then."""
    items = [1, 2, 1, 2]
    for other in (2**53, 2**53 + 1, -(2**53) - 1):
        with pytest.raises(DataError, match="no whole number"):
            Ratings.from_arrays([other, other, 1.0, 2.0], items, [1] * 4, rating_range=RANGE)
        whole = Ratings.from_arrays([other, other, 1, 2], items, [1] * 4, rating_range=RANGE)
        assert other in whole.user_ids.to_list()
    near = Ratings.from_arrays([2**53 - 1, 5, 1.0, 2.0], items, [1] * 4, rating_range=RANGE)
    assert near.user_ids.to_list() == [1, 2, 5, 2**53 - 1]


def test_columns_with_a_type_are_taken_at_their_word(tmp_path: Path) -> None:
    """Frames and Parquet say what their ids are; texts stay as they are, whoever is beside them."""
    others = ["7", "7.0", "007"]
    for late in ("8", "x"):
        users = [*others, late]
        frame = pl.DataFrame({"user": users, "item": [1, 2, 1, 2], "rating": [1.0] * 4})
        frame.write_parquet(tmp_path / "r.parquet")
        for ratings in (
            Ratings.from_frame(frame, rating_range=RANGE),
            Ratings.from_file(tmp_path / "r.parquet", rating_range=RANGE),
            Ratings.from_arrays(*frame, rating_range=RANGE),
            Ratings.from_arrays(np.array(users), [1, 2, 1, 2], [1.0] * 4, rating_range=RANGE),
        ):
            assert ratings.user_ids.to_list() == sorted(users)
    assert column_of("user", [7, "7.0"]).to_list() == ["7", "7.0"]
