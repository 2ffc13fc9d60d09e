"""What a round costs on a Ray cluster of two local processes, beside threads of this process.

    python benchmarks/ray_rounds.py     (make bench-ray)

Times are those of the fastest round: whoever else uses the machine only adds to them. The sum of
one number per user has nearly no work in it: what is left is sending the statistic, two sealed
partial sums, and opening and adding them. Rows are the same for both, and are kept by the workers.
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tacit
from tacit.data.store_writer import write_store
from tacit.datasets.synthetic import synthesise
from tacit.engines import Engine, Ray
from tacit.trusted.rows import RowBounds
from tacit.trusted.statistic import Statistic
from tacit.trusted.statistics import ItemCounts, ResidualCovariance, UserCount

ITEMS, UNIT = 400, 2.0**-20


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--users", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    made = synthesise("tastes", users=options.users, items=ITEMS, per_user=80, test_fraction=0.0)
    catalogue = tacit.Catalogue(made.items["item"])
    rows = tacit.Ratings.from_frame(made.train, rating_range=made.rating_range, catalogue=catalogue)
    print(f"{rows.items.size:,} ratings of {rows.n_users:,} users, {ITEMS} items")
    threads = tacit.ThreadEngine(2)
    threads.take(rows)
    with tempfile.TemporaryDirectory() as place:
        store = write_store(rows, Path(place) / "store", 2)
        started = time.perf_counter()
        with Ray(workers=2) as cluster:
            cluster.take(store)
            print(f"cluster of two processes up after {time.perf_counter() - started:.1f} s")
            show(threads, cluster, options.rounds)


def show(threads: tacit.ThreadEngine, cluster: Ray, rounds: int) -> None:
    bounds = RowBounds(None, np.full(ITEMS, 3.0), True, 10.0)
    cases: dict[str, Any] = {
        "one number": UserCount(),
        f"{ITEMS} numbers": ItemCounts(ITEMS),
        f"{ITEMS} x {ITEMS} numbers": ResidualCovariance(bounds, (), 10.0),
    }
    print(f"{'sum of':<22} {'threads':>10} {'cluster':>10} {'overhead':>10}")
    for name, statistic in cases.items():
        one, other = (fastest(engine, statistic, rounds) for engine in (threads, cluster))
        print(f"{name:<22} {one:>7.1f} ms {other:>7.1f} ms {other - one:>7.1f} ms")


def fastest(engine: Engine, statistic: Statistic, rounds: int) -> float:
    """The shortest time of a sum in milliseconds, after one that nobody counts."""
    engine.sum(statistic, UNIT)
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        engine.sum(statistic, UNIT)
        times.append(1000 * (time.perf_counter() - started))
    return min(times)


if __name__ == "__main__":
    main()
