"""Readers of named datasets, on small files of the exact original formats."""

import hashlib
import io
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.datasets.spreadsheet import xls

from tacit.data.ratings import Ratings
from tacit.datasets import DATASETS, Dataset, load
from tacit.datasets.registry import MAX_RATINGS, PAPER_RANGE
from tacit.datasets.spec import Counts, Member
from tacit.errors import ConfigError, DataError


def cells(ratings: Ratings) -> dict[tuple[int, int], float]:
    """Every rating under (user id, item id)."""
    users, items = ratings.user_ids.to_list(), ratings.catalogue.ids.to_list()
    rows = np.repeat(np.arange(ratings.n_users), np.diff(ratings.indptr))
    entries = zip(rows, ratings.items, ratings.values, strict=True)
    return {(users[row], items[item]): round(float(value), 6) for row, item, value in entries}


def zipped(path: Path, files: dict[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)


JESTER_COUNTS, LENS_COUNTS, FILM_COUNTS = Counts(3, 3, 6), Counts(2, 3, 3), Counts(3, 4, 5)

# Jester

SHEETS = (
    [[2, -10, 99, 4.4], [3, 0, 10, -9.95]],
    [[1, 99, 99, 2.0]],
)


def jester_of(folder: Path, sheets=SHEETS, counts=JESTER_COUNTS) -> Dataset:
    """Write small Jester archives and describe them."""
    members = []
    for k, rows in enumerate(sheets, 1):
        content = rows if isinstance(rows, bytes) else xls(rows)
        zipped(folder / f"jester-data-{k}.zip", {f"jester-data-{k}.xls": content})
        known = DATASETS["jester"].members[k - 1]
        members.append(known._replace(sha256=hashlib.sha256(content).hexdigest()))
    return replace(DATASETS["jester"], members=tuple(members), counts=counts)


def test_jester_is_rescaled_and_99_is_no_rating(tmp_path):
    ratings = load(jester_of(tmp_path), folder=tmp_path)
    assert cells(ratings) == {
        (1, 1): 0.0,
        (1, 3): 3.6,
        (2, 1): 2.5,
        (2, 2): 5.0,
        (2, 3): 0.0125,
        (3, 3): 3.0,
    }
    assert ratings.rating_range == (0.0, 5.0)
    assert ratings.catalogue.public
    assert ratings.catalogue.ids.to_list() == [1, 2, 3]


def test_unpacked_spreadsheets_are_read_too(tmp_path):
    dataset = jester_of(tmp_path)
    below = tmp_path / "unpacked"
    below.mkdir()
    for path in tmp_path.glob("*.zip"):
        with zipfile.ZipFile(path) as archive:
            archive.extractall(below)
        path.unlink()
    assert load(dataset, folder=tmp_path).n_users == 3


@pytest.mark.parametrize(
    ("counts", "word"),
    [
        (Counts(4, 3, 6), "number of users is"),
        (Counts(3, 3, 7), "number of ratings is"),
        (Counts(2, 3, 5), "users and of ratings"),
    ],
)
def test_counts_that_differ_from_the_published_ones_are_refused(tmp_path, counts, word):
    with pytest.raises(DataError, match=word) as caught:
        load(jester_of(tmp_path, counts=counts), folder=tmp_path)
    assert f"{counts.users:,} users" in str(caught.value)
    found = {"3 users", "6 ratings"} - {f"{counts.users} users", f"{counts.ratings} ratings"}
    assert not any(number in str(caught.value) for number in found)


def test_a_row_that_counts_itself_wrong_is_refused(tmp_path):
    sheets = ([[2, -10, 99, 4.4], [2, 0, 10, -9.95]],)
    with pytest.raises(DataError, match=r"1 row\(s\) without as many ratings"):
        load(jester_of(tmp_path, sheets), folder=tmp_path)


@pytest.mark.parametrize("sheets", [(b"no spreadsheet" * 400,), ([[1, 2.0], [1, 99]],)])
def test_what_is_no_table_of_jokes_is_refused(tmp_path, sheets):
    with pytest.raises(DataError, match="not a spreadsheet with 4 columns"):
        load(jester_of(tmp_path, sheets), folder=tmp_path)


def test_a_spreadsheet_of_other_content_is_never_opened(tmp_path, monkeypatch):
    """The reader of spreadsheets can be made to end the process: unknown files stay closed."""
    dataset = jester_of(tmp_path)
    other = xls([[1, 1.0, 99, 99]])
    zipped(tmp_path / "jester-data-1.zip", {"jester-data-1.xls": other})
    monkeypatch.setattr("tacit.datasets.jester._reading", lambda: pytest.fail("it was opened"))
    with pytest.raises(DataError, match="not the published file"):
        load(dataset, folder=tmp_path)


def test_without_the_reader_of_spreadsheets_the_message_says_what_to_install(tmp_path, monkeypatch):
    dataset = jester_of(tmp_path)
    monkeypatch.setitem(__import__("sys").modules, "python_calamine", None)
    with pytest.raises(DataError, match=r"pip install 'tacit\[data\]'"):
        load(dataset, folder=tmp_path)


needs_jester = pytest.mark.skipif(
    not os.environ.get("TACIT_DATA") or not (Path(os.environ["TACIT_DATA"]) / "jester").is_dir(),
    reason="TACIT_DATA does not name a folder with Jester",
)


@pytest.mark.realdata
@needs_jester
def test_the_real_jester():
    ratings = load("jester")
    assert (ratings.n_users, ratings.n_items, ratings.values.size) == (73_421, 100, 4_136_360)
    assert ratings.rating_range == (0.0, 5.0)
    counts = np.diff(ratings.indptr)
    assert counts.min() >= 15
    assert (counts[-24_938:] <= 35).all()  # the third file
    first = dict(zip(ratings.items[:3], ratings.values[:3], strict=True))
    assert first[0] == np.float32((-7.82 + 10) / 4)
    means = np.add.reduceat(ratings.values, ratings.indptr[:-1]) / counts
    spread = ratings.values - np.repeat(means, counts)
    assert np.sqrt(np.mean(spread**2)) == pytest.approx(1.15, abs=0.02)


# MovieLens

FILMS = {
    "movielens-100k": (
        "u.item",
        "1|Toy Story (1995)|01-Jan-1995||http://x|0|1\n2|Misérables, Les (1995)|||y|0|0\n"
        "3|Nobody saw it|||z|0|0\n",
        "latin-1",
    ),
    "movielens-1m": (
        "movies.dat",
        "1::Toy Story (1995)::Animation\n2::Misérables, Les (1995)::Drama|War\n"
        "3::Nobody saw it::Drama\n",
        "latin-1",
    ),
    "movielens-10m": (
        "movies.dat",
        "1::Toy Story (1995)::Animation\n2::Misérables, Les (1995)::Drama|War\n"
        "3::Nobody saw it::Drama\n",
        "utf-8",
    ),
    "movielens-25m": (
        "movies.csv",
        'movieId,title,genres\n1,Toy Story (1995),Animation\n2,"Misérables, Les (1995)",Drama|War\n'
        "3,Nobody saw it,(no genres listed)\n",
        "utf-8",
    ),
}
RATINGS = {
    "movielens-100k": ("u.data", "196\t2\t3\t881250949\n186\t1\t5\t891717742\n196\t1\t1\t88\n"),
    "movielens-1m": ("ratings.dat", "186::1::5::978300760\n196::1::1::97\n196::2::3::98\n"),
    "movielens-10m": ("ratings.dat", "186::1::5::838985046\n196::1::0.5::83\n196::2::3.5::8\n"),
    "movielens-25m": (
        "ratings.csv",
        "userId,movieId,rating,timestamp\n186,1,5.0,1147880044\n196,1,0.5,11\n196,2,3.5,12\n",
    ),
}
FOLDERS = {"movielens-10m": "ml-10M100K"}


def movielens_files(name: str) -> dict[str, bytes]:
    films, text, encoding = FILMS[name]
    ratings, lines = RATINGS[name]
    return {films: text.encode(encoding), ratings: lines.encode()}


def movielens_of(name: str, counts=LENS_COUNTS) -> Dataset:
    return replace(DATASETS[name], counts=counts)


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", FILMS)
def test_movielens(tmp_path, name, packed):
    folder = FOLDERS.get(name, name.replace("movielens", "ml"))
    files = {f"{folder}/{file}": content for file, content in movielens_files(name).items()}
    if packed:
        files[f"{folder}/README"] = b"read me"
        zipped(tmp_path / DATASETS[name].downloads[0].name, files)
    else:
        for file, content in files.items():
            (tmp_path / file).parent.mkdir(exist_ok=True)
            (tmp_path / file).write_bytes(content)
    before = sorted(tmp_path.rglob("*"))
    ratings = load(movielens_of(name), folder=tmp_path)
    halves = name not in ("movielens-100k", "movielens-1m")
    low, middle = (0.5, 3.5) if halves else (1.0, 3.0)
    assert cells(ratings) == {(186, 1): 5.0, (196, 1): low, (196, 2): middle}
    assert ratings.rating_range == (0.5 if halves else 1.0, 5.0)
    assert ratings.catalogue.public
    assert ratings.catalogue.title(1) == "Misérables, Les (1995)"
    assert sorted(tmp_path.rglob("*")) == before


def test_a_rating_of_a_film_that_is_not_listed_is_noticed(tmp_path):
    files = movielens_files("movielens-1m")
    files["ratings.dat"] += b"196::4::3::98\n"
    zipped(tmp_path / "ml-1m.zip", files)
    with pytest.raises(DataError, match="the number of ratings is not"):
        load(movielens_of("movielens-1m", Counts(2, 3, 4)), folder=tmp_path)


def test_a_list_of_films_that_is_none_is_refused(tmp_path):
    zipped(tmp_path / "ml-1m.zip", movielens_files("movielens-1m") | {"movies.dat": b"1;x\n"})
    with pytest.raises(DataError, match="not a list of films"):
        load(movielens_of("movielens-1m"), folder=tmp_path)


# Netflix and Yahoo! Music


def netflix_of(counts=FILM_COUNTS) -> Dataset:
    return replace(DATASETS["netflix"], counts=counts)


FILM_LINES = {
    1: "1:\n1488844,3,2005-09-06\n822109,5,2005-05-13\n",
    2: "2:\n822109,1,2005-10-19\n",
    3: "3:\n",
    4: "4:\n2649429,4,2005-12-26\n822109,2,2004-05-03\n",
}
FILM_CELLS = {
    (1488844, 1): 3.0,
    (822109, 1): 5.0,
    (822109, 2): 1.0,
    (2649429, 4): 4.0,
    (822109, 4): 2.0,
}


def combined(ends: str = "\n") -> dict[str, bytes]:
    return {f"combined_data_{k}.txt": v.replace("\n", ends).encode() for k, v in FILM_LINES.items()}


@pytest.mark.parametrize("shape", ["files", "archive", "films", "carriage returns"])
def test_netflix_in_every_form(tmp_path, shape):
    if shape == "archive":
        zipped(tmp_path / "archive.zip", combined() | {"movie_titles.csv": b"1,2003,x\n"})
    elif shape == "films":
        (tmp_path / "training_set").mkdir()
        for film, lines in FILM_LINES.items():
            (tmp_path / "training_set" / f"mv_{film:07d}.txt").write_text(lines)
    else:
        for name, content in combined("\r\n" if shape != "files" else "\n").items():
            (tmp_path / name).write_bytes(content)
    ratings = load(netflix_of(), folder=tmp_path)
    assert cells(ratings) == FILM_CELLS
    assert ratings.catalogue.ids.to_list() == [1, 2, 3, 4]
    assert ratings.catalogue.public


def test_pieces_of_any_size_give_the_same_ratings(tmp_path, monkeypatch):
    """A film goes on in the next piece, and lines are cut nowhere else than at their ends."""
    for name, content in combined().items():
        (tmp_path / name).write_bytes(content)
    for size in (1, 7, 24, 40):
        monkeypatch.setattr("tacit.datasets.grouped._PIECE", size)
        monkeypatch.setattr("tacit.datasets.grouped._LONGEST", 100)
        assert cells(load(netflix_of(), folder=tmp_path)) == FILM_CELLS


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("12,x,2005-01-01\n", "1 line"),
        ("12;3;2005-01-01\n", "1 line"),
        ("12,300,2005-01-01\n", "1 line"),
        ("1234567890,3,2005-01-01\n", "1 line"),
        ("12,,2005-01-01\n12\n", "2 line"),
        ("12,6,2005-01-01\n", "1 ratings outside of the scale 1..5"),
        ("2:x\n", "1 line"),
    ],
)
def test_lines_that_are_no_ratings_are_counted(tmp_path, line, word):
    files = combined()
    files["combined_data_1.txt"] += line.encode()
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=word):
        load(netflix_of(), folder=tmp_path)


