"""Speed as ratios to peers in the same run; fails where one is worse than its bar by a margin.

    python benchmarks/ratios.py              # about three minutes of one core; part of `make bench`
    python benchmarks/ratios.py --quick      # less than one; part of .ci/run

Both sides of a ratio take turns, and count is taken of processor time (of all threads). A
measurement is the best of ours over the best of theirs, in at least three turns and more while the
ratio is above its bar and there is time. `bar` is what must hold; `aim` is what is wanted. A row
is too slow if its ratio is worse than its bar by more than --margin (a quarter; with --quick half).

False alarms: a neighbour that takes the cache or the memory bus makes our side slower than a peer
that computes more and reads less, and no number of turns in the same second helps. So a row that is
too slow is measured again when all rows have had their turn, and once more after that; it fails if
all three were too slow. Were the three independent, a chance p of one would become p^3. They are as
independent as seconds of the same minute are: a machine that is overloaded from the first
measurement to the last can still fail. What may be slower without being noticed is the other side:
with --quick a row fails for certain only if it takes more than its bar times one and a half.

Arrays that are read are larger than the last cache, also with --quick. Rows of `implicit` need that
package (pip install implicit==0.7.3) and are left out, by name, where it is missing.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numba import njit
from threadpoolctl import threadpool_limits

import tacit
from tacit.evaluation import ExactPopularity, measure, rank, split
from tacit.models.latent import LatentFactorRule
from tacit.trusted.local_state import RankOneStep
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistics import (
    ExpectedGradient,
    FactorMoments,
    LatentModel,
    ResidualCovariance,
    ResidualProduct,
)

Work = Callable[[], object]
Turn = Callable[[], tuple[float, float]]
"""Processor time of our side and of the peer's, once each."""

FEWEST_TURNS = 3
MORE_MEASUREMENTS = 2


class Row(NamedTuple):
    """One ratio: ours over the peer's, both in processor time; the least is best."""

    what: str
    peer: str
    bar: float
    aim: float
    turn: Turn


class Size(NamedTuple):
    """How much work a run does."""

    users: int
    """Of posteriors and of the local rule, which compute much for each user."""
    readers: int
    """Users of the Frank-Wolfe round, where few have fixed costs, and of the Oja step, which mostly
    reads: 480 bytes each."""
    ratings: int
    """Of the files."""
    seconds: float
    """Processor time after which a measurement takes no more turns."""


def seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def beside(ours: Work, theirs: Work) -> Turn:
    return lambda: (seconds(ours), seconds(theirs))


def ratio(row: Row, most: float) -> float:
    """One measurement: best over best, after a turn that does not count.

    It ends when the ratio is within the bar, or after `most` seconds of both sides together.
    """
    row.turn()
    turns: list[tuple[float, float]] = []
    while True:
        turns.append(row.turn())
        found = min(ours for ours, _ in turns) / min(theirs for _, theirs in turns)
        spent = sum(ours + theirs for ours, theirs in turns)
        if len(turns) >= FEWEST_TURNS and (found <= row.bar or spent >= most):
            return found


def made(users: int, items: int = 400, per_user: int = 80) -> tacit.Ratings:
    """Ratings made in memory: one item from each stretch of the catalogue."""
    rng = np.random.default_rng(0)
    width = items // per_user
    chosen = np.arange(per_user) * width + rng.integers(0, width, (users, per_user))
    values = rng.integers(1, 6, users * per_user).astype(np.float32)
    return tacit.Ratings(
        (1.0, 5.0),
        tacit.Catalogue(pl.Series("item", np.arange(items)), public=True),
        pl.Series("user", np.arange(users)),
        np.arange(users + 1, dtype=np.int64) * per_user,
        chosen.ravel().astype(np.uint16),
        values,
    )


def with_factors(ratings: tacit.Ratings, rank: int) -> tacit.Model:
    """A model with so many factors, as a large fit would have; its numbers mean nothing."""
    rng, n = np.random.default_rng(1), ratings.n_items
    small = tacit.fit(ratings.take_rows(np.arange(200)), tacit.Moments(), epsilon=1.0)
    rule = LatentFactorRule(
        factors=rng.normal(size=(n, rank)) * 0.6 / np.sqrt(rank),
        offsets=3.3 + 0.3 * rng.normal(size=n),
        noise=0.8 + 0.1 * rng.random(n),
        choice_factors=0.05 * np.abs(rng.normal(size=(n, 40))),
        choice_noise=np.full(n, 0.02),
        prior=0.1 * rng.normal(size=(40, rank)),
        liked=3.8,
    )
    return replace(small, rule=rule)


