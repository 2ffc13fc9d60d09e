"""The mechanism: noise of the sd in the ledger, in the right shape, independent, and paid for."""

import copy
import pickle
import sys
from dataclasses import dataclass, field

import numpy as np
import pytest
from scipy import stats
from tests.conftest import named, ratings_for

import tacit
from tacit.accounting.budget import LARGEST_MU, Sensitivity
from tacit.accounting.ledger import Entry, Ledger
from tacit.trusted import mechanism as mechanism_module
from tacit.trusted.mechanism import Mechanism, Numerics
from tacit.trusted.rows import Rows
from tacit.trusted.sampler import SeededNoiseUnsafe
from tacit.trusted.statistic import BoundedSum
from tacit.trusted.statistics import UserCount

ALARM = 1e-4
ITEMS = 60
BOUND = Sensitivity(add_remove=1.0, replace=2.0)


@dataclass(frozen=True, eq=False)
class Silence:
    """A statistic whose sum is zero, so that a release is its noise."""

    shape: tuple[int, ...] = (ITEMS, ITEMS)
    symmetric: bool = True
    sensitivity: Sensitivity = field(default=BOUND)
    max_entry: float = 1.0
    term_bits: int = 52


class SilentEngine:
    """Holds nobody and sums nothing."""

    n_users = 1000

    def take(self, ratings: tacit.Ratings) -> None:
        pass

    def sum(self, statistic: Silence, unit: float) -> BoundedSum:
        return BoundedSum(np.zeros(statistic.shape, dtype=np.int64), unit, statistic)  # type: ignore[arg-type]


def releases(statistic: Silence, count: int, relation: str = "replace") -> tuple[np.ndarray, float]:
    """Many releases of pure noise, and the sd that the ledger states."""
    ledger = Ledger(tacit.PrivacyBudget(1.0, neighbours=relation))
    mechanism = Mechanism(SilentEngine(), ledger, SeededNoiseUnsafe(1))
    for turn in range(count):
        ledger.reserve(named(f"r {turn}"), statistic.sensitivity, 1 / count)
    noise = [mechanism.release(named(f"r {turn}"), statistic) for turn in range(count)]  # type: ignore[arg-type]
    return np.array(noise), ledger.entries[0].noise_sd


def fits(values: np.ndarray, sd: float) -> bool:
    counts, _ = np.histogram(stats.norm.cdf(values / sd), bins=100, range=(0, 1))
    return bool(stats.chisquare(counts).pvalue > ALARM)


@pytest.mark.parametrize("relation", ["replace", "add_remove"])
def test_noise_has_the_sd_of_the_ledger_and_no_other(relation: str) -> None:
    noise, sd = releases(Silence(shape=(100, 200), symmetric=False), 10, relation)
    assert fits(noise.ravel(), sd)
    assert not fits(noise.ravel(), 0.9 * sd)
    assert not fits(noise.ravel(), 1.1 * sd)


def test_symmetric_noise_has_sd_s_on_the_diagonal_and_less_by_sqrt2_elsewhere() -> None:
    noise, sd = releases(Silence(), 60)
    assert np.array_equal(noise, noise.transpose(0, 2, 1))
    above = noise[:, *np.triu_indices(ITEMS, 1)].ravel()
    diagonal = noise[:, np.arange(ITEMS), np.arange(ITEMS)].ravel()
    assert fits(diagonal, sd)
    assert fits(above, sd / np.sqrt(2))
    assert not fits(above, sd)  # one triangle mirrored would have this
    assert not fits(above, 0.9 * sd / np.sqrt(2))


def test_releases_and_entries_are_independent() -> None:
    noise, sd = releases(Silence(shape=(ITEMS * ITEMS,), symmetric=False), 40)
    limit = stats.norm.isf(ALARM / 200) / np.sqrt(noise.shape[1])
    correlations = (noise @ noise.T) / (sd**2 * noise.shape[1]) - np.eye(len(noise))
    spread = np.abs(correlations[~np.eye(len(noise), dtype=bool)])
    assert spread.max() < limit * 1.2
    assert abs(np.mean(noise[:, 1:] * noise[:, :-1])) / sd**2 < limit


def test_idealised_noise_has_the_same_sd() -> None:
    ledger = Ledger(tacit.PrivacyBudget(1.0))
    source = SeededNoiseUnsafe(2)
    mechanism = Mechanism(SilentEngine(), ledger, source, numerics=Numerics.IDEALISED)
    statistic = Silence(shape=(200_000,), symmetric=False)
    sd = ledger.reserve(named("r 1"), BOUND, 1.0).noise_sd
    assert fits(mechanism.release(named("r 1"), statistic), sd)  # type: ignore[arg-type]


