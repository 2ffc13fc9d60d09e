"""Attacks on the sensitivities of the other algorithms' statistics.

As in test_sensitivity: no pair of neighbours may move a sum further than stated, whether found at
random, by climbing or by design; and some pair comes within 3 % of it, or noise is wasted.
"""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from tests.support.attack import (
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
    opposites,
    plain,
    random_row,
    ratings_of,
    step,
    structured_pairs,
    summed,
)

from tacit import EngineError, ThreadEngine
from tacit.trusted.local_state import LinearStep, RankOneStep
from tacit.trusted.rows import RowBounds, Rows, Run
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import (
    DescentMoments,
    FactorGradient,
    FilledCovariance,
    RatingCount,
    ResidualCovariance,
    ResidualEnergy,
    ResidualProduct,
)


def block(columns: int, seed: int = 0) -> np.ndarray:
    """Orthonormal columns."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((ITEMS, columns)))[0]


def unit_on(items: range) -> np.ndarray:
    """The unit vector that is even on these items and zero elsewhere."""
    vector = np.zeros(ITEMS)
    vector[items] = 1 / math.sqrt(len(items))
    return vector


def steps(count: int, norm: float = 3.0) -> tuple[RankOneStep, ...]:
    return tuple(step(seed, norm) for seed in range(count))


def maps(count: int) -> tuple[LinearStep, ...]:
    """Published maps as Algorithm 5 makes them: symmetric, eigenvalues between 0 and 1."""
    rng = np.random.default_rng(7)
    found = []
    for seed in range(count):
        vectors = block(ITEMS, seed)
        found.append(LinearStep(vectors, rng.uniform(0, 1, ITEMS)))
    return tuple(found)


def filled(count: int, bound: float = 3.0, rate: float = 0.7) -> FilledCovariance:
    turns = count + 1
    return FilledCovariance(plain(most=None), maps(count), (rate,) * turns, (bound,) * turns)


def cleansed(clip: float = 1.0, *, centre: bool = True, shrink: float = 4.0) -> RowBounds:
    """As Cleansing bounds rows for its covariance."""
    offsets = np.full(ITEMS, 3.0)
    return RowBounds(
        None, offsets, centre, clip, bias_shrinkage=shrink, clip=clip, by_sqrt_count=True
    )


def present(most: int | None = None) -> RowBounds:
    """As Cleansing bounds rows for its co-ratings."""
    return RowBounds(most, np.zeros(ITEMS), False, 1.0, by_sqrt_count=True, binarise=True)


def alone(bounds: RowBounds) -> ResidualCovariance:
    """As LatentFactors asks for a matrix of popular items: rows of their ratings, nothing else."""
    items = np.array([0, 2, 3, 6, 7])
    return ResidualCovariance(replace(bounds, items=items), (), 1.0, items)


def factors(rank: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(seed).standard_normal((ITEMS, rank))


CASES: dict[str, Callable[[], Statistic]] = {
    "product, one column": lambda: ResidualProduct(plain(), (), 3.0, block(1)),
    "product, one sparse column": lambda: ResidualProduct(
        plain(), (), 3.0, unit_on(range(4))[:, None]
    ),
    "product, three columns": lambda: ResidualProduct(plain(), (), 3.0, block(3)),
    "product, all columns": lambda: ResidualProduct(plain(), (), 3.0, block(ITEMS)),
    "product, one column, after steps": lambda: ResidualProduct(plain(), steps(4), 6.0, block(1)),
    "product, one column, after steps, tight clip": lambda: ResidualProduct(
        plain(), steps(4), 1.5, block(1)
    ),
    "product, three columns, after steps": lambda: ResidualProduct(
        plain(), steps(4), 6.0, block(3)
    ),
    "product, three columns, after steps, tight clip": lambda: ResidualProduct(
        plain(), steps(4), 1.5, block(3)
    ),
    "energy": lambda: ResidualEnergy(plain(), (), 3.0, block(1)[:, 0]),
    "energy, tight clip": lambda: ResidualEnergy(plain(), (), 1.5, unit_on(range(4))),
    "energy after steps": lambda: ResidualEnergy(plain(), steps(4), 1.5, block(1)[:, 0]),
    "descent moments": lambda: DescentMoments(plain(), steps(4), block(1)[:, 0]),
    "rating count": lambda: RatingCount(plain(most=None), ITEMS),
    "rating count of few ratings": lambda: RatingCount(plain(most=3), 3),
    "rating count, rows not shortened": lambda: RatingCount(plain(most=None), 3),
    "filled covariance": lambda: filled(0),
    "filled covariance after a step": lambda: filled(1),
    "filled covariance after two steps": lambda: filled(2),
    "filled covariance after three steps": lambda: filled(3),
    "filled covariance after three steps, tight clip": lambda: filled(3, bound=1.0, rate=1.0),
    "factor gradient": lambda: FactorGradient(plain(most=None, norm=9.0), factors(3), 0.5, 0.7),
    "factor gradient, wide clip": lambda: FactorGradient(
        plain(most=None, norm=9.0), factors(3), 0.5, 2.5
    ),
    "factor gradient, one column": lambda: FactorGradient(
        plain(most=5, norm=9.0), factors(1), 1e-3, 0.5
    ),
    "factor gradient, huge factors": lambda: FactorGradient(
        plain(most=None, norm=9.0), factors(2, scale=1e6), 0.5, 0.7
    ),
    "weighted covariance": lambda: ResidualCovariance(cleansed(), (), 1.0),
    "weighted covariance, no centring": lambda: ResidualCovariance(
        cleansed(1.5, centre=False), (), 1.5
    ),
    "weighted covariance, no shrinking": lambda: ResidualCovariance(
        cleansed(0.5, shrink=0.0), (), 0.5
    ),
    "weighted covariance of rows of some items": lambda: alone(cleansed()),
    "co-ratings of rows of some items": lambda: alone(present()),
    "co-ratings of few ratings of some items": lambda: alone(present(most=3)),
    "co-ratings": lambda: ResidualCovariance(present(), (), 1.0),
    "co-ratings of few ratings": lambda: ResidualCovariance(present(most=3), (), 1.0),
}


def terms(statistic: Statistic, rows: list[Row], bits: int = 40) -> np.ndarray:
    """Return every user's own term, one after another: all that she can move by being there.

    Sums are over ranges of users; ranges of one user each give her term. Half a symmetric matrix
    may be left out of it.
    """
    parts: list[np.ndarray] = []

    def each(task: Callable[[int, int], np.ndarray]) -> list[np.ndarray]:
        found = [task(user, user + 1) for user in range(len(rows))]
        parts[:] = [np.array(part) for part in found]
        return found

    unit = statistic.max_entry * 2.0 ** -min(bits, statistic.term_bits)
    statistic.integer_sum(Rows(ratings_of(rows)), unit, Run(each))
    own = np.array(parts) * unit
    if statistic.symmetric:
        own = np.triu(own) + np.swapaxes(np.triu(own, 1), 1, 2)
    return own.reshape(len(rows), -1)


COUNTS = {case for case in CASES if case.startswith("rating count")}  # they have no ranges
SUMS = [case for case in CASES if case not in COUNTS]


@pytest.mark.parametrize("case", SUMS)
def test_no_neighbour_moves_a_sum_further_than_stated(case: str) -> None:
    """Random rows, rows by design, and rows that were bred for it."""
    statistic = CASES[case]()
    stated = statistic.sensitivity
    rng = np.random.default_rng(21)
    designed = [row for pair in structured_pairs() for row in pair]
    tried = [furthest(terms(statistic, [*designed, *(random_row(rng) for _ in range(40))]))[:2]]
    tried += [evolve(lambda rows: terms(statistic, rows), rng) for _ in range(2)]
    assert max(longest for longest, _ in tried) <= stated.add_remove * SLACK
    assert max(distance for _, distance in tried) <= stated.replace * SLACK


@pytest.mark.parametrize("case", CASES)
def test_terms_are_all_that_moves_a_sum(case: str) -> None:
    """The same attack through an engine, among others; and the terms above are what it sees."""
    statistic = CASES[case]()
    stated = statistic.sensitivity
    others = bystanders(np.random.default_rng(22))
    for before, after in structured_pairs():
        removed = change(statistic, others, before, None)
        replaced = change(statistic, others, before, after)
        assert removed <= stated.add_remove * SLACK
        assert replaced <= stated.replace * SLACK
        if case in SUMS:
            one, other = terms(statistic, [before, after])
            assert removed == pytest.approx(np.linalg.norm(one), abs=1e-7 * statistic.max_entry)
            assert replaced == pytest.approx(
                np.linalg.norm(one - other), abs=1e-7 * statistic.max_entry
            )


def closeness(statistic: Statistic, before: Row, after: Row) -> tuple[float, float]:
    """How near a pair comes to the bounds of add_remove (by its first row) and of replace."""
    others = bystanders(np.random.default_rng(1))
    stated = statistic.sensitivity
    removed = change(statistic, others, before, None) / stated.add_remove
    return removed, change(statistic, others, before, after) / stated.replace


APART = opposites(4, flip=False)
"""Rows on items 0 to 3 and 4 to 7: orthogonal, and longer than the bound of 3."""


def test_the_product_bound_is_reached_with_one_column() -> None:
    """a along v and b across it: replacing costs no more than removing."""
    statistic = ResidualProduct(plain(), (), 3.0, unit_on(range(4))[:, None])
    removed, replaced = closeness(statistic, *APART)
    assert removed > CLOSE
    assert replaced > CLOSE
    assert statistic.sensitivity.add_remove == statistic.sensitivity.replace


def test_the_product_bound_is_reached_with_several_columns() -> None:
    both = np.stack([unit_on(range(4)), unit_on(range(4, 8))], axis=1)
    statistic = ResidualProduct(plain(), (), 3.0, both)
    removed, replaced = closeness(statistic, *APART)
    assert removed > CLOSE
    assert replaced > CLOSE
    assert statistic.sensitivity.replace == math.sqrt(2) * statistic.sensitivity.add_remove


def residual_direction(taken: tuple[RankOneStep, ...], row: Row) -> np.ndarray:
    """The direction of one user's residual after steps: the top eigenvector of her own term."""
    covariance = ResidualCovariance(plain(), taken, 1.0)
    alone = summed(covariance, [row, {ITEMS - 1: 3.0}])  # the other's centred row is zero
    return np.linalg.eigh(alone)[1][:, -1]