@njit(nogil=True)
def read(indices: Any, values: Any) -> float:
    total = 0.0
    for p in range(indices.size):
        total += indices[p] * values[p]
    return total


def summing(
    ratings: tacit.Ratings, make: Callable[[tuple[RankOneStep, ...]], Any], bits: int = 30
) -> Work:
    """One sum with a new local step each time it is called; a user's term has so many bits."""
    engine = tacit.ThreadEngine()
    engine.take(ratings)
    direction = np.full(ratings.n_items, ratings.n_items**-0.5)
    steps: list[RankOneStep] = []

    def work() -> None:
        statistic = make(tuple(steps))
        engine.sum(statistic, statistic.sensitivity.replace * 2.0**-bits)
        steps.append(RankOneStep(direction, 0.5, 0.9, 4.5))

    return work


def kernels(size: Size) -> list[Row]:
    """A round of Frank-Wolfe beside scipy, and a step of Oja beside a streaming read."""
    from scipy.sparse import csr_array

    ratings, many = made(size.users), made(size.readers)
    items = ratings.n_items
    bounds = RowBounds(80, np.full(items, 3.0), True, 4.5)
    block = np.full((items, 1), items**-0.5)
    shape = (many.n_users, items)
    matrix = csr_array((many.values, many.items.astype(np.int32), many.indptr), shape)
    covariance = summing(many, lambda steps: ResidualCovariance(bounds, steps, 9.0))
    product = summing(many, lambda steps: ResidualProduct(bounds, steps, 9.0, block))
    return [
        Row("one exact Frank-Wolfe round", "scipy A.T @ A", 0.1, 0.07,
            beside(covariance, lambda: matrix.T @ matrix)),
        Row("one Oja step", "streaming read", 3.0, 2.5,
            beside(product, lambda: read(many.items, many.values))),
        *posteriors(ratings, bounds),
    ]  # fmt: skip


def posteriors(ratings: tacit.Ratings, bounds: RowBounds) -> list[Row]:
    """What LatentFactors sums of 30 factors and 45 of choice, beside an exact covariance."""
    rng, n = np.random.default_rng(4), ratings.n_items
    model = LatentModel(
        rng.normal(size=(n, 30)) * 0.6 / np.sqrt(30),
        0.8 + 0.1 * rng.random(n),
        0.05 * np.abs(rng.normal(size=(n, 45))),
        0.1 * rng.normal(size=(45, 30)),
    )
    covariance = summing(ratings, lambda steps: ResidualCovariance(bounds, steps, 9.0))
    gradient = summing(ratings, lambda _: ExpectedGradient(bounds, model, 3.0, 0.3), 24)
    moments = summing(ratings, lambda _: FactorMoments(bounds, model, 7.0), 24)
    return [
        Row("gradient, 30 factors", "exact covariance", 3.5, 2.5, beside(gradient, covariance)),
        Row(
            "factor moments, 30 factors", "exact covariance", 2.25, 1.5, beside(moments, covariance)
        ),
    ]


