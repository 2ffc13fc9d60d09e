"""Another engine is one file: two shards, statistics sent as bytes, partial sums sealed."""

import pickle
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import pytest

import tacit
from tacit.kernels.loops import LOOPS
from tacit.trusted import local_state
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.sealing import new_key
from tacit.trusted.statistic import BoundedSum, Statistic
from tacit.trusted.statistics import ItemCounts, ResidualCovariance, UserCount
from tests.conftest import ratings_for
from tests.contracts.test_algorithms import CASES, assert_identical
from tests.contracts.test_interactions import CASES as IMPLICIT
from tests.contracts.test_interactions import interactions_for

Result = TypeVar("Result")
ALL: dict[str, Any] = CASES | IMPLICIT
SIZES = {"users": 90, "items": 12, "per_user": 7}


class TwoShards:
    """Rows in two stores, each of which gets statistics as bytes and answers with sealed bytes."""

    def __init__(self) -> None:
        self._key = new_key()

    @property
    def n_users(self) -> int:
        return sum(shard.n_users for shard in self._shards)

    def take(self, ratings: tacit.Ratings) -> None:
        middle = ratings.n_users // 3
        halves = np.arange(middle), np.arange(middle, ratings.n_users)
        self._shards = [Rows(ratings.take_rows(half)) for half in halves]

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        sent = pickle.dumps(statistic)  # a public description
        answers = [self._answer(shard, sent, unit) for shard in self._shards]
        first, second = (BoundedSum.unseal(each, self._key, statistic) for each in answers)
        return first + second

    def _answer(self, shard: Rows, sent: bytes, unit: float) -> bytes:
        statistic: Statistic = pickle.loads(sent)  # noqa: S301

        def each(task: Callable[[int, int], Result]) -> list[Result]:
            return [task(0, shard.n_users)]

        return statistic.bounded_sum(shard, unit, Run(each)).seal(self._key)


def ratings_of(config: Any) -> tacit.Ratings:
    make = interactions_for if config in IMPLICIT.values() else ratings_for
    return make(8, **SIZES)


@pytest.mark.parametrize("name", ALL)
def test_two_shards_give_the_same_bits_as_threads(name: str) -> None:
    config = ALL[name]
    one, other = (
        tacit.fit(ratings_of(config), config, epsilon=2.0, noise_seed_unsafe=3, engine=engine)
        for engine in (tacit.ThreadEngine(2), TwoShards())
    )
    assert_identical(one, other)
    assert one.certificate.to_json() == other.certificate.to_json()


def test_a_search_and_a_choice_of_items_run_on_two_shards() -> None:
    candidates = [tacit.Moments(), tacit.SVD(rank=2)]
    options: dict[str, Any] = {"epsilon": 2.0, "noise_seed_unsafe": 3, "top_items": 9}
    models = [
        tacit.tune(ratings_for(8, **SIZES), candidates, engine=engine, **options)
        for engine in (tacit.ThreadEngine(2), TwoShards())
    ]
    assert_identical(*models)


