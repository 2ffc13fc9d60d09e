"""tacit book and tacit refit, as a person types them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tacit
from tacit.accounting.budget import mu_of
from tacit.cli import app
from tests.conftest import ratings_for

RUN = CliRunner()


def call(*words: object, code: int = 0) -> str:
    found = RUN.invoke(app, [str(word) for word in words])
    if code == 0 and found.exception:
        raise found.exception
    assert found.exit_code == code
    return found.output


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    path = tmp_path / "ratings.csv"
    rows = ratings_for(0)
    users = [name for name, n in zip(rows.user_ids, rows.indptr[1:] - rows.indptr[:-1], strict=True)
             for _ in range(n)]  # fmt: skip
    items = rows.catalogue.ids.gather(rows.items).to_list()
    lines = [f"{u},{i},{v}" for u, i, v in zip(users, items, rows.values, strict=True)]
    path.write_text("user,item,rating\n" + "\n".join(lines) + "\n")
    return path


def test_a_book_from_the_command_line(ratings: Path, tmp_path: Path) -> None:
    book, model = tmp_path / "people.book", tmp_path / "m.tacit"
    fit = (ratings, "--rating-range", 0.5, 5, "--book", book, "-o", model)
    call("book", "new", book, "--epsilon", 1)
    call("fit", *fit, "--epsilon", 0.1, "--set", "rounds=2")
    call("refit", *fit, "--epsilon", 0.1, "--algorithm", "moments")
    shown = json.loads(call("book", "show", book, "--json"))
    assert shown["epsilon"] == 1.0
    assert shown["delta"] == 1e-6
    assert 0.1 < shown["spent_epsilon"] < 0.2
    assert 0.9 < shown["left_epsilon"] < 1.0
    assert [each["kind"] for each in shown["fits"]] == ["fit", "refit"]
    with pytest.raises(tacit.LifetimeExceeded, match="is left, which buys"):
        call("fit", *fit, "--epsilon", 1)
    with pytest.raises(tacit.ConfigError, match="same file as the input"):
        call("fit", ratings, "--rating-range", 0.5, 5, "--book", book, "--epsilon", 0.1, "-o", book)
    export = tmp_path / "lifetime.json"
    call("book", "export", book, "-o", export)
    for path in (book, export):
        assert json.loads(call("book", "verify", path, "--model", model, "--json"))["holds"]


def test_a_search_is_paid_for_by_the_book(ratings: Path, tmp_path: Path) -> None:
    """Search and fit are one reservation, and cost what it says."""
    book, model = tmp_path / "people.book", tmp_path / "m.tacit"
    call("book", "new", book, "--epsilon", 1, "--delta", 1e-5)
    two = ("--candidate", "moments", "--candidate", "moments level_shrink=2")
    tune = ("tune", ratings, "--rating-range", 0.5, 5, "--book", book, *two)
    call(*tune, "--epsilon", 0.4, "-o", model)
    opened = tacit.Book(book)
    assert [fit.kind for fit in opened.fits] == ["tune"]
    assert opened.account().spent == pytest.approx(mu_of(0.4, 1e-5) ** 2)
    releases = tacit.load(model).certificate.releases
    assert tuple(opened.fits[0].releases) == releases
    assert any(entry.release.part for entry in releases)  # trials are among them
    assert json.loads(call("book", "verify", book, "--model", model, "--json"))["holds"]
    with pytest.raises(tacit.LifetimeExceeded):
        call(*tune, "--epsilon", 1, "-o", tmp_path / "second.tacit")
    with pytest.raises(tacit.ConfigError, match="NOT PRIVATE"):
        call(*tune, "--epsilon", 0.1, "--noise-seed-unsafe", 1, "-o", tmp_path / "second.tacit")
    assert not (tmp_path / "second.tacit").exists()
    assert opened.account().spent == pytest.approx(mu_of(0.4, 1e-5) ** 2)


def test_a_plan_can_be_spent(tmp_path: Path) -> None:
    told = json.loads(call("book", "plan", "--refits", 52, "--epsilon", 1, "--json"))
    book = tacit.Book.new(tmp_path / "people.book", epsilon=1.0)
    for epsilon in told["epsilons"]:
        book.reserve(tacit.PrivacyBudget(epsilon))
    assert book.spent_epsilon == pytest.approx(1.0, rel=1e-3)
    assert [row["number"] for row in told["shown"]] == [1, 4, 13, 26, 52]
    errors = [row["rmse"] for row in told["shown"]]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] == pytest.approx(told["rmse_at_once"], rel=1e-3)
    with pytest.warns(tacit.TacitWarning, match="leave --epsilon out"):
        told = call("book", "plan", book.path, "--refits", 4, "--epsilon", 0.5)
    assert "together epsilon" in told
    other = tacit.Book.new(tmp_path / "other.book", epsilon=1.0)  # without a warning, an error here
    assert "together epsilon" in call("book", "plan", other.path, "--refits", 4, "--epsilon", 0.5)


def test_a_plan_names_a_range_that_is_none() -> None:
    with pytest.raises(tacit.ConfigError, match="--rating-range 5 1"):
        call("book", "plan", "--epsilon", "1", "--rating-range", "5", "1")


@pytest.mark.parametrize("end", [".count", "-wal", "-shm"])
def test_a_model_is_not_written_over_what_belongs_to_a_book(
    ratings: Path, tmp_path: Path, end: str
) -> None:
    """Not with --force, and not where SQLite would make such a file later."""
    book = tacit.Book.new(tmp_path / "people.book", epsilon=1.0)
    fit = (ratings, "--rating-range", 0.5, 5, "--epsilon", 0.1, "--force")
    for verb in ("fit", "refit"):
        with pytest.raises(tacit.ConfigError, match="same file as the input"):
            call(verb, *fit, "--book", book.path, "-o", f"{book.path}{end}")
    with pytest.raises(tacit.ConfigError, match="same file as the input"):
        call("book", "export", book.path, "--force", "-o", f"{book.path}{end}")
    assert not tacit.Book(book.path).fits


def test_a_folder_is_no_book(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(tacit.ConfigError, match="no such file"):
        call("book", "show", ".")
    with pytest.raises(tacit.ConfigError, match="there already"):
        call("book", "new", ".", "--epsilon", 1)


def test_what_is_left_is_what_a_yearly_limit_leaves(tmp_path: Path) -> None:
    book = tacit.Book.new(tmp_path / "people.book", epsilon=2.0, yearly_epsilon=0.5)
    book.reserve(tacit.PrivacyBudget(0.5))
    text = call("book", "show", book.path)
    assert "Left:          epsilon 0, as one more fit now" in text
    assert "at most epsilon 0.5 in any 365 days; of the lifetime's epsilon 1.9" in text
    assert json.loads(call("book", "show", book.path, "--json"))["left_epsilon"] == 0.0
