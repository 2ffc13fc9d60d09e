"""The paper's theorems as numbers: by hand, by their scaling laws, and by small experiments."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from tacit import ConfigError, PrivacyBudget
from tacit.accounting.budget import Neighbours
from tacit.accounting.ledger import Ledger
from tacit.algorithms import Facts, FrankWolfe
from tacit.estimation.eigen import oja, start_block
from tacit.research import theory
from tacit.research.theory import Problem, every_entry, privacy_parameter, rank_one, unit_rows

# Powers of ten, and ln(1/delta) = 16, so that the numbers below can be checked on paper.
BY_HAND = Problem(
    users=10_000,
    items=100,
    ratings=100_000,
    nuclear_norm=1000.0,
    row_norm=math.sqrt(10),
    epsilon=1.0,
    delta=math.exp(-16),
)
HUGE = 10**14  # users, where m + n is m


def slope(value: Callable[[float], float], low: float, high: float) -> float:
    """The power law between two points."""
    return math.log(value(high) / value(low)) / math.log(high / low)


def test_theorem_3_2_by_hand() -> None:
    bound = theory.empirical_risk(BY_HAND, 16)
    assert bound.learning == pytest.approx(1e6 / (1e5 * 16))
    assert bound.privacy == pytest.approx(0.85839, rel=1e-4)  # 1000 2 sqrt(10) 13.572 / 1e5
    assert bound.total == bound.learning + bound.privacy
    assert theory.recommended_rounds(BY_HAND) == pytest.approx(10**1.6)
    assert theory.empirical_risk_at_best(BY_HAND) == pytest.approx(10 ** (3.6 + 0.4 + 0.4 - 5))


def test_corollary_3_1_by_hand() -> None:
    bound = theory.generalisation_error(BY_HAND)
    assert theory.generalisation_rounds(BY_HAND) == pytest.approx(1e4 / 1.01e9 ** (1 / 3))
    assert bound.learning == pytest.approx(1.003322, rel=1e-5)  # (1000 sqrt(10100) / 1e5)^(2/3)
    assert bound.privacy == pytest.approx(0.17768, rel=1e-4)  # 1e5 / (1e5^(13/12) 10100^(1/12))
    assert theory.generalisation_gap(BY_HAND, 4) == pytest.approx(math.sqrt(4 * 10100 / 1e5))


def test_theorem_b_3_by_hand() -> None:
    assert privacy_parameter(BY_HAND) == pytest.approx(32.0)  # sqrt(64 16)
    first, second = theory.svd_error(BY_HAND), theory.svd_error_by_rows(BY_HAND)
    assert first.privacy == pytest.approx(0.1024)  # 100 1e12 1e8 1024 / (1e20 1e6)
    assert first.learning == pytest.approx(math.log(1e4) / 10)
    assert second.privacy == pytest.approx(10.24)  # min(10, 1/100) in place of 1e-4
    assert second.learning == first.learning
    assert theory.ratings_needed(BY_HAND) == pytest.approx(1e4 * math.log(1e4))
    assert theory.sampling_error(BY_HAND) == pytest.approx(1000 * math.sqrt(math.log(1e4) / 10))
    assert theory.subspace_error(BY_HAND, gap=1e5) == pytest.approx(320 * 10 / 1e5)


def test_rank_condition_and_incoherence_enter_theorem_b_3_as_printed() -> None:
    base, known = theory.svd_error(BY_HAND), replace(BY_HAND, spectral_norm=1000.0)
    twice = theory.svd_error(replace(known, rank=2))
    assert twice.privacy == pytest.approx(2 * base.privacy)
    assert twice.learning == pytest.approx(4 * base.learning)
    steep = theory.svd_error(replace(known, condition=2.0))
    assert steep.privacy == pytest.approx(16 * base.privacy)
    uneven = theory.svd_error(replace(known, incoherence=3.0))
    assert uneven.learning == pytest.approx(3 * base.learning)
    assert replace(BY_HAND, rank=2).top_singular_value == 500.0
    more = replace(BY_HAND, rank=2, condition=3.0, incoherence=5.0)
    assert theory.ratings_needed(more) == pytest.approx(90 * theory.ratings_needed(BY_HAND))


def test_lemmas_of_a_noisy_round_by_hand() -> None:
    sigma = theory.paper_noise_sd(BY_HAND, 16)
    assert sigma == pytest.approx(1280.0)  # 10 sqrt(64 16 16)
    energy = 1280 * math.log(300) * 10
    assert theory.energy_loss(100, sigma) == pytest.approx(energy)
    assert theory.eigenvalue_error(100, sigma) == pytest.approx(math.sqrt(energy))
    assert theory.oracle_slack(BY_HAND, sigma) == pytest.approx(0.01 * math.sqrt(energy))
    assert theory.frank_wolfe_risk(BY_HAND, 16, slack=0.5) == pytest.approx(1.125)


@pytest.mark.parametrize("rounds", [2, 16, 300])
def test_theorem_3_2_is_theorem_a_1_with_the_slack_of_lemma_d_4(rounds: int) -> None:
    bound = theory.empirical_risk(BY_HAND, rounds)
    slack = theory.oracle_slack(BY_HAND, theory.paper_noise_sd(BY_HAND, rounds))
    hidden = 64**0.25 * math.sqrt(math.log(300) / math.log(100))  # what O(.) swallows
    assert slack == pytest.approx(hidden * bound.privacy)
    assert theory.frank_wolfe_risk(BY_HAND, rounds) == pytest.approx(bound.learning)


def test_oja_by_hand() -> None:
    sigma = theory.oja_noise_sd(BY_HAND, 4)
    assert sigma == pytest.approx(10 * math.sqrt(256 * 4 * (16 + math.log(2))))
    assert theory.oja_variance(100, 3.0) == 900.0
    assert theory.oja_loss(500.0, 900.0, 9) == pytest.approx(10 + 500 / 9)
    assert theory.oja_steps(5000.0, 100, 10.0, beta=0.1) == pytest.approx(50.0)
    assert theory.oja_steps(5000.0, 100, 10.0, beta=0.01) == pytest.approx(100.0)


def test_with_its_own_sigma_the_noise_in_theorem_3_3_does_not_depend_on_gamma() -> None:
    losses = [
        theory.oja_loss(0.0, theory.oja_variance(100, theory.oja_noise_sd(BY_HAND, steps)), steps)
        for steps in (1, 7, 50)
    ]
    assert losses == pytest.approx([losses[0]] * 3)


def test_oja_loses_no_more_than_what_is_left_once_gamma_is_reached() -> None:
    noise_sd, items, top = 2.0, 400, 1e5
    steps = theory.oja_steps(top, items, noise_sd)
    loss = theory.oja_loss(top, theory.oja_variance(items, noise_sd), steps)
    assert loss <= 2 * noise_sd * math.sqrt(items)


REMARKS = {
    "Remark 1, users": (lambda m: theory.empirical_risk_at_best(rank_one(int(m), 400, 1.0)), -0.4),
    "Remark 1, items": (
        lambda n: theory.empirical_risk_at_best(rank_one(HUGE, int(n), 1.0)),
        0.5,
    ),
    "Remark 2, users": (
        lambda m: theory.empirical_risk_at_best(every_entry(int(m), 400, 1.0)),
        -0.4,
    ),
    "Remark 2, items": (
        lambda n: theory.empirical_risk_at_best(every_entry(HUGE, int(n), 1.0)),
        0.2,
    ),
    "Remark 3, users": (
        lambda m: theory.generalisation_error(rank_one(int(m), 400, 1.0)).privacy,
        -0.5,
    ),
    "Remark 3, items": (
        lambda n: theory.generalisation_error(rank_one(HUGE, int(n), 1.0)).privacy,
        0.625,
    ),
    "Remark 5, users": (lambda m: theory.svd_error(rank_one(int(m), 400, 1.0)).privacy, -2.0),
    "Remark 5, items": (lambda n: theory.svd_error(rank_one(HUGE, int(n), 1.0)).privacy, 2.0),
    "Remark 5, second term": (
        lambda n: theory.svd_error(rank_one(HUGE, int(n), 1.0)).learning,
        -0.5,
    ),
}


@pytest.mark.parametrize("remark", REMARKS)
def test_bounds_move_as_the_remarks_say(remark: str) -> None:
    value, power = REMARKS[remark]
    low, high = (1e10, 1e14) if "users" in remark else (400, 40_000)  # squares, for sqrt(n)
    assert slope(value, low, high) == pytest.approx(power, abs=1e-6)


def test_the_condition_of_remark_3_is_the_corollarys_and_not_remark_6s() -> None:
    """m = n^(5/4) keeps the corollary's noise term level; n^(13/24) / m^(5/12) would still grow."""

    def term(n: float) -> float:
        problem = rank_one(round(n**1.25), int(n), 1.0)
        return theory.generalisation_error(problem).privacy * (1 + n**-0.25) ** (1 / 12)

    assert slope(term, 1e8, 1e12) == pytest.approx(0.0, abs=1e-4)
    of_remark_6 = 13 / 24 - 5 / 12 * 1.25
    assert of_remark_6 == pytest.approx(1 / 48)


