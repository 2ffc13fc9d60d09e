"""What a fit of the default costs beside one of Moments, on one thread, release by release.

    python benchmarks/fit_cost.py --ratings FILE --rating-range 1 5 --epsilons 0.1 1

Processor time, the best of several fits in turns: another busy process then changes little. A
first fit of each, of a few users, compiles loops and does not count. The last column of a fit's
row is its time over that of Moments at the same epsilon; rows below it are of its releases, and
what is left is noise, eigenvectors and estimates.
"""

import argparse
import time
from collections import defaultdict

import numpy as np

import tacit
from tacit.algorithms.base import Algorithm
from tacit.trusted.statistic import BoundedSum, Statistic

FEW = 2000


class TimedEngine(tacit.ThreadEngine):
    """One thread, and how long the sums of each statistic took."""

    def __init__(self) -> None:
        super().__init__(1)
        self.seconds: dict[str, float] = defaultdict(float)

    def sum(self, statistic: Statistic, unit: float) -> BoundedSum:
        """Sum as the engine does, and take the time."""
        start = time.process_time()
        total = super().sum(statistic, unit)
        self.seconds[type(statistic).__name__] += time.process_time() - start
        return total


def timed(ratings: tacit.Ratings, algorithm: Algorithm, epsilon: float) -> dict[str, float]:
    """Return the seconds of a fit, of each kind of release in it, and how many factors it found."""
    engine = TimedEngine()
    start = time.process_time()
    model = tacit.fit(ratings, algorithm, epsilon=epsilon, engine=engine)
    whole = time.process_time() - start
    factors = float(model.rule.factors.shape[1])  # type: ignore[attr-defined]
    return {"fit": whole, "factors": factors} | engine.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--ratings", required=True)
    parser.add_argument("--rating-range", nargs=2, type=float, required=True)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0])
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    ratings = tacit.Ratings.from_file(options.ratings, rating_range=tuple(options.rating_range))
    algorithms = {"Moments": tacit.Moments(), "LatentFactors": tacit.LatentFactors()}
    few = ratings.take_rows(np.arange(min(FEW, ratings.n_users)))
    for algorithm in algorithms.values():
        timed(few, algorithm, 1.0)
    print(f"{ratings.n_users:,} users, {ratings.n_items:,} items, {ratings.items.size:,} ratings")
    print("| epsilon | | seconds | beside Moments |")
    print("|---|---|---|---|")
    for epsilon in options.epsilons:
        turns = [
            [timed(ratings, each, epsilon) for each in algorithms.values()]
            for _ in range(options.turns)
        ]
        best = [min(found, key=lambda each: each["fit"]) for found in zip(*turns, strict=True)]
        for name, found in zip(algorithms, best, strict=True):
            whole, ratio = found["fit"], found["fit"] / best[0]["fit"]
            words = f"{name}, {found['factors']:.0f} factors"
            print(f"| {epsilon:g} | {words} | {whole:.2f} | {ratio:.2f} |")
            for kind, seconds in list(found.items())[2:]:
                print(f"| | {kind} | {seconds:.2f} | |", flush=True)


if __name__ == "__main__":
    main()
