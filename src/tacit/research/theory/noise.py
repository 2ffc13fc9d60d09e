"""The noise of Algorithm 1, by the paper's formula and exactly, and what it does to one round."""

import math
from dataclasses import dataclass

from tacit.accounting.budget import Accounting, Neighbours, PrivacyBudget, Sensitivity
from tacit.research.theory.problem import Problem


@dataclass(frozen=True)
class NoiseComparison:
    """The noise sd of one release under one relation, calibrated in two ways."""

    neighbours: Neighbours
    paper: float
    """sigma = L^2 sqrt(64 T ln(1/delta)) / epsilon."""
    exact: float
    """The least sd that keeps the promise, for the same T releases."""

    @property
    def ratio(self) -> float:
        """How many times smaller exact noise is; below 1, the paper's is too small to hold."""
        return self.paper / self.exact


def compare_noise(
    problem: Problem,
    rounds: float,
    neighbours: Neighbours = Neighbours.REPLACE,
    *,
    clip: float = 2.0,
) -> NoiseComparison:
    """Compare the paper's noise for T equal releases with exact accounting.

    Residuals have norm at most `clip` times L, so a covariance moves by clip^2 L^2 when a row is
    added or removed and by sqrt2 clip^2 L^2 when it is exchanged. Algorithm 4 sums rows and not
    residuals, so its clip is 1; it is printed with the noise of Algorithm 1.

    *Paper:* Algorithm 1's sigma, Algorithm 4's (T = 1); Lemma D.1.

    >>> problem = Problem.by_rule(users=500_000, items=400, epsilon=1.0)
    >>> round(compare_noise(problem, 10).ratio, 2)
    1.24
    """
    square = (clip * problem.row_norm) ** 2
    sensitivity = Sensitivity(add_remove=square, replace=math.sqrt(2) * square)
    budget = PrivacyBudget(problem.epsilon, problem.delta, neighbours)
    return NoiseComparison(
        budget.neighbours,
        paper_noise_sd(problem, rounds),
        budget.noise_sd(sensitivity, 1 / rounds),
    )


def paper_noise_sd(problem: Problem, rounds: float) -> float:
    """Return sigma = L^2 sqrt(64 T ln(1/delta)) / epsilon.

    *Paper:* Algorithms 1, 4 (with T = 1) and 5.
    """
    four = Sensitivity(add_remove=4 * problem.row_norm**2, replace=math.nan)
    budget = PrivacyBudget(problem.epsilon, problem.delta, accounting=Accounting.PAPER)
    return budget.noise_sd(four, 1 / rounds)


def energy_loss(items: int, noise_sd: float, beta: float = 1 / 3) -> float:
    """Return sigma ln(n/beta) sqrt(n): how much of ||A v||^2 the noisy direction may lose.

    It bounds the largest eigenvalue of the noise, except with probability beta, up to a constant.

    *Paper:* Lemma D.3; Corollary 2.3.5 of [tao2012topics].
    """
    return noise_sd * math.log(items / beta) * math.sqrt(items)


def eigenvalue_error(items: int, noise_sd: float, beta: float = 1 / 3) -> float:
    """Return sqrt(sigma ln(n/beta) sqrt(n)): how far lambda may be off, the shift of Algorithm 1.

    *Paper:* Lemma D.2, up to a constant.
    """
    return math.sqrt(energy_loss(items, noise_sd, beta))


def oracle_slack(problem: Problem, noise_sd: float, beta: float = 1 / 3) -> float:
    """Return gamma = (k/|Omega|) sqrt(sigma ln(n/beta) sqrt(n)), the slack of a noisy round.

    *Paper:* Lemma D.4, up to a constant; beta = 1/3 as in the proof of Theorem 3.2.
    """
    scale = problem.nuclear_norm / problem.ratings
    return scale * eigenvalue_error(problem.items, noise_sd, beta)