def test_the_product_bound_is_reached_after_steps() -> None:
    """A direction that is published later can be any user's residual."""
    before, after = APART
    one = residual_direction(steps(4), before)
    other = residual_direction(steps(4), after)
    assert abs(one @ other) < 1e-6
    for columns in (one[:, None], np.stack([one, other], axis=1)):
        statistic = ResidualProduct(plain(), steps(4), 1.0, columns)
        removed, replaced = closeness(statistic, before, after)
        assert removed > CLOSE
        assert replaced > CLOSE


@pytest.mark.parametrize("taken", [0, 4])
def test_the_energy_bound_is_reached(taken: int) -> None:
    direction = residual_direction(steps(taken), APART[0])
    statistic = ResidualEnergy(plain(), steps(taken), 1.0, direction)
    removed, replaced = closeness(statistic, *APART)
    assert removed > CLOSE
    assert replaced > CLOSE


@pytest.mark.parametrize("most", [3, ITEMS])
def test_the_rating_count_bound_is_reached(most: int) -> None:
    """By someone with all ratings who becomes someone with none in the catalogue."""
    statistic = RatingCount(plain(most=most), most)
    everything = dict.fromkeys(range(ITEMS), 4.0)
    removed, replaced = closeness(statistic, everything, {})
    assert removed > CLOSE
    assert replaced > CLOSE