EPSILON_POWERS = {
    "T*": (theory.recommended_rounds, 0.4),
    "Thm. 3.2 at T*": (theory.empirical_risk_at_best, -0.4),
    "Thm. 3.2": (lambda p: theory.empirical_risk(p, 10).privacy, -0.5),
    "Cor. 3.1": (lambda p: theory.generalisation_error(p).privacy, -0.5),
    "Thm. B.3": (lambda p: theory.svd_error(p).privacy, -2.0),
    "Thm. B.3, second": (lambda p: theory.svd_error_by_rows(p).privacy, -2.0),
    "sigma": (lambda p: theory.paper_noise_sd(p, 10), -1.0),
}


@pytest.mark.parametrize("name", EPSILON_POWERS)
def test_powers_of_epsilon(name: str) -> None:
    value, power = EPSILON_POWERS[name]
    found = slope(lambda epsilon: value(replace(BY_HAND, epsilon=epsilon)), 0.1, 10.0)
    assert found == pytest.approx(power)


problems = st.builds(
    lambda items, more, seen, k, l, epsilon: Problem(
        users=items * more,
        items=items,
        ratings=max(1, int(seen * items * more * items)),
        nuclear_norm=k * math.sqrt(items * more * items),
        row_norm=l,
        epsilon=epsilon,
    ),
    items=st.integers(10, 10_000),
    more=st.integers(1, 1000),
    seen=st.floats(0.001, 1.0),
    k=st.floats(0.01, 10.0),
    l=st.floats(0.1, 50.0),
    epsilon=st.floats(0.01, 20.0),
)