def test_ratings_before_any_film_are_refused(tmp_path):
    for name, content in (combined() | {"combined_data_2.txt": b"12,3,2005-01-01\n"}).items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="1 line"):
        load(netflix_of(), folder=tmp_path)


def test_a_film_that_is_missing_is_named(tmp_path):
    (tmp_path / "training_set").mkdir()
    with pytest.raises(DataError, match=r"no mv_0000001\.txt in"):
        load(netflix_of(), folder=tmp_path)


def test_yahoo_music_is_rescaled(tmp_path):
    dataset = replace(DATASETS["yahoo-music"], counts=Counts(2, 5, 5))
    train = "0|2\n4\t90\t3811\t13:24:00\n1\t0\t3811\t13:25:00\n1|1\n4\t50\t4000\t00:00:00\n"
    (tmp_path / "trainIdx1.txt").write_text(train)
    (tmp_path / "validationIdx1.txt").write_text("0|1\n2\t100\t1\t2\n1|1\n0\t10\t1\t2\n")
    ratings = load(dataset, folder=tmp_path)
    assert cells(ratings) == {
        (0, 4): 4.5,
        (0, 1): 0.0,
        (0, 2): 5.0,
        (1, 4): 2.5,
        (1, 0): 0.5,
    }
    assert ratings.rating_range == PAPER_RANGE


