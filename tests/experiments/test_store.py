"""Stored runs: on the disk whole or not at all, and never mixed with anything else."""

from pathlib import Path

import polars as pl
import pytest
from tests.support.small_experiment import synthetic_row

from tacit.errors import ConfigError, DataError
from tacit.research.experiments.jobs import Job
from tacit.research.experiments.store import COLUMNS, RunStore, stored_rows

JOBS = [Job({"synthetic": "few"}, "svd", {"rank": 1}, float("inf"), draw=draw) for draw in range(4)]


def filled(folder: Path) -> None:
    with RunStore(folder) as store:
        for job in JOBS:
            store.add(synthetic_row(job))


def test_rows_are_read_back_as_they_were(tmp_path: Path) -> None:
    filled(tmp_path)
    with RunStore(tmp_path) as store:
        assert list(store.rows) == [job.key for job in JOBS]
        assert store.rows[JOBS[2].key] == synthetic_row(JOBS[2])


def test_every_row_is_on_the_disk_at_once(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.add(synthetic_row(JOBS[0]))
    assert pl.read_parquet(tmp_path / "runs.parquet").height == 1  # nothing was closed yet
    store.close()


def test_a_write_that_breaks_off_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path)

    def broken(*_: object) -> None:
        raise KeyboardInterrupt

    with RunStore(tmp_path) as store:
        monkeypatch.setattr("os.fsync", broken)
        with pytest.raises(KeyboardInterrupt):
            store.add(synthetic_row(Job({}, "svd")))
        monkeypatch.undo()
    with RunStore(tmp_path) as store:
        assert len(store.rows) == 4
    assert not list(tmp_path.glob("*.part"))


def test_two_processes_do_not_share_a_folder(tmp_path: Path) -> None:
    with RunStore(tmp_path), pytest.raises(ConfigError, match="in use by another process"):
        RunStore(tmp_path)
    RunStore(tmp_path).close()


def test_rows_of_an_older_schema_count_as_not_there(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "runs.parquet"
    frame = pl.read_parquet(path)
    frame.with_columns(schema=pl.Series([0, 1, 0, 1], dtype=pl.Int32)).write_parquet(path)
    with RunStore(tmp_path) as store:
        assert list(store.rows) == [JOBS[1].key, JOBS[3].key]


@pytest.mark.parametrize("content", [b"", b"PAR1 or so"])
def test_another_file_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "runs.parquet"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not a file of stored runs"):
        RunStore(tmp_path)
    assert path.read_bytes() == content


def test_a_file_of_before_lists_were_measured_is_read(tmp_path: Path) -> None:
    filled(tmp_path)
    path = tmp_path / "runs.parquet"
    pl.read_parquet(path).drop("recall_20", "ndcg_10", "ndcg_100").write_parquet(path)
    rows = stored_rows(tmp_path)
    assert rows
    assert all(row["recall_20"] is None and row["rmse"] is not None for row in rows.values())
    pl.read_parquet(path).drop("rmse").write_parquet(path)
    with pytest.raises(DataError, match="not a file of stored runs"):
        stored_rows(tmp_path)


def test_the_file_has_the_stated_columns(tmp_path: Path) -> None:
    filled(tmp_path)
    assert dict(pl.read_parquet_schema(tmp_path / "runs.parquet")) == dict(COLUMNS)
