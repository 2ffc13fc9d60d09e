"""A store that is streamed gives the same bits as ratings in memory, for every algorithm."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tacit
from tacit.data.store_writer import write_store
from tacit.kernels.loops import LOOPS
from tacit.trusted import rows as trusted_rows
from tests.conftest import ratings_for
from tests.contracts.test_algorithms import assert_identical
from tests.contracts.test_engines import ALL, SIZES, ratings_of

BUDGET: dict[str, Any] = {"epsilon": 2.0, "noise_seed_unsafe": 3}


@pytest.mark.parametrize("name", ALL)
def test_a_streamed_store_gives_the_same_bits_as_threads(name: str, tmp_path: Path) -> None:
    config = ALL[name]
    ratings = ratings_of(config)
    store = write_store(ratings, tmp_path / "store", 3)
    one = tacit.fit(ratings, config, engine=tacit.ThreadEngine(2), **BUDGET)
    other = tacit.fit(store, config, engine=tacit.StoreEngine(2), **BUDGET)
    assert_identical(one, other)
    assert one.certificate.to_json() == other.certificate.to_json()


def test_a_search_and_a_choice_of_items_see_the_same_of_a_store(tmp_path: Path) -> None:
    """What is held out and which items are fitted is decided row by row, as shards are read."""
    ratings = ratings_for(8, **SIZES)
    store = write_store(ratings, tmp_path / "store", 4)
    candidates = [tacit.Moments(), tacit.SVD(rank=2)]
    models = [tacit.tune(rows, candidates, top_items=9, **BUDGET) for rows in (ratings, store)]
    assert_identical(*models)
    assert models[0].catalogue == models[1].catalogue
    assert store.n_items == 12  # the store itself is as it was


def test_at_most_ratings_a_user_count_are_chosen_as_in_memory(tmp_path: Path) -> None:
    ratings = ratings_for(8, **SIZES)
    store = write_store(ratings, tmp_path / "store", 5)
    config = tacit.SVD(rank=2, max_ratings=3)
    assert_identical(*(tacit.fit(rows, config, **BUDGET) for rows in (ratings, store)))


def test_rows_of_one_shard_are_held_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What memory is: rows that are being summed, and those that are read meanwhile."""
    alive = most = 0

    class Counted(trusted_rows.Rows):
        def __init__(self, ratings: tacit.Ratings) -> None:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            super().__init__(ratings)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    monkeypatch.setattr("tacit.engines.shards.Rows", Counted)
    store = write_store(ratings_for(8, **SIZES), tmp_path / "store", 6)
    shares: list[float] = []
    engine = tacit.StoreEngine(1, progress=shares.append)
    tacit.fit(store, tacit.FrankWolfe(rounds=2), engine=engine, **BUDGET)
    assert most == 1
    assert alive == 0
    assert shares[:6] == pytest.approx(np.arange(1, 7) / 6)
    assert len(shares) % 6 == 0


def test_engines_refuse_what_is_not_where_they_can_use_it(tmp_path: Path) -> None:
    ratings = ratings_for(8, **SIZES)
    store = write_store(ratings, tmp_path / "store", 2)
    with pytest.raises(tacit.EngineError, match="leave engine= out"):
        tacit.fit(store, epsilon=1.0, engine=tacit.ThreadEngine(1))
    with pytest.raises(tacit.EngineError, match="tacit partition"):
        tacit.fit(ratings, epsilon=1.0, engine=tacit.StoreEngine(1))
    with pytest.raises(tacit.EngineError, match=r"take\(store\) comes first"):
        tacit.StoreEngine(1).sum(None, 1.0)  # type: ignore[arg-type]


def test_rows_that_are_no_rows_are_refused_though_the_digest_is_right(tmp_path: Path) -> None:
    """All bounds are proved for rows, and for nothing else that a file may hold."""
    ratings = ratings_for(8, **SIZES)
    values = ratings.values.copy()
    values[5] = 1e6
    broken = tacit.Ratings(
        ratings.rating_range, ratings.catalogue, ratings.user_ids, ratings.indptr, ratings.items,
        values,
    )  # fmt: skip
    store = write_store(broken, tmp_path / "store", 2)
    with pytest.raises(tacit.DataError, match="not as the from_"):
        tacit.fit(store, tacit.SVD(rank=2), epsilon=1.0)


def test_an_engine_of_stores_chooses_its_loops(tmp_path: Path) -> None:
    from dataclasses import replace

    class Silent(tacit.StoreEngine):
        loops = replace(LOOPS, covariance=lambda *_: None)

    store = write_store(ratings_for(8, **SIZES), tmp_path / "store", 2)
    config = tacit.SVD(rank=2, count_share=0.0)
    models = [
        tacit.fit(store, config, engine=engine, **BUDGET)
        for engine in (tacit.StoreEngine(1), Silent(1))
    ]
    with pytest.raises(AssertionError):
        assert_identical(*models)
