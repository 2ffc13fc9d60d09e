"""How the processor time of a fit grows with users, items, ratings and rounds.

    python benchmarks/slopes.py [--users 20000] [--turns 3]

One thing is doubled twice, all else stays; the slope is that of the line through the logarithms of
the best processor times. 1 is linear. Rounds are those of exact Frank-Wolfe; the rest is measured
on Frank-Wolfe with 3 rounds and on the default method.
"""

import argparse
import time
from functools import partial

import numpy as np
import polars as pl
from growth import seconds, slope

import tacit


def made(users: int, items: int, per_user: int) -> tacit.Ratings:
    """Ratings made in memory: one item from each stretch of the catalogue."""
    rng = np.random.default_rng(0)
    width = items // per_user
    chosen = np.arange(per_user) * width + rng.integers(0, width, (users, per_user))
    return tacit.Ratings(
        (1.0, 5.0),
        tacit.Catalogue(pl.Series("item", np.arange(items)), public=True),
        pl.Series("user", np.arange(users)),
        np.arange(users + 1, dtype=np.int64) * per_user,
        chosen.ravel().astype(np.uint16),
        rng.integers(1, 6, users * per_user).astype(np.float32),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--users", type=int, default=20_000)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    users = options.users
    timed = partial(seconds, turns=options.turns, clock=time.process_time)
    methods = {"frank-wolfe, 3 rounds": tacit.FrankWolfe(rounds=3), "default": None}
    grid: dict[str, list[tuple[int, tuple[int, int, int]]]] = {
        "users": [(k, (k * users, 400, 40)) for k in (1, 2, 4)],
        "items": [(k, (2 * users, k * 200, 40)) for k in (1, 2, 4)],
        "ratings per user": [(k, (2 * users, 400, k * 20)) for k in (1, 2, 4)],
    }
    print("| what grows | method | seconds of processor time | slope |")
    print("|---|---|---|---|")
    for name, method in methods.items():
        tacit.fit(made(500, 400, 40), method, epsilon=1.0)
        for what, cases in grid.items():
            times = [timed(made(*shape), method) for _, shape in cases]
            shown = ", ".join(f"{value:.2f}" for value in times)
            found = slope([k for k, _ in cases], times)
            print(f"| {what}, 1x 2x 4x | {name} | {shown} | {found:.2f} |", flush=True)
    ratings, rounds = made(2 * users, 400, 40), [3, 6, 12]
    times = [timed(ratings, tacit.FrankWolfe(rounds=k)) for k in rounds]
    shown = ", ".join(f"{value:.2f}" for value in times)
    print(f"| rounds, 3 6 12 | frank-wolfe | {shown} | {slope(rounds, times):.2f} |")


if __name__ == "__main__":
    main()
