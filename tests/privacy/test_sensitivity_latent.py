"""Attacks on the statistics of the latent factor model: never further than stated, nearly as far.

As in test_sensitivity: rows at random, by design and bred for it, under both relations. A user's
posterior is part of her term, so published numbers that break its arithmetic are tried as well.
"""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
from tests.privacy.test_sensitivity_more import closeness, terms
from tests.support.attack import (
    CATALOGUE,
    CLOSE,
    ITEMS,
    RANGE,
    SLACK,
    Row,
    bystanders,
    change,
    evolve,
    exact_sum,
    furthest,
    random_row,
    ratings_of,
    structured_pairs,
)

from tacit import PrivacyError, Ratings, ThreadEngine
from tacit.kernels.loops import LOOPS
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import (
    ExpectedEquations,
    ExpectedGradient,
    FactorMoments,
    LatentModel,
)

QUIET: Row = {ITEMS - 1: 3.0}
Kind = Callable[[LatentModel, RowBounds, float], Statistic]

KINDS: dict[str, Kind] = {
    "moments": lambda model, bounds, clip: FactorMoments(bounds, model, clip),
    "gradient": lambda model, bounds, clip: ExpectedGradient(bounds, model, clip, 0.5),
    "gradient by choice": lambda model, bounds, clip: ExpectedGradient(bounds, model, clip, 40.0),
    "equations": lambda model, bounds, clip: ExpectedEquations(bounds, model, clip, True),
    "full equations": lambda model, bounds, clip: ExpectedEquations(bounds, model, clip, False),
}


def row_bounds(most: int | None = None, offset: float = 3.0) -> RowBounds:
    return RowBounds(most, np.full(ITEMS, offset), False, math.inf)


