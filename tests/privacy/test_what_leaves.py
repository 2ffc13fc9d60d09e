"""What leaves a fit: releases that are in the ledger, what follows from them, and nothing else.

Two neighbouring datasets are fitted: one person has other ratings of other items, and fewer. With
the same noise, nothing may differ but releases; with the same releases, nothing may differ at all.
Sums are formed from the true rows in either case.
"""

import json
import logging
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from safetensors import safe_open
from tests.privacy.loud_commands import MARK

import tacit
from tacit.algorithms import ALGORITHMS, IMPLICIT_ALGORITHMS
from tacit.trusted.mechanism import Mechanism

USERS, ITEMS, RATED, HER = 60, 12, 6, 17
RANGE = (0.5, 5.0)
ROOT = Path(__file__).parents[2]
BUDGET: dict[str, Any] = {"epsilon": 20.0, "noise_seed_unsafe": 7}


def table(neighbour: bool) -> pl.DataFrame:
    """Everyone's ratings; the neighbour has two where she had six, of other items."""
    rng = np.random.default_rng(3)
    rows: list[tuple[str, str, float]] = []
    for user in range(USERS):
        items = rng.choice(ITEMS, RATED, replace=False)
        stars = rng.integers(1, 11, RATED) / 2
        if user == HER and neighbour:
            others = [item for item in range(ITEMS) if item not in items]
            items, stars = others[:2], [5.0, 0.5]
        rows += [
            (f"user-{user:03d}", f"film-{item:02d}", float(star))
            for item, star in zip(items, stars, strict=True)
        ]
    return pl.DataFrame(rows, schema=["user", "item", "rating"], orient="row")


def catalogue() -> tacit.Catalogue:
    return tacit.Catalogue([f"film-{item:02d}" for item in range(ITEMS)], public=True)


def ratings(neighbour: bool, implicit: bool = False) -> tacit.Ratings:
    given = {"implicit": True} if implicit else {"rating_range": RANGE}
    frame = table(neighbour).select("user", "item") if implicit else table(neighbour)
    return tacit.Ratings.from_frame(frame, catalogue=catalogue(), **given)


def test_the_two_are_neighbours() -> None:
    one, two = ratings(False), ratings(True)
    assert one.n_users == two.n_users
    assert one.items.size == two.items.size + 4
    for user in range(USERS):
        hers = [r.items[r.indptr[user] : r.indptr[user + 1]].tolist() for r in (one, two)]
        assert (hers[0] == hers[1]) == (user != HER)


Fit = Callable[..., tacit.Model]
SMALL = {"frank-wolfe": {"rounds": 4}, "oja": {"rounds": 3}, "sgld": {"rounds": 4}}
SEARCH = [tacit.FrankWolfe(rounds=3), tacit.SVD(rank=2)]
FITS: dict[str, tuple[Fit, bool]] = {
    **{
        name: (partial(tacit.fit, algorithm=make(**SMALL.get(name, {}))), False)
        for name, make in ALGORITHMS.items()
        if name != "approximate-frank-wolfe"  # it refuses a budget: see the errors below
    },
    "automatic": (tacit.fit, False),
    "moments, block": (partial(tacit.fit, algorithm=tacit.Moments(eigen="block")), False),
    "row norm paid for": (
        partial(tacit.fit, algorithm=tacit.FrankWolfe(rounds=3, row_norm="private")),
        False,
    ),
    "item means": (
        partial(tacit.fit, algorithm=tacit.FrankWolfe(rounds=3, item_means=0.2)),
        False,
    ),
    "ridge": (partial(tacit.fit, algorithm=tacit.FrankWolfe(rounds=3, local="ridge")), False),
    "nearest neighbours": (
        partial(tacit.fit, algorithm=tacit.Cleansing(local="neighbours")),
        False,
    ),
    "most rated items": (partial(tacit.fit, top_items=7), False),
    "add_remove": (partial(tacit.fit, neighbours="add_remove"), False),
    "tune": (partial(tacit.tune, candidates=SEARCH), False),
    **{
        name: (partial(tacit.fit, algorithm=make()), True)
        for name, make in IMPLICIT_ALGORITHMS.items()
    },
}


