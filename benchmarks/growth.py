"""How the time of a fit grows with the number of users: 1x, 2x, 4x and 8x, beside linear growth.

    python benchmarks/growth.py [--users 500000] [--items 400] [--per-user 80] [--turns 3]

Ratings are random numbers: the time hardly depends on what they are. Prints the best time of
several turns, and the slope of log seconds against log users by least squares: 1 is linear, less
is better. What does not depend on users, such as noise and eigenvectors, flattens it; the last
column leaves the smallest sizes out.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from oja import made

import tacit

METHODS = {
    "automatic settings": None,
    "Frank-Wolfe, T = 10": tacit.FrankWolfe(rounds=10),
    "Frank-Wolfe with Oja, T = 10": tacit.FrankWolfe(rounds=10, eigen="oja"),
    "SVD": tacit.SVD(),
    "cleansing": tacit.Cleansing(),
}
SHARES = (8, 4, 2, 1)


def seconds(
    ratings: tacit.Ratings, config, turns: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the best time of several fits."""
    found = []
    for _ in range(turns):
        start = clock()
        tacit.fit(ratings, config, epsilon=1.0)
        found.append(clock() - start)
    return min(found)


def slope(sizes: list[int], times: list[float]) -> float:
    """Return the slope of log seconds against log sizes."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--per-user", type=int, default=80)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    everyone = made(options.users, options.items, options.per_user)
    sizes = [options.users // share for share in SHARES]
    few, *parts = (everyone.take_rows(np.arange(size)) for size in (100, *sizes))
    heads = [f"{size:,} users" for size in sizes]
    print(f"| method | {' | '.join(heads)} | slope | slope of the last two |")
    print("|---" * (3 + len(sizes)) + "|")
    for label, config in METHODS.items():
        tacit.fit(few, config, epsilon=1.0)  # compiles
        times = [seconds(part, config, options.turns) for part in parts]
        cells = " | ".join(f"{one:.2f} s" for one in times)
        last = slope(sizes[-2:], times[-2:])
        print(f"| {label} | {cells} | {slope(sizes, times):.2f} | {last:.2f} |", flush=True)


if __name__ == "__main__":
    main()