def test_what_is_asked_for_twice_is_known_by_its_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are bounded once and each step is taken once, though every round sends new objects."""
    counted = {"row_means_and_scales": 0, "advance": 0}

    def counting(name: str) -> Any:
        def loop(*arguments: Any) -> Any:
            counted[name] += 1
            return getattr(LOOPS, name)(*arguments)

        return loop

    loops = replace(LOOPS, **{name: counting(name) for name in counted})
    rows = Rows(ratings_for(8, **SIZES))
    run = Run(lambda task: [task(0, rows.n_users)], loops)  # type: ignore[arg-type]
    steps: tuple[local_state.RankOneStep, ...] = ()
    for turn in range(4):
        bounds = RowBounds(None, np.full(12, 3.0), True, 2.0)
        sent = pickle.dumps(ResidualCovariance(bounds, steps, 2.0))
        pickle.loads(sent).bounded_sum(rows, 2.0**-30, run)  # noqa: S301
        direction = np.eye(12)[turn]
        steps = (*steps, local_state.RankOneStep(direction, 0.5, 0.9, 2.0))
    assert counted == {"row_means_and_scales": 1, "advance": 0}
    other = RowBounds(None, np.full(12, 2.5), True, 2.0)  # the twin: another value is not known
    ResidualCovariance(other, steps, 2.0).bounded_sum(rows, 2.0**-30, run)
    assert counted == {"row_means_and_scales": 2, "advance": 3}


def test_an_engine_chooses_its_loops() -> None:
    """A covariance in plain numpy takes the place of the compiled one, and gives the same bits."""
    calls: list[int] = []

    def covariance(*arguments: Any) -> None:
        *rest, lo, hi, total = arguments
        for user in range(lo, hi):
            calls.append(user)
            LOOPS.covariance(*rest, user, user + 1, total)

    class Substituted(tacit.ThreadEngine):
        loops = replace(LOOPS, covariance=covariance)

    config = tacit.SVD(rank=2, count_share=0.0)
    one, other = (
        tacit.fit(ratings_for(8), config, epsilon=2.0, noise_seed_unsafe=3, engine=engine)
        for engine in (tacit.ThreadEngine(1), Substituted(1))
    )
    assert_identical(one, other)
    assert calls == list(range(80))


def test_a_loop_that_gives_other_numbers_is_honoured_too() -> None:
    """The twin: what the engine chose is what is summed."""

    class Silent(tacit.ThreadEngine):
        loops = replace(LOOPS, covariance=lambda *_: None)

    config = tacit.SVD(rank=2, count_share=0.0)
    one, other = (
        tacit.fit(ratings_for(8), config, epsilon=2.0, noise_seed_unsafe=3, engine=engine)
        for engine in (tacit.ThreadEngine(1), Silent(1))
    )
    with pytest.raises(AssertionError):
        assert_identical(one, other)


def counts_of(statistic: Statistic, unit: float = 2.0**-20) -> BoundedSum:
    rows = Rows(ratings_for(8, **SIZES))
    return statistic.bounded_sum(rows, unit, Run(lambda task: [task(0, rows.n_users)]))  # type: ignore[arg-type]


def test_a_sealed_sum_shows_nothing_and_opens_with_its_key_only() -> None:
    key, statistic = new_key(), ItemCounts(12)
    plain = counts_of(statistic)
    sealed, again = plain.seal(key), plain.seal(key)
    assert sealed != again
    assert plain._exact_sum.tobytes()[:16] not in sealed
    assert b"\0\0" * 8 not in sealed
    opened = BoundedSum.unseal(sealed, key, ItemCounts(12))
    assert np.array_equal(opened._exact_sum, plain._exact_sum)
    assert "nothing to see" in repr(opened)
    with pytest.raises(tacit.EngineError, match="changed on its way"):
        BoundedSum.unseal(sealed, new_key(), statistic)
    with pytest.raises(tacit.EngineError, match="changed on its way"):
        BoundedSum.unseal(sealed[:-1] + bytes([sealed[-1] ^ 1]), key, statistic)
    for cut in (0, 31, 40, len(sealed) - 8):
        with pytest.raises(tacit.EngineError, match="changed on its way"):
            BoundedSum.unseal(sealed[:cut], key, statistic)
    with pytest.raises(tacit.EngineError, match="another statistic"):
        BoundedSum.unseal(sealed, key, ItemCounts(12, (4,)))
    with pytest.raises(tacit.EngineError, match="expected 32"):
        plain.seal(b"short")


def test_only_sums_of_one_statistic_and_unit_are_added() -> None:
    one = counts_of(ItemCounts(12))
    assert np.array_equal((one + counts_of(ItemCounts(12)))._exact_sum, 2 * one._exact_sum)
    for other in (counts_of(UserCount()), counts_of(ItemCounts(12), 2.0**-21)):
        with pytest.raises(tacit.EngineError, match="cannot be added"):
            _ = one + other


def test_an_engine_that_sums_something_else_is_refused() -> None:
    class Astray(tacit.ThreadEngine):
        def sum(self, statistic: Statistic, unit: float) -> BoundedSum:  # noqa: ARG002
            return super().sum(UserCount(), unit)

    with pytest.raises(tacit.EngineError, match="another statistic"):
        tacit.fit(ratings_for(8), tacit.SVD(rank=2), epsilon=2.0, engine=Astray(1))


def test_descriptions_are_told_apart_by_their_value() -> None:
    zeros = np.zeros(3)
    one = RowBounds(4, zeros, True, 1.0)
    assert one.digest == RowBounds(4, zeros.copy(), True, 1.0).digest
    assert pickle.loads(pickle.dumps(one)).digest == one.digest  # noqa: S301
    others = [
        replace(one, max_ratings=None),
        replace(one, offsets=np.array([0.0, -0.0, 0.0])),
        replace(one, offsets=zeros.astype(np.float32)),
        replace(one, norm=1),
        replace(one, centre=False),
    ]
    assert len({one.digest, *(other.digest for other in others)}) == 6
    with pytest.raises(tacit.EngineError, match="no value"):
        _ = replace(one, norm=object()).digest  # type: ignore[arg-type]
