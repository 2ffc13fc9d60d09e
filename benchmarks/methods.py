"""RMSE against epsilon, and seconds a fit, for the default and the paper's methods on one set.

    python benchmarks/methods.py [--ratings FILE --rating-range LO HI] [--methods frank-wolfe oja]
                                 [--epsilons 0.1 1 5] [--draws 3] [--users 500000]
                                 [--private-only]

Without --ratings it makes Synthetic-400, the paper's rank-one matrix. One percent of the ratings
are held out, the same for all; settings are fixed here, before anyone looks at them. Prints a
Markdown table: mean RMSE over the draws, plus or minus their standard deviation.
"""

import argparse
import time

import numpy as np

import tacit
from tacit.evaluation import evaluate, split, user_mean_accuracy

PAID = {"item_means": 0.2}


def configs(k: float | None, synthetic: bool) -> dict:
    """The methods with their settings: item means first on real ratings, as in `tacit.fit`."""
    rows = {"centre": False} if synthetic else PAID
    walk = {"shift": False, "residual_clip": 1.0, "nuclear_norm": k, **rows}
    return {
        "latent-factors": tacit.LatentFactors(),
        "moments": tacit.Moments(),
        "frank-wolfe": tacit.FrankWolfe(rounds=10, **walk),
        "oja": tacit.FrankWolfe(rounds=10, eigen="oja", oja_steps=6, **walk),
        "frank-wolfe, ridge": tacit.FrankWolfe(rounds=10, local="ridge", **walk),
        "svd": tacit.SVD(rank=1 if synthetic else 5, **rows),
        "svd, power": tacit.SVD(rank=1 if synthetic else 5, eigen="power", **rows),
        "svd, oja": tacit.SVD(rank=1 if synthetic else 5, eigen="oja", **rows),
        "pgd": tacit.ProjectedGradient(nuclear_norm=k, **rows),
        "cleansing": tacit.Cleansing(rank=1 if synthetic else 10),
        "cleansing, neighbours": tacit.Cleansing(local="neighbours"),
        "sgld": tacit.NoisyGradient(rank=1 if synthetic else 6, **rows),
    }


def problem(options: argparse.Namespace) -> tuple[tacit.Ratings, tacit.Ratings, float | None]:
    if options.ratings:
        ratings = tacit.Ratings.from_file(options.ratings, rating_range=options.rating_range)
        return *split(ratings, 0.01, np.random.default_rng(0)), None
    from tacit.datasets.synthetic import synthesise

    made = synthesise("rank-one", users=options.users, items=400, per_user=81)
    catalogue = tacit.Catalogue(made.items["item"], public=True)
    train, test = (
        tacit.Ratings.from_frame(part, rating_range=(-1, 1), catalogue=catalogue)
        for part in (made.train, made.test)
    )
    u, v = made.truth
    return train, test, float(np.linalg.norm(u) * np.linalg.norm(v))


def measure(config, budget, draws: int, parts) -> str:
    errors, seconds = [], []
    for _ in range(draws if budget else 1):
        start = time.perf_counter()
        model = tacit.fit(parts[0], config, budget=budget)
        seconds.append(time.perf_counter() - start)
        errors.append(evaluate(model, *parts).rmse)
    spread = f" ± {np.std(errors):.4f}" if len(errors) > 1 else ""
    return f"{np.mean(errors):.4f}{spread} ({np.median(seconds):.1f} s)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--ratings", nargs="*")
    parser.add_argument("--rating-range", type=float, nargs=2, default=(0.0, 5.0))
    parser.add_argument("--methods", nargs="*")
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.1, 0.5, 1.0, 5.0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--users", type=int, default=500_000)
    parser.add_argument("--private-only", action="store_true", help="no fits without noise")
    options = parser.parse_args()
    *parts, k = problem(options)
    print(f"user's own mean: RMSE {user_mean_accuracy(*parts).rmse:.4f}\n")
    budgets = [tacit.PrivacyBudget(epsilon) for epsilon in options.epsilons]
    budgets += [] if options.private_only else [None]
    print(
        "| method | " + " | ".join(f"epsilon {e:g}" for e in options.epsilons) + " | no privacy |"
    )
    print("|---" * (len(budgets) + 1) + "|")
    for name, config in configs(k, synthetic=not options.ratings).items():
        if not options.methods or name in options.methods:
            cells = [measure(config, budget, options.draws, parts) for budget in budgets]
            print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
