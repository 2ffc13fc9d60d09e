"""Inner products that are a processor's vectors have the bits of the sums that they stand for."""

import numpy as np
import pytest

from tacit.kernels.lanes import dot, two_dots


def by_hand(one: np.ndarray, other: np.ndarray) -> float:
    """Four partial sums in double precision; what is left over goes to the first."""
    sums, whole = [0.0] * 4, one.size - one.size % 4
    for p in range(whole):
        sums[p % 4] += float(one[p]) * float(other[p])
    for p in range(whole, one.size):
        sums[0] += float(one[p]) * float(other[p])
    return (sums[0] + sums[1]) + (sums[2] + sums[3])


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_they_are_four_sums_to_the_last_bit(kind: type) -> None:
    rng = np.random.default_rng(4)
    orders_differ = False
    for size in [*range(14), 80, 1001]:
        one, two = (rng.standard_normal(size).astype(kind) for _ in range(2))
        other = rng.standard_normal(size) * 10.0 ** rng.integers(-6, 6, size)
        assert dot(one, other) == by_hand(one, other)
        assert two_dots(one, two, other) == (by_hand(one, other), by_hand(two, other))
        orders_differ |= by_hand(one, other) != sum(
            float(a) * b for a, b in zip(one, other, strict=True)
        )
    assert orders_differ  # a sum in another order would have been noticed
