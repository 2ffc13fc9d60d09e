"""How long jobs will take, by how long others like them took."""

import json
import statistics
from collections.abc import Iterable, Mapping
from typing import Any

from tacit.research.experiments.jobs import Job

_UNKNOWN = 5.0  # seconds, while nothing like it has been seen


def expected_seconds(jobs: Iterable[Job], rows: Mapping[str, Mapping[str, Any]]) -> float:
    """Return the seconds that jobs will take one after the other.

    A job takes as long as those of the same dataset and method, else of the same dataset, else as
    any.
    """
    seen: dict[tuple[str, ...], list[float]] = {}
    for row in rows.values():
        if row["seconds"]:
            for place in _places(row["dataset"], row["algorithm"]):
                seen.setdefault(place, []).append(row["seconds"])
    typical = {place: statistics.fmean(seconds) for place, seconds in seen.items()}
    total = 0.0
    for job in jobs:
        places = _places(json.dumps(job.facts["dataset"], sort_keys=True), job.algorithm)
        total += next((typical[place] for place in places if place in typical), _UNKNOWN)
    return total


def _places(dataset: str, algorithm: str) -> tuple[tuple[str, ...], ...]:
    """Return what a job is like, the closest first."""
    return (dataset, algorithm), (dataset,), ()
