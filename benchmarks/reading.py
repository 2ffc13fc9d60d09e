"""How long reading ratings takes, beside polars reading the same file into a frame.

    python benchmarks/reading.py                        # 40 million ratings, a few minutes
    python benchmarks/reading.py --ratings 10_000_000

The files are made in a temporary folder: sorted by user, by item and in random order; narrow
columns (unsigned 32-bit ids, 32-bit ratings, as `tacit synth` writes them), wide ones (64 bits
each, as most other programs do) and text ids. Both readers take turns, and count is taken of the
processor time of all threads. The ratios are of the best times and of the median times; the
targets are 2 for Parquet and 1.5 for CSV. What loading the compiled kernels costs the first call of
a process is shown apart.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl

from tacit.data.ratings import Ratings

TARGETS = {".parquet": 2.0, ".csv": 1.5}
NARROW = {"user": pl.UInt32, "item": pl.UInt32, "rating": pl.Float32}
WIDE = {"user": pl.Int64, "item": pl.Int64, "rating": pl.Float64}
RATING_RANGE = (0.5, 5.0)


def synthetic_frame(ratings: int, users: int, items: int, seed: int = 1) -> pl.DataFrame:
    """Ratings sorted by user and item: each user rates as many distinct items."""
    rng = np.random.default_rng(seed)
    per_user = ratings // users
    steps = [step for step in range(1, items) if np.gcd(step, items) == 1]
    start = rng.integers(items, size=(users, 1), dtype=np.int32)
    step = rng.choice(np.array(steps, dtype=np.int32), size=(users, 1))
    chosen = np.sort((start + step * np.arange(per_user, dtype=np.int32)) % items, axis=1)
    columns = {
        "user": np.repeat(np.arange(users, dtype=np.uint32), per_user),
        "item": chosen.reshape(-1).astype(np.uint32),
        "rating": rng.integers(1, 11, size=chosen.size).astype(np.float32) / 2,
    }
    return pl.DataFrame(columns)


def with_texts(frame: pl.DataFrame) -> pl.DataFrame:
    """The same ratings with text ids."""
    ids = [pl.format(f"{name}-{{}}", pl.col(name)).alias(name) for name in ("user", "item")]
    return frame.with_columns(ids)


def write_files(folder: Path, frame: pl.DataFrame, shuffled: pl.DataFrame) -> dict[str, Path]:
    """Write every case; return what each file is."""
    files = {}
    for order, rows in (("by user", frame), ("random", shuffled)):
        files[f"Parquet, narrow, {order}"] = folder / f"narrow-{order}.parquet"
        rows.write_parquet(files[f"Parquet, narrow, {order}"])
        files[f"Parquet, wide, {order}"] = folder / f"wide-{order}.parquet"
        rows.cast(WIDE).write_parquet(files[f"Parquet, wide, {order}"])
        files[f"CSV, {order}"] = folder / f"{order}.csv"
        rows.write_csv(files[f"CSV, {order}"])
    files["Parquet, narrow, by item"] = folder / "narrow-by item.parquet"
    frame.sort("item", "user").write_parquet(files["Parquet, narrow, by item"])
    files["Parquet, text ids, random"] = folder / "texts.parquet"
    with_texts(shuffled).write_parquet(files["Parquet, text ids, random"])
    return files


def seconds(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def into_frame(path: Path) -> pl.DataFrame:
    return pl.read_parquet(path) if path.suffix == ".parquet" else pl.read_csv(path)


def into_ratings(path: Path) -> Ratings:
    return Ratings.from_file(path, rating_range=RATING_RANGE)


def warm_up(folder: Path) -> float:
    """Let both readers load what they need; return what it took ours, beyond reading."""
    small = synthetic_frame(2_000, 100, 40)
    files = write_files(folder, small, small.sample(fraction=1, shuffle=True, seed=1))
    for path in files.values():
        into_frame(path)
    first = seconds(lambda: [into_ratings(path) for path in files.values()])
    return first - seconds(lambda: [into_ratings(path) for path in files.values()])


def report(case: str, path: Path, repeats: int) -> None:
    """Time both readers in turns and print one line."""
    frame, ratings = [], []
    for _ in range(repeats):
        frame.append(seconds(lambda: into_frame(path)))
        ratings.append(seconds(lambda: into_ratings(path)))
    best = min(ratings) / min(frame)
    median = statistics.median(ratings) / statistics.median(frame)
    print(
        f"{case:28}{min(frame):9.2f}{min(ratings):9.2f}{best:9.2f}{median:9.2f}"
        f"{TARGETS[path.suffix]:9.1f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ratings", type=int, default=40_000_000)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    with TemporaryDirectory() as name:
        folder = Path(name)
        loading = warm_up(folder)
        frame = synthetic_frame(options.ratings, options.users, options.items)
        shuffled = frame.sample(fraction=1, shuffle=True, seed=2)
        files = write_files(folder, frame, shuffled)
        count = frame.height
        del frame, shuffled
        print(f"{count:,} ratings, {options.users:,} users, {options.items:,} items")
        print(f"loading the kernels, once per process: {loading:.2f} s\n")
        heads = ("polars s", "tacit s", "best", "median", "target")
        print(f"{'file':28}" + "".join(f"{head:>9}" for head in heads))
        for case, path in files.items():
            report(case, path, options.repeats)


if __name__ == "__main__":
    main()