def mixing(count: int) -> tuple[LinearStep, ...]:
    """Maps that mix items 0 to 3 among themselves, and items 4 to 7."""
    rng = np.random.default_rng(3)
    found = []
    for _ in range(count):
        vectors, shrinkage = np.eye(ITEMS), np.ones(ITEMS)
        for group in (slice(0, 4), slice(4, 8)):
            vectors[group, group] = np.linalg.qr(rng.standard_normal((4, 4)))[0]
            shrinkage[group] = rng.uniform(0, 1, 4)
        found.append(LinearStep(vectors, shrinkage))
    return tuple(found)


@pytest.mark.parametrize("taken", [0, 1, 2, 3])
def test_the_filled_covariance_bound_is_reached(taken: int) -> None:
    turns = taken + 1
    statistic = FilledCovariance(plain(), mixing(taken), (0.9,) * turns, (2.0,) * turns)
    removed, replaced = closeness(statistic, *APART)
    assert removed > CLOSE
    assert replaced > CLOSE


def test_the_factor_gradient_bound_is_reached() -> None:
    """Two items with the same factors: liking one more pulls exactly against the other."""
    alike = np.zeros((ITEMS, 2))
    alike[:2] = 1.0, 2.0
    statistic = FactorGradient(plain(norm=9.0), alike, 1e-3, 0.5)
    removed, replaced = closeness(statistic, {0: 5.0, 1: 3.0}, {0: 3.0, 1: 5.0})
    assert removed > CLOSE
    assert replaced > CLOSE