@dataclass
class Told:
    """All that a fit tells anyone."""

    releases: list[np.ndarray] = field(default_factory=list)
    progress: list[tuple[Any, Any]] = field(default_factory=list)
    logs: list[tuple[str, int, str]] = field(default_factory=list)
    warnings: list[tuple[str, str]] = field(default_factory=list)
    screen: tuple[str, str] = ("", "")
    words: dict[str, str] = field(default_factory=dict)
    model: bytes = b""
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)
    checkpoint: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    def besides_releases(self) -> dict[str, Any]:
        """What must not depend on releases either."""
        return {
            "progress": self.progress,
            "logs": self.logs,
            "warnings": self.warnings,
            "screen": self.screen,
            "names of checkpoint files": sorted(self.checkpoint),
            "modes of checkpoint files": [mode for mode, _ in self.checkpoint.values()],
            "sizes of checkpoint files without releases": {
                name: len(content)
                for name, (_, content) in self.checkpoint.items()
                if not name.startswith("release-")
            },
            "names of arrays": sorted(self.arrays),
            "number of releases": len(self.releases),
        }


class _Logs(logging.Handler):
    def __init__(self, kept: list[tuple[str, int, str]]) -> None:
        super().__init__(logging.DEBUG)
        self._kept = kept

    def emit(self, record: logging.LogRecord) -> None:
        self._kept.append((record.name, record.levelno, record.getMessage()))


@contextmanager
def everything_kept(told: Told) -> Iterator[None]:
    """Keep all that is logged, at whatever level, and all warnings, also repeated ones."""
    root, numba = logging.getLogger(), logging.getLogger("numba")
    levels, handler = (root.level, numba.level), _Logs(told.logs)
    root.setLevel(logging.DEBUG)
    numba.setLevel(logging.WARNING)  # it tells how it compiles: no data in it
    root.addHandler(handler)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            yield
        told.warnings += [(one.category.__name__, str(one.message)) for one in said]
    finally:
        root.removeHandler(handler)
        root.setLevel(levels[0])
        numba.setLevel(levels[1])


