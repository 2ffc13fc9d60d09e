"""What cannot be Ratings is refused: with the column and the count, and nothing of anyone."""

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tacit.data.ratings import Ratings
from tacit.errors import ConfigError, DataError

STARS = (0.5, 5.0)
SECRETS = ("secretann", "secretbob", "secrettea", "secretmilk", "4.4375", "77.125")
GOOD: list[tuple[Any, Any, Any]] = [
    ("secretann", "secrettea", 4.4375),
    ("secretbob", "secrettea", 4.4375),
    ("secretbob", "secretmilk", 4.4375),
]

BAD: dict[str, tuple[list[tuple[Any, Any, Any]], str]] = {
    "null rating": ([*GOOD, ("secretann", "secretmilk", None)], "'rating': 1 row without a rating"),
    "NaN rating": ([*GOOD, ("secretann", "secretmilk", float("nan"))], "'rating': 1 row without"),
    "infinite": ([*GOOD, ("secretann", "secretmilk", float("inf"))], "'rating': 1 row outside"),
    "minus infinite": ([*GOOD, ("secretann", "x", float("-inf"))], "'rating': 1 row outside"),
    "too high": (
        [*GOOD, ("secretann", "x", 77.125), ("a", "x", 77.125)],
        "'rating': 2 rows outside",
    ),
    "just too high": ([*GOOD, ("secretann", "x", 5.0000001)], "'rating': 1 row outside"),
    "text rating": (
        [(user, item, "secrettea") for user, item, _ in GOOD],
        "'rating': 3 rows with a rating that is no number",
    ),
    "null user": ([*GOOD, (None, "secrettea", 1.0)], "'user': 1 row without an id"),
    "null item": ([*GOOD, ("secretann", None, 1.0)], "'item': 1 row without an id"),
    "empty user": ([*GOOD, ("", "secrettea", 1.0)], "'user': 1 row without an id"),
    "broken user": ([(1.5, "secrettea", 1.0), (2.0, "x", 1.0)], "'user': 1 row with a float"),
    "infinite user": ([(float("inf"), "secrettea", 1.0), (2.0, "x", 1.0)], "'user': 1 row with"),
    "true user": ([(True, "secrettea", 1.0), (False, "x", 1.0)], "'user': 2 rows of type Boolean"),
    "true rating": ([("a", "secrettea", True), ("b", "x", False)], "'rating': 2 rows of type Bool"),
    "single user": ([GOOD[1], GOOD[2]], "'user': 1 user in all; at least 2"),
    "single item": ([GOOD[0], GOOD[1]], "'item': 1 item in all; at least 2"),
    "repeated": ([*GOOD, GOOD[0], GOOD[0], GOOD[1]], "'user' and 'item': 3 rows with a pair"),
}

GOOD_AS_TEXT = {"true user", "true rating", "infinite user", "broken user"}
"""What has no type in a text file, where such ids are texts like others."""


def assert_refused(work: Callable[[], object], expected: str) -> None:
    """A DataError with the text, and nothing of anyone in it or behind it."""
    with pytest.raises(DataError) as caught:
        work()
    assert expected in str(caught.value)
    shown = "".join(traceback.format_exception_only(caught.value))
    behind = [caught.value.__cause__, caught.value.__context__]
    for secret in SECRETS:
        assert secret not in shown
        assert not any(secret in repr(error) for error in behind)


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_frames_are_refused(name: str) -> None:
    rows, expected = BAD[name]
    frame = pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")
    assert_refused(lambda: Ratings.from_frame(frame, rating_range=STARS), expected)


@pytest.mark.parametrize("name", sorted(BAD))
def test_bad_parquet_files_are_refused(tmp_path: Path, name: str) -> None:
    rows, expected = BAD[name]
    path = tmp_path / "r.parquet"
    pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row").write_parquet(path)
    assert_refused(lambda: Ratings.from_file(path, rating_range=STARS), expected)