def test_the_grid_depends_on_public_numbers_only_and_the_sd_is_a_power_of_two_units() -> None:
    for relation in ("replace", "add_remove"):
        ledger = Ledger(tacit.PrivacyBudget(0.3, neighbours=relation))
        entry = ledger.reserve(named("r 1"), BOUND, 1.0)
        grids = set()
        for users in (10, 1000) if relation == "add_remove" else (1000,):
            engine = SilentEngine()
            engine.n_users = users
            unit, bits = Mechanism(engine, ledger, SeededNoiseUnsafe(1))._grid(Silence(), entry)  # type: ignore[arg-type]
            assert unit * 2.0**bits == entry.noise_sd
            grids.add((unit, bits))
        assert len(grids) == 1


def test_nothing_is_released_that_was_not_reserved() -> None:
    mechanism = Mechanism(SilentEngine(), Ledger(tacit.PrivacyBudget(1.0)), SeededNoiseUnsafe(1))
    with pytest.raises(tacit.PrivacyError, match="not reserved"):
        mechanism.release(named("r 1"), Silence())  # type: ignore[arg-type]


def test_more_users_than_sums_have_room_for() -> None:
    engine = SilentEngine()
    engine.n_users = 2**27
    ledger = Ledger(tacit.PrivacyBudget(1.0, neighbours="add_remove"))
    ledger.reserve(named("r 1"), BOUND, 1.0)
    with pytest.raises(tacit.EngineError, match="users"):
        Mechanism(engine, ledger, SeededNoiseUnsafe(1)).release(named("r 1"), Silence())  # type: ignore[arg-type]


@pytest.mark.parametrize("what", ["a sum", "rows"])
def test_what_is_private_neither_prints_nor_pickles(what: str) -> None:
    total = BoundedSum(np.array([123456]), 1.0, UserCount())
    secret = total if what == "a sum" else Rows(ratings_for(0))
    assert "nothing to see" in repr(secret) + str(secret)
    assert "123456" not in repr(secret)
    for way_out in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(tacit.PrivacyError):
            way_out(secret)