class Ear:
    """Fits, and keeps everything that is told."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch, capture: Any) -> None:
        self._folder, self._patch, self._capture = folder, patch, capture

    def fit(self, name: str, *, neighbour: bool, forced: list[np.ndarray] | None = None) -> Told:
        """Fit, with the releases of another fit put in the place of its own, if they are given."""
        told = Told()
        fit, implicit = FITS[name]
        rows = ratings(neighbour, implicit)
        folder = self._folder / f"{neighbour}-{forced is not None}"
        folder.mkdir()
        plain = Mechanism._release

        def release(self: Mechanism, number: int, *rest: Any) -> np.ndarray:
            values = plain(self, number, *rest)
            told.releases.append(values.copy())  # a method may use its release as scratch
            return values if forced is None else forced[number - 1].copy()

        options = BUDGET | {"checkpoint": folder / "kept"}
        self._capture.readouterr()
        with self._patch.context() as patch, everything_kept(told):
            patch.setattr(Mechanism, "_release", release)
            model = fit(rows, progress=lambda *now: told.progress.append(now), **options)
        _look_at(model, folder, told)
        told.screen = self._capture.readouterr()
        return told


def _look_at(model: tacit.Model, folder: Path, told: Told) -> None:
    model.save(folder / "m.tacit")
    told.model = (folder / "m.tacit").read_bytes()
    with safe_open(folder / "m.tacit", framework="numpy") as file:
        told.facts = json.loads(file.metadata()["tacit"])
        told.arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    told.words = {
        "certificate": model.certificate.text(),
        "explanation": model.explain(),
        "repr": repr(model),
        "verification": repr(model.verify()),
    }
    told.checkpoint = {
        path.name: (path.stat().st_mode, path.read_bytes())
        for path in sorted((folder / "kept").iterdir())
    }


@pytest.fixture
def ear(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Any) -> Ear:
    return Ear(tmp_path, monkeypatch, capfd)


def without_fingerprint(checkpoint: dict[str, tuple[int, bytes]]) -> dict[str, Any]:
    """A checkpoint without the fingerprint of the ratings: private, and said to be."""
    kept: dict[str, Any] = dict(checkpoint)
    about = json.loads(kept.pop("fit.json")[1])
    assert re.fullmatch("[0-9a-f]{64}", about.pop("ratings"))
    return kept | {"about": about, "size": len(checkpoint["fit.json"][1])}


@pytest.mark.parametrize("name", FITS)
def test_with_the_same_releases_everything_else_is_the_same_too(name: str, ear: Ear) -> None:
    """Byte for byte: the model, its size, its certificate, the checkpoint, logs and the screen."""
    one = ear.fit(name, neighbour=False)
    two = ear.fit(name, neighbour=True, forced=one.releases)
    assert any(not np.array_equal(*pair) for pair in zip(one.releases, two.releases, strict=True))
    assert two.besides_releases() == one.besides_releases()
    assert two.words == one.words
    assert two.model == one.model
    assert without_fingerprint(two.checkpoint) == without_fingerprint(one.checkpoint)


@pytest.mark.parametrize("name", FITS)
def test_with_the_same_noise_only_releases_differ(name: str, ear: Ear) -> None:
    """And the first of them, from which noise falls out, by no more than its sensitivity."""
    one, two = ear.fit(name, neighbour=False), ear.fit(name, neighbour=True)
    assert two.besides_releases() == one.besides_releases()
    assert any(not np.array_equal(*pair) for pair in zip(one.releases, two.releases, strict=True))
    moved = float(np.linalg.norm(one.releases[0] - two.releases[0]))
    first, *_ = one.facts["certificate"]["releases"]
    assert moved <= first["sensitivity"] * (1 + 1e-9)
    assert_same_facts(one, two)
    for array in one.arrays:
        if not array.startswith("rule.") and name != "most rated items":
            assert np.array_equal(one.arrays[array], two.arrays[array])


EXCHANGED = ("covariance", "co-occurrences", "gradient", "equations")


def assert_same_facts(one: Told, two: Told) -> None:
    """What is in a model file beside its arrays, and sizes of checkpoint files.

    The sensitivity of a release, where it was left open, and its shape may follow from earlier
    releases. Its cost does not, but for those that exchange what is set aside for them; what all of
    them cost together is the same.
    """
    left, right = (json.loads(json.dumps(told.facts)) for told in (one, two))
    both = [facts["certificate"].pop("releases") for facts in (left, right)]
    totals = [sum(entry["mu"] ** 2 for entry in entries) for entries in both]
    assert math.isclose(*totals, rel_tol=1e-12)
    for number, (mine, yours) in enumerate(zip(*both, strict=True), start=1):
        assert mine["name"] == yours["name"]
        if not mine["name"].startswith(EXCHANGED):
            assert math.isclose(mine["mu"], yours["mu"], rel_tol=1e-12)
        shapes = [told.releases[number - 1].shape for told in (one, two)]
        if mine["sensitivity"] == yours["sensitivity"]:
            assert mine == yours or mine["name"].startswith(EXCHANGED)
            sizes = {len(told.checkpoint[release_file(number)][1]) for told in (one, two)}
            assert shapes[0] != shapes[1] or len(sizes) == 1
    for facts in (left, right):
        assert DIGEST.fullmatch(facts.pop("digest"))  # of the whole file, arrays included
        facts["rule"].pop("settings")
        for total in ("mu", "exact_epsilon"):
            facts["certificate"][total] = round(facts["certificate"][total], 9)
        facts["certificate"]["public"].pop("chosen candidate", None)
    assert left == right


def release_file(number: int) -> str:
    return f"release-{number:04d}.safetensors"


def test_a_number_in_the_log_would_be_noticed(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    """The twin: an engine that logs how many ratings it holds."""
    plain = tacit.ThreadEngine.take

    def talkative(self: tacit.ThreadEngine, rows: tacit.Ratings) -> None:
        logging.getLogger("tacit").debug("%d ratings", rows.items.size)
        plain(self, rows)

    monkeypatch.setattr(tacit.ThreadEngine, "take", talkative)
    one, two = (ear.fit("svd", neighbour=neighbour) for neighbour in (False, True))
    assert ("tacit", logging.DEBUG, "360 ratings") in one.logs
    assert two.besides_releases() != one.besides_releases()


def bad_frames(what: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The two tables with something wrong in her row, and not the same."""
    one, two = table(False), table(True)
    her = [frame.filter(pl.col("user") == f"user-{HER:03d}") for frame in (one, two)]
    first, second = her[0][:1], her[1][1:2]  # given twice
    if what == "rating out of range":
        first = first.with_columns(item=pl.lit("film-x"), rating=pl.lit(77.0))
        second = second.with_columns(item=pl.lit("film-y"), rating=pl.lit(-3.25))
    if what == "unknown item":
        first = first.with_columns(item=pl.lit("film-x"))
        second = second.with_columns(item=pl.lit("film-y"))
    if what == "no number":
        first = first.with_columns(item=pl.lit("film-x"), rating=pl.lit(math.nan))
        second = second.with_columns(item=pl.lit("film-y"), rating=pl.lit(math.nan))
    return pl.concat([one, first]), pl.concat([two, second])


