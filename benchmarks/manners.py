"""What a fit of the default takes of a machine: memory, cores, a place beside others, a start.

    python benchmarks/manners.py                     # 40 million ratings, some minutes
    python benchmarks/manners.py --users 50000

Each fit runs in a process of its own, which has compiled its loops before. Memory is the peak of
the whole process, interpreter and libraries included. *Alone* and *beside* a busy process take
turns; the median of either is of wall time. Cores are the processor time of the process over that
of the thread that fits. Starts are processor times, the best of several, of processes whose loops
are compiled.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from frank_wolfe import csr_bytes, make, peak_bytes, run, store, stored

BUSY = "while True: pass"
NEEDED = "import tacit; tacit.Ratings, tacit.fit"
FIRST = """
import time, numpy as np, tacit
rng = np.random.default_rng(0)
user, item = np.divmod(rng.choice(500 * 100, 10000, replace=False), 100)
own = tacit.Ratings.from_arrays(user, item, rng.integers(1, 6, user.size), rating_range=(1, 5))
found = []
for _ in range(2):
    start = time.process_time()
    tacit.fit(own, epsilon=1.0)
    found.append(time.process_time() - start)
print(found[0] - found[1])
"""


def fit(path: Path, threads: int | None, turns: int, beside: bool) -> dict[str, float]:
    """Fit in turns, alone and beside a busy process; return times and the peak of memory."""
    import numpy as np

    import tacit

    ratings = stored(path)
    engine = tacit.ThreadEngine(threads)
    tacit.fit(ratings.take_rows(np.arange(2000)), epsilon=1.0, engine=engine)
    alone, busy, cores = [], [], []
    for _ in range(turns):
        process, thread, start = time.process_time(), time.thread_time(), time.perf_counter()
        tacit.fit(ratings, epsilon=1.0, engine=engine)
        alone.append(time.perf_counter() - start)
        cores.append((time.process_time() - process) / (time.thread_time() - thread))
        if beside:
            with subprocess.Popen([sys.executable, "-c", BUSY]) as neighbour:
                start = time.perf_counter()
                tacit.fit(ratings, epsilon=1.0, engine=engine)
                busy.append(time.perf_counter() - start)
                neighbour.kill()
    found = {"alone": statistics.median(alone), "cores": min(cores)}
    found |= {"peak": peak_bytes(), "csr": csr_bytes(ratings)}
    return found | ({"busy": statistics.median(busy)} if beside else {})


def started(*command: str) -> float:
    """The processor time of a process, the best of several."""
    found = []
    for _ in range(7):
        before = os.times()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        used = after.children_user + after.children_system
        found.append(used - before.children_user - before.children_system)
    return min(found[1:])


def python(code: str) -> float:
    return started(sys.executable, "-c", code)


def first_fit() -> float:
    """What the first fit of a process takes longer than its second, loops being compiled."""
    call = [sys.executable, "-c", FIRST]
    runs = [subprocess.run(call, check=True, capture_output=True, text=True) for _ in range(4)]
    return min(float(each.stdout) for each in runs[1:])


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--per-user", type=int, default=80)
    parser.add_argument("--turns", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ratings.parquet"
        run(make, path, options.users, options.items, options.per_user)
        run(store, path)
        once = run(fit, path, None, 1, False)
        turns = run(fit, path, None, options.turns, True)
        one = run(fit, path, 1, 1, False)
    plain, polars, needed = python("pass"), python("import polars"), python(NEEDED)
    command = started(str(Path(sys.executable).parent / "tacit"), "--help")
    many, csr = 2.0**20, once["csr"] / 2**20
    print(f"{options.users} x {options.items}, {options.per_user} ratings a user\n")
    rows = (
        ("peak memory", f"{once['peak'] / many:.0f} MiB", f"CSR {csr:.0f} MiB",
         f"{once['peak'] / once['csr']:.2f}x", "3x"),
        ("a fit beside a busy process", f"{turns['busy']:.1f} s", f"alone {turns['alone']:.1f} s",
         f"{turns['busy'] / turns['alone']:.2f}x", "2.5x"),
        ("cores of `ThreadEngine(1)`", "", "one thread", f"{one['cores']:.2f}x", "1.05x"),
        ("importing what a fit needs", f"{needed - plain:.2f} s",
         f"polars {polars - plain:.2f} s", f"{needed - polars:.2f} s more", "1 s more"),
        ("first fit of a later process", f"{first_fit():.2f} s more", "its second fit", "", "1 s"),
        ("`tacit --help`", f"{command:.2f} s", "", "", "0.5 s"),
    )  # fmt: skip
    print("| what | measured | beside | ratio | target |\n|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
