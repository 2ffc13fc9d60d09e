"""What new users typed wrongly, and what they are told: the remedy is named and exists."""

import copy
import errno
import json
import os
import re
import subprocess
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.errors import ConfigError, TacitError, TacitWarning, UnknownItemsWarning
from tacit.evaluation import evaluate, split
from tests.conftest import ratings_for
from tests.test_cli import RANGE, Shell, folder, shell

__all__ = ["folder", "shell"]

pd: Any = pytest.importorskip("pandas")


def frame() -> pl.DataFrame:
    return pl.DataFrame({"item": [1, 2], "title": ["a", "b"]})


def with_columns(columns: Any) -> tacit.Ratings:
    return tacit.Ratings.from_frame(frame(), rating_range=(1, 5), columns=columns)


@cache
def fitted() -> tacit.Model:
    return tacit.fit(ratings_for(0), "moments", epsilon=5.0)


def twice_rated() -> Any:
    """A series may have an index value twice; a dict made of it would hide that."""
    item = fitted().catalogue.ids[0]
    return pd.Series([5.0, 1.0], index=[item, item])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tacit.Catalogue(frame()), r"Catalogue\(frame\['item'\]"),  # type: ignore[arg-type]
        (lambda: tacit.Catalogue("items.csv"), "from_file"),  # type: ignore[arg-type]
        (lambda: tacit.Ratings.from_arrays([1], [2], rating_range=(1, 5)), "implicit=True"),
        (lambda: tacit.fit(ratings_for(0), 1.0), "give epsilon="),
        (lambda: tacit.fit(frame(), epsilon=1.0), "from_frame"),
        (lambda: with_columns({"customer_id": "user"}), "'user': 'customer_id'"),
        (lambda: with_columns({"title": "item"}), "none of user, item and rating"),
        (lambda: with_columns(["user", "item"]), "'user': 'customer_id'"),
        (lambda: tacit.tune(ratings_for(0), ["moments", "alss"], epsilon=1.0), "als"),
        (lambda: tacit.tune(ratings_for(0), "moments", epsilon=1.0), r"a list .*\['moments', "),  # type: ignore[arg-type]
        (lambda: tacit.fit(ratings_for(0), epsilon=1.0, progress=True), "a function of"),  # type: ignore[arg-type]
        (lambda: tacit.fit(ratings_for(0), epsilon=1.0, engine="threads"), "ThreadEngine"),  # type: ignore[arg-type]
        (lambda: fitted().save(None), "path=NoneType: expected the name of a file"),  # type: ignore[arg-type]
        (lambda: fitted().export_vectors(5), "path=int: expected the name of a file"),  # type: ignore[arg-type]
        (lambda: tacit.Book(None), "path=NoneType: expected the name of a file"),  # type: ignore[arg-type]
        (lambda: tacit.fit(ratings_for(0), epsilon=1.0, checkpoint=5), "checkpoint=int: .* folder"),  # type: ignore[arg-type]
        (lambda: tacit.fit(ratings_for(0), epsilon=1.0, strict="no"), "strict='no': expected true"),  # type: ignore[arg-type]
        (lambda: split(ratings_for(0), 0.2, "x"), "rng='x': expected a seed"),  # type: ignore[arg-type]
        (
            lambda: tacit.tune(ratings_for(0), ["moments"], epsilon=1.0),
            r"2 to 50.* with one, call fit",
        ),
        (lambda: fitted().recommend(np.array([4.0])), "own_ratings=ndarray: expected a dict"),
        (lambda: fitted().recommend({}, n=np.float64(2.5)), "n=2.5: expected a whole number"),
        (lambda: fitted().recommend(twice_rated()), "1 rows rate an item twice"),
        (lambda: tacit.load(None), "path=NoneType: expected the name"),  # type: ignore[arg-type]
        (lambda: tacit.Ratings.from_file("https://x.org/r.csv", rating_range=(1, 5)), "download"),
        (lambda: tacit.Ratings.from_file("s3://b/r.parquet", rating_range=(1, 5)), "download"),
        (lambda: evaluate(ratings_for(0), "model", ratings_for(0)), "order is model, train"),  # type: ignore[arg-type]
    ],
)
def test_python_says_what_to_write(call: Any, told: str) -> None:
    with pytest.raises(TacitError, match=told):
        call()