@given(problem=problems)
def test_the_recommended_rounds_minimise_the_bound_up_to_logarithms(problem: Problem) -> None:
    best = theory.best_rounds(problem)
    bound = theory.empirical_risk(problem, best)
    assert bound.learning == pytest.approx(bound.privacy / 4)  # where the derivative vanishes
    found = minimize_scalar(
        lambda log: math.log(theory.empirical_risk(problem, math.exp(log)).total),
        bracket=(math.log(best) - 1, math.log(best) + 1.3),
    )
    assert math.exp(found.x) == pytest.approx(best, rel=1e-3)
    at_star = theory.empirical_risk(problem, theory.recommended_rounds(problem)).total
    assert bound.total <= at_star <= 1.3 * bound.total


@given(problem=problems)
def test_both_terms_at_the_recommended_rounds_are_the_second_part_of_theorem_3_2(
    problem: Problem,
) -> None:
    bound = theory.empirical_risk(problem, theory.recommended_rounds(problem))
    logs = math.log(1 / problem.delta) ** 0.25 * math.sqrt(math.log(problem.items))
    expected = theory.empirical_risk_at_best(problem)
    assert (bound.learning, bound.privacy / logs) == pytest.approx((expected, expected))


@given(problem=problems)
def test_the_corollarys_rounds_balance_learning_against_rank(problem: Problem) -> None:
    rounds = theory.generalisation_rounds(problem)
    learning = theory.empirical_risk(problem, rounds).learning
    assert learning == pytest.approx(theory.generalisation_gap(problem, rounds))
    assert theory.generalisation_error(problem).learning == pytest.approx(learning)


def test_the_second_form_of_theorem_b_3_is_the_weaker_one() -> None:
    for setting in (rank_one, every_entry, unit_rows):
        problem = setting(100_000, 400, 1.0)
        assert theory.svd_error_by_rows(problem).total >= theory.svd_error(problem).total


def row_of(method: str) -> theory.ApproximationError:
    return next(row for row in theory.TABLE_2 if row.method == method)


def test_table_1() -> None:
    users = {row.method: row.users(10_000) for row in theory.TABLE_1}
    assert users["Nuclear norm minimisation"] == 10_000
    assert users["Private Frank-Wolfe"] == pytest.approx(1e5)
    assert users["Noisy SVD + kNN"] is users["Noisy SGLD"] is None
    walk = theory.TABLE_1[-1]
    assert walk.ratings(500, 400) == 10_000
    assert theory.TABLE_1[1].ratings(500, 400) is None
    assert [row.private for row in theory.TABLE_1] == [False, True, True, True]