@pytest.mark.parametrize("separator", [",", "\t", "::"])
@pytest.mark.parametrize("name", sorted(set(BAD) - GOOD_AS_TEXT))
def test_bad_text_files_are_refused(tmp_path: Path, name: str, separator: str) -> None:
    rows, expected = BAD[name]
    fields = [["" if value is None else str(value) for value in row] for row in rows]
    lines = [separator.join(row) for row in [["user", "item", "rating"], *fields]]
    path = tmp_path / "r.txt"
    path.write_text("\n".join(lines))
    assert_refused(lambda: Ratings.from_file(path, rating_range=STARS), expected)


@pytest.mark.parametrize("rows", [[], [["user", "item", "rating"]]])
def test_no_ratings_at_all_are_refused(tmp_path: Path, rows: list[list[str]]) -> None:
    (tmp_path / "r.csv").write_text("\n".join(",".join(row) for row in rows))
    with pytest.raises(DataError):
        Ratings.from_file(tmp_path / "r.csv", rating_range=STARS)
    frame = pl.DataFrame(schema={"user": pl.String, "item": pl.String, "rating": pl.Float64})
    assert_refused(lambda: Ratings.from_frame(frame, rating_range=STARS), "0 rows")
    assert_refused(lambda: Ratings.from_arrays([], [], [], rating_range=STARS), "0 rows")


def test_a_bad_text_in_a_numeric_column_is_not_quoted(tmp_path: Path) -> None:
    path = tmp_path / "r.csv"
    path.write_text("user,item,rating\n" + "1,2,3\n" * 2000 + "1,secrettea,secretmilk\n")
    assert_refused(
        lambda: Ratings.from_file(path, rating_range=STARS), "1 row with a rating that is no"
    )


def test_arrays_of_different_lengths_are_refused() -> None:
    assert_refused(lambda: Ratings.from_arrays([1, 2], [1], [1, 2], rating_range=STARS), "lengths")
    assert_refused(
        lambda: Ratings.from_arrays(np.eye(2), [1], [1], rating_range=STARS), "dimensions"
    )
    assert_refused(lambda: Ratings.from_arrays("secretann", [1], [1], rating_range=STARS), "users")


@pytest.mark.parametrize(
    "rating_range",
    [
        *[(5, 1), (1, 1), (0, float("inf")), (float("nan"), 1), (0, 1e39), (1, 1 + 1e-9)],
        *[(1,), (1, 2, 3), ("a", "b"), 5, None, "nothing"],
    ],
)
def test_bad_rating_ranges_are_refused(rating_range: Any) -> None:
    with pytest.raises(ConfigError, match="rating_range"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], rating_range=rating_range)


def test_other_options_are_checked() -> None:
    with pytest.raises(ConfigError, match="duplicates='first'"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], rating_range=STARS, duplicates="first")
    with pytest.raises(ConfigError, match="unknown_items='skip'; give 'error' or 'drop'"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], rating_range=STARS, unknown_items="skip")
    with pytest.raises(ConfigError, match="catalogue is a list"):
        Ratings.from_arrays([1, 2], [1, 2], [1, 2], rating_range=STARS, catalogue=["tea"])


@pytest.mark.parametrize("separator", [",", "::"])
def test_damaged_text_files_are_read_or_refused(tmp_path: Path, separator: str) -> None:
    """Bytes changed, put in, taken out or repeated at random: Ratings or a DataError, no more."""
    rng = np.random.default_rng(len(separator))
    lines = [separator.join(map(str, (f"u{k}", k % 23, (k % 10 + 1) / 2))) for k in range(60)]
    whole = "\n".join(lines).encode()
    path = tmp_path / "damaged.txt"
    messages = []
    for _ in range(150):
        content = bytearray(whole)
        for _ in range(rng.choice([1, 2, 8])):
            at, length = rng.integers(len(content)), rng.integers(1, 30)
            some = [b"", rng.bytes(length), bytes(content[:length])][rng.integers(3)]
            content[at : at + rng.integers(length)] = some
        path.write_bytes(content)
        try:
            Ratings.from_file(path, rating_range=STARS, duplicates="last")
        except DataError as error:
            messages.append(str(error))
    assert messages
    assert not any("u17" in message for message in messages)
