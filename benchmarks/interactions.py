"""Recall against epsilon for interactions without ratings, beside the most popular items.

    python benchmarks/interactions.py [--families popular tastes] [--epsilons 0.1 1 5] [--draws 3]
                                      [--seed 1]

Families: "popular" and "missing-not-at-random" are those of tacit.datasets, with every rating taken
as an interaction; "tastes" and "many" are made here (`people_of_tastes`), for 20,000 and for
200,000 people. All have 1,000 items. A fifth of the interactions is held out. The settings of
tacit.Interactions were chosen on worlds of seed 0; figures are to be measured on those of other
seeds. Prints a Markdown table of recall@10 / recall@20, means over the draws of noise, with the
number of directions that were found. NOT PRIVATE: figures of held-out interactions.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

import tacit
from tacit.datasets.synthetic import synthesise
from tacit.evaluation import ExactPopularity, rank, split
from tacit.models.implicit import InteractionRule

ITEMS, PER_USER, TASTES, BOOST = 1000, 30, 25, 15.0
TESTED = 5_000  # people whose lists are looked at


def people_of_tastes(users: int, seed: int) -> tacit.Ratings:
    """Everyone has two of 25 tastes, and takes items of those up to 16 times as often."""
    rng = np.random.default_rng(seed)
    fame = (rng.permutation(ITEMS) + 5.0) ** -0.8
    liked = rng.random((TASTES, ITEMS)) < 0.08
    pairs = list(_rows(users, fame, liked, rng))
    catalogue = tacit.Catalogue(list(range(ITEMS)), public=True)
    who, what = (np.concatenate(part) for part in zip(*pairs, strict=True))
    return tacit.Ratings.from_arrays(who, what, implicit=True, catalogue=catalogue)


def _rows(
    users: int, fame: np.ndarray, liked: np.ndarray, rng: np.random.Generator
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    counts = np.exp(np.log(PER_USER) + 0.8 * rng.standard_normal(users))
    counts = np.clip(counts, 5, ITEMS // 3).astype(int)
    for user in range(users):
        own = np.zeros(TASTES)
        own[rng.choice(TASTES, 2, replace=False)] = rng.random(2)
        chance = fame * (1 + BOOST * (own @ liked))
        keys = np.log(chance) + rng.gumbel(size=ITEMS)
        yield (
            np.full(counts[user], user),
            np.argpartition(-keys, counts[user])[: counts[user]],
        )


def world_of(family: str, seed: int) -> tacit.Ratings:
    """Everyone's interactions."""
    if family in ("tastes", "many"):
        return people_of_tastes(20_000 if family == "tastes" else 200_000, seed)
    made = synthesise(family, items=ITEMS, seed=seed, test_fraction=0.0)
    catalogue = tacit.Catalogue(made.items["item"], public=True)
    return tacit.Ratings.from_frame(made.train, implicit=True, catalogue=catalogue)


def recalls(model: object, train: tacit.Ratings, test: tacit.Ratings) -> np.ndarray:
    """Recall@10 and recall@20."""
    return np.array([rank(model, train, test, k).recall for k in (10, 20)])


def popular_part(model: tacit.Model) -> tacit.Model:
    """The same releases, with what they say of tastes thrown away."""
    shares = model.rule.offsets
    return replace(model, rule=InteractionRule(np.zeros((shares.size, 0)), shares))


def measured(
    family: str, epsilons: list[float | None], draws: int, seed: int
) -> dict[str, list[str]]:
    """The rows of the table for one family, and how many directions were found."""
    train, test = split(world_of(family, seed), 0.2, np.random.default_rng(seed))
    test = test.take_rows(np.arange(min(TESTED, test.n_users)))
    exact = "{:.3f} / {:.3f}".format(*recalls(ExactPopularity(train), train, test))
    rows: dict[str, list[str]] = {"Interactions": [], "popularity": [], "exact": []}
    for epsilon in epsilons:
        found, popular, directions = [], [], []
        for _ in range(draws if epsilon else 1):
            budget = None if epsilon is None else tacit.PrivacyBudget(epsilon)
            model = tacit.fit(train, budget=budget)
            found.append(recalls(model, train, test))
            popular.append(recalls(popular_part(model), train, test))
            directions.append(model.rule.factors.shape[1])
        text = "{:.3f} / {:.3f}".format(*np.mean(found, axis=0))
        rows["Interactions"].append(f"{text} ({np.mean(directions):.0f})")
        rows["popularity"].append("{:.3f} / {:.3f}".format(*np.mean(popular, axis=0)))
        rows["exact"].append(exact)
    return rows


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    known = ["popular", "missing-not-at-random", "tastes", "many"]
    parser.add_argument("--families", nargs="+", default=known, choices=known)
    parser.add_argument("--epsilons", nargs="+", type=float, default=[0.1, 0.5, 1.0, 5.0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    epsilons = [*options.epsilons, None]
    heads = [f"epsilon {epsilon:g}" if epsilon else "no privacy" for epsilon in epsilons]
    print("| family | list |", " | ".join(heads), "|")
    print("|---|---|" + "---|" * len(heads))
    for family in options.families:
        rows = measured(family, epsilons, options.draws, options.seed)
        for name, cells in rows.items():
            print(f"| {family} | {name} |", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main()
