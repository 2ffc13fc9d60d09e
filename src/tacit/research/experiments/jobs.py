"""The jobs of an experiment, each with a key that stays the same over the years."""

import hashlib
import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from tacit.accounting.budget import epsilon_of, mu_of
from tacit.fitting.fit import automatic
from tacit.research.experiments.spec import (
    AUTOMATIC,
    RANKING,
    DatasetChoice,
    Experiment,
    MethodChoice,
    points_of_grid,
    smaller,
)

SCHEMA: Final = 1
"""Of a stored row; a change of what rows mean raises it, and everything is computed anew."""

REVISIONS: Final[Mapping[str, int]] = {"latent-factors": 11, "moments": 3, "interactions": 3}
"""Of algorithms that learn otherwise than they did when first runs were kept.

A change that moves results, at the same settings, raises the number of its algorithm; runs of an
earlier revision are then computed anew. An algorithm that is not listed has its first.
"""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Job:
    """One fit and its measurement.

    Attributes:
        dataset: the facts of its dataset.
        algorithm: as in `MethodChoice`; never "automatic", but what that stands for today.
        settings: all of them; nothing is left to tune.
        epsilon: None for a yardstick; inf for no privacy.
        delta: of the budget.
        accounting: of the budget.
        neighbours: of the budget.
        role: "run", measured on test ratings; "trial", on validation ratings.
        draw: which test part, and which noise.
        kept_out: for a trial, the share that no trial sees: the test parts of all draws.
        validation: for a trial, the share that it is measured on.
        ranking: whether lists are measured too.
    """

    dataset: Mapping[str, Any]
    algorithm: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    epsilon: float | None = None
    delta: float = 1e-6
    accounting: str = "exact"
    neighbours: str = "replace"
    role: Literal["run", "trial"] = "run"
    draw: int = 0
    kept_out: float = 0.0
    validation: float = 0.0
    ranking: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """All that the result depends on, but for noise."""
        return asdict(self)

    @property
    def key(self) -> str:
        """A hash of the facts, the schema and the revision: the same today and in a year.

        >>> Job({"named": "jester"}, "svd", epsilon=1.0).key[:12]
        '37774a9234de'
        """
        known: dict[str, Any] = {"schema": SCHEMA, **self.facts}
        if self.algorithm in REVISIONS:
            known["revision"] = REVISIONS[self.algorithm]
        text = json.dumps(known, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]

    @classmethod
    def from_json(cls, facts: dict[str, Any]) -> "Job":
        """Read a job back; lists become tuples again, as settings have them."""
        settings = {
            name: tuple(value) if isinstance(value, list) else value
            for name, value in facts["settings"].items()
        }
        return cls(**{**facts, "settings": settings})


@dataclass(frozen=True)
class Cell:
    """A point of the figure: a dataset, a method and an epsilon, and the jobs behind it.

    `runs` are empty while trials are missing, because nobody knows the settings yet.
    """

    dataset: DatasetChoice
    method: MethodChoice
    epsilon: float | None
    trials: tuple[Job, ...]
    runs: tuple[Job, ...]

    @property
    def tuned_on(self) -> DatasetChoice:
        """The dataset of its trials: its own, or one of fewer users."""
        return smaller(self.dataset, self.method.tuned_users)


def cells_of(experiment: Experiment, rows: Mapping[str, Row]) -> list[Cell]:
    """Expand an experiment into cells, as far as settings are known from the rows so far."""
    return [
        _cell(experiment, dataset, method, epsilon, rows)
        for dataset in experiment.datasets
        for method in experiment.methods
        for epsilon in experiment.epsilons_of(method)
    ]


def _cell(
    experiment: Experiment,
    dataset: DatasetChoice,
    method: MethodChoice,
    epsilon: float | None,
    rows: Mapping[str, Row],
) -> Cell:
    common: dict[str, Any] = {
        "dataset": dataset.facts,
        "algorithm": _algorithm(method),
        "epsilon": epsilon,
        "delta": experiment.delta,
        "accounting": method.accounting,
        "neighbours": method.neighbours,
    }
    part: dict[str, Any] = {
        **common,
        **_trial_size(experiment, dataset, method, epsilon),
        "role": "trial",
        "kept_out": round(experiment.draws * dataset.test_share, 9),
        "validation": experiment.validation_share,
    }
    trials, settings = _tuned(method, part, rows)
    ranking = experiment.measure in RANKING
    draws = range(experiment.draws_of(method) if settings is not None else 0)
    runs = (Job(settings=settings or {}, draw=draw, ranking=ranking, **common) for draw in draws)
    return Cell(dataset, method, epsilon, trials, tuple(runs))


def _trial_size(
    experiment: Experiment, dataset: DatasetChoice, method: MethodChoice, epsilon: float | None
) -> dict[str, Any]:
    """Return the dataset and the epsilon of trials.

    With fewer users, noise of m'/m of the sd leaves the signal-to-noise ratio of sums as it is: mu
    is m/m' times as large.
    """
    at, part = method.tuning_epsilon(epsilon), smaller(dataset, method.tuned_users)
    if part.users < dataset.users and at is not None and math.isfinite(at):
        mu = mu_of(at, experiment.delta) * dataset.users / part.users
        at = float(f"{epsilon_of(mu, experiment.delta):.6g}")
    return {"dataset": part.facts, "epsilon": at}


def _algorithm(method: MethodChoice) -> str:
    """Return a method's algorithm by its own name: what is automatic changes over the years."""
    return automatic().name if method.algorithm == AUTOMATIC else method.algorithm


def _tuned(
    method: MethodChoice, part: Mapping[str, Any], rows: Mapping[str, Row]
) -> tuple[tuple[Job, ...], Mapping[str, Any] | None]:
    """Return the trials as far as they are known, and the best settings once all are done.

    Each grid is searched with the best settings of the grids before it.
    """
    trials: dict[str, Job] = {}
    settings: Mapping[str, Any] | None = method.settings
    for grid in method.grids:
        if settings is None:
            break
        tried = [Job(settings=one, **part) for one in points_of_grid(settings, grid)]
        trials |= {job.key: job for job in tried}
        settings = _best(tried, rows)
    return tuple(trials.values()), settings


def _best(trials: Iterable[Job], rows: Mapping[str, Row]) -> Mapping[str, Any] | None:
    """Return the settings of the best trial; None if one is missing or all failed."""
    found = [(job, rows.get(job.key)) for job in trials]
    if any(row is None for _, row in found):
        return None
    done = [(row["rmse"], at) for at, (_, row) in enumerate(found) if row and row["rmse"]]
    return found[min(done)[1]][0].settings if done else None
