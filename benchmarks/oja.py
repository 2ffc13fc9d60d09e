"""Algorithm 2 at scale: memory linear in the number of items, where the exact form refuses.

    python benchmarks/oja.py [--users 1000000] [--items 100000] [--per-user 20] [--rounds 3]

Fits with eigen="oja" in a process of its own and prints time and peak memory beside the bytes
that one items-by-items matrix would need, and beside half as many items; then shows that the
exact form refuses; and times one Oja step beside a streaming read of the same arrays.
"""

import argparse
import multiprocessing
import os
import resource
import time

import numpy as np


def made(users: int, items: int, per_user: int):
    """Ratings made in memory: no file, no frame, so that peaks are those of the fit."""
    import polars as pl

    import tacit

    rng = np.random.default_rng(0)
    chosen = np.empty((users, per_user), dtype=np.uint32)
    width = items // per_user
    for column in range(per_user):  # one item from each stretch of the catalogue: sorted, unique
        chosen[:, column] = column * width + rng.integers(0, width, users, dtype=np.uint32)
    values = (rng.random(users * per_user, dtype=np.float32) * 2 - 1).astype(np.float32)
    kind = np.uint16 if items <= 2**16 else np.uint32
    return tacit.Ratings(
        (-1.0, 1.0),
        tacit.Catalogue(pl.Series("item", np.arange(items)), public=True),
        pl.Series("user", np.arange(users)),
        np.arange(users + 1, dtype=np.int64) * per_user,
        chosen.ravel().astype(kind),
        values,
    )


def fit(users: int, items: int, per_user: int, rounds: int) -> dict:
    import tacit

    ratings = made(users, items, per_user)
    config = tacit.FrankWolfe(rounds=rounds, eigen="oja", max_ratings=per_user)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    start = time.perf_counter()
    tacit.fit(ratings, config, epsilon=1.0, delta=1e-8)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    csr = ratings.indptr.nbytes + ratings.items.nbytes + ratings.values.nbytes
    seconds = time.perf_counter() - start
    refused = ""
    if items >= 100_000:
        try:
            tacit.fit(ratings, tacit.FrankWolfe(rounds=rounds), epsilon=1.0, delta=1e-8)
        except tacit.EngineError as error:
            refused = str(error)
    return {"seconds": seconds, "peak": after, "before": before, "csr": csr, "refused": refused}


def one_step(users: int, items: int, per_user: int) -> dict:
    """Time one product with a local step folded in, and a read of the same arrays."""
    from concurrent.futures import ThreadPoolExecutor

    from numba import njit

    import tacit
    from tacit.trusted.local_state import RankOneStep
    from tacit.trusted.rows import RowBounds
    from tacit.trusted.statistics import ResidualProduct

    @njit(nogil=True)
    def read(indices, values, lo, hi):
        total = 0.0
        for p in range(lo, hi):
            total += indices[p] * values[p]
        return total

    ratings = made(users, items, per_user)
    engine = tacit.ThreadEngine()
    engine.take(ratings)
    bounds = RowBounds(per_user, np.zeros(items), True, 4.5)
    unit = np.full((items, 1), items**-0.5)
    steps, seconds = [], []
    for _ in range(4):
        statistic = ResidualProduct(bounds, tuple(steps), 9.0, unit)
        start = time.perf_counter()
        engine.sum(statistic, statistic.max_entry * 2.0**-41)
        seconds.append(time.perf_counter() - start)
        steps.append(RankOneStep(unit[:, 0], 0.5, 0.9, 4.5))
    size, cores = ratings.values.size, len(os.sched_getaffinity(0))
    edges = np.linspace(0, size, cores + 1).astype(int).tolist()
    reads = []
    with ThreadPoolExecutor(cores) as pool:
        for _ in range(4):
            start = time.perf_counter()
            list(
                pool.map(
                    lambda lo, hi: read(ratings.items, ratings.values, lo, hi), edges, edges[1:]
                )
            )
            reads.append(time.perf_counter() - start)
    return {"step": min(seconds[1:]), "read": min(reads[1:])}


def run(function, *arguments) -> dict:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--per-user", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print("| items | fit with Oja | peak memory | of it, ratings | one n x n matrix |")
    print("|---|---|---|---|---|")
    for items in (options.items // 10, options.items // 2, options.items):
        found = run(fit, options.users, items, options.per_user, options.rounds)
        print(
            f"| {items:,} | {found['seconds']:.1f} s | {found['peak'] / 2**20:.0f} MiB "
            f"| {found['csr'] / 2**20:.0f} MiB | {8 * items**2 / 2**30:.1f} GiB |",
            flush=True,
        )
    print(f"\nthe exact form at the last size: {found['refused'] or 'did not refuse'}\n")
    step = run(one_step, 500_000, 400, 80)
    print("One Oja step on 500,000 x 400 with 80 ratings a user, local step folded in:")
    print(
        f"{step['step']:.3f} s; reading the same arrays {step['read']:.3f} s; "
        f"{step['step'] / step['read']:.2f}x"
    )


if __name__ == "__main__":
    main()