def test_table_2_follows_from_the_theorems() -> None:
    """Frobenius errors: m n times a mean square, with logarithms and epsilon taken out."""
    problem = unit_rows(40_000, 100, 1.0)
    entries = problem.users * problem.items
    walk = row_of("Private Frank-Wolfe")
    assert walk.error(40_000, 100, 1) == pytest.approx(
        math.sqrt(entries * theory.empirical_risk_at_best(problem))
    )
    assert walk.rank(40_000, 100) == pytest.approx(theory.recommended_rounds(problem))
    bound = theory.svd_error_by_rows(problem)
    noise = entries * bound.privacy / privacy_parameter(problem) ** 2
    learning = entries * bound.learning / math.log(problem.users)
    assert row_of("Private SVD").error(40_000, 100, 1) == pytest.approx(math.sqrt(noise + learning))


@pytest.mark.parametrize(
    ("method", "by_users", "by_items", "by_incoherence"),
    [
        ("Randomised response", 0.5, 0.0, 0.0),
        ("Gaussian measurement", 0.5, 0.0, 0.0),
        ("Noisy power method", 0.0, 0.0, 0.5),
        ("Exponential mechanism", 1.0, 0.0, 0.0),
        ("Private Frank-Wolfe", 0.3, 0.1, 0.0),
        ("Private SVD", 0.5, -0.5, 0.5),  # m/n leads where m > n^(3/2)
    ],
)
def test_exponents_of_table_2(
    method: str, by_users: float, by_items: float, by_incoherence: float
) -> None:
    row = row_of(method)
    assert slope(lambda m: row.error(m, 100, 2), 1e12, 1e14) == pytest.approx(by_users, abs=1e-6)
    assert slope(lambda n: row.error(1e14, n, 2), 100, 200) == pytest.approx(by_items, abs=1e-6)
    found = slope(lambda mu: row.error(1e14, 100, mu), 1, 100)
    assert found == pytest.approx(by_incoherence, abs=1e-6)


def test_only_joint_privacy_beats_predicting_nothing_in_table_2() -> None:
    users, items = 500_000, 400
    assert {row.method for row in theory.TABLE_2 if row.joint} == {
        "Private Frank-Wolfe",
        "Private SVD",
    }
    for row in theory.TABLE_2:
        worst = users if not row.joint else 1  # the earlier ones at the mu where the text puts them
        assert row.useful(users, items, worst) == row.joint


@pytest.mark.parametrize(
    ("epsilon", "add_remove", "exchanged"), [(0.1, 2.05, 1.45), (1, 1.76, 1.24), (5, 1.52, 1.07)]
)
@pytest.mark.parametrize("rounds", [1, 10, 82.5])
def test_exact_accounting_cuts_the_papers_noise(
    epsilon: float, add_remove: float, exchanged: float, rounds: float
) -> None:
    problem = Problem.by_rule(users=500_000, items=400, epsilon=float(epsilon))
    for relation, cut in ((Neighbours.ADD_REMOVE, add_remove), (Neighbours.REPLACE, exchanged)):
        found = theory.compare_noise(problem, rounds, relation)
        assert found.neighbours is relation
        assert found.ratio == pytest.approx(cut, rel=0.01)
        rows_only = theory.compare_noise(problem, rounds, relation, clip=1)
        assert rows_only.ratio == pytest.approx(4 * found.ratio)


def test_the_papers_noise_falls_short_at_large_epsilon() -> None:
    problem = Problem.by_rule(users=500_000, items=400, epsilon=20.0)
    assert theory.compare_noise(problem, 10).ratio < 1
    assert "does not keep its promise" in " ".join(theory.make_plan(problem).notes())


@pytest.mark.parametrize("per_user", [80, 1000])
def test_k_l_and_sigma_are_those_of_a_fit(per_user: int) -> None:
    budget = PrivacyBudget(0.5)
    facts = Facts(n_items=400, rating_range=(0.5, 5.0), n_users=7000, budget=budget)
    config = FrankWolfe(rounds=12, max_ratings=per_user)
    problem = Problem.by_rule(
        users=7000, items=400, epsilon=0.5, per_user=per_user, rating_range=(0.5, 5.0)
    )
    assert str(problem.row_norm) == config.public(facts)["frank-wolfe row_norm"]
    ledger = Ledger(budget)
    config.reserve(ledger, facts)
    noise = theory.compare_noise(problem, 11)  # T rounds are T - 1 releases
    assert [entry.noise_sd for entry in ledger.reserved] == pytest.approx([noise.exact] * 11)


