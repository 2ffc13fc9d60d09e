"""Ratings and lists of one fit: the default beside `Moments`, at each epsilon.

    python benchmarks/choice_and_rating.py [--data ratings.parquet --rating-range 1 5]
        [--dataset jester] [--family tastes] [--users N] [--tested 8000] [--epsilons 0.1 1 5]
        [--draws 1] [--liked 4] [--without none] [--threads 1] [--seed 0]

--tested users are kept out of every fit, and of the others' ratings one percent. Prints a Markdown
table: RMSE on these ratings, how far it is from that of `Moments` in the same run, recall@20 of the
lists of the users who were kept out (four fifths of their ratings folded in; an item counts if it
is liked), and seconds of a fit. Nothing is tuned. NOT PRIVATE: measured on held-out ratings.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import polars as pl

import tacit
from tacit.datasets import load, synthesise
from tacit.engines import ThreadEngine
from tacit.evaluation import evaluate, rank_new_users, split, user_mean_accuracy

HEADS = ("epsilon", "method", "RMSE", "to Moments", "recall@20", "seconds", "factors")


def ratings_of(options: argparse.Namespace) -> tacit.Ratings:
    """Read a file or a known dataset, or make a family."""
    if options.data is not None:
        frame, limits = pl.read_parquet(options.data), tuple(options.rating_range)
        catalogue = tacit.Catalogue(frame["item"].unique().sort(), public=True)
    elif options.dataset is not None:
        return load(options.dataset)
    else:
        made = synthesise(options.family, test_fraction=0.0, seed=options.seed)
        frame, limits = made.train, made.rating_range
        catalogue = tacit.Catalogue(made.items["item"], public=True)
    return tacit.Ratings.from_frame(frame, rating_range=limits, catalogue=catalogue)


def parts_of(options: argparse.Namespace) -> tuple[tacit.Ratings, tacit.Ratings, tacit.Ratings]:
    """Return the ratings of the fit, those held out of it, and those of new users."""
    ratings, rng = ratings_of(options), np.random.default_rng(options.seed)
    order = rng.permutation(ratings.n_users)
    new, rest = np.split(order, [options.tested])
    fitted = ratings.take_rows(np.sort(rest[: options.users]))
    return *split(fitted, 0.01, rng), ratings.take_rows(np.sort(new))


def measure(config, epsilon: float | None, parts, options) -> tuple[float, float, float, int]:
    """Return RMSE, recall@20, seconds, and the number of factors, averaged over the draws."""
    train, test, new = parts
    budget, found = None if epsilon is None else tacit.PrivacyBudget(epsilon), []
    for _ in range(1 if epsilon is None else options.draws):
        start = time.perf_counter()
        model = tacit.fit(train, config, budget=budget, engine=ThreadEngine(options.threads))
        seconds = time.perf_counter() - start
        lists = rank_new_users(model, new, relevant=options.liked, seed=options.seed)
        rmse = evaluate(model, train, test).rmse
        found.append((rmse, lists.recall_20.mean, seconds, model.rule.factors.shape[1]))
    rmse, recall, seconds, factors = np.mean(found, axis=0)
    return float(rmse), float(recall), float(seconds), round(factors)


def options_of() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="Parquet with columns user, item, rating")
    parser.add_argument("--rating-range", type=float, nargs=2, default=(1.0, 5.0))
    parser.add_argument("--dataset", help="a known dataset, as jester")
    parser.add_argument("--family", default="tastes")
    parser.add_argument("--users", type=int, help="people of the fit; all that are left if none")
    parser.add_argument("--tested", type=int, default=2_000)
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 1.0, 5.0])
    parser.add_argument("--draws", type=int, default=1)
    parser.add_argument("--liked", type=float, help="liked from here on; 0.7 up the range if none")
    parser.add_argument(
        "--without", nargs="*", default=[], choices=["none"], help="no such epsilon"
    )
    parser.add_argument("--threads", type=int)
    parser.add_argument("--seed", type=int, default=0)
    return parser.parse_args()


def main() -> None:
    """Measure and print."""
    options = options_of()
    parts = parts_of(options)
    train, _, new = parts
    print(
        f"NOT PRIVATE. {train.n_users:,} users of the fit, {train.n_items:,} items, "
        f"{train.values.size:,} ratings; {new.n_users:,} new users; one's own mean has RMSE "
        f"{user_mean_accuracy(*parts[:2]).rmse:.4f}\n"
    )
    print("| " + " | ".join(HEADS) + " |\n" + "|---" * len(HEADS) + "|")
    for epsilon in [*options.epsilons, *([] if "none" in options.without else [None])]:
        base = None
        for name, config in (("Moments", tacit.Moments()), ("default", tacit.LatentFactors())):
            rmse, recall, seconds, factors = measure(config, epsilon, parts, options)
            base = rmse if base is None else base
            level = "none" if epsilon is None else f"{epsilon:g}"
            print(
                f"| {level} | {name} | {rmse:.4f} | {100 * (rmse / base - 1):+.2f} % | "
                f"{recall:.4f} | {seconds:.0f} | {factors} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
