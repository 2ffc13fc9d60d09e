"""What helped Moments and what did not: RMSE on validation ratings, one change at a time.

    python benchmarks/moments.py [--families tastes popular ...] [--epsilons 0.1 1] [--draws 2]

Families are those of `tacit.datasets.synthesise`; "jester" needs TACIT_DATA. Two percent of the
ratings are held out for validation; no test rating is looked at. Prints a Markdown table a family.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import numpy as np

import tacit
from tacit.algorithms import moments
from tacit.datasets import load, synthesise
from tacit.estimation import spiked_covariance
from tacit.evaluation import evaluate, split, user_mean_accuracy

FAMILIES = ("tastes", "popular", "few", "sparse", "missing-not-at-random")


def scaled_noise(factor: float):
    """Let users assume other rating noise."""
    plain = moments.Moments._rule

    def rule(self, *parts):
        found = plain(self, *parts)
        return replace(found, noise=factor * found.noise)

    return patch.object(moments.Moments, "_rule", rule)


VARIANTS = {
    "default": (),
    "item effects get 5 % of the budget": ({"effect_share": 0.05},),
    "item effects get 25 %": ({"effect_share": 0.25},),
    "rows clipped at half the mean square": (patch.object(moments, "HEADROOM", 0.5),),
    "rows clipped at the mean square": (patch.object(moments, "HEADROOM", 1.0),),
    "rows clipped at twice the mean square": (patch.object(moments, "HEADROOM", 2.0),),
    "no correction of the clipping bias": (patch.object(moments, "MOST_LOST", 1.0),),
    "one activity stratum": (patch.object(moments, "activity_strata", lambda *_: ()),),
    "one variance for all items": (
        patch.object(moments, "_own", lambda swollen, *_: np.zeros_like(swollen)),
    ),
    "at most 80 ratings per user": ({"max_ratings": 80},),
    "at most 10 latent factors": ({"rank": 10},),
    "equal weights of items": (patch.object(spiked_covariance, "_TYPICAL", 1e3),),
    "rating noise x 0.7": (scaled_noise(0.7),),
    "rating noise x 1.4": (scaled_noise(1.4),),
    "bias shrinkage at most 1": ({"level_shrink": 1.0},),
    "products instead of the covariance": ({"eigen": "block"},),
}


@contextmanager
def variant(changes) -> Iterator[tacit.Moments]:
    """Make one change, and undo it."""
    patches = [change for change in changes if not isinstance(change, dict)]
    settings = {k: v for change in changes if isinstance(change, dict) for k, v in change.items()}
    for change in patches:
        change.start()
    try:
        yield tacit.Moments(**settings)
    finally:
        for change in patches:
            change.stop()


def problem(name: str) -> tuple[tacit.Ratings, tacit.Ratings]:
    if name == "jester":
        ratings = load("jester")
    else:
        made = synthesise(name)
        catalogue = tacit.Catalogue(made.items["item"], public=True)
        span = (-1.0, 1.0) if name == "rank-one" else (0.5, 5.0)
        ratings = tacit.Ratings.from_frame(made.train, rating_range=span, catalogue=catalogue)
    return split(ratings, 0.02, np.random.default_rng(1))


def error(config, epsilon: float, draws: int, parts) -> float:
    budget = None if epsilon == float("inf") else tacit.PrivacyBudget(epsilon)
    fits = (tacit.fit(parts[0], config, budget=budget) for _ in range(draws if budget else 1))
    return float(np.mean([evaluate(model, *parts).rmse for model in fits]))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--families", nargs="+", default=FAMILIES)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 1.0, 5.0])
    parser.add_argument("--draws", type=int, default=2)
    options = parser.parse_args()
    for name in options.families:
        parts = problem(name)
        print(f"\n{name}: user mean {user_mean_accuracy(*parts).rmse:.4f}\n")
        print("| change | " + " | ".join(f"epsilon {e:g}" for e in options.epsilons) + " |")
        print("|---" * (1 + len(options.epsilons)) + "|")
        for label, changes in VARIANTS.items():
            with variant(changes) as config:
                errors = [error(config, e, options.draws, parts) for e in options.epsilons]
            print(f"| {label} | " + " | ".join(f"{e:.4f}" for e in errors) + " |", flush=True)


if __name__ == "__main__":
    main()
