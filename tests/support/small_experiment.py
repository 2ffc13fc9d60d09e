"""A small experiment, and rows for it that nobody had to compute."""

from typing import Any

from tacit.research.experiments.jobs import Job
from tacit.research.experiments.reading import parse_experiment
from tacit.research.experiments.spec import Experiment
from tacit.research.experiments.store import row_of

TEXT = """
title = "Small"
about = "Two datasets, three methods."
draws = 3
epsilons = [0.5, 2, inf]
test_share = 0.05
leader = "automatic"

[[datasets]]
synthetic = "few"
users = 60
items = 20
per_user = 8

[[datasets]]
synthetic = "tastes"
users = 60
items = 20
per_user = 8

[[methods]]
algorithm = "automatic"

[[methods]]
algorithm = "svd"
label = "svd"
tune = { rank = [1, 2] }

[[methods]]
algorithm = "user-mean"
label = "user mean"
"""

LISTS = """
title = "Lists"
about = "Lists of new users."
draws = 2
epsilons = [1]
new_users = 0.25
measure = "recall_20"
also = ["ndcg_10"]

[[datasets]]
synthetic = "few"

[[methods]]
algorithm = "moments"

[[methods]]
algorithm = "popularity"
"""


def small() -> Experiment:
    return parse_experiment("small", TEXT)


def synthetic_row(job: Job) -> dict[str, Any]:
    """A row whose RMSE is lower for a larger epsilon, and for svd's second candidate."""
    base = {"latent-factors": 1.0, "svd": 0.9, "user-mean": 1.1}[job.algorithm]
    better = 0.05 * (job.settings.get("rank", 1) == 2)
    value = base - better - 0.01 * min(job.epsilon or 0.0, 10.0) + 0.001 * job.draw
    return row_of(
        job, status="done", rmse=value, mae=value / 2, seconds=2.0, fit_seconds=1.5,
        peak_bytes=2**20, used=f'{{"name": "{job.algorithm}"}}', versions="{}", finished="now",
    )  # fmt: skip