def normals(*shape: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(sum(shape)).standard_normal(shape)


def latent(
    rank: int = 3, choices: int = 2, *, scale: float = 1.0, prior: float = 0.5, noise: float = 0.8
) -> LatentModel:
    """A published model of this rank: random factors of this scale, and a prior from choice."""
    spread = noise * np.linspace(0.5, 1.5, ITEMS)
    factors, choice = normals(ITEMS, rank, scale=scale), 1.0 + normals(ITEMS, choices)
    return LatentModel(factors, spread, choice, normals(choices, rank, scale=prior))


def some_broken() -> LatentModel:
    """Items 0 and 1 are no numbers: whoever rated them cannot solve for anything."""
    model = latent()
    model.factors[0], model.choice[1] = math.nan, math.inf
    return model


MODELS: dict[str, Callable[[], tuple[LatentModel, RowBounds, float]]] = {
    "usual": lambda: (latent(), row_bounds(), 1.3),
    "hardly clipped": lambda: (latent(), row_bounds(), 30.0),
    "always clipped": lambda: (latent(), row_bounds(), 1e-6),
    "few ratings count": lambda: (latent(), row_bounds(3), 1.3),
    "one factor": lambda: (latent(1, 1), row_bounds(), 1.3),
    "no factor": lambda: (latent(0, 1), row_bounds(), 1.3),
    "more factors than items": lambda: (latent(ITEMS + 2, ITEMS + 1), row_bounds(), 1.3),
    "no signal": lambda: (latent(scale=0.0, prior=0.0), row_bounds(), 1.3),
    "huge prior": lambda: (latent(prior=1e9), row_bounds(), 1.3),
    "prior that overflows": lambda: (latent(prior=1e200), row_bounds(), 1.3),
    "huge factors": lambda: (latent(scale=1e6), row_bounds(), 1.3),
    "factors that overflow": lambda: (latent(scale=1e150), row_bounds(), 1.3),
    "factors that overflow at once": lambda: (latent(scale=1e200), row_bounds(), 1.3),
    "next to no noise": lambda: (latent(noise=1e-300), row_bounds(), 1.3),
    "noise that overflows": lambda: (latent(noise=1e308), row_bounds(), 1.3),
    "offsets far away": lambda: (latent(), row_bounds(offset=-1e160), 1.3),
    "some items are no numbers": lambda: (some_broken(), row_bounds(), 1.3),
}


def made(kind: str, model: str) -> Statistic:
    return KINDS[kind](*MODELS[model]())


CASES: dict[str, Callable[[], Statistic]] = {
    f"{kind}, {model}": lambda kind=kind, model=model: made(kind, model)  # type: ignore[misc]
    for kind in KINDS
    for model in MODELS
}
FEW = {
    case: make
    for case, make in CASES.items()
    if case.endswith((", usual", "always clipped", "one factor", "that overflow", "no numbers"))
}
"""For longer searches."""


def bred(statistic: Statistic, seed: int = 21) -> tuple[float, float]:
    """The longest term and the largest distance that a short search for the worst rows finds."""
    return evolve(partial(terms, statistic), np.random.default_rng(seed), turns=8, children=3)


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_moves_a_sum_further_than_stated(case: str) -> None:
    statistic = CASES[case]()
    rng = np.random.default_rng(21)
    designed = [row for pair in structured_pairs() for row in pair]
    single = [{item: value} for item in (0, 1, 9) for value in (*RANGE, 3.0)]
    rows = [*designed, *single, *(random_row(rng) for _ in range(10))]
    tried = [furthest(terms(statistic, rows))[:2], bred(statistic)]
    assert max(longest for longest, _ in tried) <= statistic.sensitivity.add_remove * SLACK
    assert max(distance for _, distance in tried) <= statistic.sensitivity.replace * SLACK


@pytest.mark.parametrize("case", CASES)
def test_bounds_hold_in_integers_however_coarse_or_fine_the_grid(case: str) -> None:
    statistic = CASES[case]()
    rng = np.random.default_rng(6)
    rows = [random_row(rng) for _ in range(15)]
    for bits in (1, 5, 12, statistic.term_bits):
        own = terms(statistic, rows, bits)
        longest, distance, *_ = furthest(own)
        assert longest <= statistic.sensitivity.add_remove * SLACK
        assert distance <= statistic.sensitivity.replace * SLACK
        assert np.abs(own).max() <= statistic.max_entry * SLACK


def by_choice() -> FactorMoments:
    """Items 0 to 4 and 5 to 9 are two kinds of choice; ratings tell nothing."""
    kinds = 9.0 * (np.arange(ITEMS)[:, None] // 5 == np.arange(2))
    model = LatentModel(np.zeros((ITEMS, 1)), np.full(ITEMS, 1e12), kinds, np.zeros((2, 1)))
    return FactorMoments(row_bounds(), model, 3.0)


def by_taste(bound: float = 3.0) -> FactorMoments:
    """Items 0 to 4 and 5 to 9 load on two factors, so lightly that posterior means are long."""
    kinds = 0.01 * (np.arange(ITEMS)[:, None] // 5 == np.arange(2))
    model = LatentModel(kinds, np.full(ITEMS, 1e-6), np.zeros((ITEMS, 1)), np.zeros((1, 2)))
    return FactorMoments(row_bounds(), model, bound)


APART: tuple[Row, Row] = dict.fromkeys(range(5), 5.0), dict.fromkeys(range(5, 10), 5.0)


@pytest.mark.parametrize("statistic", [by_choice(), by_taste()], ids=["choice", "taste"])
def test_the_bound_of_factor_moments_is_reached(statistic: FactorMoments) -> None:
    """By people who choose, or like, two different kinds of items."""
    removed, replaced = closeness(statistic, *APART)
    assert CLOSE < removed <= SLACK
    assert CLOSE < replaced <= SLACK


def unexplained() -> LatentModel:
    """Factors explain nothing: all of a rating is left, and posterior means follow from choice."""
    return replace(latent(), factors=np.zeros((ITEMS, 3)))


@pytest.mark.parametrize("choice_weight", [0.0, 0.5])
@pytest.mark.parametrize("rated", [1, 4, ITEMS])
def test_the_bound_of_expected_gradients_is_reached(rated: int, choice_weight: float) -> None:
    """By the same items with opposite ratings; with one item, by a single rating."""
    liked, disliked = dict.fromkeys(range(rated), 5.0), dict.fromkeys(range(rated), 1.0)
    statistic = ExpectedGradient(row_bounds(), unexplained(), 0.7, choice_weight)
    removed, replaced = closeness(statistic, liked, disliked)
    assert CLOSE < removed <= SLACK
    assert CLOSE < replaced <= SLACK


def test_the_rows_of_choice_factors_reach_it_too() -> None:
    """By the same items with opposite ratings, where these rows weigh most and W is zero."""
    liked, disliked = dict.fromkeys(range(4), 5.0), dict.fromkeys(range(4), 1.0)
    statistic = ExpectedGradient(row_bounds(), latent(prior=0.0), 0.7, 1e4)
    removed, replaced = closeness(statistic, liked, disliked)
    assert CLOSE < removed <= SLACK
    assert CLOSE < replaced <= SLACK


@pytest.mark.parametrize("kind", ["equations", "full equations"])
def test_the_bound_of_expected_equations_is_reached_by_one_who_leaves(kind: str) -> None:
    """Replacing her moves them by at most sqrt2 C, since no two terms point against each other."""
    statistic = KINDS[kind](latent(), row_bounds(), 1.3)
    removed, replaced = closeness(statistic, *APART)
    assert CLOSE < removed <= SLACK
    assert CLOSE < math.sqrt(2.0) * replaced <= 1 + 1e-6


@pytest.mark.parametrize("rank", [1, 2, 5])
@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
def test_no_two_terms_of_expected_equations_point_against_each_other(
    rank: int, scale: float
) -> None:
    """Which is why 2 C, as stated for replace, is more than is needed: sqrt2 C."""
    statistic = ExpectedEquations(row_bounds(), latent(rank, scale=scale, prior=scale), 9.0, True)
    rng = np.random.default_rng(rank)
    rows = [row for pair in structured_pairs() for row in pair]
    own = terms(statistic, [*rows, *(random_row(rng) for _ in range(30))])
    assert (own @ own.T).min() > -1e-6


def test_a_clip_that_is_not_applied_is_found_out() -> None:
    """The twins: with a loose clip the same rows break the bound that a tight one states."""
    others = bystanders(np.random.default_rng(4))
    for kind, make in KINDS.items():
        loose, stated = (make(latent(), row_bounds(), clip) for clip in (1e3, 1.3))
        worst = max(change(loose, others, *pair) for pair in structured_pairs())
        assert worst > 1.2 * stated.sensitivity.replace, kind
        assert bred(loose, 3)[1] > 1.2 * stated.sensitivity.replace, kind


def test_replacing_costs_more_than_removing() -> None:
    """The twins: a bound of add_remove, taken for one of replace, is broken."""
    gradient = ExpectedGradient(row_bounds(), unexplained(), 0.7, 0.5)
    cases = [(by_choice(), *APART, 1.4), (gradient, {0: 5.0}, {0: 1.0}, 1.9)]
    for statistic, before, after, times in cases:
        moved = change(statistic, bystanders(np.random.default_rng(2)), before, after)
        assert moved > times * statistic.sensitivity.add_remove


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_users_row_moves_nobody_elses_term(kind: str, threads: int) -> None:
    """Her term is the whole difference, to the last unit, whatever her row and the threads."""
    for model in ("usual", "few ratings count", "some items are no numbers"):
        statistic = made(kind, model)
        short, long = {3: 5.0}, {item: RANGE[item % 2] for item in range(ITEMS)}
        alone = exact_sum(statistic, [short, QUIET], 1) - exact_sum(statistic, [long, QUIET], 1)
        rng = np.random.default_rng(1)
        others = [random_row(rng) for _ in range(41)]
        before = exact_sum(statistic, [short, *others], threads)
        replaced = exact_sum(statistic, [long, *others], threads)
        assert np.array_equal(before - replaced, alone)
        assert np.array_equal(exact_sum(statistic, [*others[::-1], short], threads), before)
        removed = exact_sum(statistic, others, threads)
        added = exact_sum(statistic, [long, short, *others], threads)
        assert np.array_equal(added - before, replaced - removed)


@pytest.mark.parametrize("kind", KINDS)
def test_her_term_follows_from_her_row_and_the_items_in_it(kind: str) -> None:
    """Published numbers of items that she did not rate, turned into anything, change nothing."""
    row, statistic = {2: 5.0, 3: 1.0, 7: 4.0}, made(kind, "usual")
    own, model = terms(statistic, [row]).reshape(statistic.shape), statistic.model  # type: ignore[attr-defined]
    kept = np.isin(np.arange(ITEMS), list(row))
    turned = replace(
        model,
        factors=np.where(kept[:, None], model.factors, math.nan),
        noise=np.where(kept, model.noise, 1e-200),
        choice=np.where(kept[:, None], model.choice, math.inf),
    )
    found = terms(KINDS[kind](turned, row_bounds(), 1.3), [row]).reshape(statistic.shape)
    assert own.any()
    assert np.array_equal(found, own)
    if kind != "moments":
        assert not own[:ITEMS][~kept].any()
        assert own[:ITEMS][kept].any(axis=1).all()


def with_empty_rows(rows: list[Row]) -> Ratings:
    """These rows, with one that is empty before and behind each of them."""
    full = ratings_of(rows)
    ends = np.concatenate([[0, 0], np.repeat(full.indptr[1:], 2)])
    users = pl.Series(range(ends.size - 1))
    return Ratings(RANGE, CATALOGUE, users, ends, full.items, full.values)


@pytest.mark.parametrize("case", CASES)
def test_empty_rows_add_nothing(case: str) -> None:
    """And a row on which arithmetic fails adds nothing either, and raises nothing."""
    statistic = CASES[case]()
    rows = [random_row(np.random.default_rng(seed)) for seed in range(5)]
    engine = ThreadEngine(2)
    engine.take(with_empty_rows(rows))
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    assert np.array_equal(engine.sum(statistic, unit)._exact_sum, exact_sum(statistic, rows, 1))


def test_who_cannot_solve_adds_nothing_and_others_all_the_same() -> None:
    for kind in KINDS:
        broken, usual = made(kind, "some items are no numbers"), made(kind, "usual")
        hers, fine = {0: 5.0, 4: 1.0}, {4: 1.0, 6: 5.0}
        assert not terms(broken, [hers]).any()
        assert np.array_equal(terms(broken, [fine]), terms(usual, [fine]))
        assert terms(usual, [hers]).any()


def test_public_numbers_without_a_bound_are_refused() -> None:
    """Bounds that bound nothing, and arrays whose shapes would make loops read elsewhere."""
    model = latent()
    wrong = [
        replace(model, noise=model.noise[:-1]),
        replace(model, noise=np.zeros(ITEMS)),
        replace(model, noise=np.full(ITEMS, math.nan)),
        replace(model, choice=model.choice[:-1]),
        replace(model, prior=model.prior[:-1]),
        replace(model, prior=model.prior[:, :-1]),
        replace(model, choice=np.zeros((ITEMS, 0)), prior=np.zeros((0, 3))),
        replace(model, choice=model.choice[:, 0]),
        replace(model, factors=model.factors[:, 0]),
        LatentModel(model.factors[1:], model.noise[1:], model.choice[1:], model.prior),
    ]
    for make in KINDS.values():
        for each in wrong:
            with pytest.raises(PrivacyError, match="nothing was summed"):
                make(each, row_bounds(), 1.3).adder((None,), 1e-6, LOOPS)
        for clip in (0.0, -1.0, math.inf, math.nan):
            with pytest.raises(PrivacyError, match="nothing was summed"):
                make(model, row_bounds(), clip).adder((None,), 1e-6, LOOPS)
