"""What an experiment is: datasets, methods and epsilons, all of it written down beforehand."""

import itertools
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tacit.datasets.families import FAMILIES
from tacit.datasets.registry import DATASETS

AUTOMATIC: Final = "automatic"
"""The name of a method that leaves the choice of algorithm and settings to `tacit.fit`."""

OPEN_RATINGS: Final = "TACIT_OPEN_RATINGS"
"""The environment variable that names the file of a dataset that has no name of its own."""

POPULARITY: Final = "popularity"
"""The yardstick of lists: the most popular items, counted without noise. NOT PRIVATE."""

YARDSTICKS: Final = ("user-mean", "item-mean", "global-mean", POPULARITY)
"""Methods that no budget is spent on; all but the first are NOT PRIVATE."""

RANKING: Final = ("ndcg", "recall", "coverage")
NEW_USERS: Final = ("recall_20", "ndcg_10", "ndcg_100")
MEASURES: Final = {
    "rmse": "RMSE",
    "mae": "MAE",
    "ndcg": "NDCG@10",
    "recall": "recall@10",
    "coverage": "coverage@10",
    "recall_20": "recall@20 of new users",
    "ndcg_10": "NDCG@10 of new users",
    "ndcg_100": "NDCG@100 of new users",
    "frobenius": "||Y - Y*||_F / L",
}
"""What can be measured, and how it is written; "frobenius" needs the whole hidden matrix."""

_TIMES_TRUTH = re.compile(r"(?:(\d{1,6}(?:\.\d{1,6})?) )?truth")
_USUAL_SIZE = (20_000, 400, 80)  # of the kinds of synthetic ratings that are no family


@dataclass(frozen=True)
class DatasetChoice:
    """A named dataset, a kind of synthetic ratings at some size, or a file of someone's own.

    Attributes:
        source: the name of a dataset, the kind of synthetic ratings, or what a file is known by.
        synthetic: whether its ratings are synthetic.
        label: what tables and pictures call it.
        parameters: top, for a named dataset; users, items, per_user and seed for a synthetic one;
            users, items, ratings, lowest and highest for a file.
        test_share: share of the ratings that is held out for the test, in each draw.
        new_users: share of the users who are in no fit, in each draw; their lists are measured.
        is_file: whether `OPEN_RATINGS` names its file.
    """

    source: str
    synthetic: bool
    label: str
    parameters: Mapping[str, int] = field(default_factory=dict)
    test_share: float = 0.01
    new_users: float = 0.0
    is_file: bool = False

    @property
    def facts(self) -> dict[str, Any]:
        """All that its ratings and splits depend on; the label is not of it."""
        kind = "file" if self.is_file else "synthetic" if self.synthetic else "named"
        apart = {"new_users": self.new_users} if self.new_users else {}
        return {kind: self.source, **self.parameters, "test_share": self.test_share, **apart}

    @property
    def identity(self) -> str:
        """The facts as text: equal texts are equal datasets."""
        return json.dumps(self.facts, sort_keys=True)

    @property
    def users(self) -> int:
        """How many users it has."""
        return self.parameters.get("users", self._usual[0])

    @property
    def items(self) -> int:
        """How many items it has."""
        usual = self._usual[1]
        return self.parameters.get("items", self.parameters.get("top", usual))

    @property
    def ratings(self) -> int:
        """About how many ratings are read or made."""
        if self.is_file:
            return self.parameters["ratings"]
        if not self.synthetic:
            return DATASETS[self.source].counts.ratings
        return self.users * self.parameters.get("per_user", self._usual[2])

    @property
    def _usual(self) -> tuple[int, int, int]:
        if self.is_file:
            return self.parameters["users"], self.parameters["items"], 0
        if not self.synthetic:
            return DATASETS[self.source].counts
        family = FAMILIES.get(self.source)
        return (family.users, family.items, family.per_user) if family else _USUAL_SIZE


@dataclass(frozen=True)
class MethodChoice:
    """A method, its settings, and where they come from.

    Attributes:
        algorithm: a name of the command line, "automatic", or a yardstick.
        label: what tables and pictures call it.
        like: the label of a method that it is a form of: drawn in its colour, with other dashes.
        settings: those that differ from the algorithm's own.
        grid: settings that are tuned on a validation split, without paying for it.
        later_grids: settings that are tuned after those, one grid after the other, with the best
            of the earlier ones kept.
        tuned_at: epsilons that settings are tuned at, the nearest for each; None: at every one.
        tuned_users: how many users of a synthetic dataset settings are tuned with, and with less
            noise in proportion: sums and noise then compare as they do with all of them. None: all.
        epsilons: None: those of the experiment.
        draws: None: those of the experiment.
        accounting: "exact" or "paper".
        neighbours: "replace" or "add_remove".
    """

    algorithm: str
    label: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    later_grids: tuple[Mapping[str, tuple[Any, ...]], ...] = ()
    tuned_at: tuple[float, ...] | None = None
    tuned_users: int | None = None
    epsilons: tuple[float, ...] | None = None
    draws: int | None = None
    accounting: str = "exact"
    neighbours: str = "replace"
    like: str | None = None

    @property
    def is_yardstick(self) -> bool:
        """Whether it is one of the predictors without a budget."""
        return self.algorithm in YARDSTICKS

    @property
    def is_baseline(self) -> bool:
        """Whether it has no private form here: a line across the picture."""
        return self.is_yardstick or self.epsilons == (math.inf,)

    @property
    def grids(self) -> tuple[Mapping[str, tuple[Any, ...]], ...]:
        """All grids, in the order in which they are searched; none if nothing is tuned."""
        return (self.grid, *self.later_grids) if self.grid else ()

    def tuning_epsilon(self, epsilon: float | None) -> float | None:
        """Return the epsilon that settings for `epsilon` are tuned at: the nearest, as a ratio."""
        if self.tuned_at is None or epsilon is None or epsilon in self.tuned_at:
            return epsilon
        finite = [at for at in self.tuned_at if not math.isinf(at)]
        if math.isinf(epsilon) or not finite:
            return max(self.tuned_at)
        return min(finite, key=lambda at: abs(math.log(at / epsilon)))