@pytest.mark.parametrize("clip", [0.5, 1.0, 1.5])
def test_the_weighted_covariance_bound_is_reached(clip: float) -> None:
    """By rows of both ends, whose mean is nothing and whose every entry is clipped."""
    ends = dict(enumerate([5.0, 1.0, 5.0, 1.0]))
    elsewhere = {item + 4: value for item, value in ends.items()}
    statistic = ResidualCovariance(cleansed(clip), (), clip)
    removed, replaced = closeness(statistic, ends, elsewhere)
    assert removed > CLOSE
    assert replaced > CLOSE


@pytest.mark.parametrize("most", [3, None])
def test_the_co_rating_bound_is_reached(most: int | None) -> None:
    statistic = ResidualCovariance(present(most), (), 1.0)
    removed, replaced = closeness(statistic, *opposites(5, flip=False))
    assert removed > CLOSE
    assert replaced > CLOSE


def unclipped_product() -> tuple[Statistic, Statistic]:
    column = unit_on(range(4))[:, None]
    loose = ResidualProduct(plain(norm=6.0), (), 6.0, column)
    return loose, ResidualProduct(plain(), (), 3.0, column)


def longer_columns() -> tuple[Statistic, Statistic]:
    """Two columns counted as one: sqrt2 is missing from the bound of replace."""
    both = np.stack([unit_on(range(4)), unit_on(range(4, 8))], axis=1)
    return ResidualProduct(plain(), (), 3.0, both), ResidualProduct(plain(), (), 3.0, both[:, :1])


def unclipped_energy() -> tuple[Statistic, Statistic]:
    direction = unit_on(range(4))
    loose = ResidualEnergy(plain(norm=6.0), (), 6.0, direction)
    return loose, ResidualEnergy(plain(), (), 3.0, direction)


def uncapped_count() -> tuple[Statistic, Statistic]:
    return RatingCount(plain(most=None), ITEMS), RatingCount(plain(most=3), 3)


def unclipped_filling() -> tuple[Statistic, Statistic]:
    """Algorithm 5 as printed: rows of Y are never clipped."""
    printed = FilledCovariance(plain(norm=9.0), mixing(1), (0.9, 0.9), (100.0, 100.0))
    return printed, FilledCovariance(plain(norm=9.0), mixing(1), (0.9, 0.9), (2.0, 2.0))


def unclipped_gradient() -> tuple[Statistic, Statistic]:
    loose = FactorGradient(plain(most=None, norm=9.0), factors(3), 0.5, 1e3)
    return loose, FactorGradient(plain(most=None, norm=9.0), factors(3), 0.5, 0.7)


def unclipped_entries() -> tuple[Statistic, Statistic]:
    offsets = np.full(ITEMS, 3.0)
    loose = RowBounds(None, offsets, True, 100.0, bias_shrinkage=4.0, by_sqrt_count=True)
    return ResidualCovariance(loose, (), 100.0), ResidualCovariance(cleansed(), (), 1.0)


def unweighted_co_ratings() -> tuple[Statistic, Statistic]:
    loose = RowBounds(None, np.zeros(ITEMS), False, 100.0, binarise=True)
    return ResidualCovariance(loose, (), 100.0), ResidualCovariance(present(), (), 1.0)


@pytest.mark.parametrize(
    "twin",
    [
        unclipped_product,
        longer_columns,
        unclipped_energy,
        uncapped_count,
        unclipped_filling,
        unclipped_gradient,
        unclipped_entries,
        unweighted_co_ratings,
    ],
)
def test_a_bound_that_does_not_hold_is_found_out(
    twin: Callable[[], tuple[Statistic, Statistic]],
) -> None:
    """The twins: a statistic that is not bounded as stated breaks the statement under attack."""
    loose, stated = twin()
    others = bystanders(np.random.default_rng(4))
    worst = max(change(loose, others, *pair) for pair in structured_pairs())
    assert worst > 1.2 * stated.sensitivity.replace
    if not isinstance(loose, RatingCount):
        rngs = map(np.random.default_rng, range(4))
        distances = [evolve(lambda rows: terms(loose, rows), rng)[1] for rng in rngs]
        assert max(distances) > 1.2 * stated.sensitivity.replace