def test_by_rule_takes_what_is_given() -> None:
    given_norms = Problem.by_rule(
        users=5000, items=40, epsilon=1.0, per_user=10, nuclear_norm=77.0, row_norm=2.5, delta=1e-7
    )
    assert (given_norms.nuclear_norm, given_norms.row_norm) == (77.0, 2.5)
    assert (given_norms.ratings, given_norms.delta) == (50_000, 1e-7)
    assert theory.zero_error(given_norms) == pytest.approx(2.5**2 / 10)


def test_noise_lemma_covers_the_largest_eigenvalue_of_noise() -> None:
    rng = np.random.default_rng(0)
    for items in (20, 200):
        tops = [np.linalg.norm(3.0 * rng.standard_normal((items, items)), 2) for _ in range(20)]
        assert max(tops) < theory.energy_loss(items, 3.0, beta=0.05)
        assert max(tops) > 0.2 * theory.energy_loss(items, 3.0, beta=0.05)


def of_noise(sigma: float, items: int) -> Problem:
    """A problem of this many items whose noise without rounds, L^2 Delta, is this sigma."""
    return replace(BY_HAND, items=items, row_norm=math.sqrt(sigma / privacy_parameter(BY_HAND)))


@pytest.mark.parametrize("sigma", [0.3, 3.0, 30.0])
def test_the_lemmas_of_a_noisy_round_hold_of_matrices(sigma: float) -> None:
    """D.2, D.3 and D.4 at 1/beta = 20; the twin: with a fiftieth of the noise they would not."""
    rng, items = np.random.default_rng(2), 20
    problem, lost = of_noise(sigma, items), []
    shift = theory.eigenvalue_error(items, sigma)
    for _ in range(40):
        A = rng.standard_normal((60, items))
        noise = sigma * rng.standard_normal((items, items))
        values, vectors = np.linalg.eigh(A.T @ A + (noise + noise.T) / 2)
        top, found = np.linalg.norm(A, 2), float(np.linalg.norm(A @ vectors[:, -1]))
        singular = math.sqrt(max(values[-1], 0.0))
        assert found <= singular + shift
        lost.append(top**2 - found**2)
        slack = problem.nuclear_norm / problem.ratings * (top - found**2 / (singular + shift))
        assert slack <= theory.oracle_slack(problem, sigma)
    assert max(lost) <= theory.energy_loss(items, sigma)
    if sigma > 1:
        assert max(lost) > theory.energy_loss(items, sigma / 50)


@pytest.mark.parametrize("rank", [1, 3])
def test_noise_turns_a_subspace_as_equation_11_says(rank: int) -> None:
    rng, items, sigma = np.random.default_rng(3), 40, 0.5
    A = rng.standard_normal((200, items)) @ np.diag([3.0] * rank + [1.0] * (items - rank))
    bound = theory.subspace_error(of_noise(sigma, items), gap=theory.spectral_gap(A, rank))
    exact = np.linalg.svd(A)[2][:rank].T
    for _ in range(10):
        noise = sigma * rng.standard_normal((items, items))
        found = np.linalg.eigh(A.T @ A + (noise + noise.T) / 2)[1][:, -rank:]
        turned = float(np.linalg.norm(found @ found.T - exact @ exact.T, 2))
        assert 0.2 * bound < turned < bound


def seen_problem(matrix: np.ndarray, seen: np.ndarray) -> Problem:
    """The public numbers of a matrix of rank one of which some entries are seen."""
    users, items = matrix.shape
    norm = float(np.linalg.norm(matrix, 2))
    count = int(seen.sum())
    return Problem(
        users=users, items=items, ratings=count, nuclear_norm=norm, row_norm=3.0, epsilon=1.0
    )


@pytest.mark.parametrize("density", [0.05, 0.3])
def test_seen_entries_scaled_up_are_as_far_from_the_matrix_as_lemma_b_4_says(
    density: float,
) -> None:
    rng, (users, items) = np.random.default_rng(0), (400, 100)
    matrix = np.outer(rng.choice([-1.0, 1.0], users), rng.choice([-1.0, 1.0], items))
    assert theory.incoherence(matrix, 1) == pytest.approx(1.0)
    seen = rng.random(matrix.shape) < density
    scaled = matrix.size / seen.sum() * seen * matrix
    bound = theory.sampling_error(seen_problem(matrix, seen))
    assert 0.25 * bound < np.linalg.norm(scaled - matrix, 2) < bound


