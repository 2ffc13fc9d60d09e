"""Speed as ratios to peers in the same run; fails where one is worse than its bar by a margin.

    python benchmarks/ratios.py              # about two minutes; part of `make bench`
    python benchmarks/ratios.py --quick      # seconds; part of .ci/run

Both sides of a ratio take turns, and count is taken of processor time (of all threads), best of
several: another busy process then changes little. `bar` is what must hold; `aim` is what is wanted.
A row fails if its ratio is worse than its bar by more than --margin (a quarter; with --quick three
quarters, since little work is measured less exactly). Rows of `implicit` need that package
(pip install implicit==0.7.3) and are left out, by name, where it is missing.
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
from tacit.trusted.statistics import ResidualCovariance, ResidualProduct

Work = Callable[[], object]


class Row(NamedTuple):
    """One ratio: ours over the peer's, both in processor time; the least is best."""

    what: str
    peer: str
    bar: float
    aim: float
    ours: Work
    theirs: Work


class Size(NamedTuple):
    """How much work a run does."""

    users: int
    ratings: int
    repeats: int


def seconds(work: Work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def ratio(row: Row, repeats: int) -> tuple[float, float]:
    """Return the best times of both, in turns, after one of each that does not count."""
    row.ours(), row.theirs()
    pairs = [(seconds(row.ours), seconds(row.theirs)) for _ in range(repeats)]
    return min(ours for ours, _ in pairs), min(theirs for _, theirs in pairs)


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


def summing(ratings: tacit.Ratings, make: Callable[[tuple[RankOneStep, ...]], Any]) -> Work:
    """One sum with a new local step each time it is called."""
    engine = tacit.ThreadEngine()
    engine.take(ratings)
    direction = np.full(ratings.n_items, ratings.n_items**-0.5)
    steps: list[RankOneStep] = []

    def work() -> None:
        statistic = make(tuple(steps))
        engine.sum(statistic, statistic.sensitivity.replace * 2.0**-30)
        steps.append(RankOneStep(direction, 0.5, 0.9, 4.5))

    return work


def kernels(size: Size) -> list[Row]:
    """A round of Frank-Wolfe beside scipy, and a step of Oja beside a streaming read."""
    from scipy.sparse import csr_array

    ratings = made(size.users)
    items = ratings.n_items
    bounds = RowBounds(80, np.full(items, 3.0), True, 4.5)
    block = np.full((items, 1), items**-0.5)
    shape = (ratings.n_users, items)
    matrix = csr_array((ratings.values, ratings.items.astype(np.int32), ratings.indptr), shape)
    covariance = summing(ratings, lambda steps: ResidualCovariance(bounds, steps, 9.0))
    product = summing(ratings, lambda steps: ResidualProduct(bounds, steps, 9.0, block))
    return [
        Row("one exact Frank-Wolfe round", "scipy A.T @ A", 0.1, 0.07, covariance,
            lambda: matrix.T @ matrix),
        Row("one Oja step", "streaming read", 3.0, 2.5, product,
            lambda: read(ratings.items, ratings.values)),
    ]  # fmt: skip


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

    rows = [Row("tacit evaluate, 126 factors", "recommending", 2.0, 2.0, evaluate, recommend)]
    return rows + beside_implicit(ratings)


def beside_implicit(ratings: tacit.Ratings) -> list[Row]:
    """Lists, users solved anew, and a whole fit, where the package is there."""
    try:
        from implicit.als import AlternatingLeastSquares
    except ImportError:
        print("implicit is not installed: its two rows are left out")
        return []
    from scipy.sparse import csr_matrix

    shape = (ratings.n_users, ratings.n_items)
    parts = (ratings.values, ratings.items.astype(np.int32), ratings.indptr)
    matrix = csr_matrix(parts, shape)
    peer = AlternatingLeastSquares(factors=126, iterations=1, random_state=0)
    with threadpool_limits(1, "blas"):
        peer.fit(matrix, show_progress=False)
    users, model = np.arange(ratings.n_users), with_factors(ratings, 126)

    def theirs() -> None:
        with threadpool_limits(1, "blas"):
            peer.recommend(users, matrix, N=10, recalculate_user=True)

    def ours() -> None:
        model.recommend_frame(ratings, 10)

    return [Row("lists, 126 factors", "implicit, users solved anew", 0.25, 0.2, ours, theirs)]


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
        bar = {"by user": 2.5, "by item": 4.0, "random": 5.0}[order]
        rows.append(Row(f"reading Parquet, {order}", "polars", bar, 2.0, *readers(path)))
    path = folder / "by user.csv"
    frame.write_csv(path)
    return [*rows, Row("reading CSV", "polars", 2.0, 1.5, *readers(path))]


def readers(path: Path) -> tuple[Work, Work]:
    into_frame = pl.read_parquet if path.suffix == ".parquet" else pl.read_csv
    return (
        lambda: tacit.Ratings.from_file(path, rating_range=(1.0, 5.0)),
        lambda: into_frame(path),
    )


def cores(size: Size) -> list[Row]:
    """Processor time of a fit by one thread: of the whole process beside that thread alone.

    What BLAS or another pool computes counts for the process only, whatever else is running.
    """
    ratings = made(size.users // 5)

    def used() -> float:
        process, thread = time.process_time(), time.thread_time()
        tacit.fit(ratings, tacit.Moments(), epsilon=1.0, engine=tacit.ThreadEngine(1))
        return (time.process_time() - process) / (time.thread_time() - thread)

    used()
    found = sorted(used() for _ in range(size.repeats))[size.repeats // 2]
    return [Row("cores of a fit by one thread", "one core", 1.0, 1.05, lambda: found, lambda: 1.0)]


def report(rows: list[Row], size: Size, margin: float) -> bool:
    """Print the table; return whether all rows are within their bars."""
    print("| what | beside | ratio | bar | aim | |")
    print("|---|---|---|---|---|---|")
    fine = True
    for row in rows:
        if row.peer == "one core":
            found = float(row.ours())  # type: ignore[arg-type]
        else:
            ours, theirs = ratio(row, size.repeats)
            found = ours / theirs
        within = found <= row.bar * (1 + margin)
        fine = fine and within
        words = "" if found <= row.aim else "above the aim" if within else "FAILS"
        print(
            f"| {row.what} | {row.peer} | {found:.2f} | {row.bar:g} | {row.aim:g} | {words} |",
            flush=True,
        )
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--margin", type=float, help="how much worse than its bar a row may be")
    options = parser.parse_args()
    size = Size(20_000, 400_000, 3) if options.quick else Size(200_000, 16_000_000, 5)
    margin = options.margin or (0.75 if options.quick else 0.25)
    with tempfile.TemporaryDirectory() as name:
        rows = kernels(size) + local_rule(size) + reading(size, Path(name)) + cores(size)
        fine = report(rows, size, margin)
    if not fine:
        sys.exit(f"a ratio is worse than its bar by more than {margin:.0%}")


if __name__ == "__main__":
    main()