@pytest.mark.parametrize(
    "what", ["rating out of range", "no number", "given twice", "unknown item"]
)
def test_errors_are_the_same_for_neighbours(what: str) -> None:
    """They say how many rows are wrong (CONTRIBUTING.md says so), and nothing else about them."""
    said = []
    for frame in bad_frames(what):
        with pytest.raises(tacit.DataError) as caught:
            tacit.Ratings.from_frame(frame, rating_range=RANGE, catalogue=catalogue())
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert "1 row" in said[0]


FIT = ["fit", "train.csv", "-o", "m.tacit", "--items", "items.csv", "--rating-range", "0.5", "5"]
SEED = ["--epsilon", "20", "--noise-seed-unsafe", "7"]
QUICK = ["--algorithm", "frank-wolfe", "--set", "rounds=3"]
MODES: dict[str, list[str]] = {
    "text": [*FIT, *SEED, *QUICK],
    "JSON": [*FIT, *SEED, *QUICK, "--json"],
    "explained": [*FIT, *SEED, *QUICK, "--explain"],
    "checkpoint": [*FIT, *SEED, *QUICK, "--checkpoint", "kept"],
    "checkpoint, again": [*FIT, *SEED, *QUICK, "--checkpoint", "kept"],
    "bar": [*FIT, *SEED, *QUICK],
    "one thread": [*FIT, *SEED, *QUICK, "--threads", "1"],
    "a checkpoint of another fit": [*FIT, "--epsilon", "3", *QUICK, "--checkpoint", "kept"],
    "no room in the budget": [
        *FIT,
        "--epsilon",
        "12",
        "--accounting",
        "paper",
        "--algorithm",
        "frank-wolfe",
        "--set",
        "rounds=50",
    ],
    "a method without privacy": [*FIT, *SEED, "--algorithm", "approximate-frank-wolfe"],
    "a setting that looks computed": [*FIT, *SEED, *QUICK, "--set", "row_norm=7.31842"],
    "strict": [*FIT, *SEED, *QUICK, "--strict"],
    "the certificate": ["certificate", "m.tacit"],
    "the certificate verified": ["verify", "m.tacit"],
    "about the model": ["info", "m.tacit"],
}
FORCED: dict[str, list[str]] = {
    **{f"as {name}": [*FIT, *SEED, "--algorithm", name, "--explain"] for name in ALGORITHMS},
    "most rated": [*FIT, *SEED, "--top-items", "7", "--json", "--explain"],
    "tuned": ["tune", *FIT[1:], *SEED, "--candidates", "candidates.toml"],
}
CANDIDATES = """
[[candidate]]
algorithm = "svd"
rank = 2
[[candidate]]
algorithm = "frank-wolfe"
rounds = 3
"""
DIGEST = re.compile("sha256:[0-9a-f]{64}")
"""In `verify` and `info`: a function of the published file, and so of the releases."""
FRAME = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|[\r\n ]|[━╸╺]")


