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


def test_compiled_loops_are_forgotten_if_any_loop_has_changed(tmp_path: Path) -> None:
    """A loop holds the code of those it calls: numba looks at the file of the outermost only."""
    sources, kept = tmp_path / "sources", tmp_path / "kept"
    sources.mkdir()
    kept.mkdir()
    for name in ("inner", "outer"):
        (sources / f"{name}.py").write_text("bound = 1\n")
    loops = [kept / f"outer.sum-7.py311.{end}" for end in ("nbi", "1.nbc")]
    other = kept / "outer.cpython-311.pyc"

    def compiled() -> bool:
        _compiling.forget_changed(sources, kept)
        assert other.exists()
        return any(path.exists() for path in loops)

    def compile_all() -> None:
        for path in (*loops, other):
            path.write_bytes(b"code")

    compile_all()
    assert not compiled(), "nothing says what they were compiled from"
    compile_all()
    assert compiled()
    assert compiled()
    (sources / "inner.py").write_text("bound = 2\n")
    assert not compiled()
    compile_all()
    assert compiled()
    (sources / "inner.py").rename(sources / "another.py")
    assert not compiled()


STALE = """
import sys
from pathlib import Path
import numpy as np
root, bound = Path(sys.argv[1]), sys.argv[2]
(root / "inner.py").write_text(f"from numba import njit\\n@njit(cache=True)\\ndef bound():\\n"
                               f"    return {bound}\\n")
(root / "outer.py").write_text("from numba import njit\\nfrom inner import bound\\n"
                               "@njit(cache=True)\\ndef most():\\n    return bound()\\n")
sys.path.insert(0, str(root))
from tacit import _compiling
if len(sys.argv) > 3:
    _compiling.forget_changed(root, _compiling._kept_in(root))
from outer import most
print(most())
"""


def test_without_it_an_old_bound_would_be_used(tmp_path: Path) -> None:
    """The twin is numba by itself; where it has learned to look at both files, this may go."""

    def most(*arguments: str) -> str:
        call = [sys.executable, "-c", STALE, str(tmp_path), *arguments]
        found = subprocess.run(call, check=False, capture_output=True, text=True)
        return found.stdout.strip() or found.stderr

    assert most("1", "forget") == "1"
    assert most("2", "forget") == "2"
    assert most("3") == "2"


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