def test_numbers_of_numpy_are_numbers() -> None:
    """Settings often come out of an array, and a certificate must be able to write them."""
    model, own = fitted(), {fitted().catalogue.ids[0]: 5.0}
    assert model.recommend(own, n=np.int64(2)) == model.recommend(own, n=2)
    assert tacit.Moments(rank=np.int32(3)) == tacit.Moments(rank=3)
    assert type(tacit.Moments(rank=np.int32(3)).rank) is int
    settings = tacit.Moments(rank=np.int32(2), spread_share=np.float32(0.25))
    certificate = tacit.fit(ratings_for(0), settings, epsilon=1.0).certificate
    assert json.loads(json.dumps(certificate.to_json()))["settings"]["rank"] == 2
    with pytest.raises(ConfigError, match="rank=True"):
        tacit.Moments(rank=np.bool_(True))  # type: ignore[arg-type]


def test_wanted_items_may_be_a_frame() -> None:
    model = fitted()
    own, items = {model.catalogue.ids[0]: 5.0}, model.catalogue.ids[:3]
    expected = model.predict(own, items)
    for wanted in (pl.DataFrame({"item": items}), pd.DataFrame({"movieId": items})):
        np.testing.assert_array_equal(model.predict(own, wanted), expected)


def test_a_warning_shows_the_callers_line() -> None:
    model, known = fitted(), fitted().catalogue.ids[0]
    calls: list[Any] = [
        lambda: model.recommend({"nope": 4.0}),
        lambda: model.predict({"nope": 4.0}),
        lambda: model.predict({known: 4.0}, [known, "nope"]),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True) as seen:
            warnings.simplefilter("always")
            call()
        (warned,) = (each for each in seen if issubclass(each.category, UnknownItemsWarning))
        assert (warned.filename, warned.lineno) == (__file__, call.__code__.co_firstlineno)


def test_a_user_id_is_no_persons_ratings() -> None:
    model = tacit.fit(ratings_for(0), "Moments", epsilon=5.0)
    for given in (5, "ann"):
        with pytest.raises(TacitError, match="holds no users"):
            model.recommend(given)


def test_tune_takes_names() -> None:
    model = tacit.tune(ratings_for(0), ["moments", tacit.SVD], epsilon=5.0)
    assert model.private


def own_files(place: Path) -> None:
    (place / "lines.jsonl").write_text('{"user":1,"item":2,"rating":3}\n')
    (place / "words.csv").write_text("user,item,rating\n1,2,good\n2,3,bad\n")
    (place / "wide.csv").write_text("user,item,rating\n1,2,9\n2,3,1\n")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("fit", "tacit fit --help"),
        ("recommend m.tacit --user 5", "holds no users: give her own ratings with --ratings"),
        ("recommend m.tacit --ratings train.csv", "--ratings train.csv: ratings of several users"),
        ("predict m.tacit --ratings train.parquet --item 1", "ratings of several users; expected"),
        ("recommend m.tacit --only no.csv", "--only no.csv: no such file"),
        ("recommend m.tacit --by taste", "--by 'taste': expected 'rating' or 'choice'"),
        ("evaluate m.tacit --train train.csv --test no.csv", "--test no.csv: no such file"),
        ("reproduce figure2a", "did you mean 'figure-2a'"),
        ("data info movielens1m", "did you mean 'movielens-1m'"),
        ("audit momens --epsilon 1", "did you mean 'moments'"),
        ("recommend train.csv", "it is text; give a file that `tacit fit` wrote"),
        ("audit m.tacit --epsilon 1", "leave it out"),
        ("audit moments", "give --epsilon 1"),
        ("extend m.tacit items.csv -o e.tacit", "--feature NAME"),
    ],
)
def test_the_command_line_says_what_to_type(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.chdir(folder)
    code, _, err = shell(*words.split())
    assert code == 2
    assert told in " ".join(err.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--epsilon -1", "--epsilon -1.0: expected a number in (0, 10000]"),
        (
            "--epsilon 1 --threads 0",
            "--threads 0: expected a whole number from 1 to 1024, or",
        ),
        ("--epsilon 1 --max-ratings 0", "--max-ratings 0: expected a whole number of at least 1"),
        ("--epsilon 1 --items no.csv", "--items no.csv: cannot be read"),
        ("--epsilon 1 --items train.csv", "--items train.csv: catalogue: "),
        ("--epsilon 1 --algorithm frankwolfe", "did you mean 'frank-wolfe'"),
        ("--epsilon 1 --set round=1", "--set round=1: latent-factors has no such setting; it has"),
        ("--epsilon 1 --set round=1", "did you mean 'rounds'?"),
        ("--epsilon 1 --set rank=0", "--set rank=0: expected a whole number"),
    ],
)
def test_a_fit_names_the_option(
    shell: Shell, folder: Path, monkeypatch: pytest.MonkeyPatch, words: str, told: str
) -> None:
    monkeypatch.chdir(folder)
    code, _, err = shell("fit", "train.csv", "-o", "x.tacit", *RANGE, *words.split())
    assert code == 2
    assert told in err


