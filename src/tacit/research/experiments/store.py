"""Stored runs: one Parquet file, rewritten whole or not at all after every job."""

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import polars as pl

from tacit._atomic import hold, reason_of, write_durably
from tacit.data.readers.guard import checked_footer
from tacit.errors import ConfigError, DataError
from tacit.research.experiments.jobs import SCHEMA, Job

COLUMNS: Final[Mapping[str, pl.DataType]] = {
    "key": pl.String(),
    "schema": pl.Int32(),
    "dataset": pl.String(),
    "algorithm": pl.String(),
    "settings": pl.String(),
    "epsilon": pl.Float64(),
    "delta": pl.Float64(),
    "accounting": pl.String(),
    "neighbours": pl.String(),
    "role": pl.String(),
    "draw": pl.Int32(),
    "kept_out": pl.Float64(),
    "validation": pl.Float64(),
    "ranking": pl.Boolean(),
    "seed": pl.Int64(),
    "status": pl.String(),
    "reason": pl.String(),
    "rmse": pl.Float64(),
    "mae": pl.Float64(),
    "ndcg": pl.Float64(),
    "recall": pl.Float64(),
    "coverage": pl.Float64(),
    "frobenius": pl.Float64(),
    "test_ratings": pl.Int64(),
    "skipped": pl.Int64(),
    "used": pl.String(),
    "fit_seconds": pl.Float64(),
    "seconds": pl.Float64(),
    "peak_bytes": pl.Int64(),
    "threads": pl.Int32(),
    "workers": pl.Int32(),
    "versions": pl.String(),
    "finished": pl.String(),
    "recall_20": pl.Float64(),
    "ndcg_10": pl.Float64(),
    "ndcg_100": pl.Float64(),
}
"""What is kept of a run; `used` and `versions` are JSON."""

_LATER = ("recall_20", "ndcg_10", "ndcg_100")  # not in files of before they were measured

_FILE = "runs.parquet"


def row_of(job: Job, **measured: Any) -> dict[str, Any]:
    """Return the row of a job, with what was measured."""
    facts = job.facts
    texts = {name: json.dumps(facts[name], sort_keys=True) for name in ("dataset", "settings")}
    return dict.fromkeys(COLUMNS) | facts | texts | {"key": job.key, "schema": SCHEMA} | measured


class RunStore:
    """The runs of one experiment, held by one process at a time."""

    def __init__(self, folder: Path) -> None:
        """Open a folder, or begin it.

        Raises:
            ConfigError: the folder cannot be used, or another process uses it.
            DataError: the file is not one of stored runs.
        """
        self.folder = folder
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = hold(folder / ".lock")
        except BlockingIOError:
            raise ConfigError(
                f"results folder {folder} is in use by another process; wait for it, or give "
                "another with --runs"
            ) from None
        except OSError as error:
            raise ConfigError(
                f"results folder {folder} cannot be used: {reason_of(error)}"
            ) from None
        try:
            self._frame = _read(folder)
        except BaseException:
            self.close()
            raise
        self.rows = _by_key(self._frame)

    def __enter__(self) -> "RunStore":
        """Hold the folder."""
        return self

    def __exit__(self, *_: object) -> None:
        """Let others use the folder."""
        self.close()

    def close(self) -> None:
        """Let others use the folder."""
        self._lock.close()

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row; it is on the disk when this returns."""
        self.rows[row["key"]] = row
        others = self._frame.filter(pl.col("key") != row["key"])
        self._frame = others.vstack(
            pl.DataFrame([row], schema=dict(COLUMNS), orient="row")
        ).rechunk()
        content = io.BytesIO()
        self._frame.write_parquet(content)
        write_durably(self.folder / _FILE, content.getvalue())


def stored_rows(folder: Path) -> Mapping[str, Mapping[str, Any]]:
    """Return what is stored in a folder, also while another process adds to it.

    Raises:
        DataError: the file is not one of stored runs.
    """
    return _by_key(_read(folder))


def _by_key(frame: pl.DataFrame) -> dict[str, dict[str, Any]]:
    return {row["key"]: row for row in frame.iter_rows(named=True)}


def _read(folder: Path) -> pl.DataFrame:
    """Read rows of this schema; those of an older one count as not there."""
    path = folder / _FILE
    if not path.exists():
        return pl.DataFrame(schema=dict(COLUMNS))
    try:
        checked_footer(path).check_columns(list(COLUMNS))
        known = pl.read_parquet_schema(path)
        there = [name for name in COLUMNS if name not in _LATER or name in known]
        frame = pl.read_parquet(path, columns=there)
        absent = [pl.lit(None, COLUMNS[name]).alias(name) for name in COLUMNS if name not in there]
        frame = frame.with_columns(absent).select(*COLUMNS)
    except (pl.exceptions.PolarsError, OSError, DataError) as error:
        raise DataError(
            f"{path} is not a file of stored runs ({type(error).__name__}); move it away"
        ) from None
    return frame.filter(pl.col("schema") == SCHEMA)
