"""Ratings and a spy that many tests use."""

import gc
import os

# Before numpy is loaded, and for processes that tests start: with more threads of BLAS than free
# cores, decompositions of 100 items and more were seen to take many times as long.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from collections.abc import Iterator
from functools import cache

import numpy as np
import pytest
import typer.main
from hypothesis import settings

import tacit
from tacit.accounting.release import Release, ReleaseKind
from tacit.trusted.statistic import BoundedSum, Statistic

gc.disable()  # thousands of modules and tests are loaded now, and stay until the end

settings.register_profile("tests", deadline=None)  # how long an example takes is the machine's
settings.load_profile("tests")


@cache
def ratings_for(seed: int, users: int = 80, items: int = 15, per_user: int = 6) -> tacit.Ratings:
    """A small problem with two tastes, half-star ratings and string ids; nothing can change it."""
    rng = np.random.default_rng(seed)
    tastes = rng.standard_normal((users, 2)) @ rng.standard_normal((2, items))
    stars = np.clip(np.round(2 * (3 + tastes)) / 2, 0.5, 5)
    rows = np.repeat(np.arange(users), per_user)
    columns = np.concatenate([rng.choice(items, per_user, replace=False) for _ in range(users)])
    return tacit.Ratings.from_arrays(
        [f"user-{row:05d}" for row in rows],
        [f"film-{column:02d}" for column in columns],
        stars[rows, columns],
        rating_range=(0.5, 5),
        catalogue=tacit.Catalogue(
            [f"film-{item:02d}" for item in range(items)],
            titles=[f"Film No. {item}" for item in range(items)],
            public=True,
        ),
    )


def named(label: str) -> Release:
    """A release of no kind that the package knows."""
    return Release(ReleaseKind.OTHER, label=label)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Statistical tests are slow ones, too: one word selects what `make test` leaves out."""
    for item in items:
        if item.get_closest_marker("statistical"):
            item.add_marker("slow")


def pytest_collection_finish() -> None:
    """From here on look for what tests leave, and never again at what was loaded before."""
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def _no_waiting_for_the_disk() -> Iterator[None]:
    """Thousands of small files need not reach the disk; tests of syncing see or replace the call.

    Processes that tests start, such as those that are killed, sync as ever.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield


@pytest.fixture(autouse=True, scope="session")
def _one_command_line() -> Iterator[None]:
    """What verbs and options there are is worked out once, not for each command that is tried."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(typer.main, "get_command", cache(typer.main.get_command))
        yield


@pytest.fixture
def ratings() -> tacit.Ratings:
    """The usual small problem."""
    return ratings_for(0)


def spy_on_sums(monkeypatch: pytest.MonkeyPatch) -> list[Statistic]:
    """Keep every statistic that an engine is asked to sum."""
    asked: list[Statistic] = []
    plain = tacit.ThreadEngine.sum

    def spying(self: tacit.ThreadEngine, statistic: Statistic, unit: float) -> BoundedSum:
        asked.append(statistic)
        return plain(self, statistic, unit)

    monkeypatch.setattr(tacit.ThreadEngine, "sum", spying)
    return asked