def planned(folder: Path) -> list[dict[str, Any]]:
    """All commands; where methods are compared, releases come from one file for both folders."""
    plain = [
        {"name": name, "words": words, "colour": name == "bar", "releases": None}
        for name, words in MODES.items()
    ]
    return plain + [
        {"name": name, "words": words, "colour": False,
         "releases": str(folder.parent / f"{name}.npz")}
        for name, words in FORCED.items()
    ]  # fmt: skip


def run_loudly(folder: Path, neighbour: bool) -> tuple[dict[str, tuple[str, str]], set[str]]:
    """Run all commands in a folder; return what each said, and the files that are there."""
    folder.mkdir()
    table(neighbour).write_csv(folder / "train.csv")
    pl.DataFrame({"item": catalogue().ids}).write_csv(folder / "items.csv")
    (folder / "candidates.toml").write_text(CANDIDATES)
    (folder / "plan.json").write_text(json.dumps(planned(folder)))
    command = [sys.executable, "-X", "dev", "-W", "default"]
    command += ["-m", "tests.privacy.loud_commands", "plan.json"]
    paths = os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), str(ROOT)])
    done = subprocess.run(
        command, cwd=folder, env=os.environ | {"PYTHONPATH": paths, "COLUMNS": "100"},
        capture_output=True, text=True, timeout=250, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    parts = [dict(part.split("\n", 1) for part in stream.split(MARK)[1:])
             for stream in (done.stdout, done.stderr)]  # fmt: skip
    files = {f"{path.relative_to(folder)} {path.stat().st_size}" for path in folder.rglob("*")}
    return {name: (parts[0][name], parts[1][name]) for name in parts[0]}, files


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("loud")
    return [run_loudly(folder / name, name == "two") for name in ("one", "two")]


@pytest.mark.slow  # two processes with all commands; tests above look at fits in this one
@pytest.mark.parametrize("name", [*MODES, *FORCED])
def test_on_the_command_line_only_releases_differ(name: str, said: Any) -> None:
    """What is printed, the exit code and the size of the model, with the same noise.

    For all methods, with the same releases, the whole content of the model too.
    """
    (one, _), (two, _) = said
    if name == "bar":
        one, two = ({name: (out, bar_without_frames(err))} for out, err in (one[name], two[name]))
    assert [DIGEST.sub("", text) for text in two[name]] == [
        DIGEST.sub("", text) for text in one[name]
    ]
    assert "exit code" in one[name][0]


def bar_without_frames(text: str) -> str:
    """What a bar shows beside `releases k/2`: how often it is drawn depends on the clock."""
    assert "releases" in text
    return re.sub(r"releases([0-2]/2|0/\?)", "", FRAME.sub("", text))


@pytest.mark.slow
def test_files_of_commands_have_the_same_names_and_sizes(said: Any) -> None:
    """Those of all modes; the ratings themselves are the one thing that differs."""
    one, two = ({file for file in files if not file.startswith("train.csv")} for _, files in said)
    assert one == two
    assert any(file.startswith("kept/release-0002") for file in one)


@pytest.mark.slow
def test_the_commands_did_what_their_names_say(said: Any) -> None:
    """So that nothing above is equal because nothing happened."""
    out = {name: parts[0] for name, parts in said[0][0].items()}
    for name in (*MODES, *FORCED):
        wrong = name in {
            "a checkpoint of another fit", "no room in the budget", "a method without privacy",
            "as approximate-frank-wolfe",
        }  # fmt: skip
        code = "2" if wrong else "1" if name == "the certificate verified" else "(0|None)"
        assert re.search(rf"exit code {code}\n", out[name]), (name, out[name], said[0][0][name][1])