@pytest.mark.parametrize("rank", [1, 4])
def test_seen_and_unseen_entries_differ_as_theorem_d_6_says_of_f_and_twice_f_hat(rank: int) -> None:
    """Of a matrix that was fitted to what is seen of random signs, with entries of at most 1.

    F-hat has half of the square and F the whole: with every entry seen their difference is F/2,
    and no bound that goes to zero holds of it.
    """
    rng = np.random.default_rng(0)
    target = rng.choice([-1.0, 1.0], (300, 100))

    def errors(density: float) -> tuple[float, float, float]:
        seen = rng.random(target.shape) < density
        left, singular, right = np.linalg.svd(seen * target, full_matrices=False)
        fitted = (left[:, :rank] * singular[:rank]) @ right[:rank]
        fitted /= np.abs(fitted).max()
        f_hat = float(np.sum((seen * (fitted - target)) ** 2) / (2 * seen.sum()))
        gap = theory.generalisation_gap(seen_problem(target, seen), rank)
        return float(np.mean((fitted - target) ** 2)), f_hat, gap

    for _ in range(5):
        f, f_hat, gap = errors(0.2)
        assert 0.1 * gap < f - 2 * f_hat < gap
    f, f_hat, gap = errors(1.0)
    assert f == pytest.approx(2 * f_hat)
    assert f - f_hat > 1.5 * gap


@pytest.mark.parametrize("strength", [1.0, 10.0])
@pytest.mark.parametrize("steps", [5, 20, 100])
def test_oja_loses_what_theorem_3_3_says(strength: float, steps: int) -> None:
    """Up to a constant; the twin: less noise than there is explains too little."""
    rng, items, losses = np.random.default_rng(1), 50, []
    A = rng.standard_normal((100, items))
    W = A.T @ A
    top = float(np.linalg.norm(W, 2))
    noise_sd = top / (strength * math.sqrt(items))
    for seed in range(20):
        found = oja(
            lambda block, _: W @ block + noise_sd * rng.standard_normal(block.shape),
            start_block(items, 1, seed), steps, "theory", noise_sd,
        )  # fmt: skip
        losses.append(top - float(found[:, 0] @ W @ found[:, 0]))
    bound = theory.oja_loss(top, theory.oja_variance(items, noise_sd), steps)
    assert np.mean(losses) < 1.5 * bound
    assert max(losses) < 3 * bound
    if strength == 1:
        assert np.mean(losses) > theory.oja_loss(
            top, theory.oja_variance(items, noise_sd / 16), steps
        )


def test_sqrt_n_ratings_a_user_leave_the_learning_term_of_the_corollary_at_one() -> None:
    """Informal Theorem 1.1 says that sqrt(n) are enough; Remark 3 asks for polylog(n) more."""
    for users, items in ((10**4, 100), (10**9, 10**4), (10**14, 10**8)):
        problem = rank_one(users, items, 1.0)
        assert 1 <= theory.generalisation_error(problem).learning < 1.01
        more = replace(problem, ratings=int(problem.ratings * math.log(items)))
        learning = theory.generalisation_error(more).learning
        assert learning == pytest.approx(math.log(items) ** (-2 / 3), rel=0.01)


def walk(
    hidden: np.ndarray, seen: np.ndarray, rounds: int, room: float = 1.0
) -> tuple[Problem, float, float]:
    """Algorithm 3, k being `room` times the norm: the problem, F-hat at the start and the end."""
    k = room * float(np.linalg.norm(hidden, "nuc"))
    guess = np.zeros_like(hidden)
    for _ in range(rounds):
        left, _, right = np.linalg.svd(seen * (guess - hidden), full_matrices=False)
        guess = (1 - 1 / rounds) * guess - (k / rounds) * np.outer(left[:, 0], right[0])
    users, items = hidden.shape
    count = int(seen.sum())
    problem = Problem(
        users=users, items=items, ratings=count, nuclear_norm=k, row_norm=3.0, epsilon=1.0
    )
    start, end = (float((seen * (y - hidden) ** 2).sum() / (2 * count)) for y in (0, guess))
    return problem, start, end