def test_yahoo_songs(tmp_path):
    dataset = replace(DATASETS["yahoo-songs"], counts=Counts(20, 3, 40))
    for k, member in enumerate(dataset.members):
        (tmp_path / member.name).write_text(f"{k % 20}\t0\t5\n{k % 20}\t2\t1\n")
    ratings = load(dataset, folder=tmp_path)
    assert cells(ratings)[19, 2] == 1.0
    assert ratings.rating_range == (1.0, 5.0)


# All of them


def test_the_most_rated_items_are_marked_as_not_public(tmp_path):
    zipped(tmp_path / "archive.zip", combined())
    ratings = load(netflix_of(), folder=tmp_path, top=2)
    assert ratings.catalogue.ids.to_list() == [1, 4]
    assert not ratings.catalogue.public
    assert cells(ratings) == {k: v for k, v in FILM_CELLS.items() if k[1] in (1, 4)}
    everything = load(netflix_of(), folder=tmp_path, top=4)
    assert not everything.catalogue.public
    assert cells(everything) == FILM_CELLS


def test_users_without_any_of_the_most_rated_items_are_left_out(tmp_path):
    lines = dict(FILM_LINES) | {3: "3:\n77,5,2005-01-01\n"}
    (tmp_path / "training_set").mkdir()
    for film, text in lines.items():
        (tmp_path / "training_set" / f"mv_{film:07d}.txt").write_text(text)
    ratings = load(netflix_of(Counts(4, 4, 6)), folder=tmp_path, top=2)
    assert 77 not in ratings.user_ids.to_list()
    assert np.diff(ratings.indptr).min() > 0


