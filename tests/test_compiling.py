"""Compiling is said once, and the vector form of inner products has the bits of the loop."""

import subprocess
import sys

import numpy as np
import pytest

from tacit.kernels.lanes import dot, two_dots

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