def test_a_candidate_is_named(shell: Shell, folder: Path, tmp_path: Path) -> None:
    words = ("tune", folder / "train.csv", "-o", tmp_path / "x.tacit", "--epsilon", 1, *RANGE)
    for text, told in (("momens", "'moments'"), ("svd rnk=3", "'rank'")):
        code, _, err = shell(*words, "--candidate", text, "--candidate", "moments")
        assert code == 2
        assert f"--candidate '{text}': " in err
        assert f"did you mean {told}" in err


def test_an_unknown_setting_is_named_in_python_too() -> None:
    with pytest.raises(ConfigError, match=r"moments has no such setting; it has .*mean 'rank'"):
        tacit.Moments(rnk=3)  # type: ignore[call-arg]
    assert copy.deepcopy(tacit.Moments(rank=3)) == tacit.Moments(rank=3)


@pytest.mark.parametrize("config", [tacit.Moments(rank=500), tacit.SVD(rank=500)])
def test_a_rank_above_the_number_of_items_is_noted_before_anything_is_spent(config: Any) -> None:
    with pytest.warns(TacitWarning, match="rank=500: there can be no more factors than items"):
        tacit.fit(ratings_for(0), config, epsilon=1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tacit.fit(ratings_for(0), type(config)(rank=2), epsilon=1.0)


def test_one_persons_file_may_name_her_and_needs_no_header(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    for name, text in (
        ("hers.csv", "user,item,rating\n5,3,5\n5,7,1\n"),
        ("times.dat", "3::5::964982703\n7::1::964982931\n"),
    ):
        (tmp_path / name).write_text(text)
        assert shell("recommend", folder / "m.tacit", "--ratings", tmp_path / name)[0] == 0


def test_odd_names_of_columns_can_be_given_everywhere(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    names = ("--user-column", "Kunde", "--item-column", "Artikel", "--rating-column", "Sterne")
    log = pl.read_csv(folder / "train.csv").rename(
        dict(zip(("user", "item", "rating"), names[1::2], strict=True))
    )
    log.write_csv(tmp_path / "log.csv")
    items = pl.read_csv(folder / "items.csv")
    items.rename({"item": "Artikel"}).write_csv(tmp_path / "artikel.csv")
    (tmp_path / "mine.csv").write_text("Artikel,Sterne\n3,5\n7,1\n")
    words = (
        "fit",
        tmp_path / "log.csv",
        "-o",
        tmp_path / "x.tacit",
        "--no-privacy",
        *RANGE,
        *names,
    )
    for given in (tmp_path / "artikel.csv", folder / "items.csv"):
        code, _, err = shell(*words, "--algorithm", "moments", "--items", given)
        assert code == 0, err
    own = ("recommend", tmp_path / "x.tacit", "--ratings", tmp_path / "mine.csv")
    code, _, err = shell(*own)
    assert code == 2
    assert "(on the command line: --item-column, --rating-column)" in err
    assert shell(*own, *names[2:])[0] == 0


def test_items_to_exclude_may_come_from_a_log(shell: Shell, folder: Path) -> None:
    log = pl.read_csv(folder / "train.csv").head(5)
    log.write_csv(folder / "log.csv")
    words = ("recommend", folder / "m.tacit", "--exclude", folder / "log.csv")
    shown = shell.json(*words)["recommendations"]
    assert not {row["item"] for row in shown} & set(log["item"])  # type: ignore[attr-defined,index]


def test_a_summary_names_the_algorithm_and_says_if_little_was_learned(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "x.tacit", *RANGE)
    words = (*words, "--items", folder / "items.csv", "--algorithm", "moments")
    # A seed: by chance one fit in a few hundred finds a factor in the noise.
    code, out, _ = shell(*words, "--epsilon", 0.001, "--noise-seed-unsafe", 1)
    assert code == 0
    assert "moments, 30 items" in out
    assert "no latent factor is above the noise" in out
    assert "more users or a larger epsilon would help" in out
    assert "learned little" not in shell(*words, "--no-privacy")[1]
    assert shell.json("info", tmp_path / "x.tacit")["algorithm"] == "moments"


def test_a_refit_says_what_its_epsilon_is_the_sum_of(
    shell: Shell, folder: Path, tmp_path: Path
) -> None:
    book, model = tmp_path / "p.book", tmp_path / "x.tacit"
    shell("book", "new", book, "--epsilon", 4)
    words = ("refit", folder / "train.csv", "-o", model, "--epsilon", 0.5, "--book", book, *RANGE)
    words = (*words, "--items", folder / "items.csv", "--algorithm", "moments")
    assert "of which" not in shell(*words)[1]
    assert "epsilon 0.5 for this refit alone; the rest was paid by earlier" in shell(*words)[1]
    text = shell("certificate", model)[1]
    assert "other than this refit and the earlier refits that it uses" in text
    assert "noise sd 1," not in text, "nobody drew noise of sd 1"
    assert "the stated cost of earlier refits" in shell("verify", model)[1]
    assert re.search(r"\| earlier refits \|\s*\|\s*\| 0", shell("card", model)[1])
    code, out, _ = shell("book", "verify", book, "--model", model)
    assert code == 0
    assert out.startswith("holds")
    code, out, _ = shell("book", "verify", book, "--model", folder / "m.tacit")
    assert code == 1
    assert "m.tacit is not in this book: it was fitted without --book" in out


def test_a_fit_that_goes_on_says_what_it_reads_back(
    shell: Shell, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "ck"
    words = ("fit", folder / "train.csv", "-o", tmp_path / "x.tacit", *RANGE, "--checkpoint", place)
    words = (*words, "--items", folder / "items.csv", "--algorithm", "moments")
    assert "read back" not in shell(*words, "--epsilon", 1)[2]
    assert f"4 of 4 releases are read back from {place}" in shell(*words, "--epsilon", 1)[2]

    def no_reading(*_: object, **__: object) -> None:
        raise AssertionError("ratings were read before the budget was compared")

    monkeypatch.setattr(tacit.Ratings, "from_file", no_reading)
    code, _, err = shell(*words, "--epsilon", 2)
    assert code == 2
    assert "belongs to another fit: it differs in budget" in err


def test_an_interruption_says_what_is_kept(
    shell: Shell, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tacit.Ratings, "from_file", interrupted)
    words = ("fit", folder / "train.csv", "-o", tmp_path / "x.tacit", *RANGE, "--epsilon", 1)
    assert "no file is half-written\n" in shell(*words)[2]
    code, _, err = shell(*words, "--checkpoint", tmp_path / "ck")
    assert code == 130
    assert f"the same command goes on with the releases in {tmp_path / 'ck'}" in err


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("lines.jsonl", "JSON, which is not read; write it as CSV or Parquet"),
        ("words.csv", "expected numbers such as 4.5"),
        ("wide.csv", "give the range of the scale"),
    ],
)
def test_a_file_is_refused_with_what_to_do(
    shell: Shell, tmp_path: Path, name: str, told: str
) -> None:
    own_files(tmp_path)
    words = ("fit", tmp_path / name, "-o", tmp_path / "x.tacit", "--epsilon", 1, *RANGE)
    code, _, err = shell(*words)
    assert code == 2
    assert told in err


def test_names_of_methods_may_be_capital(shell: Shell, folder: Path, tmp_path: Path) -> None:
    words = ("fit", folder / "train.csv", "-o", tmp_path / "x.tacit", "--epsilon", 1, *RANGE)
    assert shell(*words, "--algorithm", "ALS", "--items", folder / "items.csv")[0] == 0


def test_titles_may_have_a_column_of_any_name(shell: Shell, folder: Path, tmp_path: Path) -> None:
    """Even one that usually names items: what is given for one role is no candidate for another."""
    items = pl.DataFrame({"item": range(30), "film": [f"Film {k}" for k in range(30)]})
    items = items.with_columns(size=pl.col("item") % 7)
    items.write_csv(tmp_path / "items.csv")
    words = ("fit", folder / "train.parquet", "--epsilon", 2, *RANGE, "--algorithm", "moments")
    words = (*words, "-o", tmp_path / "m.tacit")
    titled = ("--title-column", "film")
    assert shell(*words, "--items", tmp_path / "items.csv", *titled)[0] == 0
    assert tacit.load(tmp_path / "m.tacit").catalogue.title(3) == "Film 3"
    code, _, err = shell(*words, *titled)
    assert (code, "--title-column film: it is a column of --items FILE" in err) == (2, True)
    code, _, err = shell(*words, "--items", tmp_path / "items.csv")
    assert (code, "--item-column, --title-column)" in err) == (2, True)
    more = pl.DataFrame({"film": range(31), "called": [f"Film {k}" for k in range(31)]})
    more.with_columns(size=pl.col("film") % 7).write_csv(tmp_path / "more.csv")
    fitted = ("fit", *words[1:7], "-o", tmp_path / "l.tacit", "--items", tmp_path / "items.csv")
    assert shell(*fitted, *titled, "--feature", "size")[0] == 0
    named = ("--item-column", "film", "--title-column", "called")
    extended = tmp_path / "e.tacit"
    assert (
        shell("extend", tmp_path / "l.tacit", tmp_path / "more.csv", "-o", extended, *named)[0] == 0
    )
    assert tacit.load(extended).catalogue.title(30) == "Film 30"


def test_a_store_has_its_own_titles(shell: Shell, folder: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert shell("partition", folder / "train.parquet", "-o", store, *RANGE)[0] == 0
    words = ("fit", store, "-o", tmp_path / "m.tacit", "--epsilon", 1)
    code, _, err = shell(*words, "--title-column", "film")
    assert (code, "--title-column" in err, "was made with its own" in err) == (2, True, True)


@pytest.fixture
def there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder, as the one in which commands are typed."""
    monkeypatch.chdir(folder)
    return folder


def test_a_log_with_uuids_and_skus_needs_no_column_options(there: Path, shell: Shell) -> None:
    log = pl.read_csv(there / "train.csv").rename(
        {"user": "customer_uuid", "item": "product_sku", "rating": "stars"}
    )
    log.write_csv(there / "orders.csv")
    code, _, err = shell("split", "orders.csv", "-o", "a.csv", "--test", "b.csv", "--by", "random")
    assert (code, err) == (0, "")


def test_a_list_that_calls_its_items_otherwise_is_told_what_to_rename(
    there: Path, shell: Shell
) -> None:
    (there / "other.csv").write_text("whatever,price\n1,2\n2,3\n")
    args = ("fit", "train.csv", "-o", "o.tacit", "--epsilon", "1", *RANGE, "--items", "other.csv")
    code, _, err = shell(*args, "--item-column", "item")
    assert (code, "call it item in other.csv" in err) == (2, True)


def twice(place: Path) -> None:
    """Write files of ratings in which pairs are given twice."""
    for name in ("train", "test"):
        frame = pl.read_csv(place / f"{name}.csv")
        pl.concat([frame, frame.head(3)]).write_csv(place / f"twice-{name}.csv")


@pytest.mark.parametrize(
    "typed",
    [
        "evaluate m.tacit --train twice-train.csv --test test.csv",
        "evaluate m.tacit --train train.csv --test twice-test.csv",
        "evaluate m.tacit --new-users twice-train.csv",
        "report m.tacit --train twice-train.csv --ratings twice-test.csv --output twice.html",
        "recommend m.tacit --ratings twice-train.csv --output lists.csv",
        "predict m.tacit --ratings twice-train.csv --pairs test.csv --output predicted.csv",
    ],
)
def test_a_verb_that_refuses_pairs_given_twice_can_merge_them(
    there: Path, shell: Shell, typed: str
) -> None:
    """The remedy that the error names is an option of the verb that was typed."""
    twice(there)
    code, _, err = shell(*typed.split())
    assert (code, "given before" in err, "--duplicates)" in err) == (2, True, True)
    code, _, err = shell(*typed.split(), "--duplicates", "last")
    assert code == 0, err


@pytest.mark.parametrize("how", ["last", "mean"])
def test_held_out_pairs_given_twice_count_once(there: Path, shell: Shell, how: str) -> None:
    twice(there)
    train = ("evaluate", "m.tacit", "--train", "train.csv")
    merged = shell.json(*train, "--test", "twice-test.csv", "--duplicates", how)
    assert merged == shell.json(*train, "--test", "test.csv")


def test_duplicates_are_for_many_users(there: Path, shell: Shell) -> None:
    code, _, err = shell("recommend", "m.tacit", "--ratings", "my.csv", "--duplicates", "last")
    assert (code, "--duplicates goes with -o" in err) == (2, True)


def test_ones_own_ratings_are_named_by_their_option(there: Path, shell: Shell) -> None:
    (there / "own.csv").write_text("item;rating\n1;4,5\n2;1,0\n")
    code, _, err = shell("recommend", "m.tacit", "--ratings", "own.csv")
    assert code == 2
    assert "--ratings own.csv: every rating must be a number, with a decimal point" in err


def test_rows_without_a_rating_are_told_to_be_left_out() -> None:
    frame = pl.DataFrame({"user": [1, 2], "item": [1, 2], "rating": [3.0, float("nan")]})
    with pytest.raises(TacitError, match=r"1 row without a rating \(NaN\); leave them out"):
        tacit.Ratings.from_frame(frame, rating_range=(1, 5))


def test_the_demo_installs_its_server_where_tacit_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`make demo` runs .venv/bin/tacit; another pip would install it elsewhere."""
    from tacit.cli import demo

    monkeypatch.setattr(demo, "find_spec", lambda _: None)
    monkeypatch.setattr("sys.argv", [".venv/bin/tacit"])
    demo._say_how_to_open_the_page(Path("m.tacit"), Path("site"))
    told = "  .venv/bin/python -m pip install 'tacit[serve]' && .venv/bin/tacit serve m.tacit"
    assert told in capsys.readouterr().out


def test_one_persons_frame_may_have_the_usual_column_names() -> None:
    """As frames of everyone may; and a frame of several is refused under any of those names."""
    model = tacit.fit(ratings_for(0), "moments", epsilon=5.0)
    plain = pl.DataFrame({"item": model.catalogue.ids[:2], "rating": [4.0, 2.0]})
    named = plain.rename({"item": "movieId", "rating": "stars"})
    expected = model.recommend(plain, n=3)
    assert model.recommend(named, n=3) == expected
    assert model.recommend(named.to_pandas(), n=3) == expected
    assert model.recommend(named.to_arrow(), n=3) == expected
    with pytest.raises(TacitError, match="several users"):
        model.recommend(named.with_columns(customer_uuid=pl.Series(["a", "b"])), n=3)


def test_what_several_people_touched_is_not_one_persons() -> None:
    touched = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3], "item": [1, 2, 1, 2, 2, 3]})
    model = tacit.fit(tacit.Ratings.from_frame(touched, implicit=True), epsilon=1.0)
    for frame in (touched, touched.lazy(), touched.rename({"user": "userId"}).to_pandas()):
        with pytest.raises(TacitError, match="several users"):
            model.recommend(frame)
    assert model.recommend(touched.filter(pl.col("user") == 1), n=1)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("fit train.csv -o", "tacit fit --help"),
        ("book new -o", "tacit book"),
        ("plan --users 100,000", "'--users': expected a whole number such as 10000"),
        ("fit train.csv -o a.tacit --epsilon 1,5", "'--epsilon': expected a number such as 0.5"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --set rank=2 --set rank=3",
         "--set: given twice"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --engine store",
         "--engine store: it streams a store"),
        ("predict m.tacit --ratings my.csv --item 999", "--item 999: the catalogue"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 1-5",
         "'--rating-range' takes two numbers, such as 1 5; tacit fit --help"),
        ("recomend m.tacit", "Did you mean 'recommend'; "),
        ("fit train.csv ./train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5",
         "train.csv: the file is given twice; give each once"),
        ("card m.tacit --licence=", "--licence '': expected one line of text, such as cc-by-4.0"),
        ("card m.tacit --title=", "--title '': expected one line of text, such as Films"),
        ("tune train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --candidate moments "
         "--candidate moments", "one is given twice, and each is paid for"),
        ("split train.csv -o one.csv --test two.csv", "Without times: --by random"),
        ("audit moments --epsilon 1 --parts some", "--parts some: expected some of sensitivity"),
        ("data info netflix-", "did you mean 'netflix'"),
        ("data get netflix", "tacit cannot download it, since its owner asks for a login"),
        ("recommend m.tacit --exclude items.csv", "--only, --exclude)"),
        ("export-web m.tacit -o my.csv", "--output my.csv: it is a file"),
        ("export-web m.tacit -o .", "the folder has other files, which a host would publish"),
        ("partition train.csv -o my.csv --rating-range 0.5 5", "store my.csv: it is no folder"),
        ("demo --folder my.csv", "--folder my.csv: it is a file"),
        ("demo --users 0", "--users 0: expected a whole number from 1"),
        ("demo --users 10 --epsilon 0", "--epsilon 0.0: expected a number in (0, 10000]"),
        ("recommend m.tacit --only gone.csv", "--only gone.csv: 1 of 1 items are not in"),
        ("recommend m.tacit --exclude gone.csv", "--exclude gone.csv: 1 of 1 items are not in"),
        ("fit ragged.csv -o a.tacit --epsilon 1 --rating-range 1 5", "mend them or leave them out"),
        ("fit header.csv -o a.tacit --epsilon 1 --rating-range 1 5", "at least one row of user"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --checkpoint my.csv",
         "checkpoint my.csv cannot be used: it is a file, or in one; give a folder"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --book my.csv",
         "--book my.csv: it is no book of tacit; `tacit book new` makes one"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --set rank=two",
         "--set rank='two': expected a whole number of at least 1, or leave it out"),
        ("fit train.csv -o a.tacit --epsilon 1 --rating-range 0.5 5 --algorithm "
         "approximate-frank-wolfe", "no privacy with budget=None (on the command line: --no-"),
        ("info train.parquet", "it does not begin as a model does; give a file that"),
        ("info cut.tacit", "cut short or damaged"),
        ("fit https://x.org/r.csv -o a.tacit --epsilon 1 --rating-range 1 5", "download it"),
    ],
)  # fmt: skip
def test_wrong_commands_are_told_what_to_type(
    there: Path, shell: Shell, typed: str, told: str
) -> None:
    """And nothing is written."""
    (there / "gone.csv").write_text("item\n999\n")
    (there / "header.csv").write_text("user,item,rating\n")
    (there / "ragged.csv").write_text("user,item,rating\n1,2,3\n2,2,3,4\n")
    (there / "cut.tacit").write_bytes((there / "m.tacit").read_bytes()[:500])
    before = set(there.iterdir())
    code, _, err = shell(*typed.split())
    assert (code, told in err) == (2, True), err
    assert set(there.iterdir()) == before


