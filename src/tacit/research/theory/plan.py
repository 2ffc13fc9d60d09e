"""What the paper's theorems say before any budget is spent: rounds, noise and bounds."""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from tacit.accounting.budget import Neighbours
from tacit.research.theory.bounds import (
    Bound,
    empirical_risk,
    generalisation_error,
    generalisation_rounds,
    recommended_rounds,
    share_kept,
    zero_error,
)
from tacit.research.theory.noise import NoiseComparison, compare_noise
from tacit.research.theory.problem import Problem
from tacit.research.theory.subspace import ratings_needed, svd_error
from tacit.research.theory.tables import TABLE_1, TABLE_2

_MOST_ROUNDS = 10_000  # what a fit accepts


@dataclass(frozen=True)
class Verdict:
    """Which method the theory favours, and why."""

    method: Literal["frank-wolfe", "svd"]
    reason: str
    useful: bool
    """Whether its bound is below the error of predicting nothing."""


@dataclass(frozen=True)
class PlannedBound:
    """A bound with the noise of the paper and with exact noise."""

    name: str
    place: str
    """Where in the paper it stands."""
    paper: Bound
    exact: Bound
    halved: bool
    """Whether it bounds F-hat, half a mean squared error, or F, a whole one."""

    @property
    def rmse(self) -> float:
        """The bound with exact noise as a root mean squared error, in units of ratings."""
        return math.sqrt(self.exact.total * (2 if self.halved else 1))


@dataclass(frozen=True)
class Plan:
    """All of it, for one problem and one relation."""

    problem: Problem
    neighbours: Neighbours
    rounds: int
    """T of Theorem 3.2, for seen ratings."""
    rounds_for_all: int
    """T of Corollary 3.1, for all ratings."""
    noise: tuple[NoiseComparison, ...]
    """Of a round of Algorithm 1, for either relation, with T = rounds."""
    svd_noise: tuple[NoiseComparison, ...]
    """Of Algorithm 4's one release, for either relation."""
    bounds: tuple[PlannedBound, ...]
    verdict: Verdict

    @property
    def zero_rmse(self) -> float:
        """The largest RMSE of predicting nothing but the user mean."""
        return math.sqrt(zero_error(self.problem))

    def notes(self) -> list[str]:
        """Return what a reader should know before believing a number."""
        return _notes(self)

    def to_json(self) -> dict[str, Any]:
        """Return everything with stable keys, and both tables of the paper."""
        noises = {"frank-wolfe": self.noise, "svd": self.svd_noise}
        return {
            "problem": asdict(self.problem),
            "neighbours": self.neighbours.value,
            "rounds": self.rounds,
            "rounds_for_all": self.rounds_for_all,
            "noise": {
                name: {each.neighbours.value: _noise_json(each) for each in both}
                for name, both in noises.items()
            },
            "bounds": [asdict(bound) | {"rmse": bound.rmse} for bound in self.bounds],
            "zero_rmse": self.zero_rmse,
            "favours": asdict(self.verdict),
            "table_1": _table_1(self.problem),
            "table_2": _table_2(self.problem),
            "notes": self.notes(),
        }


PLAN_KEYS = (
    "problem", "neighbours", "rounds", "rounds_for_all", "noise", "bounds", "zero_rmse", "favours",
    "table_1", "table_2", "notes",
)  # fmt: skip
"""The keys of `Plan.to_json`."""


def make_plan(problem: Problem, neighbours: Neighbours = Neighbours.REPLACE) -> Plan:
    """Evaluate everything the theory says about a problem.

    >>> plan = make_plan(Problem.by_rule(users=500_000, items=400, epsilon=0.5))
    >>> plan.rounds, plan.rounds_for_all, plan.verdict.method
    (83, 5, 'svd')
    """
    rounds = _whole(recommended_rounds(problem))
    return Plan(
        problem=problem,
        neighbours=neighbours,
        rounds=rounds,
        rounds_for_all=_whole(generalisation_rounds(problem)),
        noise=tuple(compare_noise(problem, rounds, relation) for relation in Neighbours),
        svd_noise=tuple(compare_noise(problem, 1, relation, clip=1) for relation in Neighbours),
        bounds=planned_bounds(problem, rounds, neighbours),
        verdict=favours(problem),
    )