@pytest.mark.parametrize("case", SUMS)
def test_bounds_hold_in_integers_however_coarse_or_fine_the_grid(case: str) -> None:
    """On grids from far too coarse to the finest that is allowed, for rows and pairs of them."""
    statistic = CASES[case]()
    stated = statistic.sensitivity
    product = isinstance(statistic, ResidualProduct)  # refuses a grid that is too coarse
    rng = np.random.default_rng(6)
    rows = [random_row(rng) for _ in range(40)]
    for bits in (*(() if product else (3, 6, 12)), 26, statistic.term_bits):
        longest, distance, *_ = furthest(terms(statistic, rows, bits))
        assert longest <= stated.add_remove * SLACK
        assert distance <= stated.replace * SLACK


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_a_users_row_moves_nobody_elses_term(case: str, threads: int) -> None:
    """Her term is the whole difference, to the last unit: others' terms do not hear of her.

    She comes first, and her row is short or long: everyone else's place and thread may change.
    """
    statistic = CASES[case]()
    short, long = {3: 5.0}, {item: RANGE[item % 2] for item in range(ITEMS)}
    pair = (exact_sum(statistic, [hers, {0: 3.0}], 1) for hers in (short, long))
    alone = next(pair) - next(pair)
    for count in (41, 44):
        rng = np.random.default_rng(1)
        others = [random_row(rng) for _ in range(count)]
        before = exact_sum(statistic, [short, *others], threads)
        replaced = exact_sum(statistic, [long, *others], threads)
        assert np.array_equal(before - replaced, alone)
        removed = exact_sum(statistic, others, threads)
        added = exact_sum(statistic, [long, short, *others], threads)
        assert np.array_equal(added - before, replaced - removed)


@pytest.mark.parametrize("case", CASES)
def test_sums_do_not_depend_on_threads_or_order(case: str) -> None:
    statistic = CASES[case]()
    rows = [random_row(np.random.default_rng(seed)) for seed in range(41)]
    unit = statistic.max_entry * 2.0 ** -min(40, statistic.term_bits)
    results = []
    for threads, order in ((1, rows), (3, rows), (40, rows), (2, rows[::-1])):
        engine = ThreadEngine(threads)
        engine.take(ratings_of(order))
        results.append(engine.sum(statistic, unit)._exact_sum)
    for result in results[1:]:
        assert np.array_equal(results[0], result)


def wild(case: str) -> Statistic:
    """Published numbers that overflow: a release of pure noise may lead to anything."""
    gains = tuple(RankOneStep(step(t, 3.0).direction, 1e300, 0.8, 3.0) for t in range(3))
    huge = LinearStep(np.full((ITEMS, 1), 1e19), np.ones(1))
    return {
        "product": ResidualProduct(plain(), gains, 6.0, block(2)),
        "energy": ResidualEnergy(plain(), gains, 6.0, block(1)[:, 0]),
        "filled": FilledCovariance(plain(), (huge, huge), (0.5,) * 3, (3.0,) * 3),
        "gradient": FactorGradient(plain(), factors(2, scale=1e150), 0.5, 0.7),
        "infinite gradient": FactorGradient(plain(), factors(2, scale=1e200), 0.5, 0.7),
    }[case]


@pytest.mark.parametrize("case", ["product", "energy", "filled", "gradient", "infinite gradient"])
def test_what_overflows_moves_nobody_beyond_the_bound(case: str) -> None:
    statistic = wild(case)
    others = bystanders(np.random.default_rng(8))
    for before, after in structured_pairs():
        moved = change(statistic, others, before, after)
        assert moved <= statistic.sensitivity.replace * SLACK


@pytest.mark.parametrize("ridge", [1e-300, 1e-17, 1e-9])
def test_a_user_with_fewer_ratings_than_factors_is_no_trouble(ridge: float) -> None:
    """Her regression is singular but for the ridge, which rounding swallows: still no crash."""
    statistic = FactorGradient(plain(norm=9.0), factors(3), ridge, 0.7)
    others = bystanders(np.random.default_rng(9))
    moved = change(statistic, others, {0: 5.0}, {1: 1.0, 2: 5.0})
    assert moved <= statistic.sensitivity.replace * SLACK


def test_a_coarse_grid_is_refused_where_rounding_is_not_in_the_bound() -> None:
    statistic = ResidualProduct(plain(), (), 3.0, block(3))
    engine = ThreadEngine(1)
    engine.take(ratings_of([{0: 5.0}, {1: 5.0}]))
    with pytest.raises(EngineError, match="too coarse"):
        engine.sum(statistic, statistic.max_entry * 2.0**-20)