def test_items_that_are_not_there_are_named_once(there: Path, shell: Shell) -> None:
    known, unknown = ("--item", "3"), ("--item", "nope", "--item", "none")
    code, out, err = shell("predict", "m.tacit", "--ratings", "my.csv", *unknown, *known)
    assert code == 0
    assert "nope" not in out
    assert (
        err == "tacit: note: --item nope, none: not in the catalogue of this model, and left out\n"
    )
    code, _, err = shell("predict", "m.tacit", "--ratings", "my.csv", *unknown)
    assert (code, err.count("nope"), err.count("\n")) == (2, 1, 1)


def test_similar_items_that_are_all_alike_are_said_to_be(there: Path, shell: Shell) -> None:
    """With one latent factor every item is as like another as can be, or as unlike."""
    words = "fit train.csv -o one.tacit --no-privacy --rating-range 0.5 5 --algorithm moments --set"
    assert shell(*words.split(), "rank=1", "--quiet")[0] == 0
    assert "do not rely on the order" in shell("similar", "one.tacit", "3", "-n", "3")[2]
    assert shell("similar", "one.tacit", "3", "-n", "1")[2] == ""


def test_help_names_what_stands_after_an_option_in_words(shell: Shell) -> None:
    """Not by types of Python, which say nothing to who does not write it."""
    for verb in ("fit", "plan", "serve", "book new", "book plan"):
        options = shell(*verb.split(), "--help")[1].partition("Options:")[2]
        assert "<" not in options.replace("0<=x<=65535", "").replace("x>=", ""), verb
    fit = shell("fit", "--help")[1]
    for words in ("--output PATH", "--epsilon NUMBER", "--rating-range LO HI", "--threads N"):
        assert words in fit
    verbs = shell("--help")[1].partition("Commands:")[2]
    assert "fit " in verbs
    assert "..." not in verbs  # what a verb does fits on its line
    for optional in ("serve", "book plan", "reproduce"):
        assert "[[" not in shell(*optional.split(), "--help")[1]