def planned_bounds(
    problem: Problem, rounds: float, neighbours: Neighbours
) -> tuple[PlannedBound, ...]:
    """Evaluate the bounds with the paper's noise and with exact noise.

    The noise terms of Theorem 3.2 and Corollary 3.1 grow with the root of sigma, that of
    Theorem B.3 with its square.
    """
    walk = compare_noise(problem, rounds, neighbours).ratio ** -0.5
    svd = compare_noise(problem, 1, neighbours, clip=1).ratio ** -2
    seen, every = empirical_risk(problem, rounds), generalisation_error(problem)
    subspace = svd_error(problem)
    return (
        PlannedBound("Frank-Wolfe, seen ratings", "Thm. 3.2", seen, _scaled(seen, walk), True),
        PlannedBound("Frank-Wolfe, all ratings", "Cor. 3.1", every, _scaled(every, walk), False),
        PlannedBound("SVD, all ratings", "Thm. B.3", subspace, _scaled(subspace, svd), False),
    )


def favours(problem: Problem) -> Verdict:
    """Say whether the theory favours Algorithm 1 or Algorithm 4 for all ratings, and why.

    *Paper:* Remark 6: Algorithm 4 where Theorem B.3 applies and gives less, else Algorithm 1.
    """
    needed, zero = ratings_needed(problem), zero_error(problem)
    walk, subspace = generalisation_error(problem).total, svd_error(problem).total
    if problem.ratings < needed:
        reason = (
            f"Thm. B.3 says nothing of SVD below {needed:.3g} ratings "
            f"(kappa^2 mu m r ln m) and there are {problem.ratings:.3g}"
        )
        return Verdict("frank-wolfe", reason, walk < zero)
    if subspace < walk:
        reason = (
            f"Thm. B.3 gives {subspace:.2g} and Cor. 3.1 {walk:.2g}; but only for an incoherent "
            f"matrix of rank {problem.rank} seen at random, else Frank-Wolfe is the safer choice"
        )
        return Verdict("svd", reason, subspace < zero)
    reason = f"Cor. 3.1 gives {walk:.2g} and Thm. B.3 {subspace:.2g}"
    return Verdict("frank-wolfe", reason, walk < zero)


def _scaled(bound: Bound, factor: float) -> Bound:
    return Bound(bound.learning, factor * bound.privacy)


def _whole(rounds: float) -> int:
    """Return a number of rounds that a fit accepts."""
    return round(min(max(rounds, 2.0), _MOST_ROUNDS))


def _noise_json(noise: NoiseComparison) -> dict[str, float]:
    return {"paper": noise.paper, "exact": noise.exact, "ratio": noise.ratio}


def _table_1(problem: Problem) -> list[dict[str, Any]]:
    users, items = problem.users, problem.items
    return [
        {
            "method": row.method,
            "source": row.source,
            "users": row.users(items),
            "ratings": row.ratings(users, items),
        }
        for row in TABLE_1
    ]


def _table_2(problem: Problem) -> list[dict[str, Any]]:
    size = (problem.users, problem.items, problem.incoherence)
    return [
        {
            "method": row.method,
            "source": row.source,
            "joint": row.joint,
            "formula": row.formula,
            "error": float(row.error(*size)),
            "rank": float(row.rank(problem.users, problem.items)),
            "useful": row.useful(*size),
        }
        for row in TABLE_2
    ]


def _notes(plan: Plan) -> list[str]:
    problem = plan.problem
    notes = [
        "Bounds are up to constants (and, in Cor. 3.1, logarithms) that the paper does not state; "
        "each is taken as 1. They are loose: read how they move, not how large they are.",
        f"The proof of Thm. 3.2 drops a term: {plan.rounds:,} steps of 1/T may keep "
        f"{share_kept(plan.rounds):.0%} of the error they start with where k is the true nuclear "
        "norm; a k of 1.6 times that leaves room.",
        "Practice differs: the paper's own runs used 5 to 50 rounds, chosen on the ratings; the "
        "default of FrankWolfe is 10.",
    ]
    chosen = next(noise for noise in plan.noise if noise.neighbours is plan.neighbours)
    if chosen.ratio < 1:
        notes.append(
            f"At this epsilon the paper's noise does not keep its promise under "
            f"{plan.neighbours.value}; exact noise is larger, and does."
        )
    name = {"svd": "SVD", "frank-wolfe": "Frank-Wolfe"}[plan.verdict.method]
    notes.append(f"By Remark 6 of the paper these bounds prefer {name}: {plan.verdict.reason}.")
    if not plan.verdict.useful:
        notes.append(
            "That bound for all ratings is no better than predicting the user mean: here the "
            "theory promises nothing."
        )
    if problem.delta >= 1 / problem.users:
        notes.append("delta is not below 1/users: too weak to mean much for one person.")
    return notes
