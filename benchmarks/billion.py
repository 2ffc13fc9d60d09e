"""A billion ratings on one machine: makes a store of synthetic ones and streams a fit over it.

    python benchmarks/billion.py --ratings 1e9 --folder /big/disk/billion

Each step runs in a process of its own, whose peak memory is stated: all that was resident at once
(the kernel's VmHWM), and the part of it that is not mapped files. With `--unsorted 1e8` ratings in
random order are written to a Parquet file first, and partitioned. With `--repeat 10` a tenth of the
ratings is drawn, and every person's row is written ten times, under ten ids: quicker, and no matter
for memory and time of a fit.
"""

import argparse
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np

ITEMS, PER_USER, PART = 400, 80, 100_000


def main() -> None:
    options = _options()
    steps = ["make", *options.algorithms]
    if options.unsorted:
        steps = ["shuffle", "partition", "partitioned"]
    print(f"{'step':<16} {'wall':>9} {'CPU':>9} {'peak memory':>12} {'not mapped':>12}")
    for step in steps:
        command = [sys.executable, __file__, "--step", step, "--folder", str(options.folder)]
        command += ["--ratings", str(options.unsorted or options.ratings)]
        command += ["--repeat", str(options.repeat)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        print(done.stdout.strip() or done.stderr[-2000:], flush=True)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--ratings", type=float, default=1e8)
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--unsorted", type=float, default=0.0)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--algorithms", nargs="*", default=["moments", "default"])
    parser.add_argument("--step")
    return parser.parse_args()


def _step(step: str, folder: Path, ratings: int, repeat: int) -> None:
    """Do one step and say what it took."""
    folder.mkdir(exist_ok=True)
    watch = _Watch()
    started = time.perf_counter()
    if step == "make":
        make(folder, ratings // repeat, repeat)
    else:
        {"shuffle": shuffle, "partition": partition}.get(step, fit)(folder, ratings, step)
    wall = time.perf_counter() - started
    use = resource.getrusage(resource.RUSAGE_SELF)
    cpu = use.ru_utime + use.ru_stime
    peak, own = use.ru_maxrss / 1e6, watch.stop() / 1e9
    print(f"{step:<16} {wall:>7.0f} s {cpu:>7.0f} s {peak:>9.2f} GB {own:>9.2f} GB")


class _Watch:
    """Looks every tenth of a second at how much memory is no mapped file."""

    def __init__(self) -> None:
        self._most, self._on = 0, True
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()

    def _look(self) -> None:
        while self._on:
            lines = Path("/proc/self/status").read_text().splitlines()
            own = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self._most = max(self._most, 1024 * own)
            time.sleep(0.1)

    def stop(self) -> int:
        self._on = False
        self._thread.join()
        return self._most


def make(folder: Path, ratings: int, repeat: int) -> None:
    """Write a store of synthetic ratings, shard by shard."""
    from tacit.data.catalogue import Catalogue
    from tacit.data.ratings import Ratings
    from tacit.data.store_writer import StoreWriter
    from tacit.datasets.synthetic import tastes_in_parts

    writer, drawn = None, ratings // PER_USER
    for world in tastes_in_parts(drawn, ITEMS, PER_USER, part=PART):
        if writer is None:
            catalogue = Catalogue(world.items["item"], world.items["title"])
            where = folder / "store"
            writer = StoreWriter(where, world.rating_range, catalogue, overwrite=True)
        users = world.train["user"].to_numpy()
        _, counts = np.unique(users, return_counts=True)
        indptr = np.concatenate([[0], np.cumsum(counts)])
        items = world.train["item"].to_numpy().astype(np.uint16)
        values = world.train["rating"].to_numpy().copy()
        ids = world.train["user"].gather(indptr[:-1]).cast(int)
        for time_ in range(repeat):
            own = ids + time_ * drawn
            writer.add(Ratings(world.rating_range, catalogue, own, indptr, items, values))
    if writer is not None:
        writer.close()


def shuffle(folder: Path, ratings: int, _step: str) -> None:
    """Write a Parquet file of ratings in an order in which no two of a user are neighbours."""
    import polars as pl

    from tacit.datasets.synthetic import tastes_in_parts

    parts = folder / "parts"
    parts.mkdir(exist_ok=True)
    worlds = tastes_in_parts(ratings // PER_USER, ITEMS, PER_USER, part=10 * PART)
    for number, world in enumerate(worlds):
        path = parts / f"{number:04d}.parquet"
        world.train.sample(fraction=1.0, shuffle=True, seed=number).write_parquet(path)
    frames = [pl.scan_parquet(path) for path in sorted(parts.glob("*.parquet"))]
    size = 1 << 18
    rows = {id(f): f.select(pl.len()).collect().item() for f in frames}
    pieces = [
        f.slice(at, size)
        for at in range(0, max(rows.values()), size)
        for f in frames
        if at < rows[id(f)]
    ]
    pl.concat(pieces).sink_parquet(folder / "unsorted.parquet")
    for path in parts.glob("*.parquet"):
        path.unlink()
    parts.rmdir()


def partition(folder: Path, _ratings: int, _step: str) -> None:
    """Bring the unsorted file into a store."""
    import tacit

    where = folder / "partitioned"
    source = folder / "unsorted.parquet"
    tacit.partition(source, where, rating_range=(0.5, 5.0), overwrite=True)


def fit(folder: Path, _ratings: int, step: str) -> None:
    """Stream a private fit over the store."""
    import tacit

    store = tacit.Store.open(folder / ("partitioned" if step == "partitioned" else "store"))
    algorithm = None if step == "default" else tacit.Moments()
    tacit.fit(store, algorithm, epsilon=1.0, delta=1e-9).save(folder / f"{step}.tacit")


if __name__ == "__main__":
    given = _options()
    if given.step:
        _step(given.step, given.folder, int(given.ratings), given.repeat)
    else:
        main()