@pytest.mark.parametrize(
    "typed",
    [
        "report m.tacit --output full",
        "card m.tacit --output full",
        "recommend m.tacit --ratings train.csv --output full",
        "predict m.tacit --ratings train.csv --pairs test.csv --output full",
        "synth --users 10 --items 5 --per-user 3 --output full",
    ],
)
def test_a_full_disk_is_an_error_that_names_the_file(
    there: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    name = "full.html" if "report" in typed else "full.parquet"
    before = set(there.iterdir())
    code, out, err = shell(*typed.replace("full", name).split())
    assert (code, out) == (2, "")
    assert name in err
    assert "No space left on device" in err
    assert set(there.iterdir()) == before


def test_polars_on_a_full_disk_is_an_error_that_names_the_file(
    there: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise pl.exceptions.ComputeError("parquet: File out of specification")

    monkeypatch.setattr(pl.LazyFrame, "sink_parquet", full)
    code, _, err = shell(
        *["recommend", "m.tacit", "--ratings", "train.csv", "--output", "l.parquet"]
    )
    assert (code, "--output l.parquet: cannot be written; is the disk full?" in err) == (2, True)
    assert not list(there.glob("*l.parquet*"))


def test_a_reader_that_has_seen_enough_is_no_error(there: Path) -> None:
    tacit_ = [sys.executable, "-c", "from tacit.cli import main; main()", "certificate", "m.tacit"]
    with subprocess.Popen(tacit_, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_seed_does_for_a_split() -> None:
    by_seed, by_rng = (split(ratings_for(0), 0.2, rng) for rng in (7, np.random.default_rng(7)))
    assert by_seed[1].items.tolist() == by_rng[1].items.tolist()


def test_info_is_written_for_a_person(there: Path, shell: Shell) -> None:
    said = re.sub(" +", " ", shell("info", "m.tacit")[1])
    assert "private yes\nepsilon 2\n" in said
    assert "rating range 0.5 to 5\n" in said
    assert "features none\n" in said