def test_a_cost_for_which_the_noise_is_not_proven_is_refused() -> None:
    ledger = Ledger(tacit.PrivacyBudget(1e4))
    mechanism = Mechanism(SilentEngine(), ledger, SeededNoiseUnsafe(1))
    mechanism._grid(Silence(), Entry(named("r 1"), 0.999 * LARGEST_MU, 1.0))  # type: ignore[arg-type]
    with pytest.raises(tacit.ConfigError, match="epsilon is so large"):
        mechanism._grid(Silence(), Entry(named("r 1"), 1.001 * LARGEST_MU, 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize("sign", [1, -1])
def test_the_largest_sum_and_the_largest_noise_do_not_wrap_around(
    sign: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sum of 2^61 units beside noise of 2^62, which is the furthest that the sampler goes."""

    class Full(SilentEngine):
        def sum(self, statistic: Silence, unit: float) -> BoundedSum:
            self.unit = unit
            return BoundedSum(np.full(statistic.shape, sign << 61), unit, statistic)  # type: ignore[arg-type]

    furthest = 2**62 - 1 if sign > 0 else -(2**62)
    monkeypatch.setattr(
        mechanism_module, "floor_normals", lambda _source, size, _bits: np.full(size, furthest)
    )
    ledger, engine = Ledger(tacit.PrivacyBudget(1.0)), Full()
    ledger.reserve(named("r 1"), BOUND, 1.0)
    statistic = Silence(shape=(3,), symmetric=False)
    released = Mechanism(engine, ledger, SeededNoiseUnsafe(1)).release(named("r 1"), statistic)  # type: ignore[arg-type]
    assert np.allclose(released, float(furthest + (sign << 61)) * engine.unit, rtol=1e-12)


class LoudEngine(SilentEngine):
    """Every sum is one unit in each entry, but two in the corner."""

    def sum(self, statistic: Silence, unit: float) -> BoundedSum:
        units = np.ones(statistic.shape, dtype=np.int64)
        units[0, -1] = 2
        return BoundedSum(units, unit, statistic)  # type: ignore[arg-type]


def grid_of(statistic: Silence, share: float = 1.0, users: int = 1000) -> tuple[float, int, float]:
    ledger = Ledger(tacit.PrivacyBudget(1.0))
    entry = ledger.reserve(named("r"), statistic.sensitivity, share)
    engine = SilentEngine()
    engine.n_users = users
    mechanism = Mechanism(engine, ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
    return *mechanism._grid(statistic, entry), entry.noise_sd  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("users", "term_bits", "finest"), [(1000, 61, 1000 * 2.0**-61), (3, 40, 2.0**-40)]
)
@pytest.mark.parametrize("peak", [1.0, 6.0, 1e4])
def test_the_grid_is_as_fine_as_sums_and_terms_allow(
    users: int, term_bits: int, finest: float, peak: float
) -> None:
    """The unit is at least the finest one, and less than twice that, or noise has 52 bits."""
    unit, bits, sd = grid_of(Silence(max_entry=peak, term_bits=term_bits), users=users)
    assert unit * 2.0**bits == sd
    assert unit >= peak * finest
    assert bits == 52 or unit < 2 * peak * finest


def test_noise_of_one_bit_is_the_least_that_is_drawn() -> None:
    _, _, sd = grid_of(Silence())
    most = sd * 2.0**40 / 2  # a peak at which the noise has one bit, just so
    assert grid_of(Silence(max_entry=most, term_bits=40))[1] == 1
    with pytest.raises(tacit.ConfigError, match="no noise to speak of"):
        grid_of(Silence(max_entry=most * 1.001, term_bits=40))


@pytest.mark.parametrize("peak", [1e-305, 1e-300, 1e-293])
def test_a_unit_that_has_lost_its_digits_is_refused(peak: float) -> None:
    """Below the normal numbers a unit is rounded, and bound / noise would be more than was paid."""
    bound = Sensitivity(peak, 2 * peak)
    with pytest.raises(tacit.EngineError, match="too small for doubles"):
        grid_of(Silence(max_entry=peak, sensitivity=bound))
    unit, bits, sd = grid_of(Silence(max_entry=1e-290, sensitivity=Sensitivity(1e-290, 2e-290)))
    assert unit * 2.0**bits == sd


def test_the_smallest_unit_with_all_its_digits_is_allowed() -> None:
    """The twin: the least normal number itself, on the finest grid."""
    peak = sys.float_info.min * 2.0**40
    bound = Sensitivity(peak, 2 * peak)
    unit, bits, sd = grid_of(Silence(max_entry=peak, sensitivity=bound, term_bits=40))
    assert unit * 2.0**bits == sd


def test_as_many_users_as_sums_have_room_for() -> None:
    ledger = Ledger(tacit.PrivacyBudget(1.0, neighbours="add_remove"))
    entry = ledger.reserve(named("r"), BOUND, 1.0)
    engine = SilentEngine()
    mechanism = Mechanism(engine, ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
    engine.n_users = 2**26
    mechanism._grid(Silence(), entry)  # type: ignore[arg-type]
    engine.n_users = 2**26 + 1
    with pytest.raises(tacit.EngineError, match="room"):
        mechanism._grid(Silence(), entry)  # type: ignore[arg-type]


def test_without_a_budget_the_sum_leaves_as_it_is_on_the_finest_grid() -> None:
    ledger = Ledger(None)
    ledger.reserve(named("r"), BOUND, 1.0)
    mechanism = Mechanism(LoudEngine(), ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
    assert mechanism.public_users == 1000
    statistic = Silence(shape=(2, 3), symmetric=False, max_entry=3.0, term_bits=40)
    unit = 3.0 * 2.0**-40
    assert (mechanism.release(named("r"), statistic) == [[unit, unit, 2 * unit], [unit] * 3]).all()  # type: ignore[arg-type]


def test_a_symmetric_sum_is_averaged_with_its_transpose() -> None:
    ledger = Ledger(None)
    ledger.reserve(named("r"), BOUND, 1.0)
    mechanism = Mechanism(LoudEngine(), ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
    found = mechanism.release(named("r"), Silence(shape=(2, 2), max_entry=1.0, term_bits=0))  # type: ignore[arg-type]
    assert (found == [[1.0, 1.5], [1.5, 1.0]]).all()


def test_the_noise_of_a_release_does_not_depend_on_what_was_drawn_before() -> None:
    """Every release starts a stream of its own: a fit that goes on draws what it would have."""

    def second(size: int) -> np.ndarray:
        ledger = Ledger(tacit.PrivacyBudget(1.0))
        mechanism = Mechanism(SilentEngine(), ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
        for name in ("a", "b"):
            ledger.reserve(named(name), BOUND, 0.5)
        mechanism.release(named("a"), Silence(shape=(size,), symmetric=False))  # type: ignore[arg-type]
        return mechanism.release(named("b"), Silence(shape=(3,), symmetric=False))  # type: ignore[arg-type]

    assert np.array_equal(second(1), second(7))


def test_shares_that_are_divided_otherwise_are_those_of_the_ledger() -> None:
    ledger = Ledger(tacit.PrivacyBudget(1.0))
    mechanism = Mechanism(SilentEngine(), ledger, SeededNoiseUnsafe(1))  # type: ignore[arg-type]
    for name in ("a", "b"):
        ledger.reserve(named(name), BOUND, 0.5, scaled=True)
    before = mechanism.noise_sd(named("a"))
    mechanism.redivide({named("a"): 0.2, named("b"): 0.8})
    assert mechanism.noise_sd(named("a")) == pytest.approx(before * (0.5 / 0.2) ** 0.5)


def test_progress_is_told_of_every_release() -> None:
    ledger, told = Ledger(tacit.PrivacyBudget(1.0)), []
    mechanism = Mechanism(
        SilentEngine(),  # type: ignore[arg-type]
        ledger,
        SeededNoiseUnsafe(1),
        progress=lambda done, planned: told.append((done, planned)),
    )
    for name in ("a", "b", "c"):
        ledger.reserve(named(name), BOUND, 0.3)
    small = Silence(shape=(1, 1))
    mechanism.release(named("a"), small)  # type: ignore[arg-type]
    mechanism.release(named("b"), small)  # type: ignore[arg-type]
    assert told == [(1, 3), (2, 3)]
