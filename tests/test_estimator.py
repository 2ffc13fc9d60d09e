"""Manners of an estimator: names, classes, version, frames, vectors, and logs that tell nothing."""

import ast
import logging
import sys
import uuid
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tacit
from tacit.errors import ConfigError, DataError
from tests.conftest import ratings_for
from tests.support.source import tree_of

SOURCE = Path(tacit.__file__).parent
OWN = {"film-02": 4.5, "film-05": 1.0, "film-07": 3.0}


def test_an_algorithm_by_name_by_class_and_by_config() -> None:
    kinds = [
        tacit.fit(ratings_for(0), given, epsilon=1.0).certificate.public
        for given in ("als", tacit.ALS, tacit.ALS())
    ]
    assert kinds[0] == kinds[1] == kinds[2]


@pytest.mark.parametrize("given", ["alss", 5, [tacit.ALS()], int, {"rounds": 3}])
def test_what_is_no_algorithm_is_told_what_to_write(given: Any) -> None:
    with pytest.raises(
        ConfigError, match=r"expected (one of|a config such as .*:) latent-factors, moments"
    ):
        tacit.fit(ratings_for(0), given, epsilon=1.0)


def test_the_version_is_the_installed_one() -> None:
    assert tacit.__version__ == version("tacit")


@pytest.mark.parametrize("algorithm", [None, tacit.Moments(), tacit.ALS(), tacit.SVD()])
def test_vectors_multiply_to_predictions(algorithm: Any) -> None:
    model = tacit.fit(ratings_for(0), algorithm, epsilon=20.0, noise_seed_unsafe=1)
    for own in ({}, OWN):
        expected = model.predict(own, clip=False)
        found = model.item_vectors @ model.user_vector(own)
        np.testing.assert_allclose(found, expected, atol=1e-7)
    wrong = model.item_vectors[:, :-1] @ model.user_vector(OWN)[:-1]
    assert not np.allclose(wrong, model.predict(OWN, clip=False)), "offsets count"


def test_vectors_of_interactions() -> None:
    rng = np.random.default_rng(0)
    pairs = {(int(u), int(i)) for u, i in rng.integers(0, (60, 12), (400, 2))}
    frame = pl.DataFrame(sorted(pairs), schema=["user", "item"], orient="row")
    model = tacit.fit(tacit.Ratings.from_frame(frame, implicit=True), epsilon=5.0)
    own = [1, 5]
    found = model.item_vectors @ model.user_vector(own)
    np.testing.assert_allclose(found, model.predict(own, clip=False), atol=1e-9)


def test_rules_without_vectors_say_which_have_some() -> None:
    model = tacit.fit(ratings_for(0), tacit.FrankWolfe(rounds=3), epsilon=5.0)
    with pytest.raises(ConfigError, match="LatentFactors"):
        _ = model.item_vectors


def test_vectors_are_written_with_ids_and_without(tmp_path: Path) -> None:
    model = tacit.fit(ratings_for(0), epsilon=5.0)
    model.export_vectors(tmp_path / "v.parquet")
    model.export_vectors(tmp_path / "v.npy")
    frame = pl.read_parquet(tmp_path / "v.parquet")
    assert frame["item"].to_list() == model.catalogue.ids.to_list()
    np.testing.assert_allclose(frame["vector"].to_numpy(), model.item_vectors, rtol=1e-6)
    np.testing.assert_array_equal(np.load(tmp_path / "v.npy"), model.item_vectors)
    with pytest.raises(ConfigError, match=r"\.parquet or \.npy"):
        model.export_vectors(tmp_path / "v.pickle")


def test_an_index_needs_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faiss", None)
    with pytest.raises(ConfigError, match=r"tacit\[ann\]"):
        tacit.fit(ratings_for(0), epsilon=5.0).ann_index()


