"""What stored runs say: a mean, its standard error and what it took, for every cell."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tacit.research.experiments.jobs import Cell, cells_of
from tacit.research.experiments.spec import Experiment


@dataclass(frozen=True)
class Point:
    """A cell with what was measured; no value where nothing was.

    Attributes:
        cell: dataset, method and epsilon.
        values: one a draw, by draw.
        others: the same of the further measures of the experiment.
        settings: those that were used: the best trial's where they were tuned.
        used: what the certificate took as public, as JSON; empty for yardsticks.
        fit_seconds: median of the fits.
        peak_bytes: the largest of the runs.
        reason: why there is no value, if there is none.
    """

    cell: Cell
    values: Mapping[int, float]
    settings: Mapping[str, Any]
    used: str = ""
    fit_seconds: float | None = None
    peak_bytes: int | None = None
    reason: str = ""
    others: Mapping[str, Mapping[int, float]] = field(default_factory=dict)

    def by(self, measure: str) -> "Point":
        """Return the same point with a further measure as its values."""
        return replace(self, values=self.others.get(measure, {}))

    @property
    def mean(self) -> float:
        """The mean over draws; NaN if there are none."""
        return statistics.fmean(self.values.values()) if self.values else math.nan

    @property
    def error(self) -> float:
        """The standard error of the mean; 0 for a single draw, of which nobody can tell."""
        count = len(self.values)
        return statistics.stdev(self.values.values()) / math.sqrt(count) if count > 1 else 0.0


def points_of(experiment: Experiment, rows: Mapping[str, Mapping[str, Any]]) -> list[Point]:
    """Summarise every cell of an experiment."""
    return [_point(experiment, cell, rows) for cell in cells_of(experiment, rows)]


def _point(experiment: Experiment, cell: Cell, rows: Mapping[str, Mapping[str, Any]]) -> Point:
    found = [rows[job.key] for job in cell.runs if job.key in rows]
    done = [row for row in found if row["status"] == "done"]
    if not done:
        tried = found or [rows[job.key] for job in cell.trials if job.key in rows]
        reasons = [row["reason"] for row in tried if row["reason"]]
        return Point(cell, {}, cell.method.settings, reason=reasons[0] if reasons else "not run")
    seconds = [row["fit_seconds"] for row in done if row["fit_seconds"] is not None]
    return Point(
        cell,
        _by_draw(done, experiment.measure),
        cell.runs[0].settings,
        used=done[0]["used"] or "",
        fit_seconds=statistics.median(seconds) if seconds else None,
        peak_bytes=max((row["peak_bytes"] or 0 for row in done), default=None),
        others={measure: _by_draw(done, measure) for measure in experiment.also},
    )


def _by_draw(rows: Sequence[Mapping[str, Any]], measure: str) -> dict[int, float]:
    return {row["draw"]: row[measure] for row in rows if row[measure] is not None}
