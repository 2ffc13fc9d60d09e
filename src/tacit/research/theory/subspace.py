"""The paper's bounds for subspaces: private SVD and private Oja."""

import math

from tacit.research.theory.bounds import Bound
from tacit.research.theory.noise import paper_noise_sd
from tacit.research.theory.problem import Problem


def svd_error(problem: Problem) -> Bound:
    """Bound F, the mean squared error over all entries, of Algorithm 4.

        L^4 kappa^4 m^3 n^4 r Delta^2 / (|Omega|^4 ||Y*||_2^2)
            +  mu ||Y*||_2^2 r^2 ln m / (n |Omega|),     Delta = sqrt(64 ln(1/delta)) / epsilon

    It needs `ratings_needed` uniformly random entries of an incoherent matrix of rank r.

    *Paper:* Theorem B.3, first form, with probability 2/3 and up to a constant. It is printed for
    F-hat; the proof bounds ||Y - Y*||_F^2 / (m n), which is F.
    """
    ratio = problem.row_norm**2 / problem.top_singular_value
    return Bound(learning=_svd_learning(problem), privacy=ratio**2 * _svd_noise(problem))


def svd_error_by_rows(problem: Problem) -> Bound:
    """Bound the same without ||Y*||_2 in the noise term, as L <= ||Y*||_2 allows.

        min(L^2, mu^2 r n / m) kappa^4 m^3 n^4 r Delta^2 / |Omega|^4
            +  mu ||Y*||_2^2 r^2 ln m / (n |Omega|)

    *Paper:* Theorem B.3, second form.
    """
    even = problem.incoherence**2 * problem.rank * problem.items / problem.users
    noise = min(problem.row_norm**2, even) * _svd_noise(problem)
    return Bound(learning=_svd_learning(problem), privacy=noise)


def _svd_noise(problem: Problem) -> float:
    """Return kappa^4 m^3 n^4 r Delta^2 / |Omega|^4; m^3 n^4 / |Omega|^4 is 1 / (m p^4)."""
    strength = problem.condition**4 * problem.rank * privacy_parameter(problem) ** 2
    return strength / (problem.users * problem.density**4)


def _svd_learning(problem: Problem) -> float:
    squares = problem.top_singular_value**2 * problem.rank**2 * math.log(problem.users)
    return problem.incoherence * squares / (problem.items * problem.ratings)


def privacy_parameter(problem: Problem) -> float:
    """Return Delta = sqrt(64 ln(1/delta)) / epsilon: the noise of Algorithm 4 is L^2 Delta."""
    return paper_noise_sd(problem, 1) / problem.row_norm**2


def ratings_needed(problem: Problem) -> float:
    """Return kappa^2 mu m r ln m: how many entries Theorem B.3 asks for, up to a large constant.

    *Paper:* Theorem B.3.
    """
    size = problem.incoherence * problem.users * problem.rank * math.log(problem.users)
    return problem.condition**2 * size


def sampling_error(problem: Problem) -> float:
    """Return ||M||_2 sqrt(mu m r ln m / |Omega|): how far (mn/|Omega|) P(M) is from M.

    *Paper:* Lemma B.4 (spectral norm), up to a constant.
    """
    size = problem.incoherence * problem.users * problem.rank * math.log(problem.users)
    return problem.top_singular_value * math.sqrt(size / problem.ratings)


def subspace_error(problem: Problem, gap: float) -> float:
    """Return L^2 sqrt(n) Delta / gap: how far noise turns the top-r subspace.

    `gap` is `spectral_gap` of the seen entries, alpha_r^2 - alpha_(r+1)^2.

    *Paper:* Equation (11), from Theorem 6 of [dwork2014analyze], up to a constant.
    """
    return paper_noise_sd(problem, 1) * math.sqrt(problem.items) / gap


def oja_noise_sd(problem: Problem, steps: int) -> float:
    """Return sigma = L^2 sqrt(256 Gamma ln(2/delta)) / epsilon.

    *Paper:* Algorithm 2, as printed: several times more than the promise needs.
    """
    logs = math.log(2 / problem.delta)
    return problem.row_norm**2 * math.sqrt(256 * steps * logs) / problem.epsilon


def oja_variance(items: int, noise_sd: float) -> float:
    """Return V = sigma^2 n, for products with W that carry i.i.d. Gaussian noise.

    *Paper:* Section 3.2.
    """
    return noise_sd**2 * items


def oja_loss(top_eigenvalue: float, variance: float, steps: float) -> float:
    """Return sqrt(V/Gamma) + ||W||_2 / Gamma: how much of ||W||_2 = ||A||_2^2 v may lose.

    *Paper:* Theorem 3.3, for eta = 1/sqrt(V Gamma) and up to a constant. With the sigma of
    Algorithm 2 the first part does not depend on Gamma: noise and averaging cancel.
    """
    return math.sqrt(variance / steps) + top_eigenvalue / steps


def oja_steps(top_eigenvalue: float, items: int, noise_sd: float, beta: float = 1 / 3) -> float:
    """Return max(1/beta, ||A||_2^2 / (sigma sqrt n)): the Gamma after which noise is what is left.

    *Paper:* Section 3.2, up to a constant. Printed with min; the loss ||A||_2^2 / Gamma falls to
    sigma sqrt n only if Gamma exceeds the second, and the probability needs the first.
    """
    return max(1 / beta, top_eigenvalue / (noise_sd * math.sqrt(items)))