@dataclass(frozen=True)
class Guide:
    """A rate of the theory, drawn through the first point of a method."""

    method: str
    bound: str


@dataclass(frozen=True)
class Quick:
    """How `--quick` makes an experiment smaller."""

    draws: int = 1
    epsilons: tuple[float, ...] | None = None
    users: int | None = None


@dataclass(frozen=True)
class Experiment:
    """One figure and its table.

    Attributes:
        name: of its file, and of its results.
        title: a line.
        about: what it shows and how, in a few sentences.
        datasets: one panel each, or one point each where the axis is users or items.
        methods: one line each.
        epsilons: inf means no privacy.
        delta: of every budget.
        draws: how often each fit is repeated, with another test part and other noise.
        validation_share: share of the ratings that settings are tuned on, if any are.
        measure: what is tabled and drawn.
        also: other measures of the same runs, tabled below it.
        wall_seconds: a job that takes longer is stopped and kept as failed.
        axis: "epsilon", "users" or "items".
        guides: rates of the theory.
        leader: the label of the method that ought to lead everywhere, if that is claimed.
        quick: how to make it small.
        file: the file of one's own that it was read from; empty for one that is known by its name.
    """

    name: str
    title: str
    about: str
    datasets: tuple[DatasetChoice, ...]
    methods: tuple[MethodChoice, ...]
    epsilons: tuple[float, ...]
    delta: float = 1e-6
    draws: int = 10
    validation_share: float = 0.02
    measure: str = "rmse"
    also: tuple[str, ...] = ()
    wall_seconds: float = 600.0
    axis: str = "epsilon"
    guides: tuple[Guide, ...] = ()
    leader: str | None = None
    quick: Quick = Quick()
    file: str = ""

    def epsilons_of(self, method: MethodChoice) -> tuple[float | None, ...]:
        """Return the epsilons a method is run at; None for one that knows no budget."""
        if method.is_yardstick:
            return (None,)
        return self.epsilons if method.epsilons is None else method.epsilons

    def draws_of(self, method: MethodChoice) -> int:
        """Return how often a method is run."""
        return self.draws if method.draws is None else min(method.draws, self.draws)

    def made_quick(self) -> "Experiment":
        """Return a small form, to see what comes out: few draws, middles of grids."""
        return replace(
            self,
            name=f"{self.name}-quick",
            title=f"{self.title} (quick form)",
            about=f"{self._quick_note()} {self.about}",
            draws=min(self.draws, self.quick.draws),
            epsilons=self.quick.epsilons or self.epsilons,
            datasets=tuple(smaller(dataset, self.quick.users) for dataset in self.datasets),
            methods=tuple(_middle_of_grid(method) for method in self.methods),
        )

    def _quick_note(self) -> str:
        """Say how the small form differs from what `about` describes."""
        least = min(self.draws, self.quick.draws)
        changes = ["1 draw" if least == 1 else f"{least} draws"]
        if self.quick.epsilons is not None:
            changes.append(f"epsilon {', '.join(map(epsilon_text, self.quick.epsilons))}")
        if self.quick.users is not None:
            changes.append(f"at most {self.quick.users:,} users of synthetic data")
        if any(method.grid for method in self.methods):
            changes.append("nothing tuned: the middle of each grid")
        return f"**A quick form: {'; '.join(changes)}.** What follows describes the whole one."


def points_of_grid(
    settings: Mapping[str, Any], grid: Mapping[str, tuple[Any, ...]]
) -> list[dict[str, Any]]:
    """Return settings with every combination of a grid's values; themselves for an empty one."""
    combinations = itertools.product(*grid.values())
    return [{**settings, **dict(zip(grid, values, strict=True))} for values in combinations]


def multiple_of_truth(value: Any) -> float | None:
    """Return how many times the true norm a word stands for; None for anything else.

    >>> multiple_of_truth("truth"), multiple_of_truth("1.6 truth"), multiple_of_truth(1.6)
    (1.0, 1.6, None)
    """
    found = _TIMES_TRUTH.fullmatch(value) if isinstance(value, str) else None
    return float(found[1] or 1.0) if found else None


def epsilon_text(epsilon: float | None) -> str:
    """Write an epsilon for a person."""
    if epsilon is None:
        return "any"
    return "no privacy" if math.isinf(epsilon) else f"{epsilon:g}"


def smaller(dataset: DatasetChoice, users: int | None) -> DatasetChoice:
    """Return synthetic ratings of at most so many users; others as they are."""
    if users is None or not dataset.synthetic or dataset.users <= users:
        return dataset
    label = f"{dataset.label} (here {users:,} users)"
    return replace(dataset, label=label, parameters={**dataset.parameters, "users": users})


def _middle_of_grid(method: MethodChoice) -> MethodChoice:
    middle = {
        name: values[len(values) // 2] for grid in method.grids for name, values in grid.items()
    }
    settings = {**method.settings, **middle}
    return replace(
        method, settings=settings, grid={}, later_grids=(), tuned_at=None, tuned_users=None
    )
