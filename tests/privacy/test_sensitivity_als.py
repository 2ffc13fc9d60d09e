"""Attacks on the sensitivity of normal equations: never further than stated, and nearly as far.

As in test_sensitivity: rows at random, by design and bred for it, under both relations.
"""

import math
from collections.abc import Callable

import numpy as np
import pytest
from tests.support.attack import (
    CLOSE,
    ITEMS,
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
    summed,
)

from tacit import PrivacyError
from tacit.algorithms.als import _items
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistics import NormalEquations, equations_sensitivity

QUIET: Row = {ITEMS - 1: 3.0}  # her target is zero, so she adds nothing
RATIOS = [0.3, 1.0, math.sqrt(2.0), 3.0]


def row_bounds(entry: float = 2.0, *, centre: bool = False, most: int | None = None) -> RowBounds:
    return RowBounds(most, np.full(ITEMS, 3.0), centre, math.inf, bias_shrinkage=1.0, clip=entry)


def factors(rank: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(0).standard_normal((ITEMS, rank))


def uneven() -> np.ndarray:
    return np.linspace(0.2, 3.0, ITEMS)


def equations(
    ratio: float,
    bounds: RowBounds | None = None,
    V: np.ndarray | None = None,
    reach: float = 0.3,
    weights: np.ndarray | None = None,
) -> NormalEquations:
    V = factors(3) if V is None else V
    weights = uneven() if weights is None else weights
    noise = np.linspace(0.5, 1.5, ITEMS)
    return NormalEquations(bounds or row_bounds(), V, noise, weights, reach, ratio)


COUNTS = np.geomspace(2.0, 50_000.0, ITEMS)
"""Noisy counts of a catalogue with a long tail, as they were released."""


def adaptive(counts: np.ndarray, alpha: float) -> np.ndarray:
    return _items(counts, noise_sd=1.0, alpha=alpha, frequent=0.0).weights


CASES: dict[str, Callable[[], NormalEquations]] = {
    "little weight on b": lambda: equations(0.3),
    "even": lambda: equations(1.0),
    "where the bound bends": lambda: equations(math.sqrt(2.0)),
    "much weight on b": lambda: equations(3.0),
    "centred": lambda: equations(1.0, row_bounds(1.0, centre=True)),
    "few ratings count": lambda: equations(1.0, row_bounds(most=3)),
    "one column": lambda: equations(1.0, V=factors(1)),
    "more columns than items": lambda: equations(1.0, V=factors(ITEMS + 2)),
    "u is never clipped": lambda: equations(1.0, reach=50.0),
    "u is always clipped": lambda: equations(1.0, reach=1e-6),
    "equal weights": lambda: equations(1.0, weights=np.ones(ITEMS)),
    "half the items left out": lambda: equations(1.0, weights=np.arange(ITEMS) % 2.0),
    "weights of all sizes": lambda: equations(1.0, weights=np.geomspace(1e-150, 1e150, ITEMS)),
    "adaptive weights, alpha = 1/4": lambda: equations(1.0, weights=adaptive(COUNTS, 0.25)),
    "adaptive weights, alpha = 1/2": lambda: equations(1.0, weights=adaptive(COUNTS, 0.5)),
    "no weights at all": lambda: equations(1.0, weights=np.zeros(ITEMS)),
    "turned by light items": lambda: turned(1.0),
    "huge factors": lambda: equations(1.0, V=factors(2, 1e6)),
    "factors that overflow": lambda: equations(1.0, V=factors(2, 1e150)),
    "factors that overflow at once": lambda: equations(1.0, V=factors(2, 1e200)),
}


def turned(ratio: float, entry: float = 2.0, reach: float = 0.01) -> NormalEquations:
    """Items 0 and 1 have next to no weight and decide on u; the rest have no factors."""
    V = np.zeros((ITEMS, 2))
    V[0, 0] = V[1, 1] = 30.0
    weights = np.where(np.arange(ITEMS) < 2, 1e-3, 1.0)
    return equations(ratio, row_bounds(entry), V, reach, weights)


def worst_pair(ratio: float) -> tuple[Row, Row]:
    """The proof's: opposite targets on the same items, u . u' = rho^2/2, or 1 if that is less."""
    angle = math.acos(min(ratio**2 / 2, 1.0)) / 2
    along, across = 2 * math.cos(angle), 2 * math.sin(angle)
    liked, disliked = dict.fromkeys(range(2, ITEMS), 5.0), dict.fromkeys(range(2, ITEMS), 1.0)
    return {0: 3 + along, 1: 3 + across} | liked, {0: 3 + along, 1: 3 - across} | disliked


def terms(statistic: NormalEquations, rows: list[Row], bits: int = 40) -> np.ndarray:
    """Return every user's own term: all that she can move by being there."""
    held, unit = Rows(ratings_of(rows)), statistic.max_entry * 2.0**-bits
    held.bounded(statistic.bounds, Run(lambda task: [task(0, len(rows))]))  # everyone's, once
    own = []
    for user in range(len(rows)):

        def each(
            task: Callable[[int, int], np.ndarray | None], user: int = user
        ) -> list[np.ndarray | None]:
            return [task(user, user + 1)]

        own.append(statistic.integer_sum(held, unit, Run(each)).ravel() * unit)
    return np.array(own)


@pytest.mark.parametrize("case", CASES)
def test_no_neighbour_moves_a_sum_further_than_stated(case: str) -> None:
    statistic = CASES[case]()
    rng = np.random.default_rng(21)
    designed = [row for pair in structured_pairs() for row in pair]
    designed += [row for ratio in RATIOS for row in worst_pair(ratio)]
    tried = [furthest(terms(statistic, [*designed, *(random_row(rng) for _ in range(20))]))[:2]]
    tried.append(evolve(lambda rows: terms(statistic, rows), rng, turns=12, children=4))
    assert max(longest for longest, _ in tried) <= statistic.sensitivity.add_remove * SLACK
    assert max(distance for _, distance in tried) <= statistic.sensitivity.replace * SLACK


@pytest.mark.parametrize("ratio", RATIOS)
def test_the_bounds_are_reached(ratio: float) -> None:
    """Through an engine and among others; or noise would be wasted."""
    others = bystanders(np.random.default_rng(1))
    statistic, (before, after) = turned(ratio), worst_pair(ratio)
    removed = change(statistic, others, before, None) / statistic.sensitivity.add_remove
    replaced = change(statistic, others, before, after) / statistic.sensitivity.replace
    assert CLOSE < removed <= SLACK
    assert CLOSE < replaced <= SLACK


def test_the_stated_bound_is_the_maximum_of_the_proof() -> None:
    """2 (1 + rho^2) + 2 max (rho^2 x - x^2), by a grid of x; and in one release they cost less."""
    x = np.linspace(0, 1, 100_001)
    for ratio in (*RATIOS, 0.05, 1.2, 1.5, 20.0):
        squared = 2 * (1 + ratio**2) + 2 * np.max(ratio**2 * x - x**2)
        assert equations_sensitivity(ratio).replace == pytest.approx(math.sqrt(squared), rel=1e-9)
        assert equations_sensitivity(ratio).replace ** 2 < 2 + 4 * ratio**2


def test_terms_that_are_taken_for_orthogonal_at_worst_are_not() -> None:
    """A twin: sqrt2 times the bound of add_remove, right for G alone, is too little with b."""
    before, after = worst_pair(1.0)
    moved = change(turned(1.0), bystanders(np.random.default_rng(2)), before, after)
    assert moved > 1.05 * math.sqrt(2.0) * equations_sensitivity(1.0).add_remove


def test_targets_that_are_not_clipped_break_the_bound() -> None:
    """The slip of published code: b = y u, same scale, with y of up to 2 where 1 is stated."""
    before, after = worst_pair(2.0)
    loose, stated = turned(2.0, entry=2.0), turned(1.0, entry=1.0)
    moved = change(loose, bystanders(np.random.default_rng(3)), before, after)
    assert moved > 1.2 * stated.sensitivity.replace


def test_factors_that_are_not_clipped_break_the_bound() -> None:
    """With a reach of 1, brought to the scale of a reach of 0.5: u is twice as long.

    Factors of 1.5 leave u longer than either.
    """
    before, after = worst_pair(1.0)
    V = turned(1.0).factors / 20
    weights = turned(1.0).weights

    def moved(reach: float) -> float:
        statistic = equations(1.0, V=V, reach=reach, weights=weights)
        apart = summed(statistic, [before, QUIET]) - summed(statistic, [after, QUIET])
        scale = reach / 0.5
        return float(np.hypot(*(np.linalg.norm(part) for part in scaled(apart, scale))))

    assert moved(1.0) > 1.2 * equations_sensitivity(1.0).replace
    assert moved(0.5) <= equations_sensitivity(1.0).replace * SLACK


def scaled(blocks: np.ndarray, scale: float) -> tuple[np.ndarray, np.ndarray]:
    """Undo a scale of u: G has it twice, b once."""
    return scale**2 * blocks[:, :, :-1], scale * blocks[:, :, -1]


@pytest.mark.parametrize("case", CASES)
def test_bounds_hold_in_integers_however_coarse_or_fine_the_grid(case: str) -> None:
    statistic = CASES[case]()
    rng = np.random.default_rng(6)
    rows = [random_row(rng) for _ in range(25)]
    for bits in (1, 3, 6, 12, 26, statistic.term_bits):
        longest, distance, *_ = furthest(terms(statistic, rows, bits))
        assert longest <= statistic.sensitivity.add_remove * SLACK
        assert distance <= statistic.sensitivity.replace * SLACK
        assert np.abs(terms(statistic, rows, bits)).max() <= statistic.max_entry * SLACK


@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_users_row_moves_nobody_elses_term(threads: int) -> None:
    """Her term is the whole difference, to the last unit, whatever her row and the threads."""
    statistic = equations(1.0)
    short, long = {3: 5.0}, {item: 1.0 + 4 * (item % 2) for item in range(ITEMS)}
    alone = exact_sum(statistic, [short, QUIET], 1) - exact_sum(statistic, [long, QUIET], 1)
    rng = np.random.default_rng(1)
    others = [random_row(rng) for _ in range(41)]
    before = exact_sum(statistic, [short, *others], threads)
    replaced = exact_sum(statistic, [long, *others], threads)
    assert np.array_equal(before - replaced, alone)
    assert np.array_equal(exact_sum(statistic, [*others[::-1], short], threads), before)


@pytest.mark.parametrize("alpha", [0.25, 0.5])
def test_adaptive_weights_are_those_of_the_publication(alpha: float) -> None:
    """w_ij = q_j / sqrt(sum q_k^2) over her items, q_j = count_j^-alpha: G_j of one user alone."""
    statistic = equations(1.0, weights=adaptive(COUNTS, alpha))
    row = {0: 5.0, 4: 1.0, 9: 4.0}
    grams = terms(statistic, [row, QUIET])[0].reshape(statistic.shape)[:, :, :-1]
    sizes = np.array([np.linalg.norm(gram) for gram in grams])
    own = COUNTS[list(row)] ** -alpha
    expected = own / np.linalg.norm(own)
    assert sizes[list(row)] / np.linalg.norm(sizes) == pytest.approx(expected, abs=1e-3)
    assert expected.max() - expected.min() > 0.5
    assert np.count_nonzero(sizes) == len(row)


def test_weights_from_exact_counts_would_move_everyones_term() -> None:
    """A twin: why counts are released first. One rating of hers then changes others' weights."""
    others = [{0: 5.0, item: 1.0} for item in range(1, 9)]
    exact = [np.bincount(list(row), minlength=ITEMS) for row in others]
    counts = np.maximum(np.sum(exact, axis=0), 1.0)
    more = counts + np.eye(ITEMS)[1]  # she rated item 1
    before, after = (equations(1.0, weights=adaptive(c, 0.5)) for c in (counts, more))
    assert np.linalg.norm(summed(before, others) - summed(after, others)) > 0.01


def test_public_numbers_without_a_bound_are_refused() -> None:
    wrong = [
        equations(1.0, weights=-uneven()),
        equations(1.0, weights=np.full(ITEMS, math.nan)),
        equations(1.0, row_bounds(math.inf)),
        equations(1.0, reach=0.0),
        equations(0.0),
        equations(math.inf),
    ]
    for statistic in wrong:
        with pytest.raises(PrivacyError, match="nothing was summed"):
            summed(statistic, [{0: 5.0}, QUIET])
