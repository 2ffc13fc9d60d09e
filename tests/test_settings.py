"""Settings check themselves, and what they allow stands the same in errors, help and reference."""

import math
import re
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from typer.testing import CliRunner

import tacit
from tacit._validate import Count, Positive, Range, Seed, Validated, check, settings_of
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
from tacit.algorithms.preparation import Preparation
from tacit.cli import app

PAGES = {
    "README": Preparation,
    "../implicit": tacit.Interactions,
    "als": tacit.ALS,
    "approximate-frank-wolfe": tacit.ApproximateFrankWolfe,
    "cleansing": tacit.Cleansing,
    "frank-wolfe": tacit.FrankWolfe,
    "moments": tacit.Moments,
    "noisy-gradient": tacit.NoisyGradient,
    "oja": tacit.FrankWolfe,
    "projected-gradient": tacit.ProjectedGradient,
    "svd": tacit.SVD,
}
FOLDER = Path(__file__).parents[1] / "docs" / "algorithms"
EVERY = {name: make() for name, make in (ALGORITHMS | IMPLICIT_ALGORITHMS).items()}


@dataclass(frozen=True, kw_only=True)
class Example(Validated):
    """One field of every kind."""

    share: Annotated[float, Range(0, 1, "(]")] = 0.5
    rounds: Annotated[int, Range(2, 10)] | None = None
    rate: Positive | Literal["slow", "fast"] = "slow"
    shares: tuple[Count, Count] = (1, 2)
    weights: tuple[Count, ...] = ()
    seed: Seed = 0
    flag: bool = True


@pytest.mark.parametrize(
    "good",
    [
        {"share": 1},
        {"share": 1e-300},
        {"rounds": 2},
        {"rounds": 10},
        {"rounds": None},
        {"rate": 3},
        {"rate": "fast"},
        {"shares": (4, 4)},
        {"weights": (1, 2, 3)},
        {"seed": 2**63 - 1},
        {"flag": False},
    ],
    ids=str,
)
def test_what_is_allowed(good: dict[str, Any]) -> None:
    assert getattr(Example(**good), next(iter(good))) == next(iter(good.values()))


BAD: list[tuple[str, Any, str]] = [
    ("share", 0, "a number in (0, 1]; leave it out for 0.5"),
    ("share", math.nan, "a number in (0, 1]"),
    ("share", True, "a number in (0, 1]"),
    ("share", "0.5", "a number in (0, 1]"),
    ("rounds", 1, "a whole number from 2 to 10 or None; leave it out for None"),
    ("rounds", 3.0, "a whole number from 2 to 10 or None"),
    ("rounds", True, "a whole number"),
    ("rate", 0.0, "a positive number, 'slow' or 'fast'"),
    ("rate", math.inf, "a positive number"),
    ("rate", None, "a positive number"),
    ("rate", ["slow"], "a positive number"),
    ("shares", (1,), "a tuple of 2, each a whole number of at least 1"),
    ("shares", (1, 0), "a tuple of 2"),
    ("shares", [1, 2], "a tuple of 2"),
    ("weights", (1, 0), "a tuple, each a whole number of at least 1"),
    ("weights", 3, "a tuple"),
    ("seed", 2**63, "a whole number from 0 to 2^63 - 1"),
    ("seed", -1, "a whole number from 0"),
    ("flag", 1, "true or false"),
]


@pytest.mark.parametrize(("name", "value", "expected"), BAD, ids=str)
def test_what_is_not(name: str, value: Any, expected: str) -> None:
    """An error names the setting, its value, what is expected and what to do."""
    with pytest.raises(tacit.ConfigError) as caught:
        Example(**{name: value})
    assert str(caught.value).startswith(f"{name}={value!r}: expected {expected}")


def test_values_by_themselves() -> None:
    check("threads", 3, Count)
    with pytest.raises(
        tacit.ConfigError, match=r"^threads=0: expected a whole number of at least 1$"
    ):
        check("threads", 0, Count)


@pytest.mark.parametrize("name", EVERY)
def test_every_setting_of_every_algorithm_has_its_range(name: str) -> None:
    """A number without a range would be a setting that nobody checks."""
    config = EVERY[name]
    assert isinstance(config, Validated)
    for setting in settings_of(type(config)):
        assert setting.expected != "a number"
        with pytest.raises(tacit.ConfigError, match=rf"^{setting.name}="):
            type(config)(**{setting.name: object()})


@pytest.mark.parametrize("name", EVERY)
def test_the_help_lists_settings_and_ranges(name: str) -> None:
    shown = CliRunner().invoke(app, ["fit", "--algorithm", name, "--help"], env={"COLUMNS": "200"})
    text = " ".join(shown.output.split())
    assert f"Settings of {name}, for --set" in text
    for setting in settings_of(type(EVERY[name])):
        assert setting.name in text
        assert " ".join(setting.expected.split()) in text


def _table(page: str) -> dict[str, list[str]]:
    """The rows of a page's table of settings, by name."""
    lines = (FOLDER / f"{page}.md").read_text().splitlines()
    head = next(
        k for k, line in enumerate(lines) if line.startswith("| name | default | allowed |")
    )
    rows: dict[str, list[str]] = {}
    for line in lines[head + 2 :]:
        if not line.startswith("|"):
            break
        name, *rest = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        rows[name.strip("`")] = rest
    return rows


def _is_shown(default: Any, cell: str) -> bool:
    """Whether a cell shows a default: `None`, `True`, `"text"`, a number or a tuple."""
    if default is None or isinstance(default, bool):
        return cell.startswith(f"`{default}`")
    if isinstance(default, str):
        return cell == f'`"{default}"`'
    if isinstance(default, tuple):
        return cell == str(default)
    return math.isclose({"sqrt2": math.sqrt(2)}.get(cell) or float(cell), default, abs_tol=0)


@pytest.mark.parametrize("page", PAGES)
def test_the_reference_says_what_the_code_does(page: str) -> None:
    settings, rows = {one.name: one for one in settings_of(PAGES[page])}, _table(page)
    for name, (default, allowed, *_) in rows.items():
        assert _is_shown(settings[name].default, default), name
        assert allowed == settings[name].expected, name
    shared = {field.name for field in fields(Preparation)}
    if page not in ("oja", "README"):  # that of Oja lists only what Frank-Wolfe's refers to it
        assert set(settings) - set(rows) <= (
            shared if issubclass(PAGES[page], Preparation) else set()
        )


def test_a_wrong_reference_would_be_noticed() -> None:
    assert not _is_shown(10, "11")
    assert not _is_shown(None, "10")
    assert not _is_shown("exact", '`"oja"`')