@pytest.mark.parametrize("rounds", [1, 3, 10, 40, 200])
@pytest.mark.parametrize("density", [0.3, 1.0])
def test_theorem_a_1_holds_with_the_term_that_its_proof_drops(rounds: int, density: float) -> None:
    rng = np.random.default_rng(1)
    hidden = rng.uniform(-1, 1, (60, 2)) @ rng.uniform(-1, 1, (2, 12))
    problem, start, end = walk(hidden, rng.random(hidden.shape) < density, rounds)
    assert end <= theory.frank_wolfe_risk(problem, rounds, start=start)


def test_theorem_a_1_fails_as_printed() -> None:
    """Every entry of a rank-one matrix seen: many steps of 1/T come 63 % of the way and no more."""
    hidden, rounds = np.outer(np.ones(20), np.ones(5)), 100
    problem, start, end = walk(hidden, np.ones_like(hidden, dtype=bool), rounds)
    kept = theory.share_kept(rounds)
    assert kept == pytest.approx(math.exp(-1), rel=0.01)
    assert end == pytest.approx(kept**2 * start)
    assert end > 6 * theory.frank_wolfe_risk(problem, rounds)
    assert end <= theory.frank_wolfe_risk(problem, rounds, start=start)
    problem, _, end = walk(hidden, np.ones_like(hidden, dtype=bool), rounds, room=1 / (1 - kept))
    assert end < 0.1 * theory.frank_wolfe_risk(problem, rounds)


def test_the_curvature_of_the_ball_is_twice_what_theorem_a_1_takes() -> None:
    """4 k^2/|Omega| between opposite matrices, where every entry is seen; never more."""
    rng, k, (m, n) = np.random.default_rng(1), 3.0, (6, 4)
    target = rng.standard_normal((m, n))

    def curvature(x: np.ndarray, s: np.ndarray, mu: float) -> float:
        y = x + mu * (s - x)
        risks = [float(np.sum((z - target) ** 2)) / (2 * m * n) for z in (x, y)]
        along = float(np.sum((y - x) * (x - target))) / (m * n)
        return 2 / mu**2 * (risks[1] - risks[0] - along)

    largest = 4 * k**2 / (m * n)
    end = k * np.outer(np.eye(m)[0], np.eye(n)[0])
    assert curvature(end, -end, 0.3) == pytest.approx(largest)
    for _ in range(100):
        x, s = (k * z / np.linalg.norm(z, "nuc") for z in rng.standard_normal((2, m, n)))
        assert curvature(x, s, float(rng.uniform(0.1, 1.0))) <= largest


def test_incoherence_of_known_matrices() -> None:
    signs = np.outer([1.0, -1, 1, 1, -1, 1], [1.0, 1, -1])
    assert theory.incoherence(signs, 1) == pytest.approx(1.0)
    assert theory.incoherence(signs, 1, as_printed=True) == pytest.approx(math.sqrt(6))
    spike = np.zeros((6, 3))
    spike[2, 1] = 5.0
    assert theory.incoherence(spike, 1) == pytest.approx(6.0)
    assert theory.incoherence(spike, 1, as_printed=True) == pytest.approx(6.0)
    assert theory.incoherence(np.eye(5), 5) == pytest.approx(1.0)
    assert theory.incoherence(np.vstack([np.eye(2), np.zeros((6, 2))]), 2) == pytest.approx(4.0)
    weights = np.array([3.0, 1, 1, 1])  # the largest share of the square, times four
    assert theory.incoherence(np.outer(weights, [1.0, 1.0]), 1) == pytest.approx(4 * 9 / 12)


@given(seed=st.integers(0, 1000), rank=st.integers(1, 4))
def test_incoherence_stays_in_its_range_whatever_the_scale(seed: int, rank: int) -> None:
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((12, rank)) @ rng.standard_normal((rank, 7))
    found = theory.incoherence(matrix, rank)
    assert 1 - 1e-9 <= found <= 12 / rank + 1e-9
    assert theory.incoherence(-3 * matrix, rank) == pytest.approx(found)


def test_spectral_gap_and_condition_number() -> None:
    matrix = np.diag([5.0, 4.0, 1.0])
    assert [theory.spectral_gap(matrix, r) for r in (1, 2, 3)] == pytest.approx([9, 15, 1])
    assert [theory.condition_number(matrix, r) for r in (1, 2, 3)] == pytest.approx([1, 1.25, 5])


