"""The paper's bounds for Frank-Wolfe, as numbers.

The paper states them inside O(.) or with logarithms hidden as well. Each function evaluates the
expression as printed, with 1 for every hidden constant and logarithm. The numbers say how errors
move with users, items and epsilon; they do not say how large an error will be.
"""

import math
from dataclasses import dataclass

from tacit.research.theory.problem import Problem


@dataclass(frozen=True)
class Bound:
    """A bound of two terms: what is left without noise, and what the noise adds."""

    learning: float
    privacy: float

    @property
    def total(self) -> float:
        """The sum of both terms."""
        return self.learning + self.privacy


def empirical_risk(problem: Problem, rounds: float) -> Bound:
    """Bound F-hat, half the mean squared error on seen entries, after T rounds.

        k^2 / (|Omega| T)  +  k T^(1/4) L sqrt(n^(1/2) ln^(1/2)(1/delta) ln n)
                              / (|Omega| sqrt(epsilon))

    *Paper:* Theorem 3.2, with probability 2/3 and up to a constant. Like Theorem A.1, its proof
    drops a share of the error at the start: see `share_kept`.
    """
    k, seen, items = problem.nuclear_norm, problem.ratings, problem.items
    logs = math.sqrt(math.log(1 / problem.delta)) * math.log(items)
    noise = rounds**0.25 * problem.row_norm * math.sqrt(math.sqrt(items) * logs)
    return Bound(
        learning=k**2 / (seen * rounds), privacy=k * noise / (seen * math.sqrt(problem.epsilon))
    )


def recommended_rounds(problem: Problem) -> float:
    """Return T* = k^(4/5) epsilon^(2/5) / (n^(1/5) L^(4/5)), logarithms hidden.

    *Paper:* Theorem 3.2.

    >>> round(recommended_rounds(Problem.by_rule(users=500_000, items=400, epsilon=0.5)))
    83
    """
    ratio = problem.nuclear_norm / problem.row_norm
    return float(ratio**0.8 * problem.epsilon**0.4 / problem.items**0.2)


def best_rounds(problem: Problem) -> float:
    """Return the T that makes the two terms of `empirical_risk` smallest, logarithms and all.

        4^(4/5) T* / (ln^(1/5)(1/delta) ln^(2/5) n)

    *Paper:* ours; Theorem 3.2's T* is this with logarithms and the constant hidden.
    """
    logs = math.log(1 / problem.delta) ** 0.2 * math.log(problem.items) ** 0.4
    return float(4**0.8 * recommended_rounds(problem) / logs)


def empirical_risk_at_best(problem: Problem) -> float:
    """Return k^(6/5) n^(1/5) L^(4/5) / (|Omega| epsilon^(2/5)): F-hat at T*, logarithms hidden.

    *Paper:* Theorem 3.2, second part; Remarks 1 and 2 evaluate it.
    """
    size = problem.nuclear_norm**1.2 * problem.items**0.2 * problem.row_norm**0.8
    return float(size / (problem.ratings * problem.epsilon**0.4))


def generalisation_rounds(problem: Problem) -> float:
    """Return T = k^(4/3) / (|Omega| (m + n))^(1/3): best for all entries, seen or not.

    It balances the first term of Theorem 3.2 against Theorem D.6 for a matrix of rank T.

    *Paper:* Corollary 3.1.
    """
    both = problem.ratings * (problem.users + problem.items)
    return float(problem.nuclear_norm ** (4 / 3) / both ** (1 / 3))


def generalisation_error(problem: Problem) -> Bound:
    """Bound F, the mean squared error over all entries, when Omega is uniformly random.

        k^(4/3) L n^(1/4) / sqrt(epsilon |Omega|^(13/6) (m + n)^(1/6))
            +  (k sqrt(m + n) / |Omega|)^(2/3)

    *Paper:* Corollary 3.1, with probability 2/3; constants and logarithms hidden. Remark 6 quotes
    n^(13/24) / m^(5/12) for its first term in the setting of Remark 5; the corollary gives
    n^(5/8) / m^(1/2) there, which is also what its condition m >> n^(5/4) says.
    """
    k, seen, both = problem.nuclear_norm, problem.ratings, problem.users + problem.items
    noise = k ** (4 / 3) * problem.row_norm * problem.items**0.25
    scale = math.sqrt(problem.epsilon) * seen ** (13 / 12) * both ** (1 / 12)
    return Bound(learning=(k * math.sqrt(both) / seen) ** (2 / 3), privacy=noise / scale)


def generalisation_gap(problem: Problem, rank: float) -> float:
    """Return sqrt(r (m + n) / |Omega|): how far F and F-hat differ for a matrix of rank r.

    *Paper:* Theorem D.6, from [srebro2005rank]; constants and logarithms hidden.
    """
    return math.sqrt(rank * (problem.users + problem.items) / problem.ratings)


def frank_wolfe_risk(
    problem: Problem, rounds: float, slack: float = 0.0, start: float = 0.0
) -> float:
    """Return k^2 / (|Omega| T) + gamma: the excess of F-hat after T rounds with slack gamma.

    With `start`, the excess of F-hat at the start, (1 - 1/T)^T of it is added.

    *Paper:* Theorem A.1, as printed but for that last term, which its proof loses (`share_kept`).
    Its curvature 2 k^2/|Omega| should be 4 k^2/|Omega|, the ball's diameter being 2 k.
    """
    walked = problem.nuclear_norm**2 / (problem.ratings * rounds)
    return walked + slack + share_kept(rounds) * start


def share_kept(rounds: float) -> float:
    """Return (1 - 1/T)^T, near 0.37: how much of where it started T steps of 1/T may keep.

    The weights of the T directions add up to the rest, so Y has at most that part of the nuclear
    norm k: 65 % with ten rounds, 63 % with many. Where Y* has rank one, the norm k, and every entry
    seen, Y ends there. A k of 1.6 times the norm, 1 / 0.63, leaves room for all of Y*.

    *Paper:* missing in the proofs of Theorems A.1 and 3.2.
    """
    return float((1.0 - 1.0 / rounds) ** rounds) if rounds > 1 else 0.0


def zero_error(problem: Problem) -> float:
    """Return m L^2 / |Omega|: the largest mean square of seen entries, the error of Y = 0.

    With users' own means taken off, Y = 0 predicts the mean. A bound above it says nothing.
    """
    return problem.users * problem.row_norm**2 / problem.ratings
