"""tacit data as a person types it, and what it fetches."""

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from tacit.cli import main
from tacit.datasets import DATASETS


@pytest.fixture
def shell(capsys, monkeypatch, tmp_path):
    """Runs the command line in this process, with an empty folder of datasets."""
    monkeypatch.setenv("TACIT_DATA", str(tmp_path))

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["tacit", *map(str, words)])
        with pytest.raises(SystemExit) as left:
            main()
        out, err = capsys.readouterr()
        return int(left.value.code or 0), out, err

    return run


class Downloads:
    """Stands in for pooch: writes files, or fails as pooch does."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure, self.asked = failure, []

    def get_logger(self):
        return SimpleNamespace(setLevel=lambda _: None)

    def retrieve(self, url, known_hash, fname, path):
        self.asked.append((url, known_hash))
        if self.failure:
            raise self.failure
        Path(path).mkdir(parents=True, exist_ok=True)
        (Path(path) / fname).write_bytes(b"")
        return str(Path(path) / fname)


def test_list_shows_every_dataset(shell, tmp_path):
    code, out, _ = shell("data", "list")
    assert code == 0
    assert all(name in out for name in DATASETS)
    assert str(tmp_path) in out
    assert "73,421" in out


def test_list_as_json_has_stable_keys(shell, tmp_path):
    listed = json.loads(shell("data", "list", "--json")[1])
    assert listed["folder"] == str(tmp_path)
    assert [row["name"] for row in listed["datasets"]] == list(DATASETS)
    assert {"users", "items", "ratings", "licence", "address", "here"} <= set(listed["datasets"][0])
    here = {row["name"]: row["here"] for row in listed["datasets"]}
    assert here["synthetic-400"]
    assert not here["jester"]


def test_info_says_where_files_go(shell, tmp_path):
    code, out, _ = shell("data", "info", "Netflix")
    assert code == 0
    assert str(tmp_path / "netflix") in out
    assert "agree to the terms" in out
    facts = json.loads(shell("data", "info", "jester", "--json")[1])
    assert facts["rating_range"] == [0.0, 5.0]
    assert facts["scale"] == [-10.0, 10.0]
    assert facts["paper_max_ratings"] is None
    assert facts["sha256"] == [download.sha256 for download in DATASETS["jester"].downloads]


def test_info_notices_files_that_are_there(shell, tmp_path):
    (tmp_path / "netflix" / "training_set").mkdir(parents=True)
    (tmp_path / "movielens-1m").mkdir()
    (tmp_path / "movielens-1m" / "ml-1m.zip").touch()
    for name in ("netflix", "movielens-1m"):
        assert json.loads(shell("data", "info", name, "--json")[1])["here"]


def test_get_fetches_from_the_official_address_and_checks(shell, tmp_path, monkeypatch):
    pooch = Downloads()
    monkeypatch.setitem(sys.modules, "pooch", pooch)
    code, out, err = shell("data", "get", "jester")
    assert code == 0
    assert len(pooch.asked) == 3
    known = DATASETS["jester"].downloads[0]
    assert pooch.asked[0] == (known.address, f"sha256:{known.sha256}")
    assert str(tmp_path / "jester" / "jester-data-3.zip") in out
    assert "free for research" in err
    got = json.loads(shell("data", "get", "movielens-10m", "--json")[1])
    assert got["files"] == [str(tmp_path / "movielens-10m" / "ml-10m.zip")]
    assert pooch.asked[-1][1] is None


def test_get_replaces_a_file_of_someone_elses_only_when_forced(shell, tmp_path, monkeypatch):
    pooch = Downloads()
    monkeypatch.setitem(sys.modules, "pooch", pooch)
    (tmp_path / "jester").mkdir()
    own = tmp_path / "jester" / DATASETS["jester"].downloads[1].name
    own.write_bytes(b"mine")
    code, _, err = shell("data", "get", "jester")
    assert code == 2
    assert "is not the published one" in err
    assert (own.read_bytes(), pooch.asked) == (b"mine", [])
    assert shell("data", "get", "jester", "--force")[0] == 0


@pytest.mark.parametrize(
    ("failure", "word"),
    [(ConnectionError("no route"), "is this machine online?"), (ValueError("hash"), "sha256")],
)
def test_a_download_that_fails_is_one_kind_line(shell, monkeypatch, failure, word):
    monkeypatch.setitem(sys.modules, "pooch", Downloads(failure))
    code, _, err = shell("data", "get", "movielens-1m")
    assert code == 2
    assert word in err


def test_without_pooch_the_message_says_what_to_install(shell, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    code, _, err = shell("data", "get", "movielens-1m")
    assert code == 2
    assert "pip install 'tacit[download]'" in err


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("netflix", "agree to the terms"),
        ("yahoo-music", "sign"),
        ("synthetic-400", "needs no download"),
        ("nonsense", "expected one of synthetic-400"),
    ],
)
def test_what_cannot_be_fetched_says_why(shell, monkeypatch, name, word):
    monkeypatch.setitem(sys.modules, "pooch", Downloads())
    code, _, err = shell("data", "get", name)
    assert code == 2
    assert word in err


def test_data_alone_shows_its_verbs(shell):
    code, out, _ = shell("data")
    assert code == 0
    assert all(verb in out for verb in ("list", "info", "get"))


def test_synth_offers_the_families(shell, tmp_path):
    files = [tmp_path / name for name in ("train.csv", "test.csv")]
    code, out, _ = shell("synth", "--kind", "few", "-o", files[0], "--test", files[1])
    assert code == 0
    assert "--rating-range 0.5 5" in out
    assert files[0].read_text().count("\n") > 15_000


def test_listing_is_light():
    """Showing what there is needs no numbers, no tables and no network."""
    code = (
        "import sys; from tacit.datasets import DATASETS; import tacit.datasets.paths, tacit.cli; "
        "print([m for m in ('numpy', 'polars', 'numba', 'pooch', 'socket') if m in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
