"""tacit split: what is held out is later, or drawn, and never in both files."""

from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from tacit.errors import TacitError
from tacit.evaluation import split_table
from tests.test_cli import RANGE, Shell, shell

__all__ = ["shell"]

NAMES = ("--user-column", "Kunde", "--item-column", "Artikel", "--rating-column", "Sterne")


def log(users: int = 40, each: int = 10) -> pl.DataFrame:
    rows = [(u, i, (7 * u + 3 * i) % 5 + 1, (u * 31 + i * 17) % 997) for u in range(users)
            for i in range(each)]  # fmt: skip
    return pl.DataFrame(rows, schema=["user", "item", "rating", "time"], orient="row")


def test_by_time_everything_held_out_is_later() -> None:
    train, test = split_table(log(), share=0.2)
    assert train["time"].max() < test["time"].min()
    assert len(test) == pytest.approx(80, abs=4)
    assert len(train) + len(test) == 400


def test_equal_times_stay_together() -> None:
    table = log().with_columns(pl.col("time") // 300)
    train, test = split_table(table, share=0.2)
    assert not set(train["time"]) & set(test["time"])


def test_by_random_depends_on_the_seed_alone() -> None:
    table = log().drop("time")
    one, same, other = (split_table(table, by="random", seed=s)[1] for s in (1, 1, 2))
    assert one.equals(same)
    assert not one.equals(other)
    assert len(one) == pytest.approx(40, abs=25)


def test_a_pair_rated_twice_is_in_one_part_only() -> None:
    again = log().with_columns(pl.col("time") + 1000)
    train, test = split_table(pl.concat([log(), again]), share=0.6)
    key = ["user", "item"]
    assert train.join(test, on=key, how="inner").is_empty()
    later = again.filter(pl.col("time") > train["time"].max())
    assert not later.join(train, on=key, how="semi").is_empty(), "or there was nothing to leave out"


@pytest.mark.parametrize(
    ("values", "options", "told"),
    [
        (["x"] * 400, {}, "'time': not all are times; expected numbers"),
        ([True] * 400, {}, "not all are times"),
        ([5] * 400, {}, "many ratings have the same time"),
        ([5] * 400, {"share": 1.0}, "share=1.0: expected a number in"),
        ([5] * 400, {"by": "times"}, "did you mean 'time'"),
    ],
)
def test_what_cannot_be_split(values: list[object], options: dict[str, object], told: str) -> None:
    with pytest.raises(TacitError, match=told):
        split_table(log().with_columns(time=pl.Series(values)), **options)  # type: ignore[arg-type]


def written(place: Path) -> Path:
    """A table as a warehouse has it: odd names, texts as ids, times, and more columns."""
    start = datetime(2024, 1, 1)
    table = log().select(
        Kunde="k-" + pl.col("user").cast(pl.String),
        ts=pl.col("time").map_elements(
            lambda hours: start + timedelta(hours=hours), return_dtype=pl.Datetime
        ),
        Artikel="a-" + pl.col("item").cast(pl.String),
        Sterne="rating",
        Kanal=pl.lit("web"),
    )
    table.write_parquet(place / "log.parquet")
    table.write_csv(place / "log.csv")
    return place


@pytest.mark.parametrize("name", ["log.parquet", "log.csv"])
def test_from_a_log_to_figures(shell: Shell, tmp_path: Path, name: str) -> None:
    place = written(tmp_path)
    parts = (place / "train.parquet", place / "test.parquet")
    words = ("split", place / name, "-o", parts[0], "--test", parts[1], "--share", 0.3)
    assert shell(*words)[0] == 2, "odd names are not guessed"
    code, out, err = shell(*words, *NAMES)
    assert code == 0, err
    assert "both are private" in out
    assert pl.read_parquet(parts[0]).columns == ["user", "item", "rating", "time"]
    model = place / "m.tacit"
    fit = ("fit", parts[0], "-o", model, "--rating-range", 1, 5, "--no-privacy")
    assert shell(*fit, "--algorithm", "moments")[0] == 0
    found = shell.json("evaluate", model, "--train", parts[0], "--test", parts[1])
    both = found["ratings"] + found["skipped"]  # type: ignore[operator]
    assert both == len(pl.read_parquet(parts[1]))


def test_no_input_and_no_other_file_is_written_over(shell: Shell, tmp_path: Path) -> None:
    place = written(tmp_path)
    before = (place / "log.parquet").read_bytes()
    (place / "there.csv").write_text("mine")
    for output in ("log.parquet", "there.csv"):
        words = ("split", place / "log.parquet", "-o", place / output, "--test", place / "t.csv")
        assert shell(*words, *NAMES)[0] == 2
    assert (place / "log.parquet").read_bytes() == before
    assert (place / "there.csv").read_text() == "mine"


def test_a_file_without_times_is_drawn_from(shell: Shell, tmp_path: Path) -> None:
    log().drop("time").write_csv(tmp_path / "log.csv")
    words = ("split", tmp_path / "log.csv", "-o", tmp_path / "a.csv", "--test", tmp_path / "b.csv")
    code, _, err = shell(*words)
    assert code == 2
    assert "--time-column" in err
    assert shell(*words, "--by", "random")[0] == 0
    assert shell("fit", tmp_path / "a.csv", "-o", "x", *RANGE)[0] == 2  # it is asked for an epsilon
