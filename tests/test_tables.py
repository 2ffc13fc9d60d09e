"""Files and frames become columns: formats, headers, guesses and what is refused."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tacit.data.readers.registry import READERS, files_of, read_file, read_own_ratings
from tacit.data.tables import Columns, Table, column_of, read_frame
from tacit.errors import ConfigError, DataError

ROWS = [(1, 10, 4.5), (2, 20, 3.0), (1, 20, 0.5)]
GUESS = Columns()


def lists(table: Table) -> list[list[object]]:
    return [table[role].to_list() for role in ("user", "item", "rating")]


def read(path: object, columns: Columns = GUESS) -> list[list[object]]:
    (table,) = read_all(path, columns)
    return lists(table)


def read_all(source: object, columns: Columns = GUESS) -> list[Table]:
    return [read_file(path, columns.roles) for path in files_of(source)]


def written(folder: Path, text: str | bytes, name: str = "ratings.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def refused(folder: Path, text: str | bytes, name: str = "ratings.csv", **columns: object) -> str:
    path = written(folder, text, name)
    with pytest.raises(DataError) as caught:
        read(path, Columns(**columns))  # type: ignore[arg-type]
    assert path.name in str(caught.value)
    return str(caught.value)


EXPECTED = [[1, 2, 1], [10, 20, 20], [4.5, 3.0, 0.5]]


@pytest.mark.parametrize("separator", [",", "\t", ";", "|", "::"])
@pytest.mark.parametrize("header", [True, False])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_separators_and_headers_are_recognised(
    tmp_path: Path, separator: str, header: bool, end: str
) -> None:
    lines = [separator.join(map(str, (*row, 99))) for row in ROWS]
    if header:
        lines.insert(0, separator.join(["userId", "movieId", "rating", "timestamp"]))
    assert read(written(tmp_path, end.join(lines))) == EXPECTED
    assert read(written(tmp_path, end.join(lines) + end * 4)) == EXPECTED
    assert read(written(tmp_path, end * 2 + end.join(lines) + end)) == EXPECTED


def test_parquet_is_recognised_by_its_content(tmp_path: Path) -> None:
    frame = pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row")
    frame.write_parquet(tmp_path / "a.parquet")
    frame.write_parquet(tmp_path / "odd[1].bin")
    assert read(tmp_path / "a.parquet") == EXPECTED
    assert read(tmp_path / "odd[1].bin") == EXPECTED


@pytest.mark.parametrize(
    "names",
    [
        "user,item,rating",
        "userId,movieId,rating",
        "user_id,item_id,Score",
        "UID,Product ID,stars",
        '"User-ID","ISBN","Book-Rating"',
        "CustomerID, MovieID, Value",
        "reviewerID,asin,overall",
    ],
)
def test_usual_headers_are_guessed(tmp_path: Path, names: str) -> None:
    assert read(written(tmp_path, f"{names}\n1,10,4.5\n2,20,3\n1,20,0.5\n")) == EXPECTED


def test_columns_by_name_and_by_position(tmp_path: Path) -> None:
    path = written(tmp_path, "stars,who,thing,when\n4.5,1,10,9\n3,2,20,9\n0.5,1,20,9\n")
    assert read(path, Columns(user="who", item="thing")) == EXPECTED
    assert read(path, Columns(user=1, item=2, rating=0)) == EXPECTED
    bare = written(tmp_path, "4.5,1,10\n3,2,20\n0.5,1,20\n", "bare.csv")
    assert read(bare, Columns(user=1, item=2, rating=0)) == EXPECTED


def test_byte_order_mark_quotes_and_blanks(tmp_path: Path) -> None:
    text = '\ufeffuser,item,rating\n"1",10 , 4.5\n2 ,20,"3"\n 1,20,0.5 \n'
    assert read(written(tmp_path, text)) == EXPECTED
    assert read(written(tmp_path, "\ufeff1,10,4.5\n2,20,3\n1,20,0.5\n")) == EXPECTED


def test_texts_stay_texts_and_integers_integers(tmp_path: Path) -> None:
    text = "user,item,rating\n007,b,1\n8,c,2\n"
    assert read(written(tmp_path, text))[:2] == [["007", "8"], ["b", "c"]]
    late = "user,item,rating\n" + "1,1,1\n" * 1500 + "x,1,1\n"
    assert read(written(tmp_path, late))[0][-2:] == ["1", "x"]
    huge = f"user,item,rating\n1,1,1\n{2**64 - 1},1,1\n"
    assert read(written(tmp_path, huge))[0] == [1, 2**64 - 1]
    single = "a:b::c d::5\n" * 2
    assert read(written(tmp_path, single, "x.dat"))[:2] == [["a:b", "a:b"], ["c d", "c d"]]


def test_many_files_and_patterns(tmp_path: Path) -> None:
    for name, row in zip("cab", ROWS, strict=True):
        written(tmp_path, "user,item,rating\n{},{},{}\n".format(*row), f"{name}.csv")
    in_order = [path.name for path in sorted(tmp_path.glob("*.csv"))]
    tables = read_all(tmp_path / "*.csv")
    assert in_order == ["a.csv", "b.csv", "c.csv"]
    assert [table["user"].to_list() for table in tables] == [[2], [1], [1]]
    tables = read_all([tmp_path / "c.csv", str(tmp_path / "[ab].csv")])
    assert [table["user"].to_list() for table in tables] == [[1], [2], [1]]


def test_patterns_of_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "deep").mkdir()
    written(tmp_path / "deep", "1,2,3\n4,5,6\n")
    monkeypatch.chdir(tmp_path)
    assert read("**/*.csv")[0] == [1, 4]


@pytest.mark.parametrize("source", ["none.csv", "none-*.csv", "none-**.csv", "a" * 300, ".", []])
def test_missing_files_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError):
        files_of(source)


@pytest.mark.parametrize("source", [7, None, [1], {"a": 1}])
def test_sources_of_other_types_are_refused(source: object) -> None:
    with pytest.raises(ConfigError):
        files_of(source)


def test_a_failed_guess_lists_the_columns(tmp_path: Path) -> None:
    message = refused(tmp_path, "who,thing,rating\nann,tea,3\n")
    assert "'who', 'thing', 'rating'" in message
    assert "columns={'user': ..., 'item': ..., 'rating': ...}" in message
    message = refused(tmp_path, "user,customer,item,rating\n1,1,1,1\n")
    assert "2 columns could be the user column" in message
    assert "'customer'" in message
    assert "no column 'x'" in refused(tmp_path, "user,item,rating\n1,1,1\n", user="x")
    assert "no column 7" in refused(tmp_path, "user,item,rating\n1,1,1\n", user=7)
    assert "two things" in refused(tmp_path, "user,item,rating\n1,1,1\n", user="item")
    assert "no header" in refused(tmp_path, "1,1,1\n", user="who")
    assert "no column 2 for the rating" in refused(tmp_path, "1,1\n2,2\n")
    with pytest.raises(ConfigError):
        read(written(tmp_path, "1,1,1\n"), Columns(user=1.5))  # type: ignore[arg-type]


def test_a_line_that_may_be_somebodys_rating_is_not_shown(tmp_path: Path) -> None:
    message = refused(tmp_path, "ann,tea,good\nbob,tea,bad\n")
    assert "ann" not in message
    assert "tea" not in message


@pytest.mark.parametrize("line", ["5,5", "5,5,5,5,5", "5", "5,5,5"])
@pytest.mark.parametrize("separator", [",", "\t", "::"])
def test_lines_of_another_shape_are_counted(tmp_path: Path, line: str, separator: str) -> None:
    text = ("1,2,3,4\n" * 3 + line + "\n" + "1,2,3,4\n").replace(",", separator)
    assert "1 line(s) of another shape" in refused(tmp_path, text)


@pytest.mark.parametrize("line", ['5,"5,5,5', '5,5"5,5,5', '5,"5"5,5,5'])
def test_broken_quotes_are_refused(tmp_path: Path, line: str) -> None:
    refused(tmp_path, "1,2,3,4\n" * 3 + line + "\n" + "1,2,3,4\n")


def test_an_empty_last_field_is_no_other_shape(tmp_path: Path) -> None:
    assert read(written(tmp_path, "1,2,3,x\n2,3,4,\n"))[0] == [1, 2]
    assert read(written(tmp_path, "user,item,rating,note\n1,2,3,\n2,3,4,\n"))[0] == [1, 2]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n\n\n",
        b"\x00\x01\x02garbage",
        b"\x1f\x8b\x08\x00compressed",
        bytes(range(256)) * 10,
        b"PAR1",
        b"PAR1" + b"\x00" * 100,
        "1,2,3\n1,é,3\n".encode("latin-1"),
        "1,2,3\n".encode("utf-16-le"),
        b"a" * 400_000,
        b"one\rtwo\r",
        b"1::2::3\x1f::4\n" * 2,
    ],
)
def test_garbage_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path, content)
    refused(tmp_path, content, "x.parquet")


def test_a_cut_parquet_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "whole.parquet"
    pl.DataFrame(ROWS * 100, schema=["user", "item", "rating"], orient="row").write_parquet(path)
    whole = path.read_bytes()
    for length in (5, len(whole) // 2, len(whole) - 1):
        refused(tmp_path, whole[:length], "cut.parquet")


def test_an_unreadable_file_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, "1,2,3\n")

    def forbid(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbid)
    with pytest.raises(DataError, match="Permission denied"):
        read(path)


@pytest.mark.parametrize("lazy", [False, True])
def test_polars_frames(lazy: bool) -> None:
    frame = pl.DataFrame(ROWS, schema=["userId", "movieId", "rating"], orient="row")
    assert lists(read_frame(frame.lazy() if lazy else frame, GUESS)) == EXPECTED
    with pytest.raises(DataError, match="'a'"):
        read_frame(frame.rename({"userId": "a"}), GUESS)
    by_position = Columns(user=0, item=1, rating=2)
    assert lists(read_frame(frame.rename({"userId": "a"}), by_position)) == EXPECTED


def test_a_lazy_frame_that_fails_is_refused() -> None:
    frame = pl.LazyFrame({"user": ["u"], "item": [1], "rating": [1.0]})
    with pytest.raises(DataError):
        read_frame(frame.select("missing"), GUESS)
    with pytest.raises(DataError) as caught:
        read_frame(frame.with_columns(pl.col("user").cast(pl.Int64)), GUESS)
    assert "'u'" not in str(caught.value)


def test_pandas_frames() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"user": ["a", "b"], "item": [1, 2], "rating": [1.0, 2.5]})
    expected = [["a", "b"], [1, 2], [1.0, 2.5]]
    assert lists(read_frame(frame, GUESS)) == expected
    for kind in ("object", "category", "string"):
        assert lists(read_frame(frame.astype({"user": kind}), GUESS)) == expected
    assert lists(read_frame(frame.astype({"item": "category"}), GUESS)) == expected
    assert lists(read_frame(frame.astype({"item": "Int64"}), GUESS)) == expected
    mixed = frame.assign(user=pd.Series([1, "b"], dtype=object))
    assert read_frame(mixed, GUESS)["user"].to_list() == ["1", "b"]
    gaps = frame.assign(user=pd.Series(["a", None], dtype=object))
    assert read_frame(gaps, GUESS)["user"].null_count() == 1
    plain = pd.DataFrame(frame.to_numpy())
    by_position = Columns(user=0, item=1, rating=2)
    assert lists(read_frame(plain, by_position)) == expected


@pytest.mark.parametrize("frame", [None, 3, [1, 2], {"user": [1]}, np.zeros((2, 3))])
def test_other_frames_are_refused(frame: object) -> None:
    with pytest.raises(ConfigError):
        read_frame(frame, GUESS)


def test_columns_of_many_kinds() -> None:
    assert column_of("a", [1, 2.5]).to_list() == [1.0, 2.5]
    assert column_of("a", [1, None, "x"]).to_list() == ["1", None, "x"]
    assert column_of("a", np.array([1, 2], dtype=">i4")).to_list() == [1, 2]
    assert column_of("a", np.array([1, 2], dtype=np.float16)).to_list() == [1, 2]
    assert column_of("a", np.array(["x", "y"])).to_list() == ["x", "y"]
    assert column_of("a", np.array([1, "x"], dtype=object)).to_list() == ["1", "x"]
    assert column_of("a", np.ma.masked_array([1, 2], [False, True])).to_list() == [1, None]
    assert column_of("a", (n for n in range(2))).to_list() == [0, 1]
    assert column_of("a", pl.Series("b", [1])).name == "a"
    for wrong in ("text", b"bytes", 7, None, np.zeros((2, 2)), [1, object()]):
        with pytest.raises(DataError):
            column_of("a", wrong)


def test_a_position_may_be_typed_and_a_name_comes_first(tmp_path: Path) -> None:
    path = written(tmp_path, "k1::a::5\nk2::b::4\n")
    assert read_file(path, {"rating": "2", "item": "1"})["item"].to_list() == ["a", "b"]
    frame = pl.DataFrame({"1": ["x"], "0": ["y"]})
    frame.write_parquet(tmp_path / "named.parquet")
    assert read_file(tmp_path / "named.parquet", {"item": "0"})["item"].to_list() == ["y"]
    with pytest.raises(DataError, match="no column '7'"):
        read_file(tmp_path / "named.parquet", {"item": "7"})


def test_own_ratings(tmp_path: Path) -> None:
    path = written(tmp_path, "item,rating\ntea,4.5\n")
    assert read_own_ratings(path).to_dict(as_series=False) == {"item": ["tea"], "rating": [4.5]}
    path = written(tmp_path, "movieId,title,stars\n7,Seven,4\n")
    assert read_own_ratings(path).to_dict(as_series=False) == {"item": [7], "rating": [4.0]}
    written(tmp_path, "item,rating\ntea,4.5\n", "two.csv")
    with pytest.raises(DataError, match="2 files"):
        read_own_ratings(tmp_path / "*.csv")
    with pytest.raises(DataError, match=r"item=\.\.\., rating=\.\.\."):
        read_own_ratings(written(tmp_path, "x,rating\na,1\n"))


@pytest.mark.parametrize(
    ("name", "place"),
    [("r.csv", "collect"), ("r.parquet", "collect"), ("r.parquet", "collect_schema")],
)
def test_a_bug_while_reading_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, place: str
) -> None:
    """Only what polars raises for a bad file is caught: a bug is neither slowness nor bad data."""
    path = tmp_path / name
    frame = pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row")
    (frame.write_parquet if name == "r.parquet" else frame.write_csv)(path)

    def broken(*_: object, **__: object) -> None:
        raise TypeError("a bug")

    monkeypatch.setattr(pl.LazyFrame, place, broken)
    with pytest.raises(TypeError, match="a bug"):
        read(path)


def test_a_bug_in_the_quick_way_through_text_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tacit.data.readers.text._LARGE", 0)

    def broken(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("tacit.data.readers.text_loops.no_odd_starts", broken)
    with pytest.raises(ValueError, match="a bug") as caught:
        read(written(tmp_path, "1,10,4.5\n2,20,3.0\n"))
    assert type(caught.value) is ValueError


def test_an_unknown_suffix_is_told_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"unknown suffix '\.xlsx'") as caught:
        read(written(tmp_path, b"\xd0\xcf\x11\xe0\xff\0", "r.xlsx"))
    assert all(suffix in str(caught.value) for suffix in READERS)
    assert read(written(tmp_path, "1,10,4.5\n2,20,3.0\n", "u1.base")) == [
        [1, 2],
        [10, 20],
        [4.5, 3.0],
    ]


def test_a_format_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_json_lines(path: Path, wanted: object, _: object) -> Table:
        frame = pl.read_ndjson(path)
        return {role: frame.get_column(role) for role in wanted}  # type: ignore[attr-defined]

    monkeypatch.setitem(READERS, ".jsonl", read_json_lines)
    path = tmp_path / "r.jsonl"
    pl.DataFrame(ROWS, schema=["user", "item", "rating"], orient="row").write_ndjson(path)
    assert read(path) == [[1, 2, 1], [10, 20, 20], [4.5, 3.0, 0.5]]