def local_rule(size: Size) -> list[Row]:
    """Evaluating beside recommending to the same users, and lists beside implicit."""
    ratings = made(size.users // 5, items=480)
    model = with_factors(ratings, 126)
    train, test = split(ratings, 0.02, np.random.default_rng(2))
    people = train.take_rows(np.flatnonzero(np.isin(train.user_ids, test.user_ids)))

    def evaluate() -> None:
        measure(model, train, test)
        rank(model, train, test)
        rank(ExactPopularity(train), train, test)

    def recommend() -> None:
        for _ in model.recommend_rows(people, 10):
            pass

    rows = [
        Row("tacit evaluate, 126 factors", "recommending", 2.4, 2.0, beside(evaluate, recommend))
    ]
    return rows + beside_implicit(ratings)


def beside_implicit(ratings: tacit.Ratings) -> list[Row]:
    """Lists, users solved anew, where the package is there."""
    try:
        from implicit.als import AlternatingLeastSquares
    except ImportError:
        print("implicit is not installed: its two rows are left out")
        return []
    from scipy.sparse import csr_matrix

    shape = (ratings.n_users, ratings.n_items)
    parts = (ratings.values, ratings.items.astype(np.int32), ratings.indptr)
    matrix, users = csr_matrix(parts, shape), np.arange(ratings.n_users)

    def row(factors: int, bar: float) -> Row:
        peer = AlternatingLeastSquares(factors=factors, iterations=1, random_state=0)
        with threadpool_limits(1, "blas"):
            peer.fit(matrix, show_progress=False)
        model = with_factors(ratings, factors)

        def theirs() -> None:
            with threadpool_limits(1, "blas"):
                peer.recommend(users, matrix, N=10, recalculate_user=True)

        turn = beside(lambda: model.recommend_frame(ratings, 10), theirs)
        return Row(f"lists, {factors} factors", "implicit, users solved anew", bar, 0.2, turn)

    return [row(126, 0.2), row(73, 0.28)]


def reading(size: Size, folder: Path) -> list[Row]:
    """Files by user, by item and in random order, beside polars."""
    rng, users = np.random.default_rng(3), size.ratings // 80
    frame = pl.DataFrame(
        {
            "user": np.repeat(np.arange(users, dtype=np.uint32), 80),
            "item": (rng.integers(0, 5, (users, 80)) + np.arange(80) * 5).ravel().astype(np.uint32),
            "rating": rng.integers(1, 6, users * 80).astype(np.float32),
        }
    )
    orders = {
        "by user": frame,
        "by item": frame.sort("item", "user"),
        "random": frame.sample(fraction=1, shuffle=True, seed=1),
    }
    rows = []
    for order, part in orders.items():
        path = folder / f"{order}.parquet"
        part.write_parquet(path)
        bar = {"by user": 2.5, "by item": 3.0, "random": 3.5}[order]
        rows.append(Row(f"reading Parquet, {order}", "polars", bar, 2.0, reader(path)))
    path = folder / "by user.csv"
    frame.write_csv(path)
    return [*rows, Row("reading CSV", "polars", 2.0, 1.5, reader(path))]


def reader(path: Path) -> Turn:
    into_frame = pl.read_parquet if path.suffix == ".parquet" else pl.read_csv
    return beside(
        lambda: tacit.Ratings.from_file(path, rating_range=(1.0, 5.0)),
        lambda: into_frame(path),
    )


def cores(size: Size) -> list[Row]:
    """Processor time of a fit by one thread: of the whole process beside that thread alone.

    What BLAS or another pool computes counts for the process only, whatever else is running.
    """
    ratings = made(size.users // 5)

    def turn() -> tuple[float, float]:
        process, thread = time.process_time(), time.thread_time()
        tacit.fit(ratings, tacit.Moments(), epsilon=1.0, engine=tacit.ThreadEngine(1))
        return time.process_time() - process, time.thread_time() - thread

    return [Row("cores of a fit by one thread", "one core", 1.0, 1.05, turn)]


def too_slow(row: Row, found: float, margin: float) -> bool:
    return found > row.bar * (1 + margin)


def measured(rows: list[Row], most: float, margin: float) -> list[float]:
    """The ratio of each row; those that are too slow are measured again after all the others."""
    found = [ratio(row, most) for row in rows]
    for _ in range(MORE_MEASUREMENTS):
        for k, row in enumerate(rows):
            if too_slow(row, found[k], margin):
                print(f"{row.what}: {found[k]:.2f} is too slow; measured again", flush=True)
                found[k] = min(found[k], ratio(row, most))
    return found


def report(rows: list[Row], most: float, margin: float) -> bool:
    """Print the table; return whether all rows are within their bars."""
    found = measured(rows, most, margin)
    slow = [too_slow(row, one, margin) for row, one in zip(rows, found, strict=True)]
    print("| what | beside | ratio | bar | aim | |")
    print("|---|---|---|---|---|---|")
    for row, one, fails in zip(rows, found, slow, strict=True):
        words = "FAILS" if fails else "" if one <= row.aim else "above the aim"
        print(f"| {row.what} | {row.peer} | {one:.2f} | {row.bar:g} | {row.aim:g} | {words} |")
    return not any(slow)


QUICK = Size(20_000, 150_000, 4_000_000, 3.0)
WHOLE = Size(200_000, 200_000, 16_000_000, 10.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--margin", type=float, help="how much worse than its bar a row may be")
    options = parser.parse_args()
    size = QUICK if options.quick else WHOLE
    margin = options.margin or (0.5 if options.quick else 0.25)
    with tempfile.TemporaryDirectory() as name:
        rows = kernels(size) + local_rule(size) + reading(size, Path(name)) + cores(size)
        fine = report(rows, size.seconds, margin)
    print(f"{time.process_time():.0f} s of processor time in all")
    if not fine:
        sys.exit(f"a ratio is worse than its bar by more than {margin:.0%}, three times")


if __name__ == "__main__":
    main()