@pytest.mark.extras
def test_an_index_finds_the_best_predictions() -> None:
    pytest.importorskip("faiss")
    model = tacit.fit(ratings_for(0), epsilon=20.0, noise_seed_unsafe=1)  # little noise
    user = model.user_vector(OWN).astype(np.float32)[None]
    _, found = model.ann_index().search(user, 3)
    scores = model.predict(OWN, clip=False)
    best = np.sort(scores)[::-1][:3]  # items may be tied, where little could be learned
    np.testing.assert_allclose(scores[found[0]], best, atol=1e-4)


def test_a_frame_of_many_is_not_taken_for_one_person() -> None:
    model = tacit.fit(ratings_for(0), epsilon=5.0)
    frame = pl.DataFrame({"user": [1, 2], "item": ["film-02", "film-05"], "rating": [4.0, 2.0]})
    with pytest.raises(DataError, match="recommend_frame"):
        model.predict(frame)
    assert model.predict(frame.head(1)).shape == (len(model.catalogue),)


def test_own_ratings_of_every_kind_are_the_same() -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    model = tacit.fit(ratings_for(0), epsilon=5.0)
    expected = model.predict(OWN)
    columns = {"item": list(OWN), "rating": list(OWN.values())}
    every = [pandas.DataFrame(columns), arrow.table(columns), pl.DataFrame(columns)]
    every += [pandas.Series(OWN), (pandas.Series(columns["item"]), np.array(columns["rating"]))]
    for own in every:
        np.testing.assert_array_equal(model.predict(own), expected)


def test_frames_come_back_as_the_kind_they_were() -> None:
    pandas, arrow = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    model = tacit.fit(ratings_for(0), "moments", epsilon=5.0)
    rows = {"user": [1, 1, 2], "item": ["film-02", "film-05", "film-07"], "rating": [4.0, 1.0, 3.0]}
    pairs = {"user": [1, 2, 9], "item": ["film-01", "film-02", "film-03"]}
    for kind in (pandas.DataFrame, arrow.table, pl.DataFrame):
        lists = model.recommend_frame(kind(rows), n=2)
        found = model.predict_frame(kind(rows), kind(pairs))
        assert type(lists) is type(found) is type(kind(rows))
        scores = np.asarray(found["score"], dtype=float)
        own = {"film-02": 4.0, "film-05": 1.0}
        assert scores[0] == pytest.approx(model.predict(own, ["film-01"])[0], abs=1e-5)
        assert scores[2] == pytest.approx(model.predict({}, ["film-03"])[0], abs=1e-5)
        assert len(lists) == 4


def test_uuids_are_ids() -> None:
    pairs = [(u, i) for u in range(20) for i in range(6) if (u + i) % 3]
    ratings = tacit.Ratings.from_arrays(
        users=[uuid.UUID(int=100 + u) for u, _ in pairs],
        items=[uuid.UUID(int=i) for _, i in pairs],
        values=[1.0 + (u * i) % 5 for u, i in pairs],
        rating_range=(1, 5),
    )
    model = tacit.fit(ratings, "moments", epsilon=5.0)
    assert np.isfinite(model.predict({uuid.UUID(int=0): 5.0}, [uuid.UUID(int=1)])).all()


def logged(caplog: pytest.LogCaptureFixture, seed: int) -> list[str]:
    caplog.clear()
    with caplog.at_level(logging.DEBUG, logger="tacit"):
        tacit.fit(ratings_for(seed), tacit.ALS(rounds=2), epsilon=1.0)
    return [record.getMessage() for record in caplog.records]


def test_logs_are_those_of_the_certificate_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    first, second = logged(caplog, 0), logged(caplog, 1)
    assert len(first) == len(second)
    assert first[0] == second[0] == "fit begins: als, epsilon 1, delta 1e-06, replace"
    assert any(line.startswith("released: ") for line in first)


def test_one_module_writes_logs_and_it_is_not_in_the_trust_zone() -> None:
    writers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        if "logging" in imported(tree_of(path))
    }
    assert not any(name.startswith(("trusted/", "kernels/", "data/")) for name in writers)
    assert "fitting/logs.py" in writers
    assert "logging" in imported(ast.parse("from logging import getLogger")), "the walk notices"


def imported(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module.partition(".")[0])
    return names
