"""The catalogue: ids, titles, positions, files."""

from dataclasses import FrozenInstanceError
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tacit.data.catalogue import Catalogue
from tacit.errors import ConfigError, DataError


def test_positions_of_text_and_of_integers() -> None:
    texts = Catalogue(["b", "a", "7"])
    assert texts.positions(["a", "x", "b", "a"]).tolist() == [1, -1, 0, 1]
    assert texts.positions([7, 8]).tolist() == [2, -1]
    numbers = Catalogue([30, 7, 2**63 + 5])
    assert numbers.positions([7, 30, 31]).tolist() == [1, 0, -1]
    assert numbers.positions(["7", "007", "x"]).tolist() == [1, -1, -1]
    assert numbers.positions([2**63 + 5]).tolist() == [2]


@pytest.mark.parametrize(
    "wanted",
    [
        [7, 30],
        np.array([7, 30], dtype=np.int8),
        np.array([7.0, 30.0]),
        pl.Series([7, 30], dtype=pl.UInt64),
        pl.Series(["7", "30"], dtype=pl.Categorical),
        np.array(["7", "30"]),
    ],
)
def test_positions_take_any_kind_of_ids(wanted: object) -> None:
    found = Catalogue([30, 7]).positions(wanted)  # type: ignore[arg-type]
    assert found.tolist() == [1, 0]
    assert found.dtype == np.int64


def test_positions_of_nothing_and_of_gaps() -> None:
    catalogue = Catalogue([30, 7])
    assert catalogue.positions([]).tolist() == []
    assert catalogue.positions([None, 7, None]).tolist() == [-1, 1, -1]
    with pytest.raises(DataError):
        catalogue.positions([1.5])
    with pytest.raises(DataError):
        catalogue.positions([True])


def test_titles() -> None:
    catalogue = Catalogue([3, 4, 5], titles=["Three", None, ""])
    assert [catalogue.title(k) for k in range(3)] == ["Three", "4", "5"]
    assert Catalogue(["x"]).title(0) == "x"
    for position in (-1, 3):
        with pytest.raises(ConfigError):
            catalogue.title(position)
    with pytest.raises(DataError, match="1 titles for 3 items"):
        Catalogue([3, 4, 5], titles=["Three"])


def test_ids_must_be_there_and_distinct() -> None:
    with pytest.raises(DataError, match="2 rows with an item id given before"):
        Catalogue(["a", "b", "a", "a"])
    with pytest.raises(DataError, match="1 row without an id"):
        Catalogue(["a", None])
    with pytest.raises(DataError, match="1 row without an id"):
        Catalogue(["a", ""])
    with pytest.raises(DataError, match="ids are integers or text"):
        Catalogue([0.5])
    assert Catalogue([1.0, 2.0]).ids.dtype == pl.Int64
    assert Catalogue(np.array([1, 2], dtype=np.uint8)).ids.dtype == pl.Int64


def test_a_file_can_hold_a_list_that_is_not_public(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item\n1\n2\n")
    assert Catalogue.from_file(path).public
    assert not Catalogue.from_file(path, public=False).public
    with pytest.raises(ConfigError, match="public='no': expected true or false"):
        Catalogue.from_file(path, public="no")  # type: ignore[arg-type]


def test_equality() -> None:
    one = Catalogue([1, 2], titles=["a", "b"])
    assert one == Catalogue([1, 2], titles=["a", "b"])
    assert one != Catalogue([2, 1], titles=["a", "b"])
    assert one != Catalogue([1, 2])
    assert one != Catalogue(["1", "2"], titles=["a", "b"])
    assert one != Catalogue([1, 2], titles=["a", "b"], public=False)
    assert one != [1, 2]
    assert Catalogue([1], titles=[None]) == Catalogue([1], titles=[None])
    with pytest.raises(TypeError):
        hash(one)


def test_it_does_not_change_and_does_not_tell() -> None:
    catalogue = Catalogue(["secret"], public=False)
    with pytest.raises(FrozenInstanceError):
        catalogue.public = True  # type: ignore[misc]
    assert repr(catalogue) == str(catalogue) == "Catalogue(public=False)"
    assert len(catalogue) == 1
    assert repr(Catalogue(["tea"], ["Tea"])) == "Catalogue(1 items, titles, public=True)"


@pytest.mark.parametrize("name", ["items.csv", "items.tsv", "items.parquet"])
def test_from_file(tmp_path: Path, name: str) -> None:
    frame = pl.DataFrame({"item": [9, 4], "title": ['Nine, "IX"', None], "genre": ["x", "y"]})
    path = tmp_path / name
    if name.endswith("parquet"):
        frame.write_parquet(path)
    else:
        frame.write_csv(path, separator="\t" if name.endswith("tsv") else ",")
    catalogue = Catalogue.from_file(path)
    assert catalogue == Catalogue([9, 4], titles=['Nine, "IX"', None])
    assert catalogue.public


def test_from_file_without_titles_or_without_header(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    path.write_text("item\ntea\nmilk\n")
    assert Catalogue.from_file(path) == Catalogue(["tea", "milk"])
    path.write_text("movieId,name,year\n1,Toys,1995\n2,Jungle,1995\n")
    assert Catalogue.from_file(path) == Catalogue([1, 2], titles=["Toys", "Jungle"])
    path.write_text("1::Toys (1995)::Comedy\n2::Jungle: a film::Drama\n")
    assert Catalogue.from_file(path) == Catalogue([1, 2], titles=["Toys (1995)", "Jungle: a film"])
    path.write_text("key,label,words\nq,1,one\nr,2,two\n")
    named = Catalogue.from_file(path, item="key", title="words")
    assert named == Catalogue(["q", "r"], titles=["one", "two"])


def test_bad_files(tmp_path: Path) -> None:
    path = tmp_path / "items.csv"
    with pytest.raises(DataError, match=r"items\.csv"):
        Catalogue.from_file(path)
    path.write_text("item,title\n")
    with pytest.raises(DataError, match="no items"):
        Catalogue.from_file(path)
    path.write_text("item,title\na,x\na,y\n")
    with pytest.raises(DataError, match="1 row with an item id given before"):
        Catalogue.from_file(path)
    path.write_text("thing,title\na,x\n")
    with pytest.raises(DataError, match=r"'thing', 'title'.*item=\.\.\., title=\.\.\."):
        Catalogue.from_file(path)
