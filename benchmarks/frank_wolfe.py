"""Speed and memory of a private Frank-Wolfe fit, beside peers in the same run.

    python benchmarks/frank_wolfe.py [--users 500000] [--items 400] [--per-user 80] [--rounds 10]

Prints a Markdown table of ratios. Each part runs in a process of its own, so that peak memory
is that of the part alone; machines are shared and noisy, so only ratios mean much.
"""

import argparse
import json
import multiprocessing
import os
import resource
import tempfile
import time
from pathlib import Path

import polars as pl


def peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def make(path: Path, users: int, items: int, per_user: int) -> None:
    from tacit.datasets.synthetic import synthesise

    made = synthesise("rank-one", users=users, items=items, per_user=per_user, test_fraction=0.0)
    made.train.write_parquet(path)


def load(path: Path):
    import tacit

    items = pl.scan_parquet(path).select("item").unique().collect()["item"].sort()
    return tacit.Ratings.from_file(
        path, rating_range=(-1, 1), catalogue=tacit.Catalogue(items, public=True)
    )


def csr_bytes(ratings) -> int:
    return ratings.indptr.nbytes + ratings.items.nbytes + ratings.values.nbytes


def store(path: Path) -> dict:
    """Convert the file to the arrays of the CSR once, so that other parts load without peaks."""
    import numpy as np

    ratings = load(path)
    for name in ("indptr", "items", "values"):
        np.save(path.with_suffix(f".{name}.npy"), getattr(ratings, name))
    return {"bytes": csr_bytes(ratings)}


def stored(path: Path):
    """Return the ratings from the stored arrays, copying nothing twice."""
    import numpy as np

    import tacit

    indptr, items, values = (
        np.load(path.with_suffix(f".{name}.npy")) for name in ("indptr", "items", "values")
    )
    catalogue = tacit.Catalogue(pl.Series("item", range(int(items.max()) + 1)), public=True)
    users = pl.Series("user", np.arange(indptr.size - 1))
    return tacit.Ratings((-1.0, 1.0), catalogue, users, indptr, items, values)


def fit(path: Path, rounds: int, threads: int) -> dict:
    import numpy as np

    import tacit

    ratings = stored(path)
    small = ratings.take_rows(np.arange(100))
    config = tacit.FrankWolfe(rounds=rounds)
    tacit.fit(small, config, epsilon=1.0, engine=tacit.ThreadEngine(threads))  # compiles
    before = peak_bytes()
    start = time.perf_counter()
    tacit.fit(ratings, config, epsilon=1.0, engine=tacit.ThreadEngine(threads))
    return {
        "seconds": time.perf_counter() - start,
        "peak": peak_bytes(),
        "before": before,
        "csr": csr_bytes(ratings),
    }


def one_round(path: Path, threads: int) -> dict:
    """Time one local step fused with its covariance, and scipy's A.T @ A on the same CSR."""
    import numpy as np
    import scipy.sparse

    import tacit
    from tacit.trusted.local_state import RankOneStep
    from tacit.trusted.rows import RowBounds
    from tacit.trusted.statistics import ResidualCovariance

    ratings = stored(path)
    engine = tacit.ThreadEngine(threads)
    engine.take(ratings)
    n = ratings.n_items
    bounds = RowBounds(80, np.zeros(n), True, 4.5)
    steps = []
    seconds = []
    for turn in range(4):
        statistic = ResidualCovariance(bounds, tuple(steps), 9.0)
        start = time.perf_counter()
        engine.sum(statistic, statistic.max_entry * 2.0**-40)
        seconds.append(time.perf_counter() - start)
        direction = np.random.default_rng(turn).standard_normal(n)
        steps.append(RankOneStep(direction / np.linalg.norm(direction), 0.5, 0.9, 4.5))
    matrix = scipy.sparse.csr_matrix(
        (ratings.values, ratings.items.astype(np.int32), ratings.indptr),
        shape=(ratings.n_users, n),
    )
    start = time.perf_counter()
    _ = matrix.T @ matrix
    return {"seconds": min(seconds[2:]), "scipy": time.perf_counter() - start}


def noise(items: int, rounds: int) -> dict:
    from tacit.trusted.sampler import SystemNoise, floor_normals

    floor_normals(SystemNoise(), 100, 40)
    start = time.perf_counter()
    for _ in range(rounds - 1):
        floor_normals(SystemNoise(), items * items, 40)
    return {"seconds": time.perf_counter() - start}


def run(function, *arguments) -> dict:
    """Run a part in a fresh process and return what it found."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--per-user", type=int, default=80)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        run(make, path, options.users, options.items, options.per_user)
        run(store, path)
        whole = run(fit, path, options.rounds, options.threads)
        once = run(one_round, path, options.threads)
        drawn = run(noise, options.items, options.rounds)
    print(
        f"{options.users} x {options.items}, {options.per_user} ratings a user, "
        f"T = {options.rounds}, {options.threads} threads\n"
    )
    faster, share = once["scipy"] / once["seconds"], 100 * drawn["seconds"] / whole["seconds"]
    lines = (
        "| what | measured | beside | ratio |",
        "|---|---|---|---|",
        f"| one round: local step and covariance | {once['seconds']:.2f} s "
        f"| scipy A.T @ A {once['scipy']:.2f} s | {faster:.1f}x faster |",
        f"| whole private fit | {whole['seconds']:.1f} s | one round x (T - 1) "
        f"| {whole['seconds'] / (once['seconds'] * (options.rounds - 1)):.2f}x |",
        f"| exact secure noise of the fit | {drawn['seconds']:.2f} s | the fit | {share:.1f} % |",
        f"| peak memory of the process | {whole['peak'] / 2**20:.0f} MiB "
        f"| CSR {whole['csr'] / 2**20:.0f} MiB | {whole['peak'] / whole['csr']:.2f}x |",
    )
    print("\n".join(lines))
    print(json.dumps({"fit": whole, "round": once, "noise": drawn}))


if __name__ == "__main__":
    main()