@pytest.mark.parametrize("top", [1, 0, 5, True, 2.0, "400"])
def test_a_top_that_cannot_be_is_refused_before_anything_is_read(top):
    with pytest.raises(ConfigError, match=r"top=.*from 2 to 4"):
        load(netflix_of(), top=top)


@pytest.mark.parametrize("name", ["jester 2", "", 7])
def test_an_unknown_name_is_refused_with_all_that_there_are(name):
    with pytest.raises(ConfigError, match=r"jester, movielens-100k, .*yahoo-songs"):
        load(name)


@pytest.mark.parametrize("name", [name for name in DATASETS if DATASETS[name].members])
def test_missing_files_say_where_they_go_and_how_to_get_them(tmp_path, monkeypatch, name):
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))
    with pytest.raises(DataError) as caught:
        load(name)
    message = str(caught.value)
    assert str(tmp_path / name) in message
    assert DATASETS[name].page in message
    assert f"tacit data get {name}" in message or DATASETS[name].how_to_get in message
    assert "TACIT_DATA" in message


def test_without_a_named_folder_files_are_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("TACIT_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    (tmp_path / "tacit" / "netflix").mkdir(parents=True)
    zipped(tmp_path / "tacit" / "netflix" / "archive.zip", combined())
    assert load(netflix_of()).n_users == 3
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    with pytest.raises(DataError, match=r"home/\.cache/tacit/netflix"):
        load(netflix_of())


def test_synthetic_datasets_are_the_papers():
    for name, items in (("synthetic-400", 400), ("synthetic-900", 900)):
        assert DATASETS[name].counts == (500_000, items, 40_000_000)
    small = replace(DATASETS["synthetic-400"], counts=Counts(300, 40, 300 * 8))
    ratings = load(small)
    assert (np.diff(ratings.indptr) == 8).all()
    assert ratings.rating_range == (-1.0, 1.0)
    assert ratings.catalogue.public


def test_every_description_is_whole():
    for name, dataset in DATASETS.items():
        assert dataset.name == name
        assert dataset.licence.count("\n") == 0
        assert bool(dataset.downloads) + bool(dataset.how_to_get) == bool(dataset.members)
        assert dataset.max_ratings == (None if name == "jester" else MAX_RATINGS)
        hashes = [d.sha256 for d in dataset.downloads] + [m.sha256 for m in dataset.members]
        assert all(len(bytes.fromhex(known)) == 32 for known in hashes if known)
        assert all(d.address.startswith("https://") for d in dataset.downloads)


# Hostile archives


def hostile(folder: Path, content: bytes) -> Dataset:
    (folder / "ml-1m.zip").write_bytes(content)
    return movielens_of("movielens-1m")


def good_archive() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in movielens_files("movielens-1m").items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_archives_that_are_cut_short_or_damaged_are_refused(tmp_path):
    good = good_archive()
    for length in range(0, len(good) - 1, 9):
        with pytest.raises(DataError):
            load(hostile(tmp_path, good[:length]), folder=tmp_path)


def test_damaged_bytes_never_give_another_error(tmp_path):
    good, rng = good_archive(), np.random.default_rng(0)
    loaded = 0
    for _ in range(400):
        bad = bytearray(good)
        for place in rng.integers(len(good), size=3):
            bad[place] = rng.integers(256)
        try:
            load(hostile(tmp_path, bytes(bad)), folder=tmp_path)
            loaded += 1
        except DataError:
            continue
    assert loaded < 150


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    member = Member("ratings.dat", 1_000, ("ml-1m.zip",))
    dataset = movielens_of("movielens-1m")
    dataset = replace(dataset, members=(member, dataset.members[1]))
    zipped(tmp_path / "ml-1m.zip", movielens_files("movielens-1m") | {"ratings.dat": bytes(10**7)})
    with pytest.raises(DataError, match="more than 1000 bytes"):
        load(dataset, folder=tmp_path)
    (tmp_path / "ml-1m.zip").unlink()
    for name, content in movielens_files("movielens-1m").items():
        (tmp_path / name).write_bytes(content * (300 if name == "ratings.dat" else 1))
    with pytest.raises(DataError, match="more than 1000 bytes"):
        load(dataset, folder=tmp_path)


def test_a_size_that_lies_does_not_let_more_out(tmp_path):
    """The header says 50 bytes; the packed content is of ten million."""
    files = movielens_files("movielens-1m") | {"ratings.dat": bytes(10**7)}
    zipped(tmp_path / "lies.zip", files)
    true, lie = (10**7).to_bytes(4, "little"), (50).to_bytes(4, "little")
    content = (tmp_path / "lies.zip").read_bytes()
    assert content.count(true) == 2
    with pytest.raises(DataError):
        load(hostile(tmp_path, content.replace(true, lie)), folder=tmp_path)


def test_names_in_an_archive_never_become_paths(tmp_path):
    inner = tmp_path / "inner"
    inner.mkdir()
    files = {f"../{name}": content for name, content in movielens_files("movielens-1m").items()}
    zipped(inner / "ml-1m.zip", files)
    assert load(movielens_of("movielens-1m"), folder=inner).n_users == 2
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["inner", "ml-1m.zip"]


@pytest.mark.parametrize("names", [["a/ratings.dat", "b/ratings.dat"], []])
def test_an_archive_with_two_or_none_of_a_file_is_refused(tmp_path, names):
    files = movielens_files("movielens-1m")
    ratings = files.pop("ratings.dat")
    zipped(tmp_path / "ml-1m.zip", files | dict.fromkeys(names, ratings))
    with pytest.raises(DataError, match=r"(0|2) files named ratings\.dat inside"):
        load(movielens_of("movielens-1m"), folder=tmp_path)


def test_other_ways_of_packing_and_passwords_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "ml-1m.zip", "w", zipfile.ZIP_LZMA) as archive:
        for name, content in movielens_files("movielens-1m").items():
            archive.writestr(name, content)
    with pytest.raises(DataError, match="packed in an unknown way"):
        load(movielens_of("movielens-1m"), folder=tmp_path)
