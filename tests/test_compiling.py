"""Compiling is said once, and the vector form of inner products has the bits of the loop."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numba import njit

import tacit
from tacit import _compiling
from tacit.kernels.lanes import dot, two_dots
from tacit.models.bulk import blocks

SCRIPT = """
import numpy as np
from tacit import _compiling
heard = []
_compiling.tell_with(heard.append)
from tacit.kernels.norms import count_norms
from numba import njit
for _ in range(2):
    njit(lambda x: x + 1)(1)
print(len(heard), heard[0])
"""


def test_it_is_said_once() -> None:
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], check=False, capture_output=True, text=True
    )
    assert found.stdout.startswith("1 compiling loops for this machine"), found.stderr


def test_predictions_of_many_say_it_for_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit that compiled other loops before does not make them silent."""
    heard: list[str] = []
    monkeypatch.setattr(_compiling, "_tell", [heard.append])
    own = tacit.Ratings.from_arrays([1, 2], [1, 2], [3, 4], rating_range=(1, 5))
    _compiling.tell_again()
    compile_something()
    for _ in range(2):
        compile_something()
        assert len(heard) == 1
    list(blocks(own, lambda *_: compile_something()))
    assert len(heard) == 2


def compile_something() -> None:
    njit(lambda x: x + 1)(1)


def test_a_person_without_logging_is_told_on_stderr() -> None:
    for person, told in (("sys.ps1 = '>'", 1), ("", 0)):
        script = f"import sys; {person}\nfrom tacit import _compiling\n_compiling._tell[0]('now')"
        found = subprocess.run(
            [sys.executable, "-c", script], check=False, capture_output=True, text=True
        )
        assert found.stderr.count("tacit: now") == told, found.stderr


def in_four_sums(one: np.ndarray, other: np.ndarray) -> float:
    sums, whole = [0.0] * 4, one.size - one.size % 4
    for p in range(one.size):
        sums[p % 4 if p < whole else 0] += float(one[p]) * float(other[p])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 80, 83])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_inner_products_have_the_bits_of_four_sums(size: int, kind: type) -> None:
    rng = np.random.default_rng(size)
    one, two, other = (rng.normal(size=size) for _ in range(3))
    row = one.astype(kind)
    assert dot(row, other) == in_four_sums(row, other)
    assert dot(row, row) == in_four_sums(row, row)
    assert two_dots(row, two, other) == (in_four_sums(row, other), in_four_sums(two, other))


def test_another_order_would_be_noticed() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 2, 83))
    others = [sum(float(a) * float(b) for a, b in zip(*pair, strict=True)) for pair in rows]
    assert any(dot(*pair) != other for pair, other in zip(rows, others, strict=True))


NOWHERE = """
from numba.core import caching
caching.InTreeCacheLocator.from_function = classmethod(lambda *_: None)
caching.UserWideCacheLocator.from_function = classmethod(lambda *_: None)
from tacit import _compiling
heard = []
_compiling.tell_with(heard.append)
import numba, numpy as np
from tacit.kernels.norms import count_norms
print(heard[0] == _compiling.NOWHERE, numba.config.CACHE_DIR)
"""


def test_a_service_that_can_write_nowhere_still_computes() -> None:
    """Read-only packages and no home, as in a container: numba raises at the first import."""
    environment = {k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"}
    found = subprocess.run(
        [sys.executable, "-c", NOWHERE],
        check=False,
        capture_output=True,
        text=True,
        env=environment | {"NUMBA_CACHE_DIR": ""},
    )
    said, folder = found.stdout.split()
    assert said == "True", found.stderr
    assert "tacit-loops-" in folder
    assert not Path(folder).exists(), "it is removed at the end"


def test_a_command_says_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    """`tacit evaluate` compiles the loops of predictions, lists and stds one by one."""
    from tacit.cli import _once

    tell = _once()
    for _ in range(3):
        tell(_compiling.TEXT)
    tell("another")
    assert capsys.readouterr().err == f"tacit: note: {_compiling.TEXT}\ntacit: note: another\n"
