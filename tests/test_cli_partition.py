"""tacit partition and a fit of what it wrote, as a person types it."""

from pathlib import Path

import numpy as np
import pytest

import tacit
from tacit.datasets.synthetic import synthesise
from tests.test_cli import Shell

RANGE = ("--rating-range", "0.5", "5")
SEED = ("--epsilon", "2", "--noise-seed-unsafe", "1")


@pytest.fixture
def shell(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(capsys, monkeypatch)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("partition")
    made = synthesise("tastes", users=300, items=25, per_user=8, seed=3, test_fraction=0.0)
    made.train.sample(fraction=1.0, shuffle=True, seed=1).write_csv(place / "train.csv")
    made.items.write_csv(place / "items.csv")
    return place


@pytest.fixture(scope="module")
def store(folder: Path) -> Path:
    return tacit.partition(
        folder / "train.csv",
        folder / "store",
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue.from_file(folder / "items.csv"),
        shards=3,
    ).folder


def test_a_store_is_fitted_like_the_file_it_was_made_of(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    store, items = tmp_path / "store", ("--items", folder / "items.csv")
    words = ("partition", folder / "train.csv", "-o", store, *RANGE, *items, "--shards", 3)
    code, out, err = shell(*words)
    assert code == 0, err
    assert "keep it private" in out
    one, other = tmp_path / "one.tacit", tmp_path / "other.tacit"
    assert shell("fit", folder / "train.csv", *RANGE, *items, *SEED, "-o", one)[0] == 0
    code, out, err = shell("fit", store, *SEED, "-o", other)
    assert code == 0, err
    models = tacit.load(one), tacit.load(other)
    assert np.array_equal(models[0].predict({3: 5.0}), models[1].predict({3: 5.0}))
    assert models[0].certificate.text() == models[1].certificate.text()
    assert models[1].catalogue.titles is not None
    code, _, err = shell(*words)
    assert code == 2
    assert "--force" in err
    assert shell.json(*words, "--force")["shards"] == 3


def test_a_search_takes_a_store(shell: Shell, store: Path, tmp_path: Path) -> None:
    words = ("--candidate", "svd rank=2", "--candidate", "svd rank=3", "--engine", "store")
    code, out, err = shell("tune", store, *words, *SEED, "-o", tmp_path / "m.tacit")
    assert code == 0, err
    assert "chosen:" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (RANGE, "--rating-range: the store"),
        (("--implicit",), "--implicit: the store"),
        (("--duplicates", "last"), "--duplicates: the store"),
        (("--engine", "spark"), "--engine spark: expected threads, store or ray"),
        (("--address", "auto"), "only --engine ray has it"),
        (("--workers", "2"), "only --engine ray has it"),
        (("--engine", "threads"), "leave engine= out"),
    ],
)
def test_what_a_store_knows_is_not_asked_again(
    shell: Shell, store: Path, tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    code, _, err = shell("fit", store, *SEED, *words, "-o", tmp_path / "m.tacit")
    assert code == 2
    assert said in err
    assert not (tmp_path / "m.tacit").exists()


def test_nothing_is_written_into_a_store_or_beside_others(
    shell: Shell, store: Path, folder: Path, tmp_path: Path
) -> None:
    before = sorted(store.iterdir())
    code, _, err = shell("fit", store, *SEED, "-o", store / "m.tacit")
    assert code == 2
    assert "private" in err
    code, _, err = shell("fit", store, *SEED, "-o", tmp_path / "m.tacit", "--checkpoint", store)
    assert code == 2
    code, _, err = shell("fit", store, folder / "train.csv", *SEED, "-o", tmp_path / "m.tacit")
    assert code == 2
    assert "by itself" in err
    code, _, err = shell("partition", folder / "train.csv", *RANGE, "-o", folder)
    assert code == 2
    assert "not empty" in err
    assert sorted(store.iterdir()) == before


@pytest.mark.parametrize("verb", ["fit", "refit"])
def test_a_book_is_no_place_for_the_model_of_a_store(
    shell: Shell, store: Path, tmp_path: Path, verb: str
) -> None:
    book = tmp_path / "people.book"
    tacit.Book.new(book, epsilon=2.0)
    words = (store, "--book", book, "--epsilon", "1", "-o", book, "--force")
    code, _, err = shell(verb, *words)
    assert code == 2, err
    assert "--output" in err
    assert tacit.Book(book).spent_epsilon == 0.0