@pytest.mark.parametrize(
    ("matrix", "rank", "message"),
    [
        ([1.0, 2.0], 1, "matrix"),
        ([[1.0, math.nan]], 1, "matrix"),
        ([[1.0, 2.0]], 2, "rank=2"),
        ([[1.0, 2.0]], 0, "rank=0"),
        ([[1.0, 2.0]], True, "rank=True"),
        (np.ones((3, 3)), 2, "smaller rank"),
        (np.zeros((3, 3)), 1, "smaller rank"),
    ],
)
def test_incoherence_refuses_what_has_none(matrix: object, rank: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        theory.incoherence(matrix, rank)  # type: ignore[arg-type]


def test_verdicts() -> None:
    small = theory.favours(rank_one(500_000, 400, 0.5))
    assert (small.method, small.useful) == ("svd", True)
    assert "Frank-Wolfe is the safer choice" in small.reason
    thin = replace(rank_one(500_000, 400, 0.5), incoherence=50.0)
    assert theory.favours(thin).method == "frank-wolfe"
    assert "says nothing of SVD" in theory.favours(thin).reason
    noisy = Problem.by_rule(users=4000, items=2000, epsilon=0.01, per_user=200)
    assert theory.favours(noisy).method == "frank-wolfe"
    assert "Cor. 3.1 gives" in theory.favours(noisy).reason
    assert not theory.favours(noisy).useful
    assert "promises nothing" in " ".join(theory.make_plan(noisy).notes())


def test_a_plan_scales_noise_terms_by_exact_accounting() -> None:
    plan = theory.make_plan(Problem.by_rule(users=500_000, items=400, epsilon=0.5))
    seen, every, subspace = plan.bounds
    cut, rows_cut = plan.noise[0].ratio, plan.svd_noise[0].ratio
    assert seen.paper == theory.empirical_risk(plan.problem, plan.rounds)
    assert seen.exact.privacy == pytest.approx(seen.paper.privacy / math.sqrt(cut))
    assert every.exact.privacy == pytest.approx(every.paper.privacy / math.sqrt(cut))
    assert subspace.exact.privacy == pytest.approx(subspace.paper.privacy / rows_cut**2)
    assert seen.rmse == pytest.approx(math.sqrt(2 * seen.exact.total))
    assert every.rmse == pytest.approx(math.sqrt(every.exact.total))
    assert plan.zero_rmse == pytest.approx(0.5)


def test_rounds_stay_within_what_a_fit_accepts() -> None:
    tiny = Problem.by_rule(users=1000, items=900, epsilon=1e-6)
    assert theory.make_plan(tiny).rounds == 2
    vast = Problem.by_rule(users=10**12, items=400, epsilon=1.0, nuclear_norm=1e12)
    assert theory.make_plan(vast).rounds == 10_000


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"users": 0}, "users=0"),
        ({"users": 2.5}, "users=2.5"),
        ({"users": True}, "users=True"),
        ({"users": 50}, "as many users as items"),
        ({"items": 1}, "items=1"),
        ({"ratings": 10**7}, "ratings=10000000"),
        ({"nuclear_norm": -1.0}, "nuclear_norm=-1.0"),
        ({"nuclear_norm": math.inf}, "nuclear_norm=inf"),
        ({"row_norm": "3"}, "row_norm='3'"),
        ({"epsilon": 0.0}, "epsilon=0.0"),
        ({"epsilon": 1e-12}, "epsilon=1e-12"),
        ({"epsilon": 40.0}, "epsilon=40"),
        ({"delta": 2.0}, "delta=2.0"),
        ({"rank": 101}, "rank=101"),
        ({"condition": 0.5}, "condition=0.5"),
        ({"incoherence": math.nan}, "incoherence=nan"),
        ({"spectral_norm": 0.0}, "spectral_norm=0.0"),
    ],
)
def test_a_bad_problem_names_what_is_wrong(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        replace(BY_HAND, **change)  # type: ignore[arg-type]


def test_the_smallest_and_largest_problems_give_numbers() -> None:
    for problem in (
        Problem.by_rule(users=2, items=2, epsilon=1e-9, per_user=1),
        Problem.by_rule(users=10**15, items=10**12, epsilon=27.0, rating_range=(-1e9, 1e9)),
    ):
        plan = theory.make_plan(problem)
        assert all(bound.rmse > 0 for bound in plan.bounds)
        assert not any(math.isnan(bound.rmse) for bound in plan.bounds)


def test_public_names() -> None:
    assert len(set(theory.__all__)) == len(theory.__all__)
    assert all(hasattr(theory, name) for name in theory.__all__)
