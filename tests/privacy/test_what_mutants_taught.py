"""Tests that were missing until a mutant (tests/mutants) got by all the others."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.conftest import named, ratings_for
from tests.privacy import (
    test_sensitivity,
    test_sensitivity_als,
    test_sensitivity_latent,
    test_sensitivity_moments,
    test_sensitivity_more,
    test_sensitivity_preparation,
)
from tests.privacy.test_mechanism import BOUND, Silence, SilentEngine
from tests.support.attack import (
    ITEMS,
    RANGE,
    Row,
    plain,
    random_row,
    ratings_of,
)

import tacit
from tacit.accounting.ledger import Ledger
from tacit.trusted.mechanism import Mechanism
from tacit.trusted.sampler import SeededNoiseUnsafe, floor_normals
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import HeldOutLosses, Holdout, ResidualEnergy, ResidualProduct

STATISTICS: dict[str, Callable[[], Statistic]] = {
    **test_sensitivity.CASES,
    **test_sensitivity_more.CASES,
    **{f"moments: {name}": case for name, case in test_sensitivity_moments.CASES.items()},
    **test_sensitivity_preparation.CASES,
    **{f"equations: {name}": case for name, case in test_sensitivity_als.CASES.items()},
    **{f"latent: {name}": case for name, case in test_sensitivity_latent.CASES.items()},
}


def test_noise_does_not_repeat_from_block_to_block() -> None:
    """A large release needs several blocks of random words; none may be used twice.

    That a value of 40 bits comes again by chance, for 1000 values and 400,000 others, has a
    probability of one in ten thousand; and the seed is fixed.
    """
    values = floor_normals(SeededNoiseUnsafe(5), 700_000, 40)
    assert not np.isin(values[300_000:], values[:1000]).any()


def test_a_release_is_on_disk_before_anyone_hears_of_it(tmp_path: Path) -> None:
    """Progress is the first that the world sees of a release."""
    heard: list[tuple[int, int]] = []

    def progress(done: int, planned: int) -> None:
        heard.append((done, len(list(tmp_path.glob("release-*")))))

    config = tacit.FrankWolfe(rounds=4, item_means=0.2)
    tacit.fit(ratings_for(0), config, epsilon=1.0, checkpoint=tmp_path, progress=progress)
    assert heard == [(number, number) for number in range(1, 5)]


def grid_of(users: int, relation: str) -> tuple[float, int]:
    """The unit and bits of a release of the statistic `Silence` for so many users."""
    ledger = Ledger(tacit.PrivacyBudget(0.3, neighbours=relation))
    entry = ledger.reserve(named("r 1"), BOUND, 1.0)
    engine = SilentEngine()
    engine.n_users = users
    return Mechanism(engine, ledger, SeededNoiseUnsafe(1))._grid(Silence(), entry)  # type: ignore[arg-type]


def test_the_grid_does_not_tell_a_protected_number_of_users() -> None:
    """Also where there are so many that a grid made for them would be coarser.

    The twin: under replace, where their number is public, it is coarser.
    """
    assert grid_of(10, "add_remove") == grid_of(2**25, "add_remove")
    assert grid_of(10, "replace") != grid_of(2**25, "replace")


@pytest.mark.parametrize("case", STATISTICS)
def test_sums_are_integers_and_exact_on_the_finest_grid(case: str) -> None:
    """A sum is the sum of its terms to the last bit, also where it needs more than 53 of them.

    Floating point would pass on coarse grids. Here terms have as many bits as they may have, and
    hundreds of users make the sum longer than a double's digits.
    """
    statistic = STATISTICS[case]()
    rng = np.random.default_rng(1)
    rows: list[Row] = [random_row(rng) for _ in range(8)]
    unit = statistic.max_entry * 2.0**-statistic.term_bits
    times = 101
    few, many = (units(statistic, rows * count, unit) for count in (1, times))
    assert many.dtype == np.int64
    assert np.array_equal(many, few * times)


def test_rows_filled_in_are_summed_exactly_however_many_there_are() -> None:
    """Outer products are added as doubles, in blocks so small that no sum needs more digits.

    Blocks of 16,384 users would be off by some units.
    """
    statistic = test_sensitivity_more.filled(0, bound=0.5)
    rows = [{0: value} for value in (5.0, 4.7, 1.3, 1.0, 2.9, 4.1, 3.3, 1.9)]  # as long as may be
    unit = statistic.max_entry * 2.0**-statistic.term_bits
    few, many = (units(statistic, rows * count, unit, threads=1) for count in (1, 1750))
    assert np.array_equal(many, few * 1750)


def units(statistic: Statistic, rows: list[Row], unit: float, threads: int = 2) -> np.ndarray:
    engine = tacit.ThreadEngine(threads)
    engine.take(ratings_of(rows))
    return engine.sum(statistic, unit)._exact_sum


class Overflowing:
    """A published rule whose scores are beyond all numbers for whoever rated item 0."""

    def scores(self, own: Any) -> np.ndarray:
        huge = np.where(np.any(own.items == 0), np.float64(1e308), 1.0)
        return np.full((own.indptr.size - 1, ITEMS), huge) * 10.0


def test_scores_that_overflow_are_not_spoken_of() -> None:
    """A warning of numpy would tell that someone has rated item 0."""
    statistic = HeldOutLosses(
        (Overflowing(), Overflowing()), ITEMS, RANGE, Holdout(0.5, 0), clip=0.1
    )
    rows: list[Row] = [dict.fromkeys(range(ITEMS), 4.0), dict.fromkeys(range(1, ITEMS), 4.0)]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        units(statistic, rows, 2.0**-26)
    assert said == []


@pytest.mark.parametrize("scale", [1.001, 50.0])
def test_columns_that_are_not_orthonormal_are_refused(scale: float) -> None:
    """Algorithm 2 as printed begins with a long vector, for which no bound holds."""
    column = np.zeros((ITEMS, 1))
    column[0] = 1.0
    along = np.hstack([column, column])
    wrong = [
        ResidualProduct(plain(), (), 3.0, scale * column),
        ResidualProduct(plain(), (), 3.0, along),
        ResidualEnergy(plain(), (), 3.0, scale * column[:, 0]),
    ]
    for statistic in wrong:
        with pytest.raises(tacit.PrivacyError, match="orthonormal"):
            units(statistic, [{0: 5.0}, {1: 1.0}], statistic.max_entry * 2.0**-40)
    right = ResidualProduct(plain(), (), 3.0, column)
    assert units(right, [{0: 5.0}, {1: 1.0}], right.max_entry * 2.0**-40).any()
